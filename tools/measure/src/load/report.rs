//! The report of a load.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::Serialize;

use super::LoadSettings;
use super::record::Record;
use crate::Times;

const MICROSECOND: Duration = Duration::from_micros(1);

/// The answers, failures and latencies of a load.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LoadReport {
    /// The scheduled rate in requests per second.
    pub rate: f64,
    /// The time during which requests were due, in seconds.
    pub seconds: f64,
    /// Whether the load was stopped before its time.
    pub stopped: bool,
    /// The requests of the schedule; of a stopped load those until then.
    pub due: u64,
    /// Requests with an answer.
    pub answered: u64,
    /// Requests without a valid answer, for whatever reason.
    pub failed: u64,
    /// Requests that were never sent, because earlier ones took too long.
    pub given_up: u64,
    /// Answers per second, until the last answer.
    pub achieved_rate: f64,
    /// The failed requests by kind.
    pub failures: BTreeMap<String, u64>,
    /// The times in microseconds from the scheduled time of a request to its answer; none without an answer.
    pub times: Option<Times>,
    /// The times in microseconds from the scheduled time of a request to its sending: beyond some ten, there were
    /// too few workers or processors.
    pub send_delays: Option<Times>,
}

impl LoadReport {
    /// The report of a record. `elapsed` is the time from the start to the last answer, `stopped` that to the end of a load
    /// that was stopped.
    pub(super) fn from_record(
        settings: &LoadSettings,
        record: &Record,
        elapsed: Duration,
        stopped: Option<Duration>,
    ) -> Self {
        let (answered, failed) = (record.times.count(), record.failures.values().sum());
        let stopped = stopped.filter(|stopped| *stopped < settings.duration);
        let duration = stopped.unwrap_or(settings.duration);
        // A stopped load has sent some, and has left the others that were due.
        let due = settings.requests_within(duration);
        let due = if stopped.is_some() { due.max(answered + failed) } else { due };
        Self {
            rate: settings.rate,
            seconds: duration.as_secs_f64(),
            stopped: stopped.is_some(),
            due,
            answered,
            failed,
            given_up: stopped.map_or(record.given_up, |_| due - answered - failed),
            achieved_rate: answered as f64 / elapsed.max(duration).as_secs_f64(),
            failures: record.failures.clone(),
            times: Times::of(&record.times, MICROSECOND),
            send_delays: Times::of(&record.delays, MICROSECOND),
        }
    }
}

/// Prints the report for people.
impl fmt::Display for LoadReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} of {} requests answered in {:.1} s: {:.1} per second of {:.1} scheduled",
            self.answered, self.due, self.seconds, self.achieved_rate, self.rate
        )?;
        if self.stopped {
            writeln!(f, "stopped before its time")?;
        }
        if self.given_up > 0 {
            writeln!(f, "{} requests given up: those before them took too long", self.given_up)?;
        }
        for (kind, count) in &self.failures {
            writeln!(f, "{count} failed: {kind}")?;
        }
        writeln!(f, "{:>24} {:>9} {:>9} {:>9} {:>9} {:>9}", "µs", "p50", "p90", "p99", "p99.9", "max")?;
        for (name, times) in [("scheduled to answered", &self.times), ("scheduled to sent", &self.send_delays)] {
            if let Some(Times { median, p90, p99, p999, max, .. }) = times {
                writeln!(f, "{name:>24} {median:>9.1} {p90:>9.1} {p99:>9.1} {p999:>9.1} {max:>9.1}")?;
            }
        }
        Ok(())
    }
}
