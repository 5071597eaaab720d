//! The storage of a queue's timers: one growing array, and a stack of its free entries.

use std::num::NonZeroU32;
use std::time::Duration;

use super::clock::Time;
use super::{Expired, Full, TimerId, TimerOptions};

/// The index of no node.
pub(super) const NIL: u32 = u32::MAX;

/// Whether a timer fires again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Once,
    /// The interval is in [`Slab::intervals`].
    Interval,
}

/// A scheduled timer with its links.
pub(super) struct Node<L, P> {
    /// The strategy's links to its neighbours.
    pub(super) links: L,
    payload: P,
    generation: NonZeroU32,
    /// The strategy's list that has it, if there are several. Here, not in the links, for the sake of the
    /// size.
    pub(super) list: u16,
    kind: Kind,
}

/// An entry of the slab. The tag goes into the spare values of [`Kind`].
pub(super) enum SlabEntry<L, P> {
    /// With the generation of the next timer.
    Free(NonZeroU32),
    Occupied(Node<L, P>),
}

/// The next expiry of an expired timer.
pub(super) struct Phase {
    due: Time,
    missed: u64,
    pub(super) next: Option<Time>,
}

/// Timers with payloads `P`, each with the links `L` of the strategy.
///
/// Methods that take an index expect it to be a timer's.
pub(super) struct Slab<L, P> {
    entries: Vec<SlabEntry<L, P>>,
    /// Nanoseconds by index; valid for interval timers. Other timers never access this table, so that they
    /// stay short.
    intervals: Vec<u64>,
    /// Used from the end. Not threaded through the entries, since then each would have to be loaded before
    /// the next is known. It has room for all of them.
    free: Vec<u32>,
    len: usize,
    limit: usize,
}

const OCCUPIED: &str = "an index that a strategy stores is a timer's";

