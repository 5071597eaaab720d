//! Signals of open files (`F_SETOWN`, `O_ASYNC`).

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

/// The command that takes a `f_owner_ex`, and its kind for a thread (`asm-generic/fcntl.h` of Linux).
#[cfg(target_os = "linux")]
const F_SETOWN_EX: libc::c_int = 15;
#[cfg(target_os = "linux")]
const F_OWNER_TID: libc::c_int = 0;
/// The command that sets the signal's number.
#[cfg(target_os = "linux")]
const F_SETSIG: libc::c_int = 10;

#[cfg(target_os = "linux")]
#[repr(C)]
struct Owner {
    kind: libc::c_int,
    id: libc::pid_t,
}

/// Sends the signals of the file to this process; 0 sends them to none.
pub(crate) fn set_owner(file: BorrowedFd<'_>, process: i32) -> io::Result<()> {
    // SAFETY: this command takes a number. The descriptor is open for as long as `file` is borrowed.
    checked(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETOWN, process) })
}

/// Sends the signals of the file to the thread of this process with that number.
#[cfg(target_os = "linux")]
pub(crate) fn set_owner_thread(file: BorrowedFd<'_>, thread: i32) -> io::Result<()> {
    let owner = Owner { kind: F_OWNER_TID, id: thread };
    // SAFETY: this command reads a `struct f_owner_ex`, whose layout `Owner` has, during the call. The
    // descriptor is open for as long as `file` is borrowed.
    checked(unsafe { libc::fcntl(file.as_raw_fd(), F_SETOWN_EX, &raw const owner) })
}

/// Sets the signal for input; 0 is SIGIO.
#[cfg(target_os = "linux")]
pub(crate) fn set_signal(file: BorrowedFd<'_>, signal: i32) -> io::Result<()> {
    // SAFETY: this command takes a number, which the system checks. The descriptor is open for as long as
    // `file` is borrowed.
    checked(unsafe { libc::fcntl(file.as_raw_fd(), F_SETSIG, signal) })
}

/// Whether input is announced by a signal.
pub(crate) fn set_announced(file: BorrowedFd<'_>, is_announced: bool) -> io::Result<()> {
    let mut flags = fcntl_getfl(file)?;
    flags.set(announced(), is_announced);
    Ok(fcntl_setfl(file, flags)?)
}

/// Whether input is announced by a signal now.
pub(crate) fn is_announced(file: BorrowedFd<'_>) -> io::Result<bool> {
    Ok(fcntl_getfl(file)?.contains(announced()))
}

fn announced() -> OFlags {
    OFlags::from_bits_retain(libc::O_ASYNC.cast_unsigned())
}

fn checked(result: libc::c_int) -> io::Result<()> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
