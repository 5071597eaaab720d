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

/// The handle of an operation, which keeps it open.
pub enum OperationHandle {
    /// Others use it, too.
    Shared(SharedHandle),
    /// The operation's own, which its last completion returns. So no count of owners is kept.
    Owned(ConnectionHandle),
}

impl OperationHandle {
    /// The handle, if it is the operation's own.
    pub(super) fn into_owned(self) -> Option<ConnectionHandle> {
        match self {
            Self::Shared(_) => None,
            Self::Owned(handle) => Some(handle),
        }
    }
}

impl From<SharedHandle> for OperationHandle {
    fn from(handle: SharedHandle) -> Self {
        Self::Shared(handle)
    }
}

impl From<ConnectionHandle> for OperationHandle {
    fn from(handle: ConnectionHandle) -> Self {
        Self::Owned(handle)
    }
}

#[cfg(unix)]
impl std::os::fd::AsFd for OperationHandle {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        match self {
            Self::Shared(handle) => handle.as_fd(),
            Self::Owned(handle) => handle.as_fd(),
        }
    }
}

#[cfg(windows)]
impl std::os::windows::io::AsSocket for OperationHandle {
    fn as_socket(&self) -> std::os::windows::io::BorrowedSocket<'_> {
        match self {
            Self::Shared(handle) => handle.as_socket(),
            Self::Owned(handle) => handle.as_socket(),
        }
    }
}

impl std::fmt::Debug for OperationHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Shared(_) => f.write_str("Shared"),
            Self::Owned(_) => f.write_str("Owned"),
        }
    }
}

/// The operation that a completion belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationKind {
    /// An [`accept`](crate::Proactor::accept) or [`accept_each`](crate::Proactor::accept_each).
    Accept,
    /// A [`receive`](crate::Proactor::receive), or an [`exchange`](crate::Proactor::exchange) that has sent
    /// everything.
    Receive,
    /// A [`send`](crate::Proactor::send), or an [`exchange`](crate::Proactor::exchange) that has not sent
    /// everything.
    Send,
}

/// One result of an operation, as a wait returns it.
#[derive(Debug)]
pub struct Completion {
    /// The operation that has ended or has another result.
    pub id: OperationId,
    /// The number that its starter chose, to know the operation by.
    pub key: u64,
    /// The method that started the operation.
    pub kind: OperationKind,
    /// Whether the operation goes on, and has further completions ([`accept_each`](crate::Proactor::accept_each)).
    pub goes_on: bool,
    /// The number of octets received or sent; zero for an accepted connection.
    pub result: io::Result<usize>,
    /// The buffer with the octets to send.
    pub data: Vec<u8>,
    /// The buffer for received octets.
    pub buffer: Vec<u8>,
    /// The accepted connection; or the handle of the operation, if it was its own.
    pub connection: Option<ConnectionHandle>,
}
