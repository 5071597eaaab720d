//! Asynchronous operations, over an `io_uring` or over an I/O completion port of Windows.

#[cfg(windows)]
mod accept_ex;
mod completion;
#[cfg(windows)]
mod completion_port;
#[cfg(io_uring)]
mod ring;
mod table;
mod waker;

use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::time::Duration;

pub use completion::{Completion, ConnectionHandle, OperationHandle, OperationKind, SharedHandle};
#[cfg(windows)]
use completion_port::CompletionPort as Engine;
#[cfg(io_uring)]
use ring::Ring as Engine;
pub use table::OperationId;
pub use waker::Waker;

/// The number of waits for cancelled operations before their memory is given up.
const LAST_WAITS: usize = 100;
/// The time of each of these waits.
const LAST_WAIT: Duration = Duration::from_millis(10);

/// Starts operations on stream sockets, and reports their completions (the Proactor pattern).
///
/// A reactor reports that an operation is possible; a proactor carries it out, and reports its result. The system uses
/// the memory of an operation until it is completed, so the operation owns its buffers, and the completion returns
/// them. For one thread: operations end with the thread that started them.
///
/// On Linux it is an `io_uring`: all operations that are started between two waits, and the wait itself, are one system
/// call. On Windows it is an I/O completion port, and each operation is a system call.
pub struct Proactor {
    engine: Engine,
    /// It is not `Send`.
    thread: PhantomData<*mut ()>,
}

impl Proactor {
    /// A proactor of at most `limit` operations at a time.
    ///
    /// # Errors
    /// [`io::ErrorKind::Unsupported`] where the system's io_uring is missing or too old;
    /// [`io::ErrorKind::PermissionDenied`] where it is forbidden; others of the system.
    pub fn new(limit: usize) -> io::Result<Self> {
        Engine::new(limit).map(|engine| Self { engine, thread: PhantomData })
    }

    /// The number of operations that have not been completed.
    #[must_use]
    pub fn len(&self) -> usize {
        self.engine.len()
    }

    /// Whether all operations have been completed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Prepares a connection that was made elsewhere. Connections that this proactor has accepted are prepared.
    ///
    /// # Errors
    /// Those of the system: on Windows a socket belongs to the first completion port that it is given to. Its operations
    /// by other proactors are never completed.
    pub fn attach(&mut self, stream: &SharedHandle) -> io::Result<()> {
        self.engine.attach(stream)
    }

    /// Accepts a connection, waiting for one if there is none, also on a nonblocking handle.
    ///
    /// # Errors
    /// [`io::ErrorKind::QuotaExceeded`] beyond the limit of operations; those of the system.
    pub fn accept(&mut self, acceptor: SharedHandle, key: u64) -> io::Result<OperationId> {
        self.engine.accept(acceptor, key)
    }

    /// Accepts connections until it is cancelled or fails. Each of them is a completion, and so is the end. How many it
    /// accepts before it is cancelled is not bounded.
    ///
    /// # Errors
    /// As [`accept`](Self::accept).
    pub fn accept_each(&mut self, acceptor: SharedHandle, key: u64) -> io::Result<OperationId> {
        self.engine.accept_each(acceptor, key)
    }

    /// Receives into `buffer`, as far as its length allows. Zero octets are the end of the stream.
    ///
    /// # Errors
    /// As [`accept`](Self::accept).
    pub fn receive(
        &mut self,
        stream: impl Into<OperationHandle>,
        buffer: Vec<u8>,
        key: u64,
    ) -> io::Result<OperationId> {
        self.engine.receive(stream.into(), buffer, key)
    }

    /// Sends all octets of `data`, at least one.
    ///
    /// # Errors
    /// As [`accept`](Self::accept).
    pub fn send(&mut self, stream: impl Into<OperationHandle>, data: Vec<u8>, key: u64) -> io::Result<OperationId> {
        self.engine.send(stream.into(), data, key)
    }

    /// Sends all octets of `data`, at least one, and then receives into `buffer`. There is one completion: of the kind
    /// [`OperationKind::Send`] if sending fails, otherwise of the kind [`OperationKind::Receive`].
    ///
    /// # Errors
    /// As [`accept`](Self::accept).
    pub fn exchange(
        &mut self,
        stream: impl Into<OperationHandle>,
        data: Vec<u8>,
        buffer: Vec<u8>,
        key: u64,
    ) -> io::Result<OperationId> {
        self.engine.exchange(stream.into(), data, buffer, key)
    }

    /// Closes a connection without pending operations, possibly during the next [`wait`](Self::wait).
    pub fn close(&mut self, connection: ConnectionHandle) {
        self.engine.close(connection);
    }

    /// Cancels an operation. It is completed with an error, unless it has just succeeded. Without effect on one that
    /// has been completed.
    ///
    /// # Errors
    /// Those of the system.
    pub fn cancel(&mut self, id: OperationId) -> io::Result<()> {
        self.engine.cancel(id)
    }

    /// Ends the input of the stream of a pending operation: it receives octets that have arrived, or else the end.
    /// Sending is not affected, nor are, on Windows, later operations on the same stream.
    ///
    /// # Errors
    /// Those of the system.
    pub fn end_input(&mut self, id: OperationId) -> io::Result<()> {
        self.engine.end_input(id)
    }

    /// Ends waits of this proactor from any thread.
    #[must_use]
    pub fn waker(&self) -> Waker {
        self.engine.waker().clone()
    }

    /// Submits the started operations, waits until one is completed, a [`Waker`] or a signal ends the wait, or the
    /// timeout passes, and appends the completions. It may return without any before.
    ///
    /// # Errors
    /// Those of the system.
    pub fn wait(&mut self, timeout: Option<Duration>, completions: &mut Vec<Completion>) -> io::Result<()> {
        self.engine.wait(timeout, completions)
    }
}

impl fmt::Debug for Proactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proactor").field("operations", &self.len()).finish_non_exhaustive()
    }
}

impl Drop for Proactor {
    /// Cancels all operations, and waits for their completions. If these do not come, the memory is never freed.
    fn drop(&mut self) {
        let mut completions = Vec::new();
        for _ in 0..LAST_WAITS {
            if self.is_empty() || self.engine.cancel_all().is_err() {
                break;
            }
            if self.engine.wait(Some(LAST_WAIT), &mut completions).is_err() {
                break;
            }
        }
    }
}
