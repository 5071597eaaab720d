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
pub(super) struct Staff {
    /// Threads that are wanted to wait and to serve.
    free: usize,
    /// There are to be no more, whatever keeps them.
    is_fixed: bool,
    threads: AtomicUsize,
    /// Threads that an upcall keeps.
    held_up: AtomicUsize,
    /// How many threads are with a connection, and above them how often one came.
    visits: AtomicU64,
    /// What `visits` was when the monitor looked last.
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
pub(super) struct Visit<'s>(&'s Staff);

/// The time in which it waits for what others are to bring, and serves them.
pub(super) struct Pause<'s>(&'s Staff);

impl<'s> Pause<'s> {
    pub(super) fn begin(staff: &'s Staff) -> Self {
        staff.visits.fetch_sub(1, Ordering::SeqCst);
        Self(staff)
    }
}

impl Drop for Pause<'_> {
    fn drop(&mut self) {
        self.0.visits.fetch_add(VISIT, Ordering::SeqCst);
    }
}

impl<'s> Visit<'s> {
    #[inline]
    pub(super) fn begin(staff: &'s Staff) -> Self {
        staff.visits.fetch_add(VISIT, Ordering::SeqCst);
        Self(staff)
    }
}

impl Drop for Visit<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.visits.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Staff {
    /// `threads`: so many and no more.
    pub(super) fn new(threads: Option<usize>) -> Self {
        Self {
            free: threads.unwrap_or_else(|| available_parallelism().map_or(1, usize::from) + SPARE_THREADS),
            is_fixed: threads.is_some(),
            threads: AtomicUsize::new(0),
            held_up: AtomicUsize::new(0),
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
    pub(super) fn hold_up(&self) {
        self.held_up.fetch_add(1, Ordering::SeqCst);
    }

    /// It keeps the thread no longer.
    pub(super) fn let_go(&self) {
        let before = self.held_up.fetch_sub(1, Ordering::SeqCst);
        debug_assert_ne!(before, 0, "a thread is let go that was not held up");
    }

    /// How many threads are kept.
    #[cfg(all(test, shuttle))]
    pub(super) fn held_up(&self) -> usize {
        self.held_up.load(Ordering::SeqCst)
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
        self.free.saturating_add(self.held_up.load(Ordering::SeqCst))
    }

    /// How many threads are missing. Not more are to be started for it, however many leave meanwhile.
    pub(super) fn missing(&self, wanted: usize) -> usize {
        wanted.saturating_sub(self.count())
    }

    /// Counts one more thread, if there are fewer.
    pub(super) fn enters(&self, wanted: usize) -> bool {
        let more = |threads| (threads < wanted).then(|| threads + 1);
        self.threads.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more).is_ok()
    }

    /// One thread less.
    pub(super) fn note_left(&self) {
        self.threads.fetch_sub(1, Ordering::SeqCst);
    }

    /// Counts one thread less, if there are far more than wanted.
    fn leaves(&self) -> bool {
        let enough = self.free.saturating_add(IDLE_THREADS);
        if self.threads.load(Ordering::Relaxed) <= enough {
            return false;
        }
        // With a connection are also those that are kept and were not found yet. What is added because all of them are must stay.
        let busy = self.visitors().max(self.held_up.load(Ordering::SeqCst));
        let enough = enough.saturating_add(busy);
        let less = |threads| (threads > enough).then(|| threads - 1);
        self.threads.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).is_ok()
    }

    /// What a thread does.
    pub(super) fn run(&self, reactor: &Reactor) {
        let mut has_left = false;
        let result = reactor.run_until(None, || {
            has_left = has_left || self.leaves();
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
    fn staff_of(threads: usize) -> Staff {
        let staff = Staff { free: 2 + SPARE_THREADS, ..Staff::new(None) };
        while staff.enters(threads) {}
        staff
    }

    #[test]
    fn of_far_too_many_some_leave() {
        let staff = staff_of(200);
        while staff.leaves() {}
        assert_eq!(staff.count(), staff.free + IDLE_THREADS);
    }

    #[test]
    fn nobody_leaves_while_all_are_with_connections_whether_or_not_that_was_noticed() {
        let staff = staff_of(136);
        let visits: Vec<_> = (0..136).map(|_| Visit::begin(&staff)).collect();
        (0..68).for_each(|_| staff.hold_up());
        // One more comes to their help.
        assert!(staff.enters(137));
        assert!(!staff.leaves());
        drop(visits);
        assert!(staff.leaves());
    }

    #[test]
    fn what_is_missing_is_counted_once() {
        let staff = staff_of(3);
        assert_eq!((staff.missing(5), staff.missing(3), staff.missing(1)), (2, 0, 0));
    }
}
