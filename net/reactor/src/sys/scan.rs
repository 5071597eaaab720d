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

/// Checks that a set can hold this handle.
///
/// # Errors
/// `InvalidInput` for a greater one.
pub(crate) fn check(handle: RawHandle) -> io::Result<()> {
    if handle < SET_SIZE {
        return Ok(());
    }
    let text = format!("select(2) waits only for handles below {SET_SIZE} (FD_SETSIZE), and this one is {handle}");
    Err(io::Error::new(io::ErrorKind::InvalidInput, text))
}

/// A set of handles below [`SET_SIZE`].
pub(crate) struct Set {
    handles: libc::fd_set,
    /// Above all of them.
    limit: RawHandle,
}

impl Set {
    pub(crate) fn new() -> Self {
        let mut set = MaybeUninit::uninit();
        // SAFETY: `FD_ZERO` writes the whole set, which is initialized then.
        let handles = unsafe {
            libc::FD_ZERO(set.as_mut_ptr());
            set.assume_init()
        };
        Self { handles, limit: 0 }
    }

    /// # Panics
    /// If it cannot hold the handle.
    pub(crate) fn insert(&mut self, number: RawHandle) {
        assert!((0..SET_SIZE).contains(&number), "a set cannot hold {number}");
        // SAFETY: the handle is within the set.
        unsafe { libc::FD_SET(number, &raw mut self.handles) }
        self.limit = self.limit.max(number + 1);
    }

    /// For the system, which skips an empty set if it is absent.
    fn as_argument(&mut self) -> *mut libc::fd_set {
        if self.limit == 0 { ptr::null_mut() } else { &raw mut self.handles }
    }

    pub(crate) fn contains(&self, number: RawHandle) -> bool {
        // SAFETY: the handle is within the set.
        (0..SET_SIZE).contains(&number) && unsafe { libc::FD_ISSET(number, &raw const self.handles) }
    }
}

/// Waits that many microseconds, or for ever; the sets hold the awaited handles, and then the ready ones.
pub(crate) fn select(input: &mut Set, output: &mut Set, exception: &mut Set, micros: Option<u64>) -> io::Result<()> {
    let mut time = micros.map(|micros| libc::timeval {
        tv_sec: libc::time_t::try_from(micros / 1_000_000).unwrap_or(libc::time_t::MAX),
        // Below a million.
        tv_usec: (micros % 1_000_000) as libc::suseconds_t,
    });
    let time = time.as_mut().map_or(ptr::null_mut(), ptr::from_mut);
    let limit = input.limit.max(output.limit).max(exception.limit);
    // SAFETY: the sets and the time live as long as the call, and `limit` is at most the size of a set.
    let result =
        unsafe { libc::select(limit, input.as_argument(), output.as_argument(), exception.as_argument(), time) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Whether an error means that a handle of a set is closed.
pub(crate) fn is_closed(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EBADF)
}

/// Whether a handle is open.
pub(crate) fn is_open(handle: RawHandle) -> bool {
    super::lend(handle, |handle| rustix::io::fcntl_getfd(handle)).is_ok()
}
