//! Operations on a completion port of Windows, which own their memory while the system uses it.
//!
//! A pending operation belongs to the system. The table has its address, and the completion port gives it back. Every
//! operation that was started is reported to the port, also if it succeeds at once.

mod operation;

use std::collections::HashSet;
use std::io;
use std::os::windows::io::{AsRawHandle, AsSocket, BorrowedSocket, FromRawHandle, OwnedHandle, OwnedSocket};
use std::ptr::{self, NonNull};
use std::time::Duration;

use spandrel_sync::{Arc, Weak};
use windows_sys::Win32::Foundation::{ERROR_INVALID_PARAMETER, INVALID_HANDLE_VALUE, WAIT_TIMEOUT};
use windows_sys::Win32::Networking::WinSock::WSA_OPERATION_ABORTED;
use windows_sys::Win32::System::IO::{CreateIoCompletionPort, GetQueuedCompletionStatusEx, OVERLAPPED_ENTRY};
use windows_sys::Win32::System::Threading::INFINITE;

use self::operation::{Operation, Pending, Task, handle_of, raw};
use super::accept_ex::{AcceptEx, inherit};
use super::completion::{Completion, OperationHandle, OperationKind, SharedHandle};
use super::table::{OperationId, Table};
use super::waker::{Doorbell, Waker};

/// The number of completions that are taken at a time.
const BATCH: usize = 64;

/// The state of a proactor.
pub(super) struct CompletionPort {
    port: Arc<OwnedHandle>,
    operations: Table<Pending>,
    /// Their addresses. A stream that is attached to this port, and used by another proactor, leads other packets here.
    addresses: HashSet<NonNull<Operation>>,
    waker: Waker,
    listeners: Vec<Listener>,
}

/// A listening socket at which connections have been accepted.
struct Listener {
    handle: Weak<dyn AsSocket + Send + Sync>,
    /// Whether its operations are reported to the port: a socket is attached to the first port only.
    is_attached: bool,
}

