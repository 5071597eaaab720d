//! The rate at which the reactor's threads visit a connection.

use std::time::Duration;

use spandrel_sync::{
    Mutex,
    atomic::{AtomicU32, Ordering},
    time::Instant,
};

/// The visits of the reactor's threads in [`FREQUENT_TIME`] from which on a connection gets a thread.
const FREQUENT_VISITS: u32 = 64;
/// The longest time of so many visits that are frequent.
const FREQUENT_TIME: Duration = Duration::from_millis(100);

/// How often the reactor's threads visit a connection.
#[derive(Debug, Default)]
pub(super) struct VisitRate {
    visits: AtomicU32,
    /// The time of the last visit whose number is a multiple of [`FREQUENT_VISITS`].
    last: Mutex<Option<Instant>>,
}

impl VisitRate {
    /// Counts a visit. Returns whether the visits are frequent.
    pub(super) fn count(&self) -> bool {
        let visits = self.visits.fetch_add(1, Ordering::Relaxed);
        visits.is_multiple_of(FREQUENT_VISITS) && self.are_frequent(Instant::now())
    }

    #[cold]
    fn are_frequent(&self, now: Instant) -> bool {
        let last = self.last.lock().replace(now);
        last.is_some_and(|last| now.saturating_duration_since(last) <= FREQUENT_TIME)
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn visits_are_frequent_if_the_last_64_were_quick() {
        let rate = VisitRate::default();
        let begin = Instant::now();
        assert!(!rate.are_frequent(begin), "the first visit");
        assert!(rate.are_frequent(begin + FREQUENT_TIME));
        assert!(!rate.are_frequent(begin + 2 * FREQUENT_TIME + Duration::from_millis(1)));
        let rate = VisitRate::default();
        assert_eq!((0..10 * FREQUENT_VISITS).filter(|_| rate.count()).count(), 9, "asked at each 64th");
    }
}
