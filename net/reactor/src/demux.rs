//! Waiting for many handles at once: one module per mechanism that the system offers, all behind one trait.

#[cfg(target_os = "linux")]
mod epoll;

use std::fmt::Debug;
use std::io;
use std::time::Duration;

use spandrel_ipc::Interest;

use crate::sys::RawHandle;
use crate::{Backend, Trigger};

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

/// Makes what `backend` names.
pub(crate) fn open(backend: Backend) -> io::Result<Box<dyn Demultiplexer>> {
    match backend {
        #[cfg(target_os = "linux")]
        Backend::Auto | Backend::Epoll => Ok(Box::new(epoll::Epoll::new()?)),
    }
}

/// Whether `backend` works here and now.
pub(crate) fn probe(backend: Backend) -> bool {
    open(backend).is_ok()
}