impl CompletionPort {
    pub(super) fn new(limit: usize) -> io::Result<Self> {
        // SAFETY: a new port, without any handle.
        let port = unsafe { CreateIoCompletionPort(INVALID_HANDLE_VALUE, ptr::null_mut(), 0, 1) };
        if port.is_null() {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the system has just created it for this function.
        let port = Arc::new(unsafe { OwnedHandle::from_raw_handle(port) });
        let waker = Waker::new(Doorbell(Arc::clone(&port)));
        let (operations, addresses) = (Table::new(limit), HashSet::new());
        Ok(Self { port, operations, addresses, waker, listeners: Vec::new() })
    }

    pub(super) fn len(&self) -> usize {
        self.operations.len()
    }

    pub(super) fn waker(&self) -> &Waker {
        &self.waker
    }

    pub(super) fn attach(&mut self, stream: &SharedHandle) -> io::Result<()> {
        self.attach_socket(stream.as_socket())
    }

    fn attach_socket(&self, socket: BorrowedSocket<'_>) -> io::Result<()> {
        // SAFETY: both handles are open as long as they are borrowed.
        match unsafe { CreateIoCompletionPort(handle_of(raw(socket)), self.port.as_raw_handle(), 0, 0) } {
            port if port.is_null() => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }

    pub(super) fn accept(&mut self, acceptor: SharedHandle, key: u64) -> io::Result<OperationId> {
        let operation = self.accepting(acceptor, key)?;
        self.start(operation)
    }

    pub(super) fn accept_each(&mut self, acceptor: SharedHandle, key: u64) -> io::Result<OperationId> {
        let mut operation = self.accepting(acceptor, key)?;
        operation.accepts_each = true;
        self.start(operation)
    }

    /// An operation that accepts a connection.
    fn accepting(&mut self, acceptor: SharedHandle, key: u64) -> io::Result<Box<Operation>> {
        let is_attached = self.attach_listener(&acceptor)?;
        let accept = AcceptEx::new(acceptor.as_socket())?;
        let mut operation =
            Operation::new(key, Task::Accept(accept), acceptor.into(), Vec::new(), AcceptEx::addresses());
        if !is_attached && let Task::Accept(accept) = &mut operation.task {
            // SAFETY: the operation belongs to this function. It is boxed, and so keeps its address.
            unsafe { accept.report_to(&self.port, operation.overlapped.get()) }?;
        }
        Ok(operation)
    }

    /// Attaches a listening socket to the port; false if it is attached to that of another proactor.
    fn attach_listener(&mut self, acceptor: &SharedHandle) -> io::Result<bool> {
        self.listeners.retain(|listener| listener.handle.strong_count() > 0);
        let address = Arc::as_ptr(acceptor).cast::<()>();
        let known = self.listeners.iter().find(|listener| listener.handle.as_ptr().cast::<()>() == address);
        if let Some(known) = known {
            return Ok(known.is_attached);
        }
        let is_attached = match self.attach_socket(acceptor.as_socket()) {
            Ok(()) => true,
            Err(error) if error.raw_os_error() == Some(ERROR_INVALID_PARAMETER.cast_signed()) => false,
            Err(error) => return Err(error),
        };
        self.listeners.push(Listener { handle: Arc::downgrade(acceptor), is_attached });
        Ok(is_attached)
    }

    pub(super) fn receive(&mut self, stream: OperationHandle, buffer: Vec<u8>, key: u64) -> io::Result<OperationId> {
        self.start(Operation::new(key, Task::Receive, stream, Vec::new(), buffer))
    }

    pub(super) fn send(&mut self, stream: OperationHandle, data: Vec<u8>, key: u64) -> io::Result<OperationId> {
        self.start(Operation::new(key, Task::Send, stream, data, Vec::new()))
    }

    pub(super) fn exchange(
        &mut self,
        stream: OperationHandle,
        data: Vec<u8>,
        buffer: Vec<u8>,
        key: u64,
    ) -> io::Result<OperationId> {
        let mut operation = Operation::new(key, Task::Send, stream, data, buffer);
        operation.is_exchange = true;
        self.start(operation)
    }

    #[expect(clippy::unused_self, reason = "the io_uring of Linux differs")]
    pub(super) fn close(&mut self, connection: OwnedSocket) {
        drop(connection);
    }

    pub(super) fn cancel(&mut self, id: OperationId) -> io::Result<()> {
        if let Some(pending) = self.operations.get_mut(id) {
            pending.cancel();
        }
        Ok(())
    }

    pub(super) fn cancel_all(&mut self) -> io::Result<()> {
        for pending in self.operations.iter_mut() {
            pending.cancel();
        }
        Ok(())
    }

    pub(super) fn end_input(&mut self, id: OperationId) -> io::Result<()> {
        if let Some(pending) = self.operations.get_mut(id) {
            pending.end_input();
        }
        Ok(())
    }

    pub(super) fn wait(&mut self, timeout: Option<Duration>, completions: &mut Vec<Completion>) -> io::Result<()> {
        let mut entries = [OVERLAPPED_ENTRY::default(); BATCH];
        let mut count = 0;
        let (port, room) = (self.port.as_raw_handle(), BATCH as u32);
        // SAFETY: the port is open, and the array has room for so many entries.
        let is_done = unsafe {
            GetQueuedCompletionStatusEx(port, entries.as_mut_ptr(), room, &raw mut count, milliseconds(timeout), 0)
        };
        if is_done == 0 {
            let error = io::Error::last_os_error();
            return if error.raw_os_error() == Some(WAIT_TIMEOUT.cast_signed()) { Ok(()) } else { Err(error) };
        }
        for entry in &entries[..count as usize] {
            match NonNull::new(entry.lpOverlapped.cast::<Operation>()) {
                None => self.waker.answered(),
                Some(operation) if self.addresses.contains(&operation) => {
                    // SAFETY: it is a pending operation of this proactor. The system is finished with it after its
                    // packet, of which there is one.
                    let operation = unsafe { Box::from_raw(operation.as_ptr()) };
                    self.complete(operation, completions);
                }
                Some(_) => tracing::error!("a stream is attached to one proactor and used by another"),
            }
        }
        Ok(())
    }

    fn start(&mut self, operation: Box<Operation>) -> io::Result<OperationId> {
        let address = NonNull::from(Box::leak(operation));
        let id = self.operations.insert(Pending(address));
        // SAFETY: it is the box from above, which the system has not seen.
        let mut operation = unsafe { Box::from_raw(address.as_ptr()) };
        let id = id?;
        operation.slot = id.slot();
        self.addresses.insert(address);
        match operation.begin() {
            Ok(()) => Ok(id),
            Err((error, _)) => {
                self.remove(id.slot());
                Err(error)
            }
        }
    }

    /// Forgets an operation, which does not belong to the system any more.
    fn remove(&mut self, slot: usize) {
        if let Some(Pending(address)) = self.operations.remove(slot) {
            self.addresses.remove(&address);
        }
    }

    /// Takes an operation that the system has finished with.
    fn complete(&mut self, operation: Box<Operation>, completions: &mut Vec<Completion>) {
        let result = match (&operation.task, operation.result()) {
            (Task::Send, Ok(count)) if count < operation.data.len() => Err(io::ErrorKind::WriteZero.into()),
            (Task::Send, Ok(_)) if operation.is_exchange => return self.receive_next(operation, completions),
            (Task::Accept(_), result) if operation.accepts_each && !operation.is_cancelled => {
                match result.map_err(|error| (is_reset(&error), error)) {
                    Err((false, error)) => Err(error),
                    result => return self.accept_next(operation, result.is_err(), completions),
                }
            }
            // Nothing had arrived when the input was ended.
            (Task::Receive, Err(_)) if operation.is_input_ended && !operation.is_cancelled => Ok(0),
            (_, result) => result,
        };
        self.finish(*operation, result, completions);
    }

    /// Starts the second half of an exchange.
    fn receive_next(&mut self, mut operation: Box<Operation>, completions: &mut Vec<Completion>) {
        operation.task = Task::Receive;
        if operation.is_cancelled {
            let cancelled = io::Error::from_raw_os_error(WSA_OPERATION_ABORTED);
            return self.finish(*operation, Err(cancelled), completions);
        }
        let (slot, is_input_ended) = (operation.slot, operation.is_input_ended);
        if let Err((error, operation)) = operation.begin() {
            return self.finish(*operation, Err(error), completions);
        }
        if is_input_ended && let Some((_, pending)) = self.operations.slot_mut(slot) {
            pending.end_input();
        }
    }

    /// Reports a connection, unless its peer has reset it. Starts to accept the next with the same operation.
    fn accept_next(&mut self, mut operation: Box<Operation>, is_reset: bool, completions: &mut Vec<Completion>) {
        match self.renew(&mut operation) {
            Err(error) => return self.finish(*operation, Err(error), completions),
            Ok(accepted) if !is_reset && self.prepare(accepted.as_socket(), &operation.handle).is_ok() => {
                let Some((id, _)) = self.operations.slot_mut(operation.slot) else { return };
                let (key, kind, goes_on) = (operation.key, OperationKind::Accept, true);
                let (result, data, buffer, connection) = (Ok(0), Vec::new(), Vec::new(), Some(accepted));
                completions.push(Completion { id, key, kind, goes_on, result, data, buffer, connection });
            }
            Ok(_) => {}
        }
        if let Err((error, operation)) = operation.begin() {
            self.finish(*operation, Err(error), completions);
        }
    }

    /// Prepares an operation for the next connection, and returns the present one.
    fn renew(&self, operation: &mut Operation) -> io::Result<OwnedSocket> {
        let Task::Accept(accept) = &mut operation.task else { return Err(io::ErrorKind::InvalidInput.into()) };
        let accepted = accept.renew(operation.handle.as_socket())?;
        if accept.has_notice() {
            // SAFETY: the operation is not pending, and keeps its address.
            unsafe { accept.report_to(&self.port, operation.overlapped.get()) }?;
        }
        Ok(accepted)
    }

    /// Prepares an accepted connection.
    fn prepare(&self, accepted: BorrowedSocket<'_>, listener: &OperationHandle) -> io::Result<()> {
        inherit(accepted, listener.as_socket())?;
        self.attach_socket(accepted)
    }

    fn finish(&mut self, operation: Operation, result: io::Result<usize>, completions: &mut Vec<Completion>) {
        let Operation { slot, key, task, handle, data, buffer, .. } = operation;
        let Some((id, _)) = self.operations.slot_mut(slot) else { return };
        self.remove(slot);
        let (kind, result, connection) = match task {
            Task::Receive => (OperationKind::Receive, result, handle.into_owned()),
            Task::Send => (OperationKind::Send, result, handle.into_owned()),
            Task::Accept(accept) => {
                let accepted = accept.into_connection();
                match result.and_then(|_| self.prepare(accepted.as_socket(), &handle)) {
                    Ok(()) => (OperationKind::Accept, Ok(0), Some(accepted)),
                    Err(error) => (OperationKind::Accept, Err(error), None),
                }
            }
        };
        completions.push(Completion { id, key, kind, goes_on: false, result, data, buffer, connection });
    }
}

/// Whether the peer of a connection has reset it before it was accepted.
fn is_reset(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted)
}

/// A time limit for the system, rounded up.
fn milliseconds(timeout: Option<Duration>) -> u32 {
    timeout.map_or(INFINITE, |time| {
        u32::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(INFINITE - 1).min(INFINITE - 1)
    })
}
