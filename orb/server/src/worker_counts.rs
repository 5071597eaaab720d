//! The numbers of a pool's threads: how many exist, how many are wanted, and how many visit a connection.
//!
//! This module counts threads. It starts none, and does not know the connections.

use std::thread::available_parallelism;

use spandrel_reactor::Reactor;
use spandrel_sync::{
    Mutex, ProcessorShortage, WorkingThread,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

/// The threads that run the reactor in addition to one for each processor. A few threads may be blocked too
/// briefly to be noticed.
const SPARE_THREADS: usize = 2;
/// The most additional threads that stay after they are no longer blocked.
const IDLE_THREADS: usize = 64;

/// The number of a pool's threads, and the number wanted.
#[derive(Debug)]
pub(super) struct WorkerCounts {
    /// The number of threads wanted to wait and to serve.
    free: usize,
    /// Whether their number stays the same, even when all of them are blocked.
    is_fixed: bool,
    threads: AtomicUsize,
    /// The threads that an upcall blocks.
    blocked: AtomicUsize,
    /// The number of threads that visit a connection, in the lower half; the number of visits, in the upper
    /// half.
    visits: AtomicU64,
    /// The thread that has begun the last visit.
    visitor: WorkingThread,
    /// The state of the threads at the monitor's last look.
    last_look: Mutex<LastLook>,
}

#[derive(Debug, Default)]
struct LastLook {
    visits: u64,
    /// Whether the last visitor lacks a processor.
    shortage: ProcessorShortage,
}

/// One visit by one thread, in `visits`.
const ONE_VISIT: u64 = (1 << 32) + 1;
/// The bits of `visits` that count the present visitors.
const VISITOR_BITS: u64 = (1 << 32) - 1;

fn visitors(visits: u64) -> usize {
    usize::try_from(visits & VISITOR_BITS).unwrap_or(usize::MAX)
}

/// The time of a thread's visit to a connection.
pub(super) struct WorkerVisit<'s>(&'s WorkerCounts);

/// The part of a visit in which the thread waits, and serves other connections meanwhile.
pub(super) struct WaitScope<'s>(&'s WorkerCounts);

impl<'s> WaitScope<'s> {
    pub(super) fn begin(counts: &'s WorkerCounts) -> Self {
        counts.visits.fetch_sub(1, Ordering::SeqCst);
        Self(counts)
    }
}

impl Drop for WaitScope<'_> {
    fn drop(&mut self) {
        self.0.visits.fetch_add(ONE_VISIT, Ordering::SeqCst);
    }
}

impl<'s> WorkerVisit<'s> {
    #[inline]
    pub(super) fn begin(counts: &'s WorkerCounts) -> Self {
        counts.visits.fetch_add(ONE_VISIT, Ordering::SeqCst);
        counts.visitor.record_current();
        Self(counts)
    }
}

impl Drop for WorkerVisit<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.visits.fetch_sub(1, Ordering::SeqCst);
    }
}

impl WorkerCounts {
    /// `threads`: the fixed number of threads, if there is one.
    pub(super) fn new(threads: Option<usize>) -> Self {
        Self {
            free: threads.unwrap_or_else(|| available_parallelism().map_or(1, usize::from) + SPARE_THREADS),
            is_fixed: threads.is_some(),
            threads: AtomicUsize::new(0),
            blocked: AtomicUsize::new(0),
            visits: AtomicU64::new(0),
            visitor: WorkingThread::none(),
            last_look: Mutex::default(),
        }
    }

    /// Whether the number of threads is fixed.
    pub(super) fn is_fixed(&self) -> bool {
        self.is_fixed
    }

    /// The number of threads.
    pub(super) fn count(&self) -> usize {
        self.threads.load(Ordering::SeqCst)
    }

    /// Records that an upcall blocks one of the threads.
    pub(super) fn record_blocked(&self) {
        self.blocked.fetch_add(1, Ordering::SeqCst);
    }

    /// Records that a thread is no longer blocked.
    pub(super) fn record_unblocked(&self) {
        let before = self.blocked.fetch_sub(1, Ordering::SeqCst);
        debug_assert_ne!(before, 0, "a thread was unblocked that was not blocked");
    }

