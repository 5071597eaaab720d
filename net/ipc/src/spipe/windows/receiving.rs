//! Receiving: the methods of the trait `Receive`, without the trait.

use std::io::{self, IoSliceMut};
use std::time::Duration;

use super::Stream;
use super::stream::{Patience, set_timeout};
use crate::sys::named_pipe::{Event, Received};
use crate::{TransferError, exact};

/// Receiving.
impl Stream {
    /// Receives into `buffer` what is there and says how many octets; waits while nothing is there. Zero is the end (unless
    /// `buffer` is empty).
    ///
    /// # Errors
    /// Those of the operating system; a receive time-out as [`is_timeout`](crate::is_timeout) tells.
    pub fn recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.receive(buffer, self.patience(&self.end.settings.recv_timeout))
    }

    /// Receives into `slices`, in order, what is there and says how many octets. Zero is the end.
    ///
    /// # Errors
    /// As [`recv`](Self::recv).
    pub fn recv_v(&self, slices: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.receive_v(slices, self.patience(&self.end.settings.recv_timeout))
    }

    /// Like [`recv`](Self::recv), but never waits.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when nothing is there; those of the operating system.
    pub fn try_recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.receive(buffer, Patience::none())
    }

    /// Like [`recv_v`](Self::recv_v), but never waits.
    ///
    /// # Errors
    /// As [`try_recv`](Self::try_recv).
    pub fn try_recv_v(&self, slices: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.receive_v(slices, Patience::none())
    }

    /// How long one `recv` may wait; `None` is for ever.
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
    /// ([`io::ErrorKind::UnexpectedEof`]), a time-out or another error.
    pub fn recv_n(&self, buffer: &mut [u8]) -> Result<(), TransferError> {
        exact::recv_n(buffer, |buffer| self.recv(buffer))
    }

    /// Fills all of `slices`, which are advanced past what was received.
    ///
    /// # Errors
    /// As [`recv_n`](Self::recv_n).
    pub fn recv_n_v(&self, slices: &mut [IoSliceMut<'_>]) -> Result<(), TransferError> {
        exact::recv_n_v(slices, |slices| self.recv_v(slices))
    }

    /// Like [`recv`](Self::recv), but waits no longer than `timeout`.
    ///
    /// # Errors
    /// [`io::ErrorKind::TimedOut`] when the time ran out; those of the operating system.
    pub fn recv_within(&self, buffer: &mut [u8], timeout: Duration) -> io::Result<usize> {
        self.receive(buffer, Patience::of(Some(timeout)))
    }

    /// Like [`recv_v`](Self::recv_v), but waits no longer than `timeout`.
    ///
    /// # Errors
    /// As [`recv_within`](Self::recv_within).
    pub fn recv_v_within(&self, slices: &mut [IoSliceMut<'_>], timeout: Duration) -> io::Result<usize> {
        self.receive_v(slices, Patience::of(Some(timeout)))
    }

    /// Like [`recv_n`](Self::recv_n), but takes no longer than `timeout` in all.
    ///
    /// # Errors
    /// As [`recv_n`](Self::recv_n), with [`io::ErrorKind::TimedOut`] when the time ran out.
    pub fn recv_n_within(&self, buffer: &mut [u8], timeout: Duration) -> Result<(), TransferError> {
        let patience = Patience::of(Some(timeout));
        exact::recv_n(buffer, |buffer| self.receive(buffer, patience))
    }

    /// Like [`recv_n_v`](Self::recv_n_v), but takes no longer than `timeout` in all.
    ///
    /// # Errors
    /// As [`recv_n_within`](Self::recv_n_within).
    pub fn recv_n_v_within(&self, slices: &mut [IoSliceMut<'_>], timeout: Duration) -> Result<(), TransferError> {
        let patience = Patience::of(Some(timeout));
        exact::recv_n_v(slices, |slices| self.receive_v(slices, patience))
    }

    /// The time set with [`set_recv_timeout`](Self::set_recv_timeout).
    ///
    /// # Errors
    /// None.
    pub fn recv_timeout(&self) -> io::Result<Option<Duration>> {
        Ok(*self.end.settings.recv_timeout.lock())
    }

    /// What is there, into the first of `slices` that has room, and into the others what is there besides.
    fn receive_v(&self, slices: &mut [IoSliceMut<'_>], patience: Patience) -> io::Result<usize> {
        let mut received = 0;
        let mut next = patience;
        for slice in slices.iter_mut().filter(|slice| !slice.is_empty()) {
            match self.receive(slice, next) {
                Ok(n) => {
                    received += n;
                    if n < slice.len() {
                        break;
                    }
                }
                Err(_) if received > 0 => break, // it comes again
                Err(error) => return Err(error),
            }
            next = Patience::none();
        }
        Ok(received)
    }

    fn receive(&self, buffer: &mut [u8], patience: Patience) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        let spare = self.end.events.lock().pop();
        let event = spare.map_or_else(Event::new, Ok)?;
        let result = self.receive_with(&event, buffer, patience);
        self.end.events.lock().push(event);
        result
    }

    fn receive_with(&self, event: &Event, buffer: &mut [u8], patience: Patience) -> io::Result<usize> {
        loop {
            let Some(pipe) = self.end.outgoing.pipe() else { return Ok(0) };
            match pipe.receive(buffer, event, &self.end.stop, patience.deadline)? {
                Received::Octets(octets) => return Ok(octets),
                Received::End => return Ok(0),
                // Shut down, perhaps: then there is no pipe any more, or soon will not be.
                Received::Waited if self.end.stop.is_set()? => return Ok(0),
                Received::Waited => return Err(patience.over.into()),
                Received::Nothing if patience.deadline.left().is_some_and(|left| left.is_zero()) => {
                    return Err(patience.over.into());
                }
                Received::Nothing => {}
            }
        }
    }
}
