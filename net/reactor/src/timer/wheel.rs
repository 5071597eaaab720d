//! The hierarchical timing wheel: scheme 7 of Varghese and Lauck.

use std::fmt;
use std::time::Duration;

use super::clock::Time;
use super::lists::{Links, Lists};
use super::slab::Slab;
use super::ticks::Ticks;
use super::{Expired, Full, TimerId, TimerOptions, TimerQueue};

/// The number of bits of a digit of a tick; each level stands for one digit.
const DIGIT: u32 = 6;
/// Slots of a level: one bit each in a word.
const SLOTS: usize = 1 << DIGIT;

/// Timers in wheels of 64 slots, like the hands of a clock: a tick is written in digits to base 64, one per
/// level.
///
/// A timer lies at the level of the first digit in which its tick differs from the present one, in the slot
/// of that digit. As its time approaches, it moves down, level by level. Scheduling and cancelling take a
/// constant number of steps. The levels, 8 by default, reach to the end of time. A bit mask per level marks
/// the occupied slots, so that empty ones are skipped at once.
///
/// [`pop_expired`](TimerQueue::pop_expired) moves all timers of a slot down at its start: at most one move
/// per timer and level, and none for timers cancelled before. One call can take a million steps, if a million
/// timers share a slot.
///
/// See [the module](super) for the rounding to ticks.
pub struct TimerWheel<P> {
    slab: Slab<Links, P>,
    /// By level and slot.
    slots: Lists,
    /// By level: the mask of slots with timers.
    taken: Box<[u64]>,
    /// The mask of levels with timers.
    levels: u32,
    /// The present tick. No timer has an earlier one; exactly those of this one are due.
    hand: u64,
    ticks: Ticks,
}

/// The next slot: the first occupied one of the lowest occupied level.
struct Upcoming {
    level: usize,
    slot: usize,
    /// The first tick that the slot covers.
    tick: u64,
}

fn list_of(level: usize, slot: usize) -> u16 {
    (level * SLOTS + slot) as u16 // of at most 11 levels
}

impl<P> TimerWheel<P> {
    /// Creates an empty queue with the default options.
    #[must_use]
    pub fn new() -> Self {
        Self::with(&TimerOptions::new())
    }

    /// An empty queue with other limits and another resolution.
    #[must_use]
    pub fn with(options: &TimerOptions) -> Self {
        let ticks = Ticks::new(options.resolution);
        let levels = ticks.bits().div_ceil(DIGIT) as usize;
        Self {
            slab: Slab::new(options),
            slots: Lists::new(levels * SLOTS),
            taken: vec![0; levels].into_boxed_slice(),
            levels: 0,
            hand: 0,
            ticks,
        }
    }

    /// The length of a tick: the requested resolution, or the next shorter power of two in nanoseconds.
    #[must_use]
    pub fn resolution(&self) -> Duration {
        self.ticks.resolution()
    }

    #[inline]
    fn place(&mut self, index: u32, at: Time) {
        let tick = self.ticks.of_expiry(at).max(self.hand);
        let difference = (tick ^ self.hand) | 1;
        let level = (difference.ilog2() / DIGIT) as usize;
        let slot = (tick >> (level as u32 * DIGIT)) as usize % SLOTS;
        self.slab.node_mut(index).links.at = at;
        self.slots.push_back(&mut self.slab, list_of(level, slot), index);
        self.taken[level] |= 1 << slot;
        self.levels |= 1 << level;
    }

    #[inline]
    fn remove(&mut self, index: u32) {
        let (list, is_empty) = self.slots.remove(&mut self.slab, index);
        if is_empty {
            self.vacate(usize::from(list) / SLOTS, usize::from(list) % SLOTS);
        }
    }

    fn vacate(&mut self, level: usize, slot: usize) {
        self.taken[level] &= !(1 << slot);
        if self.taken[level] == 0 {
            self.levels &= !(1 << level);
        }
    }

    /// Lower levels come first, since their ticks agree with the hand in more digits; and occupied slots lie
    /// ahead of the hand, so that the lowest is the next one.
    #[inline]
    fn upcoming(&self) -> Option<Upcoming> {
        if self.levels == 0 {
            return None;
        }
        let level = self.levels.trailing_zeros() as usize;
        let slot = self.taken[level].trailing_zeros() as usize;
        let digit = level as u32 * DIGIT;
        let above = (self.hand >> digit) / SLOTS as u64 * SLOTS as u64;
        Some(Upcoming { level, slot, tick: (above | slot as u64) << digit })
    }

    /// Moves the timers of a slot, whose first tick is the present one, to lower levels.
    fn cascade(&mut self, level: usize, slot: usize) {
        self.vacate(level, slot);
        let Some(first) = self.slots.detach(list_of(level, slot)) else { return };
        let mut index = first;
        loop {
            let Links { at, next, .. } = self.slab.node(index).links;
            self.place(index, at);
            if next == first {
                return;
            }
            index = next;
        }
    }

    /// The first timer that is due at `tick`. The hand advances to that, or to `tick`.
    fn next_due(&mut self, tick: u64) -> Option<u32> {
        while let Some(upcoming) = self.upcoming()
            && upcoming.tick <= tick
        {
            self.hand = upcoming.tick;
            if upcoming.level == 0 {
                return self.slots.first(list_of(0, upcoming.slot));
            }
            self.cascade(upcoming.level, upcoming.slot);
        }
        self.hand = self.hand.max(tick); // passes no slot, so that all timers stay in the right slots
        None
    }
}

impl<P: Clone + Send> TimerQueue<P> for TimerWheel<P> {
    #[inline]
    fn schedule(&mut self, at: Time, interval: Option<Duration>, payload: P) -> Result<TimerId, Full> {
        let id = self.slab.insert(Links::new(at), interval, payload)?;
        self.place(id.index(), at);
        Ok(id)
    }

    #[inline]
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

    #[inline]
    fn earliest(&self) -> Option<Time> {
        Some(self.ticks.time(self.upcoming()?.tick))
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
        self.slots.clear();
        self.taken.fill(0);
        self.levels = 0;
        self.slab.clear();
    }
}

impl<P> Default for TimerWheel<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P> fmt::Debug for TimerWheel<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimerWheel")
            .field("len", &self.slab.len())
            .field("resolution", &self.resolution())
            .finish_non_exhaustive()
    }
}
