//! Sending: the methods of the trait `Transmit`, without the trait.

use std::io::{self, IoSlice};
use std::time::Duration;

use super::Stream;
use super::stream::{WaitLimit, set_timeout};
use crate::{TransferError, exact};

/// The methods that send.
impl Stream {
    /// Sends some of `data` and returns the number of octets sent; waits while none can be sent.
    ///
    /// # Errors
    /// Any error of the operating system; a send timeout satisfies [`is_timeout`](crate::is_timeout).
    pub fn send(&self, data: &[u8]) -> io::Result<usize> {
        self.transmit(&[IoSlice::new(data)], self.limit(&self.end.settings.send_timeout))
    }

    /// Sends some of the octets of `slices`, in order, and returns their number.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn send_v(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.transmit(slices, self.limit(&self.end.settings.send_timeout))
    }

    /// Like [`send`](Self::send), but never waits.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when nothing can be sent; those of the operating system.
    pub fn try_send(&self, data: &[u8]) -> io::Result<usize> {
        self.transmit(&[IoSlice::new(data)], WaitLimit::none())
    }

    /// Like [`send_v`](Self::send_v), but never waits.
    ///
    /// # Errors
    /// As [`try_send`](Self::try_send).
    pub fn try_send_v(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.transmit(slices, WaitLimit::none())
    }

    /// The time limit of one `send`; `None` waits for ever.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for a time of zero; others of the operating system.
    pub fn set_send_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        set_timeout(&self.end.settings.send_timeout, timeout)
    }

    /// Sends all of `data`.
    ///
    /// # Errors
    /// [`TransferError`] with the number of octets sent before a timeout or another error.
    pub fn send_n(&self, data: &[u8]) -> Result<(), TransferError> {
        exact::send_n(data, |data| self.send(data))
    }

    /// Sends all octets of `slices`, which are advanced past the octets sent.
    ///
    /// # Errors
    /// As [`send_n`](Self::send_n).
    pub fn send_n_v(&self, slices: &mut [IoSlice<'_>]) -> Result<(), TransferError> {
        exact::send_n_v(slices, |slices| self.send_v(slices))
    }

    /// Like [`send`](Self::send), but waits no longer than `timeout`.
    ///
    /// # Errors
    /// [`io::ErrorKind::TimedOut`] on a timeout; those of the operating system.
    pub fn send_within(&self, data: &[u8], timeout: Duration) -> io::Result<usize> {
        self.transmit(&[IoSlice::new(data)], WaitLimit::of(Some(timeout)))
    }

    /// Like [`send_v`](Self::send_v), but waits no longer than `timeout`.
    ///
    /// # Errors
    /// As [`send_within`](Self::send_within).
    pub fn send_v_within(&self, slices: &[IoSlice<'_>], timeout: Duration) -> io::Result<usize> {
        self.transmit(slices, WaitLimit::of(Some(timeout)))
    }

    /// Like [`send_n`](Self::send_n), but takes no longer than `timeout` in all.
    ///
    /// # Errors
    /// As [`send_n`](Self::send_n), with [`io::ErrorKind::TimedOut`] on a timeout.
    pub fn send_n_within(&self, data: &[u8], timeout: Duration) -> Result<(), TransferError> {
        let limit = WaitLimit::of(Some(timeout));
        exact::send_n(data, |data| self.transmit(&[IoSlice::new(data)], limit))
    }

    /// Like [`send_n_v`](Self::send_n_v), but takes no longer than `timeout` in all.
    ///
    /// # Errors
    /// As [`send_n_within`](Self::send_n_within).
    pub fn send_n_v_within(&self, slices: &mut [IoSlice<'_>], timeout: Duration) -> Result<(), TransferError> {
        let limit = WaitLimit::of(Some(timeout));
        exact::send_n_v(slices, |slices| self.transmit(slices, limit))
    }

    /// The timeout set with [`set_send_timeout`](Self::set_send_timeout).
    ///
    /// # Errors
    /// None.
    pub fn send_timeout(&self) -> io::Result<Option<Duration>> {
        Ok(*self.end.settings.send_timeout.lock())
    }

    fn transmit(&self, slices: &[IoSlice<'_>], limit: WaitLimit) -> io::Result<usize> {
        self.end.outgoing.send(slices, limit.deadline).map_err(|error| match error.kind() {
            io::ErrorKind::TimedOut => limit.on_timeout.into(),
            _ => error,
        })
    }
}
