//! The heap: scheme 3 of Varghese and Lauck.

use std::fmt;
use std::time::Duration;

use super::clock::Time;
use super::slab::Slab;
use super::{Expired, Full, TimerId, TimerOptions, TimerQueue};

/// The number of children of an entry. With four, the heap is half as deep as with two, and siblings are
/// adjacent.
const ARITY: usize = 4;

/// Timers in a heap by their time, with an index from each timer to its entry, so that any one can be
/// cancelled.
///
/// Exact, and the worst case of each operation is logarithmic. For programs that check for expiries more
/// often than they schedule and cancel, or that need a finer order than ticks. Timers of the same time fire
/// in any order.
pub struct TimerHeap<P> {
    slab: Slab<(), P>,
    /// No entry is earlier than its parent, that of `i` being `(i - 1) / ARITY`.
    entries: Vec<Entry>,
    /// The position in `entries` by index in the slab. Apart from the slab, since moving entries writes to
    /// many.
    positions: Vec<u32>,
}

#[derive(Clone, Copy)]
struct Entry {
    at: Time,
    index: u32,
}

impl<P> TimerHeap<P> {
    /// Creates an empty queue with the default options.
    #[must_use]
    pub fn new() -> Self {
        Self::with(&TimerOptions::new())
    }

    /// An empty queue with the limit of these options.
    #[must_use]
    pub fn with(options: &TimerOptions) -> Self {
        let slab = Slab::new(options);
        let capacity = options.capacity.min(slab.limit());
        Self { slab, entries: Vec::with_capacity(capacity), positions: Vec::with_capacity(capacity) }
    }

    fn push(&mut self, entry: Entry) {
        if self.positions.len() <= entry.index as usize {
            self.positions.resize(entry.index as usize + 1, 0);
        }
        self.entries.push(entry);
        self.rise(self.entries.len() - 1, entry);
    }

    fn remove(&mut self, position: usize) {
        let last = self.entries.pop().expect("an entry is removed from a heap that has one");
        if position < self.entries.len() {
            self.settle(position, last);
        }
    }

    fn position(&self, index: u32) -> usize {
        self.positions[index as usize] as usize
    }

    fn put(&mut self, position: usize, entry: Entry) {
        self.entries[position] = entry;
        self.positions[entry.index as usize] = position as u32;
    }

    /// Restores the heap order around `position`, whose content is overwritten.
    fn settle(&mut self, position: usize, entry: Entry) {
        if position > 0 && entry.at < self.entries[(position - 1) / ARITY].at {
            self.rise(position, entry);
        } else {
            self.sink(position, entry);
        }
    }

    fn rise(&mut self, mut position: usize, entry: Entry) {
        while position > 0 {
            let parent = (position - 1) / ARITY;
            if self.entries[parent].at <= entry.at {
                break;
            }
            self.put(position, self.entries[parent]);
            position = parent;
        }
        self.put(position, entry);
    }

    fn sink(&mut self, mut position: usize, entry: Entry) {
        loop {
            let first = position * ARITY + 1;
            let last = self.entries.len().min(first + ARITY);
            let earliest = (first..last).min_by_key(|&child| self.entries[child].at);
            match earliest {
                Some(child) if self.entries[child].at < entry.at => {
                    self.put(position, self.entries[child]);
                    position = child;
                }
                _ => return self.put(position, entry),
            }
        }
    }
}

impl<P: Clone + Send> TimerQueue<P> for TimerHeap<P> {
    fn schedule(&mut self, at: Time, interval: Option<Duration>, payload: P) -> Result<TimerId, Full> {
        let id = self.slab.insert((), interval, payload)?;
        self.push(Entry { at, index: id.index() });
        Ok(id)
    }

    fn cancel(&mut self, id: TimerId) -> Option<P> {
        let index = self.slab.find(id)?;
        self.remove(self.position(index));
        Some(self.slab.release(index))
    }

    fn reschedule(&mut self, id: TimerId, at: Time, interval: Option<Duration>) -> bool {
        let Some(index) = self.slab.find(id) else { return false };
        self.slab.set_interval(index, interval);
        self.settle(self.position(index), Entry { at, index });
        true
    }

    fn due(&self, id: TimerId) -> Option<Time> {
        Some(self.entries[self.position(self.slab.find(id)?)].at)
    }

    fn earliest(&self) -> Option<Time> {
        Some(self.entries.first()?.at)
    }

    fn pop_expired(&mut self, now: Time) -> Option<Expired<P>> {
        let &Entry { at: due, index } = self.entries.first()?;
        if due > now {
            return None;
        }
        let phase = self.slab.phase(index, due, now);
        let Some(next) = phase.next else {
            self.remove(0);
            return Some(self.slab.last_expiry(index, phase));
        };
        let expired = self.slab.expiry(index, &phase);
        self.settle(0, Entry { at: next, index });
        Some(expired)
    }

    fn len(&self) -> usize {
        self.slab.len()
    }

    fn limit(&self) -> usize {
        self.slab.limit()
    }

    fn clear(&mut self) {
        self.entries.clear();
        self.slab.clear();
    }
}

impl<P> Default for TimerHeap<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P> fmt::Debug for TimerHeap<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimerHeap").field("len", &self.slab.len()).finish_non_exhaustive()
    }
}
