//! The hashed timing wheel: scheme 6 of Varghese and Lauck.

use std::fmt;
use std::time::Duration;

use super::clock::Time;
use super::lists::{Links, Lists};
use super::slab::Slab;
use super::ticks::Ticks;
use super::{Expired, Full, TimerId, TimerOptions, TimerQueue};

/// Bucket numbers have 16 bits, and one list is for the timers that are due.
const MAX_BUCKETS: usize = 1 << 15;

/// Timers in a hash table, by the low digits of their tick; each bucket holds those of all rounds, in no
/// order.
///
/// Scheduling and cancelling take a constant number of steps, but at each tick with an expiry the whole
/// bucket is scanned. For at most a few timers per [bucket](TimerOptions::buckets).
///
/// The paper's wheel is driven by an interrupt per tick. This one sleeps: a tournament tree over the buckets
/// gives the earliest tick of all. A cancelled timer may leave its tick there until it passes.
///
/// See [the module](super) for the rounding to ticks.
pub struct HashedWheel<P> {
    slab: Slab<Links, P>,
    /// The lists of the buckets, followed by that of the due timers.
    lists: Lists,
    /// The index of the list of due timers.
    due: u16,
    bounds: Bounds,
    /// The present tick. The buckets hold later ones.
    hand: u64,
    ticks: Ticks,
}

impl<P> HashedWheel<P> {
    /// Creates an empty queue with the default options.
    #[must_use]
    pub fn new() -> Self {
        Self::with(&TimerOptions::new())
    }

    /// An empty queue with other limits, another resolution, and another number of buckets.
    #[must_use]
    pub fn with(options: &TimerOptions) -> Self {
        let buckets = options.buckets.clamp(1, MAX_BUCKETS).next_power_of_two();
        Self {
            slab: Slab::new(options),
            lists: Lists::new(buckets + 1),
            due: buckets as u16,
            bounds: Bounds::new(buckets),
            hand: 0,
            ticks: Ticks::new(options.resolution),
        }
    }

    /// The length of a tick: the requested resolution, or the next shorter power of two in nanoseconds.
    #[must_use]
    pub fn resolution(&self) -> Duration {
        self.ticks.resolution()
    }

    /// The number of buckets: the requested number, or the next power of two, up to 32,768.
    #[must_use]
    pub fn buckets(&self) -> usize {
        self.bounds.buckets()
    }

    #[inline]
    fn place(&mut self, index: u32, at: Time) {
        self.slab.node_mut(index).links.at = at;
        let tick = self.ticks.of_expiry(at);
        if tick <= self.hand {
            return self.lists.push_back(&mut self.slab, self.due, index);
        }
        let bucket = self.bounds.bucket(tick);
        self.lists.push_back(&mut self.slab, bucket, index);
        self.bounds.lower(bucket, tick);
    }

    #[inline]
    fn remove(&mut self, index: u32) {
        let (list, is_empty) = self.lists.remove(&mut self.slab, index);
        if is_empty && list != self.due {
            self.bounds.set(list, u64::MAX);
        }
    }

    /// Moves the due timers out of their bucket, and finds the bucket's next tick.
    fn collect(&mut self, bucket: u16) {
        let mut bound = u64::MAX;
        let first = self.lists.detach(bucket);
        let mut rest = first;
        while let Some(index) = rest {
            let Links { at, next, .. } = self.slab.node(index).links;
            rest = Some(next).filter(|_| Some(next) != first);
            let tick = self.ticks.of_expiry(at);
            if tick <= self.hand {
                self.lists.push_back(&mut self.slab, self.due, index);
            } else {
                self.lists.push_back(&mut self.slab, bucket, index);
                bound = bound.min(tick);
            }
        }
        self.bounds.set(bucket, bound);
    }

