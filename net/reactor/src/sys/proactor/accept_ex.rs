//! Accepting with `AcceptEx` (paper 004, section 5.5.2, footnote 6).
//!
//! `AcceptEx` could also receive the first octets of a request, which avoids the race of that section. Here it does
//! not: a client that sends none would occupy the operation, unseen by the limits of the server.

use std::ffi::c_void;
use std::io;
use std::os::windows::io::{
    AsRawHandle, AsRawSocket, BorrowedSocket, FromRawHandle, FromRawSocket, OwnedHandle, OwnedSocket,
};
use std::ptr;

use spandrel_sync::Arc;
use windows_sys::Win32::Foundation::{HANDLE, INVALID_HANDLE_VALUE};
use windows_sys::Win32::Networking::WinSock::{
    self, INVALID_SOCKET, SO_UPDATE_ACCEPT_CONTEXT, SOCK_STREAM, SOCKADDR_STORAGE, SOCKET, SOL_SOCKET,
    WSA_FLAG_NO_HANDLE_INHERIT, WSA_FLAG_OVERLAPPED, WSASocketW, getsockname, setsockopt,
};
use windows_sys::Win32::System::IO::{OVERLAPPED, PostQueuedCompletionStatus};
use windows_sys::Win32::System::Threading::{
    CreateEventW, INFINITE, RegisterWaitForSingleObject, UnregisterWaitEx, WT_EXECUTEINWAITTHREAD, WT_EXECUTEONLYONCE,
};

/// The room for an address, as the documentation of `AcceptEx` demands.
const ADDRESS: usize = size_of::<SOCKADDR_STORAGE>() + 16;

/// The acceptance of one connection.
pub(super) struct AcceptEx {
    /// The socket that becomes the connection, and its address family.
    socket: OwnedSocket,
    family: i32,
    notice: Option<Notice>,
}

impl AcceptEx {
    /// For a connection at this listening socket.
    pub(super) fn new(listener: BorrowedSocket<'_>) -> io::Result<Self> {
        let family = family(listener)?;
        Ok(Self { socket: unconnected(family)?, family, notice: None })
    }

    /// Prepares for the next connection. Returns the present one, after the operation has succeeded.
    pub(super) fn renew(&mut self) -> io::Result<OwnedSocket> {
        Ok(std::mem::replace(&mut self.socket, unconnected(self.family)?))
    }

    /// Whether the operation is reported by way of an event ([`report_to`](Self::report_to)).
    pub(super) fn has_notice(&self) -> bool {
        self.notice.is_some()
    }

    /// A buffer for the addresses of both ends.
    pub(super) fn addresses() -> Vec<u8> {
        vec![0; 2 * ADDRESS]
    }

    /// Lets the completion of the operation with this OVERLAPPED be reported to `port`, although the listening socket
    /// is attached to the port of another proactor.
    ///
    /// # Safety
    /// The OVERLAPPED can be written to.
    pub(super) unsafe fn report_to(&mut self, port: &Arc<OwnedHandle>, overlapped: *mut OVERLAPPED) -> io::Result<()> {
        let notice = Notice::new(Arc::clone(port), overlapped)?;
        // With the lowest bit, the operation is not reported to the port of its socket (GetQueuedCompletionStatus).
        let event = notice.event.as_raw_handle().map_addr(|address| address | 1);
        // SAFETY: as promised by the caller.
        unsafe { (*overlapped).hEvent = event };
        self.notice = Some(notice);
        Ok(())
    }

    /// Starts the operation. Returns whether it has succeeded at once; otherwise the system has an error code, which may
    /// be that of a pending operation.
    ///
    /// # Safety
    /// Until the operation is completed, the OVERLAPPED and the buffer stay where they are, nothing else uses them, and
    /// the listening socket stays open.
    pub(super) unsafe fn begin(&mut self, listener: SOCKET, addresses: &mut [u8], overlapped: *mut OVERLAPPED) -> bool {
        assert_eq!(addresses.len(), 2 * ADDRESS);
        let (socket, room, mut count) = (self.socket.as_raw_socket() as SOCKET, ADDRESS as u32, 0);
        // SAFETY: the buffer has room for both addresses; otherwise as promised by the caller.
        let is_done = unsafe {
            let addresses = addresses.as_mut_ptr().cast();
            WinSock::AcceptEx(listener, socket, addresses, 0, room, room, &raw mut count, overlapped)
        };
        is_done != 0
    }

