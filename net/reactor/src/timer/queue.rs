//! The interface of all timer queues.

use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

use super::clock::Time;

/// Scheduled timers, each with a payload that identifies its purpose.
///
/// The payload is usually a small key; that of an interval timer is cloned for each expiry.
///
/// ```
/// use std::time::Duration;
/// use spandrel_reactor::timer::{Clock, TestClock, TimerStrategy};
///
/// let clock = TestClock::new();
/// let mut queue = TimerStrategy::default().queue();
/// let tea = queue.schedule(clock.now() + Duration::from_secs(240), None, "tea").unwrap();
/// let eggs = queue.schedule(clock.now() + Duration::from_secs(300), None, "eggs").unwrap();
/// assert_eq!(queue.cancel(eggs), Some("eggs"));
///
/// assert!(queue.pop_expired(clock.now()).is_none());
/// clock.advance(Duration::from_secs(241));
/// let expired = queue.pop_expired(clock.now()).unwrap();
/// assert_eq!((expired.id, expired.payload), (tea, "tea"));
/// ```
pub trait TimerQueue<P>: fmt::Debug + Send {
    /// Schedules a timer for `at`, which may have passed already, and from then on once every `interval`.
    ///
    /// An interval of zero is none, as for POSIX `setitimer`.
    ///
    /// # Errors
    /// [`Full`] if the queue holds as many timers as its limit allows.
    fn schedule(&mut self, at: Time, interval: Option<Duration>, payload: P) -> Result<TimerId, Full>;

    /// Removes a timer and returns its payload.
    ///
    /// None, without effect, if the timer has fired for the last time or was cancelled before, even if its
    /// entry is another timer's by now.
    fn cancel(&mut self, id: TimerId) -> Option<P>;

    /// Sets a new time and interval of a timer; its payload and identifier stay.
    ///
    /// `false`, without effect, if the timer is not in the queue.
    fn reschedule(&mut self, id: TimerId, at: Time, interval: Option<Duration>) -> bool;

    /// The scheduled time of a timer; none if it is not in the queue.
    fn due(&self, id: TimerId) -> Option<Time>;

    /// The time until which no timer fires: to sleep until, before the next call of
    /// [`pop_expired`](Self::pop_expired).
    ///
    /// None if the queue is empty. It is never later than the instant at which a timer can be taken. The
    /// wheels may return an earlier one, at which none fires; after `pop_expired`, they then return a later
    /// one. For one timer that happens at most as often as [the wheel](super::TimerWheel) has levels, 8 by
    /// default, and once more for each timer cancelled from a [`HashedWheel`](super::HashedWheel).
    fn earliest(&self) -> Option<Time>;

    /// Takes the next timer that is due at `now`; none if there is none left.
    ///
    /// An interval timer stays in the queue, armed for the next instant after `now` that is a whole number of
    /// intervals from its first expiry: a late one fires once, keeps its phase, and reports the number of
    /// [missed](Expired::missed) expiries. So a loop with one value of `now` ends, unless it schedules timers
    /// that are due at once.
    ///
    /// `now` is expected not to go back. If it does, fewer timers are found, and none too early.
    fn pop_expired(&mut self, now: Time) -> Option<Expired<P>>;

    /// The timers that can still fire.
    fn len(&self) -> usize;

    /// Whether no timer is scheduled.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of timers beyond which [`schedule`](Self::schedule) fails.
    fn limit(&self) -> usize;

    /// Cancels all timers. Their memory is kept for others.
    fn clear(&mut self);
}

/// Identifies one timer of one queue, for the lifetime of the program: a stale identifier never comes to mean
/// another timer of its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimerId {
    pub(super) index: u32,
    pub(super) generation: NonZeroU32,
}

impl TimerId {
    /// The timer's index in the slab.
    #[inline]
    pub(super) fn index(self) -> u32 {
        self.index
    }
}

/// A timer that was due, returned by [`TimerQueue::pop_expired`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Expired<P> {
    /// The timer. Unless it fires again, this identifier is stale by now.
    pub id: TimerId,
    /// The time for which it was scheduled; of several expiries that have passed, the first.
    pub due: Time,
    /// The number of further expiries of an interval timer that passed before this call.
    pub missed: u64,
    /// The time at which it fires again. Only timers without an interval have none, and those whose next
    /// expiry is beyond [`Time::MAX`].
    pub next: Option<Time>,
    /// The payload with which it was scheduled.
    pub payload: P,
}

/// The timer queue is full: it has as many timers as its limit allows.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the timer queue is full: it holds {limit} timers, its limit")]
#[non_exhaustive]
pub struct Full {
    /// The number of timers that the queue has room for
    /// ([`TimerOptions::limit`](super::TimerOptions::limit)).
    pub limit: usize,
}
spandrel_error::debug_as_report!(Full);
