//! The `unsafe` code of this crate: raw handles, the system calls that take them, asynchronous operations, [`fork`],
//! POSIX threads, the clock, and the console's events on Windows.
//!
//! A handler lends its handle only for a moment, but it is waited on for as long as the handler is
//! registered. So the table stores the raw handle, and here it becomes a borrowed one for the length of one
//! system call. None of these calls transfers, closes or owns anything: they start or stop watching a handle.

#[cfg_attr(not(io_uring), path = "sys/no_batch_sender.rs")]
pub(crate) mod batch_sender;
#[cfg(all(target_os = "linux", not(shuttle)))]
pub(crate) mod clock;
#[cfg(windows)]
pub(crate) mod console;
#[cfg(target_os = "linux")]
pub(crate) mod eventfd;
#[cfg(target_os = "linux")]
pub(crate) mod fork;
#[cfg(proactor)]
pub(crate) mod proactor;
#[cfg_attr(windows, path = "sys/scan_windows.rs")]
pub(crate) mod scan;
pub(crate) mod thread;
#[cfg(io_uring)]
pub(crate) mod uring;

#[cfg(unix)]
pub(crate) use std::os::fd::RawFd as RawHandle;
#[cfg(windows)]
pub(crate) use std::os::windows::io::RawSocket as RawHandle;

use std::io;

use polling::{Event, PollMode, Poller};
use spandrel_ipc::Handle;

/// The file descriptor, as the system's number.
#[inline]
#[cfg(unix)]
pub(crate) fn number(handle: Handle<'_>) -> RawHandle {
    std::os::fd::AsRawFd::as_raw_fd(&handle)
}

/// The socket handle, as the system's number.
#[inline]
#[cfg(windows)]
pub(crate) fn number(handle: Handle<'_>) -> RawHandle {
    std::os::windows::io::AsRawSocket::as_raw_socket(&handle)
}

/// Borrows the raw handle for one call of a demultiplexer.
pub(crate) fn lend<R>(number: RawHandle, call: impl FnOnce(Handle<'_>) -> R) -> R {
    // SAFETY: the raw handle comes from a handle that a registered handler owns, and a handler is
    // deregistered before it is dropped; so the handle is open. Should a handler have closed it against its
    // contract, the number is that of no handle or of another, which then is watched or not watched by our
    // own demultiplexer; nothing else happens to it.
    let handle = unsafe { Handle::borrow_raw(number) };
    call(handle)
}

/// Adds a handle to a poller of the `polling` crate.
pub(crate) fn add_to_poller(poller: &Poller, number: RawHandle, event: Event, mode: PollMode) -> io::Result<()> {
    // SAFETY: a handle must be deleted from the poller before it is dropped, and a handler is deregistered
    // before it is dropped.
    unsafe { poller.add_with_mode(number, event, mode) }
}