    /// The connection, after the operation has succeeded.
    pub(super) fn into_connection(self) -> OwnedSocket {
        self.socket
    }
}

/// The address family of a listening socket.
fn family(listener: BorrowedSocket<'_>) -> io::Result<i32> {
    let mut address = SOCKADDR_STORAGE::default();
    let mut len = size_of::<SOCKADDR_STORAGE>() as i32;
    // SAFETY: the socket is open, and `address` has room for any address.
    if unsafe { getsockname(raw(listener), (&raw mut address).cast(), &raw mut len) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(i32::from(address.ss_family))
}

/// A socket that can become a connection at a listening socket of this address family.
fn unconnected(family: i32) -> io::Result<OwnedSocket> {
    let flags = WSA_FLAG_OVERLAPPED | WSA_FLAG_NO_HANDLE_INHERIT;
    // SAFETY: without a description of a protocol there is nothing to refer to.
    let socket = unsafe { WSASocketW(family, SOCK_STREAM, 0, ptr::null(), 0, flags) };
    if socket == INVALID_SOCKET {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the system has just created it for this function.
    Ok(unsafe { OwnedSocket::from_raw_socket(socket as _) })
}

/// Gives a connection the properties of its listening socket, such as its addresses.
pub(super) fn inherit(connection: BorrowedSocket<'_>, listener: BorrowedSocket<'_>) -> io::Result<()> {
    let (listener, len) = (raw(listener), size_of::<SOCKET>() as i32);
    let value = (&raw const listener).cast();
    // SAFETY: both sockets are open. The value of the option is a socket.
    match unsafe { setsockopt(raw(connection), SOL_SOCKET, SO_UPDATE_ACCEPT_CONTEXT, value, len) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A wait for an event in a thread of the system, which then reports the operation to a port.
struct Notice {
    wait: HANDLE,
    event: OwnedHandle,
    target: *mut Target,
}

struct Target {
    port: Arc<OwnedHandle>,
    /// The address of the operation.
    overlapped: *mut OVERLAPPED,
}

impl Notice {
    fn new(port: Arc<OwnedHandle>, overlapped: *mut OVERLAPPED) -> io::Result<Self> {
        // SAFETY: without attributes and without a name there is nothing to refer to.
        let event = unsafe { CreateEventW(ptr::null(), 1, 0, ptr::null()) };
        if event.is_null() {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the system has just created it for this function.
        let event = unsafe { OwnedHandle::from_raw_handle(event) };
        let target = Box::into_raw(Box::new(Target { port, overlapped }));
        let mut this = Self { wait: ptr::null_mut(), event, target };
        let (event, flags) = (this.event.as_raw_handle(), WT_EXECUTEONLYONCE | WT_EXECUTEINWAITTHREAD);
        // SAFETY: the event is open, and the target exists, until `drop` has ended the wait.
        let is_registered = unsafe {
            RegisterWaitForSingleObject(&raw mut this.wait, event, Some(report), target.cast(), INFINITE, flags)
        };
        if is_registered == 0 { Err(io::Error::last_os_error()) } else { Ok(this) }
    }
}

impl Drop for Notice {
    fn drop(&mut self) {
        if !self.wait.is_null() {
            // SAFETY: the wait is registered, and this is not its thread. The call returns after the last use of the
            // target.
            unsafe { UnregisterWaitEx(self.wait, INVALID_HANDLE_VALUE) };
        }
        // SAFETY: it came from a box, and nothing else uses it any more.
        drop(unsafe { Box::from_raw(self.target) });
    }
}

/// Called by the system, in one of its threads, when the event is set.
unsafe extern "system" fn report(target: *mut c_void, _has_timed_out: bool) {
    // SAFETY: the target exists until its wait has ended. Only the address of the operation is used.
    unsafe {
        let Target { port, overlapped } = &*target.cast::<Target>();
        PostQueuedCompletionStatus(port.as_raw_handle(), 0, 0, *overlapped);
    }
}

fn raw(socket: BorrowedSocket<'_>) -> SOCKET {
    socket.as_raw_socket() as SOCKET
}
