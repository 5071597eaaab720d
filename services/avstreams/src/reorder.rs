//! Packets in the order of their numbers, although they come in another one.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The greatest jump of numbers that is a loss, and no new beginning (RFC 3550, A.1).
const MAX_DROPOUT: u64 = 3_000;

/// The treatment of a packet that has come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Arrival {
    /// It is the next one, or waits for earlier ones.
    Accepted {
        /// Whether a later packet came before.
        is_reordered: bool,
    },
    /// A packet with its number waits already.
    Duplicate,
    /// Its place was given up.
    Late,
    /// Its number is far from the others.
    Jump,
}

/// A packet in its order, and the number of lost ones before it.
#[derive(Debug, PartialEq)]
pub(crate) struct Ordered<T> {
    pub(crate) lost: u64,
    pub(crate) item: T,
}

/// Packets that wait for earlier ones: at most so many, for at most so long.
#[derive(Debug)]
pub(crate) struct ReorderBuffer<T> {
    capacity: usize,
    hold: Duration,
    /// The bits of numbers on the wire: 16 or 32.
    bits: u32,
    /// The number of the next packet, extended by the cycles.
    next: Option<u64>,
    highest: u64,
    waiting: BTreeMap<u64, (Instant, T)>,
    /// The number after the last one that was too far away.
    after_jump: Option<u64>,
}

impl<T> ReorderBuffer<T> {
    pub(crate) fn new(bits: u32, capacity: usize, hold: Duration) -> Self {
        Self { capacity, hold, bits, next: None, highest: 0, waiting: BTreeMap::new(), after_jump: None }
    }

    /// The highest number with its cycles.
    pub(crate) fn highest(&self) -> u64 {
        self.highest
    }

    /// Takes a packet. Two packets in a row that are far away begin anew.
    pub(crate) fn insert(&mut self, number: u32, now: Instant, item: T) -> Arrival {
        let Some(next) = self.next else {
            let number = (1 << self.bits) + u64::from(number);
            (self.next, self.highest) = (Some(number), number);
            self.waiting.insert(number, (now, item));
            return Arrival::Accepted { is_reordered: false };
        };
        let number = self.extended(number);
        if number.abs_diff(self.highest) > MAX_DROPOUT {
            if self.after_jump != Some(number) {
                self.after_jump = Some(number + 1);
                return Arrival::Jump;
            }
            self.waiting.clear();
            (self.next, self.highest) = (Some(number), number);
        }
        self.after_jump = None;
        if number < self.next.unwrap_or(next) {
            return Arrival::Late;
        }
        if self.waiting.contains_key(&number) {
            return Arrival::Duplicate;
        }
        let is_reordered = number < self.highest;
        self.highest = self.highest.max(number);
        self.waiting.insert(number, (now, item));
        Arrival::Accepted { is_reordered }
    }

    /// The next packet in order. A gap is given up when too many wait, or the first of them for too long.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<Ordered<T>> {
        let next = self.next?;
        let (&number, (arrival, _)) = self.waiting.first_key_value()?;
        let is_due = number == next || self.waiting.len() > self.capacity || now.duration_since(*arrival) >= self.hold;
        if !is_due {
            return None;
        }
        let (_, item) = self.waiting.remove(&number)?;
        self.next = Some(number + 1);
        Some(Ordered { lost: number - next, item })
    }

    /// Gives up all gaps: each packet that waits is due.
    pub(crate) fn give_up(&mut self) {
        self.hold = Duration::ZERO;
    }

    /// The time at which a gap is given up.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.waiting.first_key_value().map(|(_, (arrival, _))| *arrival + self.hold)
    }

    /// The number with the cycle that is nearest to the highest one.
    fn extended(&self, number: u32) -> u64 {
        let cycle = 1_u64 << self.bits;
        let base = self.highest & !(cycle - 1);
        let candidates = [base.saturating_sub(cycle), base, base + cycle].map(|base| base + u64::from(number));
        candidates.into_iter().min_by_key(|candidate| candidate.abs_diff(self.highest)).unwrap_or(base)
    }
}
