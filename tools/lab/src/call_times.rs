//! The timed loop of single calls, the same for every mechanism.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use spandrel_measure::{Times, histogram::Histogram};

use crate::workload::PingPong;

/// The times of many calls, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallTimes {
    /// The number of calls that the other values are of.
    pub calls: u64,
    /// From the first call to the last answer, in seconds.
    pub seconds: f64,
    /// The times of single calls, in microseconds.
    #[serde(flatten)]
    pub each: Times,
}

/// The upper limit of recorded times in nanoseconds.
pub(crate) const SLOWEST: u64 = 60_000_000_000;

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
        let nanos = Times {
            min: self.min_ns,
            median: self.median_ns,
            p90: self.p90_ns,
            p99: self.p99_ns,
            p999: self.p999_ns,
            max: self.max_ns,
            mean: self.mean_ns,
        };
        let seconds = self.mean_ns * self.calls as f64 / 1e9;
        CallTimes { calls: self.calls, seconds, each: nanos.scaled(1e-3) }
    }

    pub(crate) fn from_times(times: &CallTimes) -> Self {
        let Times { min, median, p90, p99, p999, max, mean } = times.each.scaled(1e3);
        Self {
            calls: times.calls,
            min_ns: min,
            median_ns: median,
            p90_ns: p90,
            p99_ns: p99,
            p999_ns: p999,
            max_ns: max,
            mean_ns: mean,
        }
    }
}

impl CallTimes {
    /// Makes the calls: first the warm-up, then the timed ones, with one reading of the clock per call.
    ///
    /// # Errors
    /// The first error of a call.
    pub fn measure<E>(work: &PingPong, call: &mut impl FnMut() -> Result<(), E>) -> Result<Self, E> {
        Self::of_calls(work.warm_up, work.calls, call)
    }

    /// [`measure`](Self::measure) with explicit numbers.
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
        let each = Times::of(&histogram, Duration::from_micros(1)).unwrap_or_default();
        Self { calls: histogram.count(), seconds, each }
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
    fn times_are_those_of_the_calls() {
        let nanos: Vec<u64> = (1..=1000).map(|micro| micro * 1000).collect();
        let times = CallTimes::from_nanos(&nanos, 0.5);
        assert!((times.each.median / 500.0 - 1.0).abs() < 0.002, "{times:?}"); // three significant digits
        assert_eq!((times.calls, times.calls_per_second()), (1000, 2000.0));
    }

    #[test]
    fn a_program_prints_the_times_that_are_read_again() {
        let times = CallTimes::from_nanos(&[1000, 3000], 4e-6);
        let printed = serde_json::to_string(&Printed::from_times(&times)).unwrap();
        let read: Printed = serde_json::from_str(&printed).unwrap();
        assert!(printed.contains(r#""min_ns":1000.0"#), "{printed}");
        assert!((read.times().each.median - times.each.median).abs() < 1e-9 && read.times().calls == 2, "{printed}");
        let json = serde_json::to_value(times).unwrap();
        assert_eq!((&json["min"], &json["calls"]), (&1.0.into(), &2.into()), "flat, as in stored results: {json}");
    }

    #[test]
    fn warming_up_is_not_counted() {
        let work = PingPong { case: PingCase::Void, warm_up: 5, calls: 20, request_octets: 1, reply_octets: 1 };
        let mut made = 0;
        let times = CallTimes::measure::<Infallible>(&work, &mut || {
            made += 1;
            Ok(())
        });
        assert_eq!((made, times.unwrap().calls), (25, 20));
    }

    #[test]
    fn the_first_failure_ends_the_run() {
        let work = PingPong { case: PingCase::Void, warm_up: 0, calls: 20, request_octets: 1, reply_octets: 1 };
        let mut made = 0;
        let outcome = CallTimes::measure(&work, &mut || {
            made += 1;
            if made == 3 { Err("gone") } else { Ok(()) }
        });
        assert_eq!((made, outcome.unwrap_err()), (3, "gone"));
    }
}
