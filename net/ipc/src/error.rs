//! Errors of exact transfers, and recognition of timeouts.

use std::io;

/// The reason why an exact transfer (`send_n`, `recv_n` and their vectored forms) stopped before its end.
///
/// From the count, a protocol knows how much the peer may have received. With `?`, it converts to the
/// [`io::Error`] of the cause in functions that return that.
#[derive(thiserror::Error)]
#[error("transfer stopped after {transferred} octets")]
pub struct TransferError {
    /// The number of octets sent or received before it stopped. They were taken from, or lie in, the caller's
    /// buffer.
    pub transferred: usize,
    /// The cause: [`io::ErrorKind::UnexpectedEof`] when the peer closed before the last octet came,
    /// [`io::ErrorKind::WriteZero`] when the system accepted nothing, otherwise the system's own error; see
    /// [`is_timeout`] for timeouts.
    #[source]
    pub cause: io::Error,
}
spandrel_error::debug_as_report!(TransferError);

impl TransferError {
    /// The kind of the error that ended the transfer.
    #[must_use]
    pub fn kind(&self) -> io::ErrorKind {
        self.cause.kind()
    }

    /// Whether a send or receive timeout ended the transfer.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        is_timeout(&self.cause)
    }
}

impl From<TransferError> for io::Error {
    fn from(error: TransferError) -> Self {
        error.cause
    }
}

/// Whether an error is a timeout set with `set_recv_timeout` or `set_send_timeout`.
///
/// Unix reports it as [`io::ErrorKind::WouldBlock`], as it does for an endpoint that must not block, and
/// Windows as [`io::ErrorKind::TimedOut`].
#[must_use]
pub fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}
