//! Counts of the requests and deactivations of an adapter, and the wait for their end.

use std::time::Duration;

use spandrel_sync::{
    Condition, Mutex,
    atomic::{AtomicUsize, Ordering},
    time::Deadline,
};

/// The interval at which a waiter rechecks: a request that ends takes no barrier for absent waiters.
const RECHECK_INTERVAL: Duration = Duration::from_millis(5);

/// Counts, and a condition to wait on.
#[derive(Debug, Default)]
pub(crate) struct Usage {
    /// Requests that use no entry of the active object map: those of default servants and servant managers,
    /// and incarnations.
    running: AtomicUsize,
    /// Objects whose deactivation is in progress.
    ending: AtomicUsize,
    waiters: AtomicUsize,
    lock: Mutex<()>,
    changed: Condition,
}

impl Usage {
    /// Counts a request, unless the adapter is closed. Either the closing thread sees the count, or the
    /// request sees the close.
    pub(crate) fn start(&self, is_open: impl FnOnce() -> bool) -> bool {
        self.running.fetch_add(1, Ordering::SeqCst);
        let is_open = is_open();
        if !is_open {
            self.end();
        }
        is_open
    }

    /// Counts another request while one is counted.
    pub(crate) fn start_another(&self) {
        self.running.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn end(&self) {
        self.running.fetch_sub(1, Ordering::SeqCst);
        self.notify_waiters();
    }

    pub(crate) fn begin_ending(&self) {
        self.ending.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn ended(&self) {
        self.ending.fetch_sub(1, Ordering::SeqCst);
        self.notify_waiters();
    }

    /// Wakes waiters after a request or deactivation has ended.
    #[inline]
    pub(crate) fn notify_waiters(&self) {
        if self.waiters.load(Ordering::SeqCst) > 0 {
            drop(self.lock.lock());
            self.changed.notify_all();
        }
    }

    /// Whether no request runs, except those that use entries of the active object map, and no deactivation
    /// is in progress.
    pub(crate) fn is_quiet(&self) -> bool {
        self.running.load(Ordering::SeqCst) == 0 && self.ending.load(Ordering::SeqCst) == 0
    }

    /// Waits until the condition holds, without a limit.
    pub(crate) fn await_condition(&self, condition: impl Fn() -> bool) {
        self.waiters.fetch_add(1, Ordering::SeqCst);
        let mut guard = self.lock.lock();
        while !condition() {
            let _ = self.changed.wait_for(&mut guard, RECHECK_INTERVAL);
        }
        drop(guard);
        self.waiters.fetch_sub(1, Ordering::SeqCst);
    }

    /// Waits until the condition holds, or until it is time to look for other work.
    pub(crate) fn await_briefly(&self, condition: impl Fn() -> bool) {
        let deadline = Deadline::after(RECHECK_INTERVAL);
        self.await_condition(|| condition() || deadline.is_over());
    }

    /// Waits until the adapter [is quiet](Self::is_quiet), until `deadline` at most.
    pub(crate) fn await_quiet(&self, deadline: Deadline) {
        self.await_condition(|| self.is_quiet() || deadline.is_over());
    }
}
