//! The interface of all mechanisms.

use std::fmt::Debug;
use std::io;
use std::time::Duration;

use spandrel_ipc::Interest;

use super::backend::{Backend, Trigger};
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

/// A timeout for `poll(2)` and `epoll_wait(2)`: rounded up, so that a timer does not spin through its last
/// millisecond.
#[cfg(unix)]
pub(super) fn whole_millis(timeout: Option<Duration>) -> i32 {
    let Some(timeout) = timeout else { return -1 };
    // Without the 128-bit division of `Duration::as_nanos`, since every wait computes it.
    let millis =
        timeout.as_secs().saturating_mul(1000).saturating_add(timeout.subsec_nanos().div_ceil(1_000_000).into());
    i32::try_from(millis).unwrap_or(i32::MAX)
}
