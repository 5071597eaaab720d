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
    /// Waits from about `shortest`, a millisecond at least, to about `longest`, for ever.
    #[must_use]
    pub fn new(shortest: Duration, longest: Duration) -> Self {
        let shortest = shortest.clamp(LEAST, MOST);
        let longest = longest.min(MOST);
        Self { shortest, longest: longest.max(shortest), attempts: None, failed: 0 }
    }

    /// Gives up after so many failures in a row. A connection that ends sooner than the wait after it would be counts as one.
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
        Some(self.wait(self.failed, chance))
    }

    /// A connection ended after so long. It was a success if it has outlasted the wait that its end at once would have meant; one that did
    /// not, such as to a server that hangs up, is one more failure.
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

/// Nobody means to try again without any wait.
const LEAST: Duration = Duration::from_millis(1);
/// Longer waits are not told from this one.
const MOST: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_waits_double_up_to_the_longest_and_chance_takes_at_most_half() {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_millis(500));
        let most: Vec<_> = (0..5).map(|_| backoff.after_failure(u32::MAX).unwrap().as_millis()).collect();
        assert_eq!(most, [100, 200, 400, 500, 500]);
        let ended = backoff.after_end(Duration::from_millis(500), 0).unwrap();
        assert_eq!(ended.as_millis(), 50, "it lasted, so the next is the first");
        let least: Vec<_> = (0..5).map(|_| backoff.after_failure(0).unwrap().as_millis()).collect();
        assert_eq!(least, [50, 100, 200, 250, 250]);
    }

    #[test]
    fn it_gives_up_after_so_many_failures_in_a_row() {
        let mut backoff = Backoff::default().attempts(2);
        assert!(backoff.after_failure(0).is_some());
        assert!(backoff.after_end(Duration::from_secs(60), 0).is_some());
        assert!(backoff.after_failure(0).is_some());
        assert_eq!(backoff.after_failure(0), None);
        assert_eq!(backoff.after_failure(0), None);
    }
    #[test]
    fn connections_that_do_not_last_are_failures() {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(1)).attempts(4);
        let mut end = |lasted| backoff.after_end(Duration::from_millis(lasted), u32::MAX).map(|wait| wait.as_millis());
        assert_eq!([end(0), end(199), end(399), end(799)], [Some(100), Some(200), Some(400), None]);
    }

    #[test]
    fn no_wait_is_none_and_none_overflows() {
        assert!(Backoff::new(Duration::ZERO, Duration::ZERO).after_failure(0).unwrap() >= LEAST / 2);
        let mut longest = Backoff::new(Duration::MAX, Duration::MAX);
        assert!(longest.after_failure(u32::MAX).unwrap() <= MOST + LEAST);
    }
}
