//! The threads of a pool as numbers: how many there are, how many there should be, and how many are with a connection.

use std::thread::available_parallelism;

use spandrel_reactor::Reactor;
use spandrel_sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Threads that run the reactor, besides one for each processor: a few may be held up for less time than is noticed.
const SPARE_THREADS: usize = 2;
/// Threads that stay when they are no longer held up: as many more at most.
const IDLE_THREADS: usize = 64;

/// How many threads there are, and how many there should be.
#[derive(Debug)]
pub(super) struct WorkerCounts {
    /// Threads that are wanted to wait and to serve.
    free: usize,
    /// There are to be no more, whatever keeps them.
    is_fixed: bool,
    threads: AtomicUsize,
    /// Threads that an upcall keeps.
    blocked: AtomicUsize,
    /// How many threads are with a connection, and above them how often one came.
    visits: AtomicU64,
    /// The value of `visits` at the monitor's last look.
    seen: AtomicU64,
}

/// In `visits`: one thread, which has come once.
const VISIT: u64 = (1 << 32) + 1;
/// In `visits`: those that are with a connection.
const VISITORS: u64 = (1 << 32) - 1;

fn visitors(visits: u64) -> usize {
    usize::try_from(visits & VISITORS).unwrap_or(usize::MAX)
}

/// The time that a thread is with a connection.
pub(super) struct WorkerVisit<'s>(&'s WorkerCounts);

/// The time in which it waits for what others are to bring, and serves them.
pub(super) struct WaitScope<'s>(&'s WorkerCounts);

impl<'s> WaitScope<'s> {
    pub(super) fn begin(ensure_workers: &'s WorkerCounts) -> Self {
        ensure_workers.visits.fetch_sub(1, Ordering::SeqCst);
        Self(ensure_workers)
    }
}

impl Drop for WaitScope<'_> {
    fn drop(&mut self) {
        self.0.visits.fetch_add(VISIT, Ordering::SeqCst);
    }
}

impl<'s> WorkerVisit<'s> {
    #[inline]
    pub(super) fn begin(ensure_workers: &'s WorkerCounts) -> Self {
        ensure_workers.visits.fetch_add(VISIT, Ordering::SeqCst);
        Self(ensure_workers)
    }
}

impl Drop for WorkerVisit<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.visits.fetch_sub(1, Ordering::SeqCst);
    }
}

impl WorkerCounts {
    /// `threads`: so many and no more.
    pub(super) fn new(threads: Option<usize>) -> Self {
        Self {
            free: threads.unwrap_or_else(|| available_parallelism().map_or(1, usize::from) + SPARE_THREADS),
            is_fixed: threads.is_some(),
            threads: AtomicUsize::new(0),
            blocked: AtomicUsize::new(0),
            visits: AtomicU64::new(0),
            seen: AtomicU64::new(0),
        }
    }

    /// Whether there are to be no further threads.
    pub(super) fn is_fixed(&self) -> bool {
        self.is_fixed
    }

    /// How many threads there are.
    pub(super) fn count(&self) -> usize {
        self.threads.load(Ordering::SeqCst)
    }

    /// An upcall keeps one of them.
    pub(super) fn note_blocked(&self) {
        self.blocked.fetch_add(1, Ordering::SeqCst);
    }

    /// It keeps the thread no longer.
    pub(super) fn note_unblocked(&self) {
        let before = self.blocked.fetch_sub(1, Ordering::SeqCst);
        debug_assert_ne!(before, 0, "a thread is let go that was not held up");
    }

    /// How many threads are kept.
    #[cfg(all(test, shuttle))]
    pub(super) fn blocked(&self) -> usize {
        self.blocked.load(Ordering::SeqCst)
    }

    /// Whether all threads are with a connection.
    pub(super) fn is_full(&self) -> bool {
        let visitors = self.visitors();
        visitors > 0 && visitors >= self.count()
    }

    /// Whether all threads are where they were when this was asked last.
    pub(super) fn is_stuck(&self) -> bool {
        let visits = self.visits.load(Ordering::SeqCst);
        let nothing_happened = self.seen.swap(visits, Ordering::Relaxed) == visits;
        nothing_happened && self.is_full()
    }

    /// How many threads are with a connection.
    fn visitors(&self) -> usize {
        visitors(self.visits.load(Ordering::SeqCst))
    }

    pub(super) fn wanted(&self) -> usize {
        if self.is_fixed {
            return self.free;
        }
        self.free.saturating_add(self.blocked.load(Ordering::SeqCst))
    }

    /// How many threads are missing. Not more are to be started for it, however many leave meanwhile.
    pub(super) fn missing(&self, wanted: usize) -> usize {
        wanted.saturating_sub(self.count())
    }

    /// Counts one more thread, if there are fewer.
    pub(super) fn try_enter(&self, wanted: usize) -> bool {
        let more = |threads| (threads < wanted).then(|| threads + 1);
        self.threads.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more).is_ok()
    }

    /// One thread less.
    pub(super) fn note_left(&self) {
        self.threads.fetch_sub(1, Ordering::SeqCst);
    }

    /// Counts one thread less, if there are far more than wanted.
    fn try_leave(&self) -> bool {
        let enough = self.free.saturating_add(IDLE_THREADS);
        if self.threads.load(Ordering::Relaxed) <= enough {
            return false;
        }
        // With a connection are also those that are kept and were not found yet. What is added because all of them are must stay.
        let busy = self.visitors().max(self.blocked.load(Ordering::SeqCst));
        let enough = enough.saturating_add(busy);
        let less = |threads| (threads > enough).then(|| threads - 1);
        self.threads.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).is_ok()
    }

    /// What a thread does.
    pub(super) fn run(&self, reactor: &Reactor) {
        let mut has_left = false;
        let result = reactor.run_until(None, || {
            has_left = has_left || self.try_leave();
            has_left
        });
        if let Err(error) = result {
            tracing::error!(%error, "the reactor ended");
        }
        if !has_left {
            self.note_left();
        }
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    /// As on a machine with two processors, whatever this one has.
    fn workers_for(threads: usize) -> WorkerCounts {
        let ensure_workers = WorkerCounts { free: 2 + SPARE_THREADS, ..WorkerCounts::new(None) };
        while ensure_workers.try_enter(threads) {}
        ensure_workers
    }

    #[test]
    fn surplus_workers_leave() {
        let ensure_workers = workers_for(200);
        while ensure_workers.try_leave() {}
        assert_eq!(ensure_workers.count(), ensure_workers.free + IDLE_THREADS);
    }

    #[test]
    fn no_worker_leaves_while_all_are_busy() {
        let ensure_workers = workers_for(136);
        let visits: Vec<_> = (0..136).map(|_| WorkerVisit::begin(&ensure_workers)).collect();
        (0..68).for_each(|_| ensure_workers.note_blocked());
        // One more comes to their help.
        assert!(ensure_workers.try_enter(137));
        assert!(!ensure_workers.try_leave());
        drop(visits);
        assert!(ensure_workers.try_leave());
    }

    #[test]
    fn missing_workers_are_counted_once() {
        let ensure_workers = workers_for(3);
        assert_eq!((ensure_workers.missing(5), ensure_workers.missing(3), ensure_workers.missing(1)), (2, 0, 0));
    }
}
