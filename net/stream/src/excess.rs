//! The messages that tasks have queued beyond the limits of queues, where they would have waited for each other in a circle.
//!
//! While there are any, messages from outside wait. So a stream never holds more than its queues and threads have room for:
//! those in the circle only change their places.

use spandrel_sync::atomic::{AtomicUsize, Ordering};
use spandrel_sync::{Condition, Mutex};

use crate::wait::WaitEnd;

/// The number of messages beyond the limits of a stream's queues.
#[derive(Debug, Default)]
pub struct Excess {
    count: AtomicUsize,
    /// Held while a thread that waits looks at the count.
    waiting: Mutex<()>,
    changed: Condition,
}

impl Excess {
    pub(crate) fn add(&self) {
        self.count.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn subtract(&self, count: usize) {
        if count > 0 && self.count.fetch_sub(count, Ordering::SeqCst) == count {
            drop(self.waiting.lock()); // a thread that has seen the old count waits by now
            self.changed.notify_all();
        }
    }

    pub(crate) fn is_none(&self) -> bool {
        self.count.load(Ordering::SeqCst) == 0
    }

    /// Waits until there is none; returns whether that is so.
    pub(crate) fn until_none(&self, end: WaitEnd) -> bool {
        if self.is_none() {
            return true;
        }
        let mut waiting = self.waiting.lock();
        while !self.is_none() {
            match end {
                WaitEnd::Now => return false,
                WaitEnd::At(deadline) => {
                    if self.changed.wait_until(&mut waiting, deadline).timed_out() {
                        return self.is_none();
                    }
                }
            }
        }
        true
    }
}
