//! What can go wrong in an exact transfer, and how a time-out is recognised.

use std::io;

/// Why an exact transfer (`send_n`, `recv_n` and their vectored forms) stopped before its end.
///
/// The count lets a protocol say honestly what the peer may have seen. With `?`, it turns into the [`io::Error`] of
/// the cause in functions that return that.
#[derive(Debug, thiserror::Error)]
#[error("transfer stopped after {transferred} octets")]
pub struct TransferError {
    /// How many octets were sent or received before it stopped. They are gone from, or lie in, the caller's buffer.
    pub transferred: usize,
    /// The cause: [`io::ErrorKind::UnexpectedEof`] when the peer closed before the last octet came,
    /// [`io::ErrorKind::WriteZero`] when the system accepted nothing, otherwise the system's own error; see
    /// [`is_timeout`] for time-outs.
    #[source]
    pub cause: io::Error,
}

impl TransferError {
    /// The kind of the cause.
    #[must_use]
    pub fn kind(&self) -> io::ErrorKind {
        self.cause.kind()
    }

    /// Whether a send or receive time-out ended the transfer.
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

/// Whether an error says that the time set with `set_recv_timeout` or `set_send_timeout` ran out.
///
/// Unix reports it as [`io::ErrorKind::WouldBlock`], as it does for an endpoint that must not block, and Windows as
/// [`io::ErrorKind::TimedOut`].
#[must_use]
pub fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}
