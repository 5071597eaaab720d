//! The ordered list: scheme 2 of Varghese and Lauck.

use std::fmt;
use std::time::Duration;

use super::clock::Time;
use super::lists::{Links, Lists};
use super::slab::Slab;
use super::{Expired, Full, TimerId, TimerOptions, TimerQueue};

/// Timers in a list that is ordered by their time, with the earliest first.
///
/// Scheduling searches from the end, so that it takes as many steps as there are later timers: none where all
/// delays are alike, half of all timers where they are random. All other operations take one step. For few
/// timers, or for equal delays.
///
/// Timers of the same time fire in the order in which they were scheduled.
pub struct TimerList<P> {
    slab: Slab<Links, P>,
    list: Lists,
}

/// The list of the whole queue in the slab.
const LIST: u16 = 0;

impl<P> TimerList<P> {
    /// Creates an empty queue with the default options.
    #[must_use]
    pub fn new() -> Self {
        Self::with(&TimerOptions::new())
    }

    /// An empty queue with the limit of these options.
    #[must_use]
    pub fn with(options: &TimerOptions) -> Self {
        Self { slab: Slab::new(options), list: Lists::new(1) }
    }

    fn place(&mut self, index: u32, at: Time) {
        self.slab.node_mut(index).links.at = at;
        let Some(first) = self.list.first(LIST) else {
            return self.list.push_back(&mut self.slab, LIST, index);
        };
        let mut next = first;
        loop {
            let prev = self.slab.node(next).links.prev;
            if self.slab.node(prev).links.at <= at {
                return self.list.insert(&mut self.slab, LIST, index, next);
            }
            if prev == first {
                return self.list.push_front(&mut self.slab, LIST, index);
            }
            next = prev;
        }
    }
}

impl<P: Clone + Send> TimerQueue<P> for TimerList<P> {
    fn schedule(&mut self, at: Time, interval: Option<Duration>, payload: P) -> Result<TimerId, Full> {
        let id = self.slab.insert(Links::new(at), interval, payload)?;
        self.place(id.index(), at);
        Ok(id)
    }

    fn cancel(&mut self, id: TimerId) -> Option<P> {
        let index = self.slab.find(id)?;
        self.list.remove(&mut self.slab, index);
        Some(self.slab.release(index))
    }

    fn reschedule(&mut self, id: TimerId, at: Time, interval: Option<Duration>) -> bool {
        let Some(index) = self.slab.find(id) else { return false };
        self.slab.set_interval(index, interval);
        self.list.remove(&mut self.slab, index);
        self.place(index, at);
        true
    }

    fn due(&self, id: TimerId) -> Option<Time> {
        Some(self.slab.node(self.slab.find(id)?).links.at)
    }

    fn earliest(&self) -> Option<Time> {
        Some(self.slab.node(self.list.first(LIST)?).links.at)
    }

    fn pop_expired(&mut self, now: Time) -> Option<Expired<P>> {
        let index = self.list.first(LIST)?;
        let due = self.slab.node(index).links.at;
        if due > now {
            return None;
        }
        let phase = self.slab.phase(index, due, now);
        let Some(next) = phase.next else {
            self.list.remove(&mut self.slab, index);
            return Some(self.slab.last_expiry(index, phase));
        };
        let expired = self.slab.expiry(index, &phase);
        self.list.remove(&mut self.slab, index);
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
        self.list.clear();
        self.slab.clear();
    }
}

impl<P> Default for TimerList<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P> fmt::Debug for TimerList<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimerList").field("len", &self.slab.len()).finish_non_exhaustive()
    }
}
