//! `poll(2)` and `select(2)` over raw handles.

use std::io;
use std::mem::MaybeUninit;
use std::ptr;

use super::RawHandle;

/// The first handle that a set of `select(2)` cannot hold.
pub(crate) const SET_SIZE: RawHandle = libc::FD_SETSIZE as RawHandle;

/// Waits that many milliseconds, or for ever if it is negative.
pub(crate) fn poll(handles: &mut [libc::pollfd], millis: i32) -> io::Result<()> {
    let count = libc::nfds_t::try_from(handles.len()).map_err(io::Error::other)?;
    // SAFETY: the system reads and writes `count` elements from the start of the slice, which has that
    // length.
    let result = unsafe { libc::poll(handles.as_mut_ptr(), count, millis) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// A set of handles below [`SET_SIZE`].
pub(crate) struct Set(libc::fd_set);

impl Set {
    pub(crate) fn new() -> Self {
        let mut set = MaybeUninit::uninit();
        // SAFETY: `FD_ZERO` writes the whole set, which is initialized then.
        Self(unsafe {
            libc::FD_ZERO(set.as_mut_ptr());
            set.assume_init()
        })
    }

    /// # Panics
    /// If it cannot hold the handle.
    pub(crate) fn insert(&mut self, number: RawHandle) {
        assert!((0..SET_SIZE).contains(&number), "a set cannot hold {number}");
        // SAFETY: the handle is within the set.
        unsafe { libc::FD_SET(number, &raw mut self.0) }
    }

    pub(crate) fn contains(&self, number: RawHandle) -> bool {
        // SAFETY: the handle is within the set.
        (0..SET_SIZE).contains(&number) && unsafe { libc::FD_ISSET(number, &raw const self.0) }
    }
}

/// Waits that many microseconds, or for ever; the sets hold the awaited handles, and then the ready ones.
/// `limit` is above all handles.
pub(crate) fn select(
    limit: RawHandle,
    input: &mut Set,
    output: &mut Set,
    exception: &mut Set,
    micros: Option<u64>,
) -> io::Result<()> {
    let mut time = micros.map(|micros| libc::timeval {
        tv_sec: libc::time_t::try_from(micros / 1_000_000).unwrap_or(libc::time_t::MAX),
        // Below a million.
        tv_usec: (micros % 1_000_000) as libc::suseconds_t,
    });
    let time = time.as_mut().map_or(ptr::null_mut(), ptr::from_mut);
    // SAFETY: the sets and the time live as long as the call, and `limit` is at most the size of a set.
    let result = unsafe {
        let limit = limit.min(SET_SIZE);
        libc::select(limit, &raw mut input.0, &raw mut output.0, &raw mut exception.0, time)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
