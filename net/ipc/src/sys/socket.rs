//! Socket functions missing in the safe libraries.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Whether a stream socket is at its urgent mark (`sockatmark(3)`).
pub(crate) fn at_mark(socket: impl AsFd) -> io::Result<bool> {
    // SAFETY: POSIX defines it with this signature. It takes a descriptor and returns a number; the
    // descriptor is open for as long as `socket` is borrowed.
    match unsafe { sockatmark(socket.as_fd().as_raw_fd()) } {
        -1 => Err(io::Error::last_os_error()),
        at => Ok(at == 1),
    }
}

unsafe extern "C" {
    fn sockatmark(socket: libc::c_int) -> libc::c_int;
}
