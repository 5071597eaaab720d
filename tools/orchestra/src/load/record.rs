//! The counts and latencies of one worker, or of all.

use std::time::{Duration, Instant};

use spandrel_measure::{Times, histogram::Histogram};

use super::FailureKind;
use crate::idl::orchestra::{ErrorCount, Latency, LoadResult};

/// The highest latency that is told apart, in nanoseconds: an hour.
pub(crate) const HIGHEST: u64 = 3_600_000_000_000;

/// The outcome of requests.
pub(super) struct Record {
    times: Histogram,
    octets: u64,
    failures: [u64; FailureKind::ALL.len()],
    /// The end of the last request.
    end: Option<Instant>,
}

impl Default for Record {
    fn default() -> Self {
        Self { times: Histogram::new(HIGHEST), octets: 0, failures: Default::default(), end: None }
    }
}

impl Record {
    pub(super) fn answered(&mut self, time: Duration, octets: u32) {
        self.times.record(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        self.octets += u64::from(octets);
        self.end = Some(Instant::now());
    }

    pub(super) fn failed(&mut self, kind: FailureKind) {
        self.failures[kind as usize] += 1;
        self.end = Some(Instant::now());
    }

    pub(super) fn total(records: &[Self]) -> Self {
        let mut total = Self::default();
        for record in records {
            total.times.add(&record.times);
            total.octets += record.octets;
            total.failures.iter_mut().zip(record.failures).for_each(|(sum, count)| *sum += count);
            total.end = total.end.max(record.end);
        }
        total
    }

    pub(super) fn result(&self, start: Instant) -> LoadResult {
        let (answered, failed) = (self.times.count(), self.failures.iter().sum::<u64>());
        let errors = FailureKind::ALL.into_iter().zip(self.failures).filter(|(_, count)| *count > 0);
        LoadResult {
            number: 0, // which the WorkTeam gives
            elapsed: self.end.map_or(0.0, |end| (end - start).as_secs_f64()),
            requests: answered + failed,
            answered,
            failed,
            octets: self.octets,
            errors: errors.map(|(kind, count)| ErrorCount { kind: kind.name().to_owned(), count }).collect(),
            times: latency(&self.times),
            histogram: self.times.encode(),
        }
    }
}

/// The latencies of a histogram of nanoseconds, in seconds; all zero without a request.
fn latency(nanos: &Histogram) -> Latency {
    const SECOND: Duration = Duration::from_secs(1);
    let Times { min, median, p90, p99, p999, max, mean } = Times::of(nanos, SECOND).unwrap_or_default();
    let deviation = nanos.deviation() / 1e9;
    Latency { lowest: min, mean, deviation, p50: median, p90, p99, p999, highest: max }
}
