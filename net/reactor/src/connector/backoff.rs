//! Waits between connection attempts.

use std::time::Duration;

/// Waits that double from one attempt to the next, up to a maximum. Each is shortened at random by up to half
/// ("jitter"), so that many clients of a restarted server do not reconnect all at once.
#[derive(Clone, Debug)]
pub struct Backoff {
    shortest: Duration,
    longest: Duration,
    attempts: Option<u32>,
    failed: u32,
}

impl Default for Backoff {
    /// From 100 ms to 30 s, without a limit on attempts.
    fn default() -> Self {
        Self::new(Duration::from_millis(100), Duration::from_secs(30))
    }
}

impl Backoff {
    /// Waits from about `shortest`, a millisecond at least, to about `longest`, without a limit on attempts.
    #[must_use]
    pub fn new(shortest: Duration, longest: Duration) -> Self {
        let shortest = shortest.clamp(MIN_WAIT, MAX_WAIT);
        let longest = longest.min(MAX_WAIT);
        Self { shortest, longest: longest.max(shortest), attempts: None, failed: 0 }
    }

    /// Gives up after that many consecutive failures. A connection that ends before the next wait would have
    /// passed counts as one.
    #[must_use]
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = Some(attempts);
        self
    }

    /// The number of consecutive failures.
    pub(super) fn failed(&self) -> u32 {
        self.failed
    }

    /// Records a failed attempt and returns the wait before the next, or `None` to give up. `chance` is any
    /// number.
    pub(super) fn after_failure(&mut self, chance: u32) -> Option<Duration> {
        self.failed = self.failed.saturating_add(1);
        if self.attempts.is_some_and(|attempts| self.failed >= attempts) {
            return None;
        }
        Some(self.wait(self.failed, chance))
    }

    /// Records the end of a connection. It was a success if it outlasted the wait that an immediate end would
    /// have caused; otherwise, as with a server that closes at once, it counts as a failure.
    pub(super) fn after_end(&mut self, lasted: Duration, chance: u32) -> Option<Duration> {
        if lasted < self.doubled(self.failed.saturating_add(1)) {
            return self.after_failure(chance);
        }
        self.failed = 0;
        Some(self.wait(1, chance))
    }

    fn wait(&self, failed: u32, chance: u32) -> Duration {
        let half = self.doubled(failed) / 2;
        half.saturating_add(Duration::from_secs_f64(half.as_secs_f64() * f64::from(chance) / f64::from(u32::MAX)))
    }

    fn doubled(&self, failed: u32) -> Duration {
        self.shortest.saturating_mul(1 << failed.saturating_sub(1).min(20)).min(self.longest)
    }
}

/// The shortest wait before another attempt.
const MIN_WAIT: Duration = Duration::from_millis(1);
/// The longest wait before another attempt, ten years.
const MAX_WAIT: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_with_at_most_half_jitter() {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_millis(500));
        let most: Vec<_> = (0..5).map(|_| backoff.after_failure(u32::MAX).unwrap().as_millis()).collect();
        assert_eq!(most, [100, 200, 400, 500, 500]);
        let ended = backoff.after_end(Duration::from_millis(500), 0).unwrap();
        assert_eq!(ended.as_millis(), 50, "it lasted, so the next is the first");
        let least: Vec<_> = (0..5).map(|_| backoff.after_failure(0).unwrap().as_millis()).collect();
        assert_eq!(least, [50, 100, 200, 250, 250]);
    }

    #[test]
    fn backoff_gives_up_after_consecutive_failures() {
        let mut backoff = Backoff::default().attempts(2);
        assert!(backoff.after_failure(0).is_some());
        assert!(backoff.after_end(Duration::from_secs(60), 0).is_some());
        assert!(backoff.after_failure(0).is_some());
        assert_eq!(backoff.after_failure(0), None);
        assert_eq!(backoff.after_failure(0), None);
    }
    #[test]
    fn short_connections_count_as_failures() {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(1)).attempts(4);
        let mut end = |lasted| backoff.after_end(Duration::from_millis(lasted), u32::MAX).map(|wait| wait.as_millis());
        assert_eq!([end(0), end(199), end(399), end(799)], [Some(100), Some(200), Some(400), None]);
    }

    #[test]
    fn no_wait_is_zero_and_none_overflows() {
        assert!(Backoff::new(Duration::ZERO, Duration::ZERO).after_failure(0).unwrap() >= MIN_WAIT / 2);
        let mut longest = Backoff::new(Duration::MAX, Duration::MAX);
        assert!(longest.after_failure(u32::MAX).unwrap() <= MAX_WAIT + MIN_WAIT);
    }
}
