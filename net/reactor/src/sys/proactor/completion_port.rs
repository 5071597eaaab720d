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
/// The number of connections that [`accept_each`](CompletionPort::accept_each) lets the system accept before the
/// proactor takes their completions.
const PENDING_ACCEPTS: usize = 16;

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
        let mut operation = self.accepting(Arc::clone(&acceptor), key)?;
        operation.accepts_each = true;
        let is_attached = matches!(&operation.task, Task::Accept(accept) if !accept.has_notice());
        let id = self.start(operation)?;
        // With fewer of them it still accepts.
        let others = if is_attached { PENDING_ACCEPTS - 1 } else { 0 };
        let _ = (0..others).try_for_each(|_| self.accept_besides(id, Arc::clone(&acceptor), key));
        Ok(id)
    }

    /// Adds to an operation that accepts each connection.
    fn accept_besides(&mut self, id: OperationId, acceptor: SharedHandle, key: u64) -> io::Result<()> {
        let mut operation = self.accepting(acceptor, key)?;
        (operation.accepts_each, operation.slot) = (true, id.slot());
        let address = NonNull::from(&*operation);
        operation.begin().map_err(|(error, _)| error)?;
        if let Some(pending) = self.operations.get_mut(id) {
            pending.add(address);
            self.addresses.insert(address);
        }
        Ok(())
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
        let id = self.operations.insert(Pending::new(address));
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
        for address in self.operations.remove(slot).iter().flat_map(Pending::addresses) {
            self.addresses.remove(&address);
        }
    }

    /// Takes an operation that the system has finished with.
    fn complete(&mut self, operation: Box<Operation>, completions: &mut Vec<Completion>) {
        let result = match (&operation.task, operation.result()) {
            (Task::Send, Ok(count)) if count < operation.data.len() => Err(io::ErrorKind::WriteZero.into()),
            (Task::Send, Ok(_)) if operation.is_exchange => return self.receive_next(operation, completions),
            (Task::Accept(_), result) if operation.accepts_each => {
                return match result.map(drop) {
                    Ok(()) if !operation.is_cancelled => self.accept_next(operation, false, completions),
                    Err(error) if !operation.is_cancelled && is_reset(&error) => {
                        self.accept_next(operation, true, completions);
                    }
                    result => self.end_accepting(operation, result, completions),
                };
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
            Err(error) => return self.end_accepting(operation, Err(error), completions),
            Ok(accepted) if !is_reset => {
                self.report_accepted(operation.slot, operation.key, &operation.handle, accepted, completions);
            }
            Ok(_) => {}
        }
        if let Err((error, operation)) = operation.begin() {
            self.end_accepting(operation, Err(error), completions);
        }
    }

    /// Reports a connection of an operation that goes on.
    fn report_accepted(
        &mut self,
        slot: usize,
        key: u64,
        listener: &OperationHandle,
        accepted: OwnedSocket,
        completions: &mut Vec<Completion>,
    ) {
        if self.prepare(accepted.as_socket(), listener).is_err() {
            return; // it has ended
        }
        let Some((id, _)) = self.operations.slot_mut(slot) else { return };
        let (kind, data, buffer, connection) = (OperationKind::Accept, Vec::new(), Vec::new(), Some(accepted));
        completions.push(Completion { id, key, kind, goes_on: true, result: Ok(0), data, buffer, connection });
    }

    /// Takes one of the system's operations of [`accept_each`](Self::accept_each), which was cancelled or has failed.
    /// The last one ends the operation of the proactor, with the first error.
    #[expect(clippy::boxed_local, reason = "its address identifies it")]
    fn end_accepting(&mut self, operation: Box<Operation>, result: io::Result<()>, completions: &mut Vec<Completion>) {
        let address = NonNull::from(&*operation);
        self.addresses.remove(&address);
        let Operation { slot, key, task, handle, is_cancelled, .. } = *operation;
        if result.is_ok()
            && let Task::Accept(accept) = task
        {
            self.report_accepted(slot, key, &handle, accept.into_connection(), completions);
        }
        let Some((id, pending)) = self.operations.slot_mut(slot) else { return };
        if !pending.remove(address, result.err()) {
            if !is_cancelled {
                pending.cancel();
            }
            return;
        }
        let error = pending.error.take().unwrap_or_else(|| io::Error::from_raw_os_error(WSA_OPERATION_ABORTED));
        self.operations.remove(slot);
        let (kind, data, buffer) = (OperationKind::Accept, Vec::new(), Vec::new());
        completions.push(Completion {
            id,
            key,
            kind,
            goes_on: false,
            result: Err(error),
            data,
            buffer,
            connection: None,
        });
    }

    /// Prepares an operation for the next connection, and returns the present one.
    fn renew(&self, operation: &mut Operation) -> io::Result<OwnedSocket> {
        let Task::Accept(accept) = &mut operation.task else { return Err(io::ErrorKind::InvalidInput.into()) };
        let accepted = accept.renew()?;
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
