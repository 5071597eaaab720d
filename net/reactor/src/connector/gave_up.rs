//! The last event of a connector.

use std::io;

/// The end of a connector's attempts: there is no connection, and no further attempt will be made.
#[derive(Debug, thiserror::Error)]
#[error("gave up connecting after {attempts} failed attempt(s): {last_error}")]
#[non_exhaustive]
pub struct GaveUp {
    /// The number of consecutive failed attempts. As for [`Backoff::attempts`](crate::Backoff::attempts), a
    /// connection that ended too soon is one of them.
    pub attempts: u32,
    /// The error with which the last attempt failed.
    #[source]
    pub last_error: io::Error,
}
