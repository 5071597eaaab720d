//! The times at which requests are due.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The part of a wait that is not slept, because the system may wake a thread that much too late.
const NOT_SLEPT: Duration = Duration::from_micros(100);

/// The maximum number of requests.
const MAX_REQUESTS: f64 = 1e15;

/// The settings of a load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadSettings {
    /// Requests per second.
    pub rate: f64,
    /// The time during which requests are due.
    pub duration: Duration,
    /// The time after that in which late requests are still sent; the rest is given up.
    pub drain: Duration,
}

/// Ends a load before its time: no further request is sent.
#[derive(Debug, Default)]
pub struct LoadStop {
    stopped: Mutex<Option<Instant>>,
    changed: Condvar,
}

impl LoadStop {
    /// Ends the load. Requests that were sent are still awaited.
    pub fn stop(&self) {
        let mut stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        stopped.get_or_insert_with(Instant::now);
        self.changed.notify_all();
    }

    /// The time at which the load was ended.
    pub(super) fn time(&self) -> Option<Instant> {
        *self.stopped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As [`wait_until`], but only until the load ends. Returns whether it goes on.
    pub(super) fn wait_until(&self, due: Instant) -> bool {
        let left = due.saturating_duration_since(Instant::now()).saturating_sub(NOT_SLEPT);
        let mut stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        if !left.is_zero() {
            let waited = self.changed.wait_timeout_while(stopped, left, |stopped| stopped.is_none());
            stopped = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let goes_on = stopped.is_none();
        drop(stopped);
        if goes_on {
            wait_until(due);
        }
        goes_on
    }
}

/// The scheduled requests, of which workers take one after the other.
#[derive(Debug)]
pub(super) struct Schedule {
    start: Instant,
    rate: f64,
    count: u64,
    next: AtomicU64,
    /// Until when requests are sent.
    end: Instant,
}

impl Schedule {
    pub(super) fn new(settings: &LoadSettings, start: Instant) -> Option<Self> {
        let count = (settings.rate * settings.duration.as_secs_f64()).round();
        if !(1.0..=MAX_REQUESTS).contains(&count) {
            return None;
        }
        let end = start.checked_add(settings.duration)?.checked_add(settings.drain)?;
        Some(Self { start, rate: settings.rate, count: count as u64, next: AtomicU64::new(0), end })
    }

    /// The number of requests that are due before a time.
    pub(super) fn count_before(&self, time: Instant) -> u64 {
        let seconds = time.saturating_duration_since(self.start).as_secs_f64();
        ((seconds * self.rate).ceil() as u64).min(self.count)
    }

    pub(super) fn start(&self) -> Instant {
        self.start
    }

    /// The number of requests.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// The time of the next request that no worker has taken.
    pub(super) fn next(&self) -> Option<Instant> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        (number < self.count).then(|| self.start + Duration::from_secs_f64(number as f64 / self.rate))
    }

    /// Whether requests are given up.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        now > self.end
    }
}

/// Waits for a time: sleeps first, and yields at the end, so that it returns within microseconds.
pub fn wait_until(due: Instant) {
    loop {
        let Some(left) = due.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) else { return };
        match left.checked_sub(NOT_SLEPT) {
            Some(left) if !left.is_zero() => thread::sleep(left),
            _ => thread::yield_now(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_due_at_equal_distances() {
        let settings = LoadSettings { rate: 4.0, duration: Duration::from_secs(1), drain: Duration::from_millis(500) };
        let start = Instant::now();
        let schedule = Schedule::new(&settings, start).unwrap();
        let due: Vec<_> = std::iter::from_fn(|| schedule.next()).map(|due| due - start).collect();
        assert_eq!(due, [0, 250, 500, 750].map(Duration::from_millis));
        assert_eq!(schedule.count(), 4);
        assert!(!schedule.is_over(start + Duration::from_millis(1500)));
        assert!(schedule.is_over(start + Duration::from_millis(1501)));
    }

    #[test]
    fn a_wait_ends_after_its_time() {
        let due = Instant::now() + Duration::from_millis(3);
        wait_until(due);
        assert!(Instant::now() >= due);
        wait_until(due);
    }
}
