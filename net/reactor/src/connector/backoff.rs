//! How long to wait before trying again.

use std::time::Duration;

/// Waits that double from one attempt to the next, up to a longest, each shortened by chance so that many clients of a server that
/// comes back do not come all at once ("full jitter" down to half).
#[derive(Clone, Debug)]
pub struct Backoff {
    shortest: Duration,
    longest: Duration,
    attempts: Option<u32>,
    failed: u32,
}

impl Default for Backoff {
    /// From 100 ms to 30 s, for ever.
    fn default() -> Self {
        Self::new(Duration::from_millis(100), Duration::from_secs(30))
    }
}

impl Backoff {
    /// Waits from about `shortest` to about `longest`, for ever.
    #[must_use]
    pub fn new(shortest: Duration, longest: Duration) -> Self {
        Self { shortest, longest: longest.max(shortest), attempts: None, failed: 0 }
    }

    /// Gives up after so many failures in a row.
    #[must_use]
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = Some(attempts);
        self
    }

    /// An attempt failed: how long to wait before the next, or `None` to give up. `chance` is any number.
    pub(super) fn after_failure(&mut self, chance: u32) -> Option<Duration> {
        self.failed = self.failed.saturating_add(1);
        if self.attempts.is_some_and(|attempts| self.failed >= attempts) {
            return None;
        }
        let doubled = self.shortest.saturating_mul(1 << (self.failed - 1).min(20)).min(self.longest);
        let half = doubled / 2;
        Some(half + half.mul_f64(f64::from(chance) / f64::from(u32::MAX)))
    }

    /// An attempt succeeded.
    pub(super) fn reset(&mut self) {
        self.failed = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_waits_double_up_to_the_longest_and_chance_takes_at_most_half() {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_millis(500));
        let most: Vec<_> = (0..5).map(|_| backoff.after_failure(u32::MAX).unwrap().as_millis()).collect();
        assert_eq!(most, [100, 200, 400, 500, 500]);
        backoff.reset();
        let least: Vec<_> = (0..5).map(|_| backoff.after_failure(0).unwrap().as_millis()).collect();
        assert_eq!(least, [50, 100, 200, 250, 250]);
    }

    #[test]
    fn it_gives_up_after_so_many_failures_in_a_row() {
        let mut backoff = Backoff::default().attempts(2);
        assert!(backoff.after_failure(0).is_some());
        backoff.reset();
        assert!(backoff.after_failure(0).is_some());
        assert_eq!(backoff.after_failure(0), None);
        assert_eq!(backoff.after_failure(0), None);
    }
}
