//! Waiting for many handles at once: one module per mechanism of the system, behind one trait.

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

/// A ready handle of a wait. An error or a hang-up counts as every event: the next transfer reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReadyHandle {
    /// The key with which the handle was added.
    pub(crate) key: u64,
    pub(crate) ready: Interest,
}

/// Waits for many handles at once.
///
/// Any thread may add, modify, remove and wake at any time; one at a time waits. A change takes effect for a
/// pending wait. Events of a handle from before its removal may still be in the hands of the waiting thread.
pub(crate) trait Demultiplexer: Debug + Send + Sync {
    fn backend(&self) -> Backend;

    /// Waits for a handle from now on.
    ///
    /// # Errors
    /// `AlreadyExists` for a handle that is already added; `Unsupported` for an unsupported trigger; others
    /// where the handle cannot be waited on or there is no room for it.
    fn add(&self, handle: RawHandle, key: u64, interest: Interest, trigger: Trigger) -> io::Result<()>;

    /// Changes the awaited events of a handle, and arms `Edge` and `OneShot` again.
    fn modify(&self, handle: RawHandle, key: u64, interest: Interest, trigger: Trigger) -> io::Result<()>;

    /// Stops waiting for a handle.
    fn remove(&self, handle: RawHandle) -> io::Result<()>;

    /// Waits until a handle is ready, [`wake`](Self::wake) is called, a signal arrives, or the timeout
    /// passes. Puts the ready handles into `ready_handles`, which is empty, up to `max_events` or its own
    /// limit. When more are ready, the others come first the next time.
    fn wait(
        &self,
        ready_handles: &mut Vec<ReadyHandle>,
        max_events: usize,
        timeout: Option<Duration>,
    ) -> io::Result<()>;

    /// Ends the pending wait, or else the next one.
    fn wake(&self) -> io::Result<()>;
}

/// Opens the named back end. Where the system forbids io_uring, or its version is too old, that is epoll.
pub(crate) fn open(backend: Backend) -> io::Result<Box<dyn Demultiplexer>> {
    match open_exactly(backend) {
        #[cfg(target_os = "linux")]
        Err(error) if backend == Backend::IoUring => {
            tracing::warn!(%error, "io_uring is not available; the reactor uses epoll instead");
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
            return Err(io::Error::new(io::ErrorKind::Unsupported, "io_uring is not supported on this architecture"));
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

/// Whether `backend` works on this system.
fn probe(backend: Backend) -> bool {
    open_exactly(backend).is_ok()
}

#[cfg(unix)]
fn no_edges(backend: Backend) -> io::Error {
    io::Error::new(
        io::ErrorKind::Unsupported,
        format!("the back end `{backend}` does not support edge-triggered events"),
    )
}

/// A timeout for `poll(2)` and `epoll_wait(2)`: rounded up, so that a timer does not spin through its last
/// millisecond.
#[cfg(unix)]
fn whole_millis(timeout: Option<Duration>) -> i32 {
    timeout.map_or(-1, |timeout| i32::try_from(timeout.as_nanos().div_ceil(1_000_000)).unwrap_or(i32::MAX))
}

/// Writes to an eventfd that is watched for edges, so that it need not be read.
#[cfg(target_os = "linux")]
fn ring_eventfd(doorbell: &std::os::fd::OwnedFd) -> io::Result<()> {
    loop {
        match rustix::io::write(doorbell, &1_u64.to_ne_bytes()) {
            Err(rustix::io::Errno::INTR) => {}
            // It is full after 2^64 - 2 writes: then it is read once.
            Err(rustix::io::Errno::AGAIN) => drop(rustix::io::read(doorbell, &mut [0; 8])),
            other => return Ok(other.map(drop)?),
        }
    }
}
