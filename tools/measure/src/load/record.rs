//! The records of the workers: times, delays and failures.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::histogram::Histogram;

/// The upper limit of recorded times in nanoseconds.
const SLOWEST: u64 = 3_600_000_000_000;

/// The maximum number of distinct kinds of errors; others count as [`OTHER`].
pub(super) const MAX_KINDS: usize = 64;
/// The kind of errors beyond [`MAX_KINDS`].
pub(super) const OTHER: &str = "other errors";

/// The record of a worker, or of all.
pub(super) struct Record {
    /// From the scheduled time to the answer.
    pub(super) times: Histogram,
    /// From the scheduled time to the sending.
    pub(super) delays: Histogram,
    pub(super) failures: BTreeMap<String, u64>,
    pub(super) given_up: u64,
}

impl Record {
    pub(super) fn new() -> Self {
        Self { times: Histogram::new(SLOWEST), delays: Histogram::new(SLOWEST), failures: BTreeMap::new(), given_up: 0 }
    }

    pub(super) fn of_panic() -> Self {
        let mut record = Self::new();
        record.failed("a worker panicked".to_owned(), 1);
        record
    }

    pub(super) fn sent_late(&mut self, delay: Duration) {
        self.delays.record(nanos(delay));
    }

    pub(super) fn answered(&mut self, time: Duration) {
        self.times.record(nanos(time));
    }

    pub(super) fn failed(&mut self, kind: String, count: u64) {
        let is_new = !self.failures.contains_key(&kind);
        let kind = if is_new && self.failures.len() >= MAX_KINDS { OTHER.to_owned() } else { kind };
        *self.failures.entry(kind).or_default() += count;
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.times.add(&other.times);
        self.delays.add(&other.delays);
        other.failures.iter().for_each(|(kind, count)| self.failed(kind.clone(), *count));
        self.given_up += other.given_up;
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
