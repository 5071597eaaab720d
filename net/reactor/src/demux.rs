//! Waiting for many handles at once: one module per mechanism that the system offers, all behind one trait.

mod backend;
#[cfg(unix)]
mod doorbell;
#[cfg(target_os = "linux")]
mod epoll;
#[cfg(unix)]
mod poll;
mod portable;
#[cfg(unix)]
mod scan;
#[cfg(unix)]
mod select;
#[cfg(io_uring)]
mod uring;

use std::fmt::Debug;
use std::io;
use std::time::Duration;

use spandrel_ipc::Interest;

pub use self::backend::{Backend, Trigger};
use crate::sys::RawHandle;

/// What a wait has shown of one handle. An error or a hang-up counts as everything: the next transfer will tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    /// What the handle was added with.
    pub(crate) key: u64,
    pub(crate) ready: Interest,
}

/// Waits for many handles at once.
///
/// Any thread may add, modify, remove and wake at any time; one at a time waits. A change takes effect for a wait that is already
/// under way. What was shown for a handle before it was removed may still be in the hands of who waited.
pub(crate) trait Demultiplexer: Debug + Send + Sync {
    fn backend(&self) -> Backend;

    /// Waits for a handle from now on.
    ///
    /// # Errors
    /// `AlreadyExists` for a handle that was added and not removed; `Unsupported` for a trigger that it does not have; others where
    /// the handle cannot be waited on or there is no room for it.
    fn add(&self, handle: RawHandle, key: u64, interest: Interest, trigger: Trigger) -> io::Result<()>;

    /// Waits for something else of a handle, and for `Edge` and `OneShot` anew.
    fn modify(&self, handle: RawHandle, key: u64, interest: Interest, trigger: Trigger) -> io::Result<()>;

    /// Waits for a handle no longer.
    fn remove(&self, handle: RawHandle) -> io::Result<()>;

    /// Waits until a handle is ready, somebody calls [`wake`](Self::wake), a signal comes, or the time is up, and puts what there
    /// is into `shown`, which is empty, up to `most` or its own limit. When more are ready, others come first the next time.
    fn wait(&self, shown: &mut Vec<Shown>, most: usize, timeout: Option<Duration>) -> io::Result<()>;

    /// Ends a wait that is under way, or else the next one.
    fn wake(&self) -> io::Result<()>;
}

/// Makes what `backend` names. Where the system forbids an io_uring, or has none that serves, that is epoll.
pub(crate) fn open(backend: Backend) -> io::Result<Box<dyn Demultiplexer>> {
    match open_exactly(backend) {
        #[cfg(target_os = "linux")]
        Err(error) if backend == Backend::IoUring => {
            tracing::warn!(%error, "there is no io_uring here; the reactor uses epoll instead");
            open_exactly(Backend::Epoll)
        }
        result => result,
    }
}

fn open_exactly(backend: Backend) -> io::Result<Box<dyn Demultiplexer>> {
    Ok(match backend {
        #[cfg(target_os = "linux")]
        Backend::Auto | Backend::Epoll => Box::new(epoll::Epoll::new()?),
        #[cfg(io_uring)]
        Backend::IoUring => Box::new(uring::Uring::new()?),
        #[cfg(all(target_os = "linux", not(io_uring)))]
        Backend::IoUring => {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "io_uring is not known for this kind of machine"));
        }
        #[cfg(unix)]
        Backend::Poll => Box::new(scan::Scanner::new(poll::Poll::default())?),
        #[cfg(unix)]
        Backend::Select => Box::new(scan::Scanner::new(select::Select)?),
        #[cfg(not(target_os = "linux"))]
        Backend::Auto => Box::new(portable::Portable::new()?),
        Backend::Polling => Box::new(portable::Portable::new()?),
    })
}

/// Whether `backend` works here and now.
fn probe(backend: Backend) -> bool {
    open_exactly(backend).is_ok()
}

#[cfg(unix)]
fn no_edges(backend: Backend) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, format!("the back end `{backend}` tells no edges"))
}

/// As `poll(2)` and `epoll_wait(2)` take it: rounded up, so that a timer does not make us spin through its last millisecond.
#[cfg(unix)]
fn whole_millis(timeout: Option<Duration>) -> i32 {
    timeout.map_or(-1, |timeout| i32::try_from(timeout.as_nanos().div_ceil(1_000_000)).unwrap_or(i32::MAX))
}

/// Writes to an eventfd that is watched for edges, so that nobody has to read it.
#[cfg(target_os = "linux")]
fn ring_eventfd(doorbell: &std::os::fd::OwnedFd) -> io::Result<()> {
    loop {
        match rustix::io::write(doorbell, &1_u64.to_ne_bytes()) {
            Err(rustix::io::Errno::INTR) => {}
            // It is full after 2^64 - 2 times: then it is read once.
            Err(rustix::io::Errno::AGAIN) => drop(rustix::io::read(doorbell, &mut [0; 8])),
            other => return Ok(other.map(drop)?),
        }
    }
}
