//! Timer queues as strategies: expiry times, apart from waiting and dispatch.
//!
//! A [`TimerQueue`] holds a payload for each scheduled timer and returns, in order, those that are due. Four
//! structures implement the trait: a heap, a hierarchical timing wheel (the default), a hashed timing wheel
//! and an ordered list. [`TimerStrategy`] selects one at run time. They are schemes 2, 3, 6 and 7 of G.
//! Varghese and T. Lauck, "Hashed and Hierarchical Timing Wheels" (1987).
//!
//! A queue reads no clock, starts no thread and calls no handler: the time is an argument, and an expired
//! timer is a return value. So the reactor takes an expired timer under its lock and runs the handler outside
//! of it, and a queue under a [`TestClock`] is deterministic.
//!
//! | strategy | schedule | cancel | next expiry | fires |
//! | --- | --- | --- | --- | --- |
//! | [`TimerHeap`] | O(log n) | O(log n) | exact | in order of time |
//! | [`TimerWheel`] | O(1) | O(1) | a lower bound | in order of ticks |
//! | [`HashedWheel`] | O(1) | O(1) | a lower bound | in order of ticks |
//! | [`TimerList`] | O(n) | O(1) | exact | in order of time |
//!
//! # Resolution
//! The wheels round the time of an expiry *up* to a whole tick, 2^20 nanoseconds (about 1 ms) unless
//! [set](TimerOptions::resolution). So no timer fires early; each fires less than one tick late; timers due
//! at different ticks fire in the order of these; and those of one tick fire in any order. The phase of an
//! interval timer stays exact: only its firing is rounded. The heap and the list do not round.
//!
//! # Memory
//! Each queue keeps its timers in one slab, whose memory is that of the largest number of timers so far:
//! scheduling and cancelling allocate nothing once it has grown, or from the start with
//! [`TimerOptions::capacity`]. With a payload of 8 octets a timer takes 32 octets in the wheels. There is a
//! [limit](TimerOptions::limit) on the number of timers.

mod clock;
mod hashed;
mod heap;
mod list;
mod lists;
mod slab;
mod strategy;
mod ticks;
mod wheel;

use std::fmt;
use std::time::Duration;

pub use clock::{Clock, MonotonicClock, TestClock, Time};
pub use hashed::HashedWheel;
pub use heap::TimerHeap;
pub use list::TimerList;
pub use slab::TimerId;
pub use strategy::{TimerOptions, TimerStrategy, UnknownStrategy};
pub use wheel::TimerWheel;

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
    /// one. For one timer that happens at most as often as [the wheel](TimerWheel) has levels, 8 by default,
    /// and once more for each timer cancelled from a [`HashedWheel`].
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

    /// The number of timers.
    fn len(&self) -> usize;

    /// Whether there are no timers.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The maximum number of timers.
    fn limit(&self) -> usize;

    /// Cancels all timers. Their memory is kept for others.
    fn clear(&mut self);
}

/// A timer that was due, returned by [`TimerQueue::pop_expired`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Expired<P> {
    /// The timer. Unless it fires again, this identifier is stale by now.
    pub id: TimerId,
    /// The time for which it was scheduled: if late, the first of the expiries that it stands for.
    pub due: Time,
    /// The number of further expiries of an interval timer that passed before this call.
    pub missed: u64,
    /// When it fires again, if it does: an interval timer ends only where the next expiry is beyond
    /// [`Time::MAX`].
    pub next: Option<Time>,
    /// The payload with which it was scheduled.
    pub payload: P,
}

/// The timer queue is full: it has as many timers as its limit allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the timer queue is full: it holds {limit} timers, its limit")]
#[non_exhaustive]
pub struct Full {
    /// The limit, from [`TimerOptions::limit`].
    pub limit: usize,
}
