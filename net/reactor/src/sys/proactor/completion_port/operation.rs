//! One operation on a completion port.

use std::cell::UnsafeCell;
use std::io;
use std::os::windows::io::{AsRawSocket, AsSocket, BorrowedSocket};
use std::ptr::{self, NonNull};

use windows_sys::Win32::Foundation::HANDLE;
use windows_sys::Win32::Networking::WinSock::{
    SOCKET, WSA_IO_PENDING, WSABUF, WSAGetLastError, WSAGetOverlappedResult, WSARecv, WSASend,
};
use windows_sys::Win32::System::IO::{CancelIoEx, OVERLAPPED};

use crate::sys::proactor::accept_ex::AcceptEx;
use crate::sys::proactor::completion::OperationHandle;

/// An operation that belongs to the system. To accept each connection, there are several.
pub(super) struct Pending {
    first: NonNull<Operation>,
    others: Vec<NonNull<Operation>>,
    /// The first error of those that have ended.
    pub(super) error: Option<io::Error>,
}

/// An operation that has not been completed.
#[repr(C)] // the system knows it by the address of its first field
pub(super) struct Operation {
    pub(super) overlapped: UnsafeCell<OVERLAPPED>,
    pub(super) slot: usize,
    pub(super) key: u64,
    pub(super) task: Task,
    pub(super) handle: OperationHandle,
    pub(super) data: Vec<u8>,
    pub(super) buffer: Vec<u8>,
    /// Whether it receives after it has sent.
    pub(super) is_exchange: bool,
    /// Whether it accepts until it is cancelled.
    pub(super) accepts_each: bool,
    pub(super) is_cancelled: bool,
    pub(super) is_input_ended: bool,
}

/// The task of an operation at present.
pub(super) enum Task {
    Accept(AcceptEx),
    Receive,
    Send,
}

impl Operation {
    pub(super) fn new(key: u64, task: Task, handle: OperationHandle, data: Vec<u8>, buffer: Vec<u8>) -> Box<Self> {
        Box::new(Self {
            overlapped: UnsafeCell::new(OVERLAPPED::default()),
            slot: 0,
            key,
            task,
            handle,
            data,
            buffer,
            is_exchange: false,
            accepts_each: false,
            is_cancelled: false,
            is_input_ended: false,
        })
    }

    fn socket(&self) -> SOCKET {
        raw(self.handle.as_socket())
    }

    /// Gives itself to the system; or fails, and comes back.
    pub(super) fn begin(mut self: Box<Self>) -> Result<(), (io::Error, Box<Self>)> {
        let event = self.overlapped.get_mut().hEvent;
        *self.overlapped.get_mut() = OVERLAPPED { hEvent: event, ..OVERLAPPED::default() };
        let socket = self.socket();
        let this = Box::into_raw(self);
        // SAFETY: the system uses the buffers and the OVERLAPPED, which the operation owns and nothing else touches,
        // until its packet has come from the port. The handle of the operation keeps the socket open. The descriptions
        // of the buffers are not used after the calls.
        let result = unsafe {
            let overlapped = (*this).overlapped.get();
            match &mut (*this).task {
                Task::Accept(accept) => accept.begin(socket, &mut (*this).buffer, overlapped),
                Task::Receive => {
                    let buffer = WSABUF { len: len(&(*this).buffer), buf: (*this).buffer.as_mut_ptr() };
                    let mut flags = 0;
                    WSARecv(socket, &raw const buffer, 1, ptr::null_mut(), &raw mut flags, overlapped, None) == 0
                }
                Task::Send => {
                    let data = WSABUF { len: len(&(*this).data), buf: (*this).data.as_ptr().cast_mut() };
                    WSASend(socket, &raw const data, 1, ptr::null_mut(), 0, overlapped, None) == 0
                }
            }
        };
        // SAFETY: the call has no conditions.
        let error = unsafe { WSAGetLastError() };
        if result || error == WSA_IO_PENDING {
            return Ok(());
        }
        // SAFETY: after another error there is no packet, and the system is finished with the operation.
        Err((io::Error::from_raw_os_error(error), unsafe { Box::from_raw(this) }))
    }

    /// The number of octets transferred, after its packet has come.
    pub(super) fn result(&self) -> io::Result<usize> {
        let (mut count, mut flags) = (0, 0);
        // SAFETY: the socket is open, and the system has finished with the OVERLAPPED; there is no wait.
        let is_good =
            unsafe { WSAGetOverlappedResult(self.socket(), self.overlapped.get(), &raw mut count, 0, &raw mut flags) };
        if is_good == 0 { Err(io::Error::last_os_error()) } else { Ok(count as usize) }
    }
}

impl Pending {
    pub(super) fn new(operation: NonNull<Operation>) -> Self {
        Self { first: operation, others: Vec::new(), error: None }
    }

    pub(super) fn addresses(&self) -> impl Iterator<Item = NonNull<Operation>> {
        std::iter::once(self.first).chain(self.others.iter().copied())
    }

    pub(super) fn add(&mut self, operation: NonNull<Operation>) {
        self.others.push(operation);
    }

    /// Removes an operation that has ended. Returns whether it was the last.
    pub(super) fn remove(&mut self, operation: NonNull<Operation>, error: Option<io::Error>) -> bool {
        self.error = self.error.take().or(error);
        if self.first != operation {
            self.others.retain(|other| *other != operation);
            return false;
        }
        match self.others.pop() {
            Some(other) => self.first = other,
            None => return true,
        }
        false
    }

    pub(super) fn cancel(&mut self) {
        for operation in self.addresses() {
            // SAFETY: an operation in the table is not freed, and the system does not use this field.
            unsafe { (*operation.as_ptr()).is_cancelled = true };
            abort(operation);
        }
    }

    /// Ends receiving, now or after everything is sent.
    pub(super) fn end_input(&mut self) {
        // SAFETY: as above, for these two fields.
        let is_receiving = unsafe {
            (*self.first.as_ptr()).is_input_ended = true;
            matches!((*self.first.as_ptr()).task, Task::Receive)
        };
        if is_receiving {
            abort(self.first);
        }
    }
}

/// Lets the system complete an operation of the table with an error, unless it has just succeeded.
fn abort(operation: NonNull<Operation>) {
    // SAFETY: an operation in the table is not freed. The call identifies it by an address.
    unsafe {
        let operation = operation.as_ptr();
        CancelIoEx(handle_of(raw((*operation).handle.as_socket())), (*operation).overlapped.get());
    }
}

pub(super) fn raw(socket: BorrowedSocket<'_>) -> SOCKET {
    SOCKET::try_from(socket.as_raw_socket()).expect("of the size of a pointer")
}

/// A socket is a handle.
pub(super) fn handle_of(socket: SOCKET) -> HANDLE {
    ptr::without_provenance_mut(socket)
}

/// The length of a buffer for the system.
fn len(buffer: &[u8]) -> u32 {
    u32::try_from(buffer.len()).unwrap_or(u32::MAX)
}
