//! The settings of an open loop.

use std::time::Duration;

/// The maximum number of requests.
const MAX_REQUESTS: f64 = 1e15;

/// The rate and the duration of a load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadSettings {
    /// The scheduled rate in requests per second.
    pub rate: f64,
    /// The time during which requests are due.
    pub duration: Duration,
    /// The time in which late requests are still sent at the end of the schedule; the rest is given up.
    pub drain: Duration,
}

impl LoadSettings {
    /// The number of requests; none if there is not a single one, or if there are too many.
    pub(super) fn requests(&self) -> Option<u64> {
        let requests = (self.rate * self.duration.as_secs_f64()).round();
        (1.0..=MAX_REQUESTS).contains(&requests).then_some(requests as u64)
    }

    /// The number of requests that are due within this time from the start.
    pub(super) fn requests_within(&self, time: Duration) -> u64 {
        let requests = (time.as_secs_f64() * self.rate).ceil() as u64;
        self.requests().map_or(0, |all| requests.min(all))
    }
}
