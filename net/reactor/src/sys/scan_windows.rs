//! `select` of Windows over raw handles.

use std::io;
use std::ptr;

use windows_sys::Win32::Networking::WinSock::{
    FD_SET, SO_TYPE, SOCKET, SOL_SOCKET, TIMEVAL, WSAENOTSOCK, getsockopt, select as system_select,
};

use super::RawHandle;

/// The number of handles that a set of `select` can hold.
pub(crate) const SET_SIZE: usize = 64;

/// Whether a set can hold this handle: the limit is their number.
#[expect(clippy::unnecessary_wraps, reason = "UNIX has a limit")]
pub(crate) fn check(_handle: RawHandle) -> io::Result<()> {
    Ok(())
}

/// A set of handles.
pub(crate) struct Set(FD_SET);

impl Set {
    pub(crate) fn new() -> Self {
        Self(FD_SET { fd_count: 0, fd_array: [0; SET_SIZE] })
    }

    /// # Panics
    /// If it is full.
    pub(crate) fn insert(&mut self, handle: RawHandle) {
        let count = self.0.fd_count as usize;
        assert!(count < SET_SIZE, "a set holds {SET_SIZE} handles");
        self.0.fd_array[count] = handle as SOCKET;
        self.0.fd_count += 1;
    }

    pub(crate) fn contains(&self, handle: RawHandle) -> bool {
        self.0.fd_array[..self.0.fd_count as usize].contains(&(handle as SOCKET))
    }

    /// The set for the system, which does not take an empty one.
    fn as_ptr(&mut self) -> *mut FD_SET {
        if self.0.fd_count == 0 { ptr::null_mut() } else { &raw mut self.0 }
    }
}

/// Waits that many microseconds, or for ever; the sets hold the awaited handles, and then the ready ones. One of them
/// is not empty.
pub(crate) fn select(input: &mut Set, output: &mut Set, exception: &mut Set, micros: Option<u64>) -> io::Result<()> {
    let time = micros.map(|micros| TIMEVAL {
        tv_sec: i32::try_from(micros / 1_000_000).unwrap_or(i32::MAX),
        tv_usec: (micros % 1_000_000) as i32, // below a million
    });
    let time = time.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: the sets and the time live as long as the call, and a set has at most as many handles as room.
    let result = unsafe { system_select(0, input.as_ptr(), output.as_ptr(), exception.as_ptr(), time) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Whether an error means that a handle of a set is closed.
pub(crate) fn is_closed(error: &io::Error) -> bool {
    error.raw_os_error() == Some(WSAENOTSOCK)
}

/// Whether a handle is open.
pub(crate) fn is_open(handle: RawHandle) -> bool {
    let (mut kind, mut len) = (0_i32, size_of::<i32>() as i32);
    // SAFETY: the value and its length outlive the call, which fails for a number that is no socket.
    unsafe { getsockopt(handle as SOCKET, SOL_SOCKET, SO_TYPE, (&raw mut kind).cast(), &raw mut len) == 0 }
}
