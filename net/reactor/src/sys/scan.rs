//! `poll(2)` and `select(2)` over plain numbers.

use std::io;
use std::mem::MaybeUninit;
use std::ptr;

use super::RawHandle;

/// The first number that a set of `select(2)` cannot hold.
pub(crate) const SET_SIZE: RawHandle = libc::FD_SETSIZE as RawHandle;

/// Waits so many milliseconds, or for ever if it is negative.
pub(crate) fn poll(handles: &mut [libc::pollfd], millis: i32) -> io::Result<()> {
    let count = libc::nfds_t::try_from(handles.len()).map_err(io::Error::other)?;
    // SAFETY: the system reads and writes `count` elements from where the slice begins, which is what it has.
    let result = unsafe { libc::poll(handles.as_mut_ptr(), count, millis) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// A set of numbers below [`SET_SIZE`].
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
    /// If it cannot hold the number.
    pub(crate) fn insert(&mut self, number: RawHandle) {
        assert!((0..SET_SIZE).contains(&number), "a set cannot hold {number}");
        // SAFETY: the number is within the set.
        unsafe { libc::FD_SET(number, &raw mut self.0) }
    }

    pub(crate) fn contains(&self, number: RawHandle) -> bool {
        // SAFETY: the number is within the set.
        (0..SET_SIZE).contains(&number) && unsafe { libc::FD_ISSET(number, &raw const self.0) }
    }
}

/// Waits so many microseconds, or for ever; the sets are what to wait for, and then what is ready. `limit` is above all numbers.
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
