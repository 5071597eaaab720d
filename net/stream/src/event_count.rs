//! Waiting for a condition over atomics, beside which no lock is held (an event count).

use spandrel_sync::atomic::{AtomicUsize, Ordering};
use spandrel_sync::{Condition, Mutex};

use crate::wait::WaitEnd;

/// Threads that wait until other threads have changed atomics.
///
/// A waiting thread is counted before it looks at the atomics, and a notifying one changes them before it
/// looks at the count, both in one order for all threads. So either the change is seen, or the waiting thread
/// is notified. A thread that has been notified is not counted any more, so that each needs one system call,
/// however long it takes to run.
#[derive(Debug, Default)]
pub(crate) struct EventCount {
    /// The waiting threads that have not been notified; changed with the lock held.
    unnotified: AtomicUsize,
    /// The number of waiting threads that have been notified and have not run since then.
    notified: Mutex<usize>,
    changed: Condition,
}

impl EventCount {
    /// Waits until `is_ready` returns true; returns false if the wait ended before that.
    pub(crate) fn wait_until(&self, end: WaitEnd, is_ready: impl Fn() -> bool) -> bool {
        let mut notified = self.notified.lock();
        self.unnotified.fetch_add(1, Ordering::SeqCst);
        let is_done = loop {
            if is_ready() {
                break true;
            }
            let is_over = match end {
                WaitEnd::Now => true,
                WaitEnd::At(deadline) => self.changed.wait_until(&mut notified, deadline).timed_out(),
            };
            // Counted again before it looks at the atomics.
            if *notified > 0 {
                *notified -= 1;
                self.unnotified.fetch_add(1, Ordering::SeqCst);
            }
            if is_over {
                break is_ready();
            }
        };
        self.unnotified.fetch_sub(1, Ordering::SeqCst);
        is_done
    }

    /// Whether a thread waits that has not been notified.
    #[inline]
    pub(crate) fn is_awaited(&self) -> bool {
        self.unnotified.load(Ordering::SeqCst) > 0
    }

    /// Lets one waiting thread look at the atomics, which the caller has changed.
    #[inline]
    pub(crate) fn notify_one(&self) {
        if self.is_awaited() {
            self.notify(1);
        }
    }

    /// Lets all waiting threads look at the atomics.
    pub(crate) fn notify_all(&self) {
        self.notify(usize::MAX);
    }

    #[cold]
    fn notify(&self, most: usize) {
        let mut notified = self.notified.lock();
        let threads = self.unnotified.load(Ordering::SeqCst).min(most);
        if threads > 0 {
            self.unnotified.fetch_sub(threads, Ordering::SeqCst);
            *notified += threads;
            drop(notified);
            if most == 1 { self.changed.notify_one() } else { self.changed.notify_all() }
        }
    }

    /// The number of threads that wait.
    pub(crate) fn waiting(&self) -> usize {
        let notified = self.notified.lock();
        *notified + self.unnotified.load(Ordering::SeqCst)
    }
}
