//! Receiving: the methods of the trait `Receive`, without the trait.

use std::io::{self, IoSliceMut};
use std::time::Duration;

use super::Stream;
use super::stream::{WaitLimit, set_timeout};
use crate::sys::named_pipe::Received;
use crate::sys::overlapped::Event;
use crate::{TransferError, exact};

/// The methods that receive.
impl Stream {
    /// Receives available octets into `buffer` and returns their number; waits while none are available. Zero
    /// is the end of the stream (unless `buffer` is empty).
    ///
    /// # Errors
    /// Any error of the operating system; a receive timeout satisfies [`is_timeout`](crate::is_timeout).
    pub fn recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.receive(buffer, self.limit(&self.end.settings.recv_timeout))
    }

    /// Receives available octets into `slices`, in order, and returns their number. Zero is the end of the
    /// stream.
    ///
    /// # Errors
    /// As [`recv`](Self::recv).
    pub fn recv_v(&self, slices: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.receive_v(slices, self.limit(&self.end.settings.recv_timeout))
    }

    /// Like [`recv`](Self::recv), but never waits.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when nothing is queued; those of the operating system.
    pub fn try_recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.receive(buffer, WaitLimit::none())
    }

    /// Like [`recv_v`](Self::recv_v), but never waits.
    ///
    /// # Errors
    /// As [`try_recv`](Self::try_recv).
    pub fn try_recv_v(&self, slices: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.receive_v(slices, WaitLimit::none())
    }

    /// The time limit of one `recv`; `None` waits for ever.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for a time of zero; others of the operating system.
    pub fn set_recv_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        set_timeout(&self.end.settings.recv_timeout, timeout)
    }

    /// Fills `buffer`.
    ///
    /// # Errors
    /// [`TransferError`] with the number of octets received before the end of the stream
    /// ([`io::ErrorKind::UnexpectedEof`]), a timeout or another error.
    pub fn recv_n(&self, buffer: &mut [u8]) -> Result<(), TransferError> {
        exact::recv_n(buffer, |buffer| self.recv(buffer))
    }

    /// Fills all of `slices`, which are advanced past the octets received.
    ///
    /// # Errors
    /// As [`recv_n`](Self::recv_n).
    pub fn recv_n_v(&self, slices: &mut [IoSliceMut<'_>]) -> Result<(), TransferError> {
        exact::recv_n_v(slices, |slices| self.recv_v(slices))
    }

    /// Like [`recv`](Self::recv), but waits no longer than `timeout`.
    ///
    /// # Errors
    /// [`io::ErrorKind::TimedOut`] on a timeout; those of the operating system.
    pub fn recv_within(&self, buffer: &mut [u8], timeout: Duration) -> io::Result<usize> {
        self.receive(buffer, WaitLimit::of(Some(timeout)))
    }

    /// Like [`recv_v`](Self::recv_v), but waits no longer than `timeout`.
    ///
    /// # Errors
    /// As [`recv_within`](Self::recv_within).
    pub fn recv_v_within(&self, slices: &mut [IoSliceMut<'_>], timeout: Duration) -> io::Result<usize> {
        self.receive_v(slices, WaitLimit::of(Some(timeout)))
    }

    /// Like [`recv_n`](Self::recv_n), but takes no longer than `timeout` in all.
    ///
    /// # Errors
    /// As [`recv_n`](Self::recv_n), with [`io::ErrorKind::TimedOut`] on a timeout.
    pub fn recv_n_within(&self, buffer: &mut [u8], timeout: Duration) -> Result<(), TransferError> {
        let limit = WaitLimit::of(Some(timeout));
        exact::recv_n(buffer, |buffer| self.receive(buffer, limit))
    }

    /// Like [`recv_n_v`](Self::recv_n_v), but takes no longer than `timeout` in all.
    ///
    /// # Errors
    /// As [`recv_n_within`](Self::recv_n_within).
    pub fn recv_n_v_within(&self, slices: &mut [IoSliceMut<'_>], timeout: Duration) -> Result<(), TransferError> {
        let limit = WaitLimit::of(Some(timeout));
        exact::recv_n_v(slices, |slices| self.receive_v(slices, limit))
    }

    /// The timeout set with [`set_recv_timeout`](Self::set_recv_timeout).
    ///
    /// # Errors
    /// None.
    pub fn recv_timeout(&self) -> io::Result<Option<Duration>> {
        Ok(*self.end.settings.recv_timeout.lock())
    }

    /// Receives the available octets into the first of `slices` that has room, and further available ones
    /// into the others.
    fn receive_v(&self, slices: &mut [IoSliceMut<'_>], limit: WaitLimit) -> io::Result<usize> {
        let mut received = 0;
        let mut next = limit;
        for slice in slices.iter_mut().filter(|slice| !slice.is_empty()) {
            match self.receive(slice, next) {
                Ok(n) => {
                    received += n;
                    if n < slice.len() {
                        break;
                    }
                }
                Err(_) if received > 0 => break, // the next call gets it
                Err(error) => return Err(error),
            }
            next = WaitLimit::none();
        }
        Ok(received)
    }

    fn receive(&self, buffer: &mut [u8], limit: WaitLimit) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        Event::with_spare(|event| self.receive_with(event, buffer, limit))
    }

    fn receive_with(&self, event: &Event, buffer: &mut [u8], limit: WaitLimit) -> io::Result<usize> {
        loop {
            let Some(pipe) = self.end.outgoing.pipe() else { return Ok(0) };
            match pipe.receive(buffer, event, &self.end.stop, limit.deadline)? {
                Received::Octets(octets) => return Ok(octets),
                Received::End => return Ok(0),
                // Perhaps shut down: then the pipe is closed, or soon will be.
                Received::Stopped if self.end.stop.is_set()? => return Ok(0),
                Received::Stopped => return Err(limit.on_timeout.into()),
                Received::Empty if limit.deadline.is_over() => {
                    return Err(limit.on_timeout.into());
                }
                Received::Empty => {}
            }
        }
    }
}
