//! A counter that many threads increase.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering}; // counts nothing that a model decides on

use crossbeam_utils::CachePadded;

/// The number of parts of a counter. Threads beyond it share parts.
const PARTS: usize = 8;

/// A number in parts, each for some of the threads, so that threads do not wait for each other's cache lines.
#[derive(Debug, Default)]
pub(crate) struct Counter([CachePadded<AtomicU64>; PARTS]);

impl Counter {
    /// Adds one, in the part of this thread.
    #[inline]
    pub(crate) fn increase(&self) {
        self.0[part()].fetch_add(1, Ordering::Relaxed);
    }

    /// The sum of all parts.
    pub(crate) fn total(&self) -> u64 {
        self.0.iter().map(|part| part.load(Ordering::Relaxed)).sum()
    }
}

/// The part of the calling thread, which it gets with its first message.
#[inline]
fn part() -> usize {
    thread_local! {
        static PART: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    #[cold]
    fn next() -> usize {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        NEXT.fetch_add(1, Ordering::Relaxed) % PARTS
    }
    PART.with(|part| {
        if part.get() == usize::MAX {
            part.set(next());
        }
        part.get() % PARTS
    })
}
