//! Waiting for a change of a locked value.

use std::fmt;
use std::time::Duration;

use crate::time::Deadline;
use crate::{MutexGuard, backend};

/// A POSIX condition variable: threads that hold a [`Mutex`](crate::Mutex) wait here until another thread
/// notifies them that the value has changed.
///
/// A wait may also end spuriously, so it stands in a loop that tests the value. All concurrent waits on one
/// condition use the same mutex.
pub struct Condition(backend::Condvar);

/// The result of a wait with a time limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitResult {
    pub(crate) timed_out: bool,
}

impl WaitResult {
    /// Whether the wait timed out before a notification came.
    ///
    /// The value may have changed all the same: test it before giving up.
    #[must_use]
    pub fn timed_out(self) -> bool {
        self.timed_out
    }
}

impl Condition {
    /// A condition without waiting threads; usable in a `static`.
    pub const fn new() -> Self {
        Self(backend::Condvar::new())
    }

    /// Releases the lock, waits for a notification and takes the lock again.
    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        self.0.wait(&mut guard.0);
    }

    /// Waits while `blocked` returns true for the value.
    pub fn wait_while<T>(&self, guard: &mut MutexGuard<'_, T>, mut blocked: impl FnMut(&mut T) -> bool) {
        while blocked(guard) {
            self.wait(guard);
        }
    }

    /// Like [`wait`](Self::wait), for at most `timeout`. The lock is held again in either case.
    ///
    /// Under the model checker the wait may time out at any moment, whatever the clock says; a wait of a day
    /// or more never does.
    pub fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, timeout: Duration) -> WaitResult {
        WaitResult { timed_out: self.0.wait_for(&mut guard.0, timeout).timed_out() }
    }

    /// Like [`wait`](Self::wait), until `deadline` at most. Once the deadline has passed, it returns at once and keeps
    /// the lock.
    pub fn wait_until<T>(&self, guard: &mut MutexGuard<'_, T>, deadline: Deadline) -> WaitResult {
        match deadline.remaining() {
            Some(Duration::ZERO) => WaitResult { timed_out: true },
            Some(left) => self.wait_for(guard, left),
            None => {
                self.wait(guard);
                WaitResult { timed_out: false }
            }
        }
    }

    /// Wakes one waiting thread, if any.
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Wakes all waiting threads.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}

impl Default for Condition {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Condition")
    }
}
