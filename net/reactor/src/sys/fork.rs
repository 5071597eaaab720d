//! Copying a process that has one thread.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use rustix::process::Pid;
use spandrel_ipc::Handle;

/// Copies this process: the number of the copy, or nothing in the copy itself.
///
/// # Errors
/// [`io::ErrorKind::Unsupported`] while this process has several threads; those of the system.
pub(crate) fn fork() -> io::Result<Option<Pid>> {
    if std::fs::read_dir("/proc/self/task")?.count() != 1 {
        let message =
            "a process with several threads cannot be copied: locks that others hold would stay locked in the copy";
        return Err(io::Error::new(io::ErrorKind::Unsupported, message));
    }
    // SAFETY: this process has one thread, the calling one, so that the copy lacks none: whatever the memory holds is as whole in the copy
    // as it is here, and the copy may do whatever this process may.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(None),
        number => Ok(Pid::from_raw(number)),
    }
}

/// In the copy: closes all handles above standard error but this one, runs `serve`, and ends the process without looking back.
pub(crate) fn end_copy(keep: Handle<'_>, serve: impl FnOnce()) -> ! {
    let keep = u32::try_from(crate::sys::number(keep)).expect("a handle's number is not negative");
    let (below, above) = (keep.saturating_sub(1), keep.saturating_add(1));
    for (first, last) in [(3, below), (above.max(3), u32::MAX)] {
        if first <= last {
            // SAFETY: the handles are the copy's own; their owners in its memory are never used or dropped, because this function runs `serve`,
            // which owns the one handle that stays, and does not return. That a listening socket and other connections stay
            // open in the copy would be worse: their peers would wait for an end that does not come.
            unsafe { libc::close_range(first, last, 0) };
        }
    }
    // A panic must not come back into the reactor, all of whose handles are gone.
    let _ = catch_unwind(AssertUnwindSafe(serve));
    // SAFETY: ends the process at once; what was registered to run at exit is the original's business.
    unsafe { libc::_exit(0) }
}