impl<L, P> Slab<L, P> {
    pub(super) fn new(options: &TimerOptions) -> Self {
        let limit = options.limit.min(NIL as usize);
        let capacity = options.capacity.min(limit);
        Self {
            entries: Vec::with_capacity(capacity),
            intervals: Vec::with_capacity(capacity),
            free: Vec::with_capacity(capacity),
            len: 0,
            limit,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    /// Adds a timer, unless the limit is reached.
    #[inline]
    pub(super) fn insert(&mut self, links: L, interval: Option<Duration>, payload: P) -> Result<TimerId, Full> {
        if self.len == self.limit {
            return Err(Full { limit: self.limit });
        }
        let node = |generation| Node { links, payload, generation, list: 0, kind: Kind::Once };
        let id = match self.free.pop() {
            Some(index) => {
                let entry = &mut self.entries[index as usize];
                let &mut SlabEntry::Free(generation) = entry else { unreachable!("the stack holds free places") };
                *entry = SlabEntry::Occupied(node(generation));
                TimerId { index, generation }
            }
            None => {
                let id = self.next_id().ok_or(Full { limit: self.limit })?;
                self.entries.push(SlabEntry::Occupied(node(id.generation)));
                id
            }
        };
        self.len += 1;
        if interval.is_some() {
            self.set_interval(id.index, interval);
        }
        Ok(id)
    }

    /// The identifier of the first timer of a new entry. None when as many entries as can be counted have
    /// been retired; see [`release`](Self::release).
    fn next_id(&mut self) -> Option<TimerId> {
        let index = u32::try_from(self.entries.len()).ok().filter(|&index| index != NIL)?;
        if self.entries.len() == self.entries.capacity() {
            self.entries.reserve(1);
            self.free.reserve(self.entries.capacity() - self.free.len());
        }
        Some(TimerId { index, generation: NonZeroU32::MIN })
    }

    /// The index of a timer that still exists.
    #[inline]
    pub(super) fn find(&self, id: TimerId) -> Option<u32> {
        match self.entries.get(id.index as usize) {
            Some(SlabEntry::Occupied(node)) if node.generation == id.generation => Some(id.index),
            _ => None,
        }
    }

    #[inline]
    pub(super) fn node(&self, index: u32) -> &Node<L, P> {
        match &self.entries[index as usize] {
            SlabEntry::Occupied(node) => node,
            SlabEntry::Free(_) => unreachable!("{OCCUPIED}"),
        }
    }

    #[inline]
    pub(super) fn node_mut(&mut self, index: u32) -> &mut Node<L, P> {
        match &mut self.entries[index as usize] {
            SlabEntry::Occupied(node) => node,
            SlabEntry::Free(_) => unreachable!("{OCCUPIED}"),
        }
    }

    pub(super) fn set_interval(&mut self, index: u32, interval: Option<Duration>) {
        let nanos = interval.map_or(0, |span| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX));
        self.node_mut(index).kind = if nanos == 0 { Kind::Once } else { Kind::Interval };
        if nanos != 0 {
            if self.intervals.len() <= index as usize {
                self.intervals.resize(self.entries.len(), 0);
            }
            self.intervals[index as usize] = nanos;
        }
    }

    /// Removes a timer, whose identifier is stale from now on.
    ///
    /// An entry whose generations are exhausted is not reused, so that no two timers ever share an
    /// identifier. That costs one entry in 2^32 timers.
    #[inline]
    pub(super) fn release(&mut self, index: u32) -> P {
        let entry = &mut self.entries[index as usize];
        let SlabEntry::Occupied(node) = entry else { unreachable!("{OCCUPIED}") };
        let next = node.generation.checked_add(1);
        if next.is_some() {
            self.free.push(index);
        }
        let free = SlabEntry::Free(next.unwrap_or(NonZeroU32::MAX));
        let SlabEntry::Occupied(node) = std::mem::replace(entry, free) else { unreachable!("{OCCUPIED}") };
        self.len -= 1;
        node.payload
    }

    /// The next expiry of a timer that was `due` and is checked `now`.
    #[inline]
    pub(super) fn phase(&self, index: u32, due: Time, now: Time) -> Phase {
        if self.node(index).kind == Kind::Once {
            return Phase { due, missed: 0, next: None };
        }
        let interval = self.intervals[index as usize];
        let missed = now.as_nanos().saturating_sub(due.as_nanos()) / interval;
        let next = interval
            .checked_mul(missed.saturating_add(1))
            .and_then(|span| due.as_nanos().checked_add(span))
            .map(Time::from_nanos);
        Phase { due, missed, next }
    }

    /// Returns the last expiry of a timer, and removes the timer.
    pub(super) fn last_expiry(&mut self, index: u32, phase: Phase) -> Expired<P> {
        let id = self.id(index);
        Expired { id, due: phase.due, missed: phase.missed, next: None, payload: self.release(index) }
    }

    /// An expiry of a timer that fires again.
    pub(super) fn expiry(&self, index: u32, phase: &Phase) -> Expired<P>
    where
        P: Clone,
    {
        let payload = self.node(index).payload.clone();
        Expired { id: self.id(index), due: phase.due, missed: phase.missed, next: phase.next, payload }
    }

    fn id(&self, index: u32) -> TimerId {
        TimerId { index, generation: self.node(index).generation }
    }

    /// Removes all timers. The strategy has unlinked them before, so that it stays consistent even if
    /// dropping one panics.
    pub(super) fn clear(&mut self) {
        let taken =
            |(index, entry): (usize, &SlabEntry<L, P>)| matches!(entry, SlabEntry::Occupied(_)).then_some(index as u32);
        let taken: Vec<_> = self.entries.iter().enumerate().rev().filter_map(taken).collect();
        let payloads: Vec<_> = taken.into_iter().map(|index| self.release(index)).collect();
        drop(payloads);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slab(limit: usize) -> Slab<(), u64> {
        Slab::new(&TimerOptions::new().limit(limit))
    }

    #[test]
    fn an_entry_without_further_generations_is_retired() {
        let mut slab = slab(1);
        let first = slab.insert((), None, 1).unwrap();
        slab.node_mut(first.index).generation = NonZeroU32::MAX;
        let last = slab.id(first.index);
        assert_eq!(slab.release(first.index), 1);
        let other = slab.insert((), None, 2).unwrap();
        assert_ne!(other.index, last.index);
        assert_eq!((slab.find(last), slab.find(other)), (None, Some(other.index)));
        assert_eq!(slab.insert((), None, 3), Err(Full { limit: 1 }));
    }

    #[test]
    fn entries_are_reused_with_another_generation() {
        let mut slab = slab(10);
        let first = slab.insert((), None, 1).unwrap();
        slab.release(first.index);
        let second = slab.insert((), None, 2).unwrap();
        assert_eq!(second.index, first.index);
        assert_ne!(second, first);
        assert_eq!(slab.entries.len(), 1);
    }

    #[test]
    fn a_late_interval_timer_keeps_its_phase() {
        let mut slab = slab(1);
        let interval = Some(Duration::from_nanos(10));
        let index = slab.insert((), interval, 1).unwrap().index;
        let phase = |now| {
            let phase = slab.phase(index, Time::from_nanos(7), Time::from_nanos(now));
            (phase.missed, phase.next.map(Time::as_nanos))
        };
        assert_eq!(phase(7), (0, Some(17)));
        assert_eq!(phase(16), (0, Some(17)));
        assert_eq!(phase(17), (1, Some(27)));
        assert_eq!(phase(101), (9, Some(107)));
        assert_eq!(phase(u64::MAX), ((u64::MAX - 7) / 10, None));
    }

    #[test]
    fn once_and_then_at_intervals_and_then_once() {
        let mut slab = slab(1);
        let index = slab.insert((), None, 1).unwrap().index;
        let next = |slab: &Slab<_, _>| slab.phase(index, Time::ZERO, Time::ZERO).next.map(Time::as_nanos);
        assert_eq!(next(&slab), None);
        slab.set_interval(index, Some(Duration::from_nanos(5)));
        assert_eq!(next(&slab), Some(5));
        slab.set_interval(index, Some(Duration::MAX));
        assert_eq!(next(&slab), Some(u64::MAX));
        slab.set_interval(index, Some(Duration::ZERO));
        assert_eq!(next(&slab), None);
    }
}
