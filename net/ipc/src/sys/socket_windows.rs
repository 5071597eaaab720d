//! Socket functions missing in the safe libraries: receives that wait, and the acceptance of connections.

use std::io::{self, IoSliceMut};
use std::os::windows::io::{AsRawSocket, AsSocket, BorrowedSocket, RawHandle};
use std::ptr;

use socket2::Socket;
use spandrel_sync::Mutex;
use spandrel_sync::atomic::{AtomicBool, Ordering};
use spandrel_sync::time::Deadline;
use windows_sys::Win32::Networking::WinSock::{
    INVALID_SOCKET, SOCKET, WSA_IO_PENDING, WSABUF, WSAGetOverlappedResult, WSARecv, accept,
};
use windows_sys::Win32::System::IO::{CancelIoEx, OVERLAPPED};

use super::overlapped::{Event, Overlapped, is_aborted};

/// The receives of one connection that wait. Another thread may end them.
#[derive(Debug, Default)]
pub(crate) struct WaitingReceives(Mutex<Vec<Identity>>);

/// The address of the OVERLAPPED structure of a pending operation.
#[derive(Debug, PartialEq, Eq)]
struct Identity(*const OVERLAPPED);

// SAFETY: the address is only passed to the system, for comparison with those of pending operations.
unsafe impl Send for Identity {}

impl WaitingReceives {
    /// Waits for octets, by an overlapped operation, and returns their number. `None` after the deadline, and after
    /// [`end`](Self::end), before which `is_ended` is set.
    pub(crate) fn receive(
        &self,
        socket: BorrowedSocket<'_>,
        slices: &mut [IoSliceMut<'_>],
        deadline: Deadline,
        is_ended: &AtomicBool,
    ) -> io::Result<Option<usize>> {
        Event::with_spare(|event| {
            let overlapped = Overlapped::new(event);
            let (buffers, count) =
                (slices.as_mut_ptr().cast::<WSABUF>(), u32::try_from(slices.len()).unwrap_or(u32::MAX));
            let (mut flags, mut octets) = (0, 0);
            // SAFETY: an `IoSliceMut` has the layout of a WSABUF, by its documentation. The buffers are borrowed
            // exclusively, and this function returns only when the system has finished with them, with the flags and
            // with `overlapped`; nothing in between panics.
            let is_at_once = unsafe {
                WSARecv(raw(socket), buffers, count, ptr::null_mut(), &raw mut flags, overlapped.as_ptr(), None) == 0
            };
            if !is_at_once {
                let error = io::Error::last_os_error();
                if error.raw_os_error() != Some(WSA_IO_PENDING) {
                    return Err(error); // it has not started
                }
                self.wait(socket, &overlapped, event, deadline, is_ended);
            }
            // SAFETY: the operation has ended. The socket and `overlapped` are borrowed, and the variables outlive the call.
            let has_succeeded = unsafe {
                WSAGetOverlappedResult(raw(socket), overlapped.as_ptr(), &raw mut octets, 0, &raw mut flags) != 0
            };
            if has_succeeded {
                return Ok(Some(octets as usize));
            }
            let error = io::Error::last_os_error();
            if is_aborted(&error) { Ok(None) } else { Err(error) }
        })
    }

    /// Waits for the end of a pending operation.
    fn wait(
        &self,
        socket: BorrowedSocket<'_>,
        overlapped: &Overlapped,
        event: &Event,
        deadline: Deadline,
        is_ended: &AtomicBool,
    ) {
        let mut waiting = self.0.lock();
        if is_ended.load(Ordering::SeqCst) {
            drop(waiting);
            return overlapped.end(handle(socket), event);
        }
        waiting.push(Identity(overlapped.as_ptr()));
        drop(waiting);
        overlapped.settle(handle(socket), [event], deadline);
        self.0.lock().retain(|identity| identity.0 != overlapped.as_ptr());
    }

    /// Cancels all receives that wait for datagrams.
    pub(crate) fn end(&self, socket: BorrowedSocket<'_>) {
        for identity in &*self.0.lock() {
            // SAFETY: the handle is open, and the operation is known to the system as long as its address is in the list. It
            // is not affected if it has ended.
            unsafe { CancelIoEx(handle(socket), identity.0) };
        }
    }
}

/// Accepts a connection whose peer's address is not needed. A child process does not inherit its handle.
pub(crate) fn accept_unnamed(listener: &Socket) -> io::Result<Socket> {
    use std::os::windows::io::{FromRawSocket, OwnedSocket};
    // SAFETY: the socket is open as long as it is borrowed; without an address there is nothing to refer to.
    let socket = unsafe { accept(raw(listener.as_socket()), ptr::null_mut(), ptr::null_mut()) };
    if socket == INVALID_SOCKET {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the system has just created it for this function.
    let socket = Socket::from(unsafe { OwnedSocket::from_raw_socket(socket as _) });
    socket.set_no_inherit(true)?;
    Ok(socket)
}

fn raw(socket: BorrowedSocket<'_>) -> SOCKET {
    socket.as_raw_socket() as SOCKET
}

fn handle(socket: BorrowedSocket<'_>) -> RawHandle {
    ptr::with_exposed_provenance_mut(raw(socket))
}