    /// The number of blocked threads.
    #[cfg(all(test, shuttle))]
    pub(super) fn blocked(&self) -> usize {
        self.blocked.load(Ordering::SeqCst)
    }

    /// Whether all threads visit a connection.
    pub(super) fn is_full(&self) -> bool {
        let visitors = self.visitors();
        visitors > 0 && visitors >= self.count()
    }

    /// Whether all threads visit a connection and none has moved since the last call, though there were processors for
    /// them.
    pub(super) fn is_stuck(&self) -> bool {
        let visits = self.visits.load(Ordering::SeqCst);
        let mut last_look = self.last_look.lock();
        if last_look.visits != visits {
            *last_look = LastLook { visits, shortage: ProcessorShortage::default() };
            return false;
        }
        self.is_full() && !last_look.shortage.delays(&self.visitor)
    }

    /// The number of threads that visit a connection.
    fn visitors(&self) -> usize {
        visitors(self.visits.load(Ordering::SeqCst))
    }

    pub(super) fn wanted(&self) -> usize {
        if self.is_fixed {
            return self.free;
        }
        self.free.saturating_add(self.blocked.load(Ordering::SeqCst))
    }

    /// The number of threads that `wanted` lacks. No more are started for it, even if threads leave
    /// meanwhile.
    pub(super) fn missing(&self, wanted: usize) -> usize {
        wanted.saturating_sub(self.count())
    }

    /// Counts one more thread, if there are fewer than `wanted`.
    pub(super) fn try_enter(&self, wanted: usize) -> bool {
        let more = |threads| (threads < wanted).then(|| threads + 1);
        self.threads.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more).is_ok()
    }

    /// Counts one thread less.
    pub(super) fn record_left(&self) {
        self.threads.fetch_sub(1, Ordering::SeqCst);
    }

    /// Counts one thread less, if there are far more than wanted.
    fn try_leave(&self) -> bool {
        let enough = self.free.saturating_add(IDLE_THREADS);
        if self.threads.load(Ordering::Relaxed) <= enough {
            return false;
        }
        // Visitors include blocked threads that the monitor has not found yet. Threads that were added
        // because all are busy must stay.
        let busy = self.visitors().max(self.blocked.load(Ordering::SeqCst));
        let enough = enough.saturating_add(busy);
        let less = |threads| (threads > enough).then(|| threads - 1);
        self.threads.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).is_ok()
    }

    /// Runs the reactor in a thread of the pool until the thread is surplus or the reactor ends.
    pub(super) fn run(&self, reactor: &Reactor) {
        let mut has_left = false;
        let result = reactor.run_until(None, || {
            has_left = has_left || self.try_leave();
            has_left
        });
        if let Err(error) = result {
            tracing::error!(%error, "the reactor ended with an error");
        }
        if !has_left {
            self.record_left();
        }
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    /// Counts as on a machine with two processors.
    fn workers_for(threads: usize) -> WorkerCounts {
        let counts = WorkerCounts { free: 2 + SPARE_THREADS, ..WorkerCounts::new(None) };
        while counts.try_enter(threads) {}
        counts
    }

    #[test]
    fn surplus_workers_leave() {
        let counts = workers_for(200);
        while counts.try_leave() {}
        assert_eq!(counts.count(), counts.free + IDLE_THREADS);
    }

    #[test]
    fn no_worker_leaves_while_all_are_busy() {
        let counts = workers_for(136);
        let visits: Vec<_> = (0..136).map(|_| WorkerVisit::begin(&counts)).collect();
        (0..68).for_each(|_| counts.record_blocked());
        // One more thread joins them.
        assert!(counts.try_enter(137));
        assert!(!counts.try_leave());
        drop(visits);
        assert!(counts.try_leave());
    }

    #[test]
    fn missing_workers_are_counted_once() {
        let counts = workers_for(3);
        assert_eq!((counts.missing(5), counts.missing(3), counts.missing(1)), (2, 0, 0));
    }
}