    /// The first timer that is due at `tick`. The hand advances to that, or to `tick`.
    fn next_due(&mut self, tick: u64) -> Option<u32> {
        loop {
            if let Some(index) = self.lists.first(self.due) {
                // If it is not due, it was scheduled with a later time than this one.
                return Some(index).filter(|_| self.ticks.of_expiry(self.slab.node(index).links.at) <= tick);
            }
            let bound = self.bounds.lowest();
            if bound > tick || self.slab.len() == 0 {
                self.hand = self.hand.max(tick);
                return None;
            }
            self.hand = self.hand.max(bound);
            self.collect(self.bounds.bucket(bound));
        }
    }
}

impl<P: Clone + Send> TimerQueue<P> for HashedWheel<P> {
    fn schedule(&mut self, at: Time, interval: Option<Duration>, payload: P) -> Result<TimerId, Full> {
        let id = self.slab.insert(Links::new(at), interval, payload)?;
        self.place(id.index(), at);
        Ok(id)
    }

    fn cancel(&mut self, id: TimerId) -> Option<P> {
        let index = self.slab.find(id)?;
        self.remove(index);
        Some(self.slab.release(index))
    }

    fn reschedule(&mut self, id: TimerId, at: Time, interval: Option<Duration>) -> bool {
        let Some(index) = self.slab.find(id) else { return false };
        self.slab.set_interval(index, interval);
        self.remove(index);
        self.place(index, at);
        true
    }

    fn due(&self, id: TimerId) -> Option<Time> {
        Some(self.slab.node(self.slab.find(id)?).links.at)
    }

    fn earliest(&self) -> Option<Time> {
        if self.slab.len() == 0 {
            return None;
        }
        let is_due = self.lists.first(self.due).is_some();
        Some(self.ticks.time(if is_due { self.hand } else { self.bounds.lowest() }))
    }

    fn pop_expired(&mut self, now: Time) -> Option<Expired<P>> {
        let index = self.next_due(self.ticks.of_now(now))?;
        let due = self.slab.node(index).links.at;
        let phase = self.slab.phase(index, due, now);
        let Some(next) = phase.next else {
            self.remove(index);
            return Some(self.slab.last_expiry(index, phase));
        };
        let expired = self.slab.expiry(index, &phase);
        self.remove(index);
        self.place(index, next);
        Some(expired)
    }

    fn len(&self) -> usize {
        self.slab.len()
    }

    fn limit(&self) -> usize {
        self.slab.limit()
    }

    fn clear(&mut self) {
        self.lists.clear();
        self.bounds.clear();
        self.slab.clear();
    }
}

impl<P> Default for HashedWheel<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P> fmt::Debug for HashedWheel<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HashedWheel")
            .field("len", &self.slab.len())
            .field("resolution", &self.resolution())
            .field("buckets", &self.buckets())
            .finish_non_exhaustive()
    }
}

/// A lower bound of the ticks in each bucket, `u64::MAX` if it is empty; and the lowest of all.
struct Bounds {
    /// Node `i` has the lower one of nodes `2 i` and `2 i + 1`; the second half is the buckets; node 0 is not
    /// used.
    tree: Box<[u64]>,
}

impl Bounds {
    /// For a power of two buckets.
    fn new(buckets: usize) -> Self {
        Self { tree: vec![u64::MAX; 2 * buckets].into_boxed_slice() }
    }

    fn buckets(&self) -> usize {
        self.tree.len() / 2
    }

    #[inline]
    fn bucket(&self, tick: u64) -> u16 {
        (tick as usize & (self.buckets() - 1)) as u16
    }

    fn lowest(&self) -> u64 {
        self.tree[1]
    }

    #[inline]
    fn lower(&mut self, bucket: u16, tick: u64) {
        let mut node = self.buckets() + usize::from(bucket);
        while node > 0 && self.tree[node] > tick {
            self.tree[node] = tick;
            node /= 2;
        }
    }

    fn set(&mut self, bucket: u16, tick: u64) {
        let mut node = self.buckets() + usize::from(bucket);
        self.tree[node] = tick;
        while node > 1 {
            node /= 2;
            let lowest = self.tree[2 * node].min(self.tree[2 * node + 1]);
            if std::mem::replace(&mut self.tree[node], lowest) == lowest {
                return;
            }
        }
    }

    fn clear(&mut self) {
        self.tree.fill(u64::MAX);
    }
}
