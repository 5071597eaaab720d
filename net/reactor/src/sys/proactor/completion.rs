//! Operations and their results.

use std::io;

use spandrel_sync::Arc;

use super::table::OperationId;

/// A handle that operations use and keep open.
#[cfg(unix)]
pub type SharedHandle = Arc<dyn std::os::fd::AsFd + Send + Sync>;
/// A handle that operations use and keep open.
#[cfg(windows)]
pub type SharedHandle = Arc<dyn std::os::windows::io::AsSocket + Send + Sync>;

/// The handle of an accepted connection.
#[cfg(unix)]
pub type ConnectionHandle = std::os::fd::OwnedFd;
/// The handle of an accepted connection.
#[cfg(windows)]
pub type ConnectionHandle = std::os::windows::io::OwnedSocket;

/// The kind of a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationKind {
    /// Of [`accept`](crate::Proactor::accept) or [`accept_each`](crate::Proactor::accept_each).
    Accept,
    /// Of [`receive`](crate::Proactor::receive), or of [`exchange`](crate::Proactor::exchange) after everything was sent.
    Receive,
    /// Of [`send`](crate::Proactor::send); or of [`exchange`](crate::Proactor::exchange), of which not everything was sent.
    Send,
}

/// The result of an operation.
#[derive(Debug)]
pub struct Completion {
    /// The operation.
    pub id: OperationId,
    /// The key that it was started with.
    pub key: u64,
    /// Its kind.
    pub kind: OperationKind,
    /// Whether the operation goes on, and has further completions ([`accept_each`](crate::Proactor::accept_each)).
    pub goes_on: bool,
    /// The number of octets received or sent; zero for an accepted connection.
    pub result: io::Result<usize>,
    /// The buffer with the octets to send.
    pub data: Vec<u8>,
    /// The buffer for received octets.
    pub buffer: Vec<u8>,
    /// The accepted connection.
    pub accepted: Option<ConnectionHandle>,
}
