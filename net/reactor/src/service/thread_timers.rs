//! Timers of a service that has a thread of its own.

use std::fmt;
use std::io;
use std::time::Duration;

use crate::Expired;
use crate::timer::{Clock, MonotonicClock, Time, TimerId, TimerQueue, TimerStrategy};

/// The timers of a thread that serves one connection.
pub(crate) struct ThreadTimers {
    clock: MonotonicClock,
    /// Allocated with the first timer: most services have none.
    timers: Option<Box<dyn TimerQueue<u64>>>,
    /// The timer of [`handle_check`](crate::ServiceHandler::handle_check).
    checks: Option<TimerId>,
}

impl fmt::Debug for ThreadTimers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadTimers").field("timers", &self.timers.as_ref().map_or(0, |timers| timers.len())).finish()
    }
}

impl ThreadTimers {
    pub(super) fn new() -> Self {
        Self { clock: MonotonicClock::default(), timers: None, checks: None }
    }

    pub(crate) fn schedule(
        &mut self,
        delay: Duration,
        interval: Option<Duration>,
        argument: u64,
    ) -> io::Result<TimerId> {
        let at = self.clock.now() + delay;
        let timers = self.timers.get_or_insert_with(|| TimerStrategy::List.queue());
        timers.schedule(at, interval, argument).map_err(io::Error::other)
    }

    /// Schedules the calls of [`handle_check`](crate::ServiceHandler::handle_check).
    pub(super) fn schedule_checks(&mut self, interval: Duration) -> io::Result<()> {
        self.checks = Some(self.schedule(interval, Some(interval), 0)?);
        Ok(())
    }

    /// Whether this timer calls [`handle_check`](crate::ServiceHandler::handle_check).
    pub(super) fn is_check(&self, expired: &Expired) -> bool {
        self.checks == Some(expired.id)
    }

    pub(crate) fn cancel(&mut self, timer: TimerId) -> bool {
        self.timers.as_mut().is_some_and(|timers| timers.cancel(timer).is_some())
    }

    /// The time until the next timer; `None` without timers.
    pub(super) fn left(&self) -> Option<Duration> {
        let earliest = self.timers.as_ref()?.earliest()?;
        Some(earliest.saturating_since(self.clock.now()))
    }

    /// The present time of its clock.
    pub(super) fn now(&self) -> Time {
        self.clock.now()
    }

    /// Takes the next timer that is due at `now`.
    pub(super) fn expired(&mut self, now: Time) -> Option<Expired> {
        self.timers.as_mut()?.pop_expired(now).map(|expired| Expired {
            id: expired.id,
            argument: expired.payload,
            missed: expired.missed,
        })
    }
}
