//! The end of a load before its time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The part of a wait that is not slept, because the system may wake a thread that much too late.
const NOT_SLEPT: Duration = Duration::from_micros(100);

/// Ends a load before its time: no further request is made.
#[derive(Debug, Default)]
pub struct LoadStop {
    is_stopped: AtomicBool,
    time: Mutex<Option<Instant>>,
    changed: Condvar,
}

impl LoadStop {
    /// Ends the load. Answers to requests that were sent are still awaited.
    pub fn stop(&self) {
        self.lock().get_or_insert_with(Instant::now);
        self.is_stopped.store(true, Ordering::Relaxed);
        self.changed.notify_all();
    }

    /// Whether the load was ended.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    /// The time of the first [`stop`](Self::stop); `None` while the load goes on.
    #[must_use]
    pub fn time(&self) -> Option<Instant> {
        *self.lock()
    }

    /// Waits until this time, or until the load ends. Returns whether it goes on.
    ///
    /// Sleeps first and yields at the end, so that it returns within microseconds.
    pub fn wait_until(&self, due: Instant) -> bool {
        while !self.is_stopped() {
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            match left.checked_sub(NOT_SLEPT) {
                Some(left) if !left.is_zero() => {
                    let waited = self.changed.wait_timeout_while(self.lock(), left, |time| time.is_none());
                    drop(waited);
                }
                _ => thread::yield_now(),
            }
        }
        false
    }

    fn lock(&self) -> MutexGuard<'_, Option<Instant>> {
        self.time.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends_after_its_time() {
        let (stop, due) = (LoadStop::default(), Instant::now() + Duration::from_millis(3));
        assert!(stop.wait_until(due));
        assert!(Instant::now() >= due);
        assert!(stop.wait_until(due));
    }

    #[test]
    fn a_stop_ends_waits() {
        let stop = LoadStop::default();
        let due = Instant::now() + Duration::from_secs(3600);
        thread::scope(|scope| {
            let waiting = scope.spawn(|| stop.wait_until(due));
            stop.stop();
            assert!(!waiting.join().unwrap());
        });
        assert!(!stop.wait_until(Instant::now()) && stop.is_stopped() && stop.time().is_some());
    }
}
