//! The timed loop of single calls, the same for every mechanism.

use std::time::Instant;

use serde::{Deserialize, Serialize};
use spandrel_measure::histogram::Histogram;

use crate::workload::PingPong;

/// The distribution of the times of many calls, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallTimes {
    /// The number of timed calls.
    pub calls: u64,
    /// From the first call to the last answer, in seconds.
    pub seconds: f64,
    /// The time of the fastest call, in microseconds.
    pub min: f64,
    /// Half of the calls were faster.
    pub median: f64,
    /// Nine in ten were faster.
    pub p90: f64,
    /// 99 in 100 were faster.
    pub p99: f64,
    /// 999 in 1,000 were faster.
    pub p999: f64,
    /// The time of the slowest call, in microseconds.
    pub max: f64,
    /// The mean of the calls' times, in microseconds.
    pub mean: f64,
}

/// The upper limit of recorded times in nanoseconds.
const SLOWEST: u64 = 60_000_000_000;

/// The output of a client program, ours and our peers'; times in nanoseconds.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Printed {
    calls: u64,
    min_ns: f64,
    median_ns: f64,
    p90_ns: f64,
    p99_ns: f64,
    p999_ns: f64,
    max_ns: f64,
    mean_ns: f64,
}

impl Printed {
    pub(crate) fn times(&self) -> CallTimes {
        CallTimes {
            calls: self.calls,
            seconds: self.mean_ns * self.calls as f64 / 1e9,
            min: self.min_ns / 1000.0,
            median: self.median_ns / 1000.0,
            p90: self.p90_ns / 1000.0,
            p99: self.p99_ns / 1000.0,
            p999: self.p999_ns / 1000.0,
            max: self.max_ns / 1000.0,
            mean: self.mean_ns / 1000.0,
        }
    }

    pub(crate) fn of(times: &CallTimes) -> Self {
        let nanos = |micros: f64| micros * 1000.0;
        Self {
            calls: times.calls,
            min_ns: nanos(times.min),
            median_ns: nanos(times.median),
            p90_ns: nanos(times.p90),
            p99_ns: nanos(times.p99),
            p999_ns: nanos(times.p999),
            max_ns: nanos(times.max),
            mean_ns: nanos(times.mean),
        }
    }
}

impl CallTimes {
    /// Makes the calls: first the warm-up, then the timed ones, with one reading of the clock per call.
    ///
    /// # Errors
    /// The first error of a call.
    pub fn of<E>(work: &PingPong, call: &mut impl FnMut() -> Result<(), E>) -> Result<Self, E> {
        Self::of_calls(work.warm_up, work.calls, call)
    }

    /// [`of`](Self::of) with explicit numbers.
    pub(crate) fn of_calls<E>(warm_up: u32, calls: u32, call: &mut impl FnMut() -> Result<(), E>) -> Result<Self, E> {
        for _ in 0..warm_up {
            call()?;
        }
        // Written once before the clock starts, so that no page is touched first in the timed part.
        let mut nanos = vec![1u64; calls as usize];
        let start = Instant::now();
        let mut before = start;
        for slot in &mut nanos {
            call()?;
            let after = Instant::now();
            *slot = (after - before).as_nanos() as u64;
            before = after;
        }
        Ok(Self::from_nanos(&nanos, (before - start).as_secs_f64()))
    }

    fn from_nanos(nanos: &[u64], seconds: f64) -> Self {
        let mut histogram = Histogram::new(SLOWEST);
        for nanos in nanos {
            histogram.record(*nanos);
        }
        let micros = |nanos: u64| nanos as f64 / 1000.0;
        Self {
            calls: histogram.count(),
            seconds,
            min: micros(histogram.min()),
            median: micros(histogram.value_at(0.5)),
            p90: micros(histogram.value_at(0.9)),
            p99: micros(histogram.value_at(0.99)),
            p999: micros(histogram.value_at(0.999)),
            max: micros(histogram.max()),
            mean: histogram.mean() / 1000.0,
        }
    }

    /// Calls per second, one after the other.
    #[must_use]
    pub fn calls_per_second(&self) -> f64 {
        if self.seconds > 0.0 { self.calls as f64 / self.seconds } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;
    use crate::workload::PingCase;

    #[test]
    fn quantiles_are_those_of_the_calls() {
        let nanos: Vec<u64> = (1..=1000).map(|micro| micro * 1000).collect();
        let times = CallTimes::from_nanos(&nanos, 0.5);
        let near = |value: f64, expected: f64| (value / expected - 1.0).abs() < 0.002; // three significant digits
        assert!(
            near(times.min, 1.0) && near(times.median, 500.0) && near(times.p99, 990.0) && near(times.p999, 999.0),
            "{times:?}"
        );
        assert!(near(times.mean, 500.5) && near(times.max, 1000.0), "{times:?}");
        assert_eq!((times.calls, times.calls_per_second()), (1000, 2000.0));
    }

    #[test]
    fn warming_up_is_not_counted() {
        let work = PingPong { case: PingCase::Void, warm_up: 5, calls: 20, request_octets: 1, reply_octets: 1 };
        let mut made = 0;
        let times = CallTimes::of::<Infallible>(&work, &mut || {
            made += 1;
            Ok(())
        });
        assert_eq!((made, times.unwrap().calls), (25, 20));
    }

    #[test]
    fn the_first_failure_ends_the_run() {
        let work = PingPong { case: PingCase::Void, warm_up: 0, calls: 20, request_octets: 1, reply_octets: 1 };
        let mut made = 0;
        let outcome = CallTimes::of(&work, &mut || {
            made += 1;
            if made == 3 { Err("gone") } else { Ok(()) }
        });
        assert_eq!((made, outcome.unwrap_err()), (3, "gone"));
    }
}
