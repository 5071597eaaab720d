//! How much of an adapter is in use, for those who wait until nothing is.

use std::time::Duration;

use spandrel_sync::{
    Condition, Mutex,
    atomic::{AtomicUsize, Ordering},
    time::Instant,
};

/// How long who waits sleeps at most before looking again: a request that ends takes no barrier for those who are not there.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// Counts, and a place to wait.
#[derive(Debug, Default)]
pub(crate) struct Usage {
    /// Requests that use no entry of the active object map: those of default servants and servant managers, and incarnations.
    running: AtomicUsize,
    /// Objects whose deactivation has begun and not ended.
    ending: AtomicUsize,
    watchers: AtomicUsize,
    lock: Mutex<()>,
    changed: Condition,
}

impl Usage {
    /// Counts a request, unless the adapter is closed; who has closed it sees the count, or the request sees that.
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
        self.note_end();
    }

    pub(crate) fn begin_ending(&self) {
        self.ending.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn ended(&self) {
        self.ending.fetch_sub(1, Ordering::SeqCst);
        self.note_end();
    }

    /// Something ended: who waits may look.
    #[inline]
    pub(crate) fn note_end(&self) {
        if self.watchers.load(Ordering::SeqCst) > 0 {
            drop(self.lock.lock());
            self.changed.notify_all();
        }
    }

    /// No request runs, but for those that use entries of the active object map, and nothing is being deactivated.
    pub(crate) fn is_quiet(&self) -> bool {
        self.running.load(Ordering::SeqCst) == 0 && self.ending.load(Ordering::SeqCst) == 0
    }

    /// Waits until this is so, for ever if need be.
    pub(crate) fn await_that(&self, is_so: impl Fn() -> bool) {
        self.watchers.fetch_add(1, Ordering::SeqCst);
        let mut guard = self.lock.lock();
        while !is_so() {
            let _ = self.changed.wait_for(&mut guard, LOOK_AGAIN);
        }
        drop(guard);
        self.watchers.fetch_sub(1, Ordering::SeqCst);
    }

    /// Waits until this is so, or it is time to look for something else to do.
    pub(crate) fn await_shortly(&self, is_so: impl Fn() -> bool) {
        let start = Instant::now();
        self.await_that(|| is_so() || Instant::now().saturating_duration_since(start) >= LOOK_AGAIN);
    }

    /// Waits until [nothing goes on](Self::is_quiet), so long at most.
    pub(crate) fn await_quiet(&self, patience: Duration) {
        let start = Instant::now();
        self.await_that(|| self.is_quiet() || Instant::now().saturating_duration_since(start) >= patience);
    }
}
