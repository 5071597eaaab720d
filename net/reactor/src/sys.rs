//! The only `unsafe` code of this crate: handles by their numbers, the system calls that take them so, and in
//! [`fork`] copies of a process.
//!
//! A handler lends its handle only for as long as it is looked at, but it is waited on for as long as it is registered. So the
//! table keeps the number, and here it becomes a handle again for the length of one system call. None of the calls made with it
//! transfers, closes or owns anything: they ask the system to watch a handle, or no longer to.

#[cfg(target_os = "linux")]
pub(crate) mod fork;
#[cfg(unix)]
pub(crate) mod scan;
#[cfg(io_uring)]
pub(crate) mod uring;

#[cfg(unix)]
pub(crate) use std::os::fd::RawFd as RawHandle;
#[cfg(windows)]
pub(crate) use std::os::windows::io::RawSocket as RawHandle;

use std::io;

use polling::{Event, PollMode, Poller};
use spandrel_ipc::Handle;

/// The number of a handle.
#[cfg(unix)]
pub(crate) fn number(handle: Handle<'_>) -> RawHandle {
    std::os::fd::AsRawFd::as_raw_fd(&handle)
}

/// The number of a handle.
#[cfg(windows)]
pub(crate) fn number(handle: Handle<'_>) -> RawHandle {
    std::os::windows::io::AsRawSocket::as_raw_socket(&handle)
}

/// Lends the handle with this number to one call of a demultiplexer.
pub(crate) fn lend<R>(number: RawHandle, call: impl FnOnce(Handle<'_>) -> R) -> R {
    // SAFETY: the number comes from a handle that a registered handler owns, and a handler is deregistered before it is dropped;
    // so the handle is open. Should a handler have closed it against its contract, the number is that of no handle or of another,
    // which then is watched or not watched by our own demultiplexer; nothing is done to it.
    let handle = unsafe { Handle::borrow_raw(number) };
    call(handle)
}

/// Adds a handle to a poller of the `polling` crate.
pub(crate) fn add_to_poller(poller: &Poller, number: RawHandle, event: Event, mode: PollMode) -> io::Result<()> {
    // SAFETY: what is added must be deleted before it is dropped, and a handler is deregistered before it is dropped.
    unsafe { poller.add_with_mode(number, event, mode) }
}
