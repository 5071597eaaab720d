//! Transfer of octets: the traits common to the streams of all families and the ends of one-way channels.
//!
//! Every transfer has three forms: `recv` waits as the endpoint is configured (without limit, for the time of
//! [`set_recv_timeout`](Receive::set_recv_timeout), or not at all), `try_recv` never waits, and `recv_within`
//! takes its own time limit. Each exists for one buffer and for several (`_v`: scatter and gather), for
//! partial transfers and for exact ones (`_n`).

use std::fmt::Debug;
use std::io::{self, IoSlice, IoSliceMut};
use std::net::Shutdown;
use std::time::Duration;

use spandrel_sync::time::Deadline;

use crate::{Handle, Interest, Pollable, TransferError, exact, wait_ready};

/// An endpoint from which octets are received.
pub trait Receive: Pollable {
    /// Receives available octets into `buffer` and returns their number; waits while none are available. Zero
    /// is the end of the stream (unless `buffer` is empty).
    ///
    /// # Errors
    /// Any error of the operating system; a receive timeout satisfies [`is_timeout`](crate::is_timeout).
    fn recv(&self, buffer: &mut [u8]) -> io::Result<usize>;

    /// Receives available octets into `slices`, in order, and returns their number. Zero is the end of the
    /// stream.
    ///
    /// # Errors
    /// As [`recv`](Self::recv).
    fn recv_v(&self, slices: &mut [IoSliceMut<'_>]) -> io::Result<usize>;

    /// Like [`recv`](Self::recv), but never waits.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when nothing is queued; those of the operating system.
    fn try_recv(&self, buffer: &mut [u8]) -> io::Result<usize>;

    /// Like [`recv_v`](Self::recv_v), but never waits.
    ///
    /// # Errors
    /// As [`try_recv`](Self::try_recv).
    fn try_recv_v(&self, slices: &mut [IoSliceMut<'_>]) -> io::Result<usize>;

    /// The time limit of one `recv`; `None` waits for ever. A call interrupted by signals may take twice as
    /// long.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for a time of zero; others of the operating system.
    fn set_recv_timeout(&self, timeout: Option<Duration>) -> io::Result<()>;

    /// Fills `buffer`.
    ///
    /// # Errors
    /// [`TransferError`] with the number of octets received before the end of the stream
    /// ([`io::ErrorKind::UnexpectedEof`]), a timeout or another error.
    #[inline]
    fn recv_n(&self, buffer: &mut [u8]) -> Result<(), TransferError> {
        exact::recv_n(buffer, |buffer| self.recv(buffer))
    }

    /// Fills all of `slices`, which are advanced past the octets received.
    ///
    /// # Errors
    /// As [`recv_n`](Self::recv_n).
    #[inline]
    fn recv_n_v(&self, slices: &mut [IoSliceMut<'_>]) -> Result<(), TransferError> {
        exact::recv_n_v(slices, |slices| self.recv_v(slices))
    }

    /// Like [`recv`](Self::recv), but waits no longer than `timeout`.
    ///
    /// # Errors
    /// [`io::ErrorKind::TimedOut`] on a timeout; those of the operating system.
    #[inline]
    fn recv_within(&self, buffer: &mut [u8], timeout: Duration) -> io::Result<usize> {
        retry_within(self, Interest::INPUT, Deadline::after(timeout), || self.try_recv(buffer))
    }

    /// Like [`recv_v`](Self::recv_v), but waits no longer than `timeout`.
    ///
    /// # Errors
    /// As [`recv_within`](Self::recv_within).
    #[inline]
    fn recv_v_within(&self, slices: &mut [IoSliceMut<'_>], timeout: Duration) -> io::Result<usize> {
        retry_within(self, Interest::INPUT, Deadline::after(timeout), || self.try_recv_v(slices))
    }

    /// Like [`recv_n`](Self::recv_n), but takes no longer than `timeout` in all.
    ///
    /// # Errors
    /// As [`recv_n`](Self::recv_n), with [`io::ErrorKind::TimedOut`] on a timeout.
    #[inline]
    fn recv_n_within(&self, buffer: &mut [u8], timeout: Duration) -> Result<(), TransferError> {
        let deadline = Deadline::after(timeout);
        exact::recv_n(buffer, |buffer| retry_within(self, Interest::INPUT, deadline, || self.try_recv(buffer)))
    }

    /// Like [`recv_n_v`](Self::recv_n_v), but takes no longer than `timeout` in all.
    ///
    /// # Errors
    /// As [`recv_n_within`](Self::recv_n_within).
    #[inline]
    fn recv_n_v_within(&self, slices: &mut [IoSliceMut<'_>], timeout: Duration) -> Result<(), TransferError> {
        let deadline = Deadline::after(timeout);
        exact::recv_n_v(slices, |slices| retry_within(self, Interest::INPUT, deadline, || self.try_recv_v(slices)))
    }
}

/// An endpoint to which octets are sent.
pub trait Transmit: Pollable {
    /// Sends some of `data` and returns the number of octets sent; waits while none can be sent.
    ///
    /// # Errors
    /// Any error of the operating system; a send timeout satisfies [`is_timeout`](crate::is_timeout).
    fn send(&self, data: &[u8]) -> io::Result<usize>;

    /// Sends some of the octets of `slices`, in order, and returns their number.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    fn send_v(&self, slices: &[IoSlice<'_>]) -> io::Result<usize>;

    /// Like [`send`](Self::send), but never waits.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when nothing can be sent; those of the operating system.
    fn try_send(&self, data: &[u8]) -> io::Result<usize>;

    /// Like [`send_v`](Self::send_v), but never waits.
    ///
    /// # Errors
    /// As [`try_send`](Self::try_send).
    fn try_send_v(&self, slices: &[IoSlice<'_>]) -> io::Result<usize>;

    /// The time limit of one `send`; `None` waits for ever. A call interrupted by signals may take twice as
    /// long.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for a time of zero; others of the operating system.
    fn set_send_timeout(&self, timeout: Option<Duration>) -> io::Result<()>;

    /// Sends all of `data`.
    ///
    /// # Errors
    /// [`TransferError`] with the number of octets sent before a timeout or another error.
    #[inline]
    fn send_n(&self, data: &[u8]) -> Result<(), TransferError> {
        exact::send_n(data, |data| self.send(data))
    }

    /// Sends all octets of `slices`, which are advanced past the octets sent.
    ///
    /// # Errors
    /// As [`send_n`](Self::send_n).
    #[inline]
    fn send_n_v(&self, slices: &mut [IoSlice<'_>]) -> Result<(), TransferError> {
        exact::send_n_v(slices, |slices| self.send_v(slices))
    }

    /// Like [`send`](Self::send), but waits no longer than `timeout`.
    ///
    /// # Errors
    /// [`io::ErrorKind::TimedOut`] on a timeout; those of the operating system.
    #[inline]
    fn send_within(&self, data: &[u8], timeout: Duration) -> io::Result<usize> {
        retry_within(self, Interest::OUTPUT, Deadline::after(timeout), || self.try_send(data))
    }

    /// Like [`send_v`](Self::send_v), but waits no longer than `timeout`.
    ///
    /// # Errors
    /// As [`send_within`](Self::send_within).
    #[inline]
    fn send_v_within(&self, slices: &[IoSlice<'_>], timeout: Duration) -> io::Result<usize> {
        retry_within(self, Interest::OUTPUT, Deadline::after(timeout), || self.try_send_v(slices))
    }

    /// Like [`send_n`](Self::send_n), but takes no longer than `timeout` in all.
    ///
    /// # Errors
    /// As [`send_n`](Self::send_n), with [`io::ErrorKind::TimedOut`] on a timeout.
    #[inline]
    fn send_n_within(&self, data: &[u8], timeout: Duration) -> Result<(), TransferError> {
        let deadline = Deadline::after(timeout);
        exact::send_n(data, |data| retry_within(self, Interest::OUTPUT, deadline, || self.try_send(data)))
    }

    /// Like [`send_n_v`](Self::send_n_v), but takes no longer than `timeout` in all.
    ///
    /// # Errors
    /// As [`send_n_within`](Self::send_n_within).
    #[inline]
    fn send_n_v_within(&self, slices: &mut [IoSlice<'_>], timeout: Duration) -> Result<(), TransferError> {
        let deadline = Deadline::after(timeout);
        exact::send_n_v(slices, |slices| retry_within(self, Interest::OUTPUT, deadline, || self.try_send_v(slices)))
    }
}

/// A bidirectional stream of octets, in every family.
///
/// All methods take `&self`: one thread may send while another receives.
pub trait Transfer: Receive + Transmit + Debug + Send + Sync + 'static {
    /// Whether `recv` and `send` fail at once with [`io::ErrorKind::WouldBlock`] instead of waiting.
    ///
    /// # Errors
    /// Any error of the operating system.
    fn set_nonblocking(&self, on: bool) -> io::Result<()>;

    /// Whether the handshake is complete. False only in families with a handshake, such as TLS.
    fn is_established(&self) -> bool {
        true
    }

    /// The time left for the handshake; `None` without a handshake, after it, or without a limit.
    fn handshake_left(&self) -> Option<Duration> {
        None
    }

    /// The socket, if octets that are sent on it directly leave as by [`try_send`](Transmit::try_send).
    /// `None` in families that encode octets or do not use a socket.
    fn send_socket(&self) -> Option<Handle<'_>> {
        None
    }

    /// Ends sending, receiving or both; also ends waits in other threads.
    ///
    /// # Errors
    /// Any error of the operating system.
    fn shutdown(&self, how: Shutdown) -> io::Result<()>;

    /// Ends both directions, for a peer that may send without end. If octets wait to be received, the system resets
    /// the connection once this endpoint is dropped, even if they are received before that. The peer loses what it
    /// has not received, and waits no longer for room in the queue.
    ///
    /// After [`shutdown`](Self::shutdown) alone, a peer of a TCP connection whose queue was full waits for another
    /// minute on Linux: the system announces no room that is made after the end of receiving.
    ///
    /// # Errors
    /// As [`shutdown`](Self::shutdown).
    fn abort(&self) -> io::Result<()> {
        self.shutdown(Shutdown::Both)
    }

    /// Half-close: the peer receives the octets sent, then the end; this side may continue to receive.
    ///
    /// # Errors
    /// As [`shutdown`](Self::shutdown).
    fn close_writer(&self) -> io::Result<()> {
        self.shutdown(Shutdown::Write)
    }

    /// Ends receiving: every `recv` on this side returns the queued octets, then the end.
    ///
    /// # Errors
    /// As [`shutdown`](Self::shutdown).
    fn close_reader(&self) -> io::Result<()> {
        self.shutdown(Shutdown::Read)
    }
}

/// Retries the attempt, with waits in between, until it succeeds or times out.
fn retry_within<P: Pollable + ?Sized>(
    endpoint: &P,
    interest: Interest,
    deadline: Deadline,
    mut attempt: impl FnMut() -> io::Result<usize>,
) -> io::Result<usize> {
    loop {
        match attempt() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            result => return result,
        }
        let left = deadline.remaining();
        if left.is_some_and(|left| left.is_zero()) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        wait_ready(endpoint, interest, left)?;
    }
}
