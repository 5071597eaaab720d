//! The order in which events leave a queue: to a consumer, or because of the queue's bounds.

use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

/// The order in which a consumer gets the events of its queue.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum QueueOrder {
    /// The events that were received first.
    #[default]
    Fifo,
    /// The events with the highest priority; among equal ones the first.
    Priority,
    /// The events that expire first; those that do not expire are the last ones.
    Deadline,
}

/// The order in which events are discarded if a queue exceeds its bounds.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum DiscardOrder {
    /// The event that was received first.
    #[default]
    Fifo,
    /// The event that was received last.
    Lifo,
    /// The event with the lowest priority; among equal ones the oldest.
    Priority,
    /// The event that expires first.
    Deadline,
}

/// The attributes of an event by which a queue orders and drops it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lifetime {
    /// Higher numbers are delivered first by [`QueueOrder::Priority`].
    pub priority: i16,
    /// The end of its life: it is not delivered after it. `None` for an event that does not expire.
    pub expires: Option<Instant>,
}

/// A rank, and the number of the entry, which is unique in its queue and grows.
type Key = (i64, u64);

/// Entries in the order of delivery, with an index in the order of discarding.
#[derive(Debug)]
pub(crate) struct Schedule<T> {
    order: QueueOrder,
    discard: DiscardOrder,
    /// With their numbers, if both orders begin with the oldest entry; otherwise empty.
    fifo: VecDeque<(u64, (T, Lifetime))>,
    entries: BTreeMap<Key, (T, Lifetime)>,
    discards: BTreeMap<Key, Key>,
    next: u64,
    epoch: Instant,
}

impl<T> Schedule<T> {
    pub(crate) fn new(order: QueueOrder, discard: DiscardOrder) -> Self {
        let (entries, discards) = (BTreeMap::new(), BTreeMap::new());
        Self { order, discard, fifo: VecDeque::new(), entries, discards, next: 0, epoch: Instant::now() }
    }

    pub(crate) fn len(&self) -> usize {
        self.fifo.len() + self.entries.len()
    }

    pub(crate) fn insert(&mut self, value: T, lifetime: Lifetime) {
        self.next += 1;
        self.insert_numbered(self.next, value, lifetime);
    }

    fn insert_numbered(&mut self, number: u64, value: T, lifetime: Lifetime) {
        if !self.is_indexed() {
            self.fifo.push_back((number, (value, lifetime)));
            return;
        }
        let rank = match self.order {
            QueueOrder::Fifo => 0,
            QueueOrder::Priority => -i64::from(lifetime.priority),
            QueueOrder::Deadline => self.deadline(lifetime),
        };
        let key = (rank, number);
        self.discards.insert(self.discard_key(number, lifetime), key);
        self.entries.insert(key, (value, lifetime));
    }

    fn discard_key(&self, number: u64, lifetime: Lifetime) -> Key {
        match self.discard {
            DiscardOrder::Fifo => (0, number),
            DiscardOrder::Lifo => (0, u64::MAX - number),
            DiscardOrder::Priority => (lifetime.priority.into(), number),
            DiscardOrder::Deadline => (self.deadline(lifetime), number),
        }
    }

    /// Microseconds from the creation of the queue to the end of an event's life.
    fn deadline(&self, lifetime: Lifetime) -> i64 {
        let micros = lifetime.expires.map(|end| end.saturating_duration_since(self.epoch).as_micros());
        micros.and_then(|micros| i64::try_from(micros).ok()).unwrap_or(i64::MAX)
    }

    fn is_indexed(&self) -> bool {
        (self.order, self.discard) != (QueueOrder::Fifo, DiscardOrder::Fifo)
    }

    /// The entry that is delivered next.
    pub(crate) fn first(&self) -> Option<&T> {
        let oldest = self.fifo.front().map(|(_, (value, _))| value);
        oldest.or_else(|| self.entries.first_key_value().map(|(_, (value, _))| value))
    }

    /// Removes the entry that is delivered next, of those for which the function is true; its life may have ended.
    pub(crate) fn pop(&mut self, accepts: impl Fn(&T) -> bool) -> Option<(T, Lifetime)> {
        if !self.is_indexed() {
            let index = self.fifo.iter().position(|(_, (value, _))| accepts(value))?;
            let entry = if index == 0 { self.fifo.pop_front() } else { self.fifo.remove(index) };
            return entry.map(|(_, entry)| entry);
        }
        let ((_, number), entry) = if accepts(self.first()?) {
            self.entries.pop_first()?
        } else {
            let key = self.entries.iter().find(|(_, (value, _))| accepts(value)).map(|(key, _)| *key)?;
            self.entries.remove_entry(&key)?
        };
        self.discards.remove(&self.discard_key(number, entry.1));
        Some(entry)
    }

    /// Removes the entry that is discarded next.
    pub(crate) fn discard(&mut self) -> Option<T> {
        if !self.is_indexed() {
            return self.fifo.pop_front().map(|(_, (value, _))| value);
        }
        let key = self.discards.pop_first()?.1;
        self.entries.remove(&key).map(|(value, _)| value)
    }

    /// Changes the orders of this and all later entries.
    pub(crate) fn set_orders(&mut self, order: QueueOrder, discard: DiscardOrder) {
        if (self.order, self.discard) == (order, discard) {
            return;
        }
        (self.order, self.discard) = (order, discard);
        let indexed = std::mem::take(&mut self.entries).into_iter();
        let mut entries: Vec<_> = indexed.map(|((_, number), entry)| (number, entry)).collect();
        entries.extend(std::mem::take(&mut self.fifo));
        entries.sort_unstable_by_key(|(number, _)| *number); // the first in, first out order is that of insertions
        self.discards.clear();
        for (number, (value, lifetime)) in entries {
            self.insert_numbered(number, value, lifetime);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.fifo = VecDeque::new();
        self.entries = BTreeMap::new();
        self.discards = BTreeMap::new();
    }
}
