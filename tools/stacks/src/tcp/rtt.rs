//! The estimate of the round-trip time, and the time-out for retransmissions (RFC 6298).

use std::time::Duration;

/// The longest time-out for a retransmission (RFC 6298, 2.5).
const MAX_TIMEOUT: Duration = Duration::from_secs(60);
/// The time-out before the first sample (RFC 6298, 2.1).
const INITIAL_TIMEOUT: Duration = Duration::from_secs(1);

/// The estimate of a connection's round-trip time.
#[derive(Clone, Copy, Debug)]
pub struct RoundTrip {
    /// The smoothed time and its variation; none before the first sample.
    smoothed: Option<(Duration, Duration)>,
    min_timeout: Duration,
    /// The number of retransmissions since the last sample, each of which doubles the time-out.
    backoff: u32,
}

impl RoundTrip {
    /// An estimate without samples; no time-out will be shorter than `min_timeout`.
    #[must_use]
    pub fn new(min_timeout: Duration) -> Self {
        Self { smoothed: None, min_timeout, backoff: 0 }
    }

    /// Takes a sample: the time between the transmission of an octet, sent once only, and its acknowledgement.
    pub fn sample(&mut self, time: Duration) {
        self.backoff = 0;
        self.smoothed = Some(match self.smoothed {
            None => (time, time / 2),
            Some((smoothed, variation)) => {
                let error = time.abs_diff(smoothed);
                ((smoothed * 7 + time) / 8, (variation * 3 + error) / 4)
            }
        });
    }

    /// Doubles the time-out until the next sample.
    pub fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(16);
    }

    /// The smoothed round-trip time; none before the first sample.
    #[must_use]
    pub fn smoothed(&self) -> Option<Duration> {
        self.smoothed.map(|(smoothed, _)| smoothed)
    }

    /// The time after which a segment that was not acknowledged is sent again.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        let base = match self.smoothed {
            None => INITIAL_TIMEOUT.max(self.min_timeout),
            Some((smoothed, variation)) => (smoothed + variation * 4).max(self.min_timeout),
        };
        base.saturating_mul(1 << self.backoff).min(MAX_TIMEOUT)
    }
}
