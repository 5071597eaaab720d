//! Timer queues as strategies: who is due when, kept apart from who waits and who is called.
//!
//! A [`TimerQueue`] holds a payload for each scheduled timer and hands out, in order, those that are due. Four
//! structures do that behind one trait: a heap, a hierarchical timing wheel (the default), a hashed timing wheel and an
//! ordered list; [`TimerStrategy`] names them, so that a program chooses at run time. Schemes 2, 3, 6 and 7 of
//! G. Varghese and T. Lauck, "Hashed and Hierarchical Timing Wheels" (1987).
//!
//! A queue reads no clock, starts no thread and calls no handler: time comes in as an argument, and an expired timer
//! goes out as a value. So the reactor takes an expired timer under its lock and runs the handler outside of it, and a
//! queue under a [`TestClock`] always does the same.
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
//! [set](TimerOptions::resolution). So no timer fires early; each fires less than one tick late; timers due at
//! different ticks fire in the order of these; and those of one tick fire in any order. The phase of an interval timer
//! is exact all the same: only its firing is rounded. The heap and the list do not round.
//!
//! # Memory
//! Each queue keeps its timers in one slab, whose memory is that of the largest number of timers so far: scheduling
//! and cancelling allocate nothing once it has grown, or from the start with [`TimerOptions::capacity`]. A payload of
//! 8 octets makes a timer of 32 in the wheels. There is a [limit](TimerOptions::limit) to the number of timers.

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

/// Timers that wait for their time, each with a payload, which names what the timer is for.
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
    /// Schedules a timer for `at`, which may have passed already, and from there on once every `interval`.
    ///
    /// An interval of zero is none, as for POSIX `setitimer`.
    ///
    /// # Errors
    /// [`Full`] if the queue holds as many timers as its limit allows.
    fn schedule(&mut self, at: Time, interval: Option<Duration>, payload: P) -> Result<TimerId, Full>;

    /// Takes a timer out and returns its payload.
    ///
    /// Nothing happens and there is nothing to return if the timer fired its last time or was cancelled before, even
    /// if its place is another timer's by now.
    fn cancel(&mut self, id: TimerId) -> Option<P>;

    /// Gives a timer another time and interval, with its payload and id as before.
    ///
    /// `false`, and nothing happens, if the timer is not in the queue.
    fn reschedule(&mut self, id: TimerId, at: Time, interval: Option<Duration>) -> bool;

    /// For when a timer is scheduled; nothing if it is not in the queue.
    fn due(&self, id: TimerId) -> Option<Time>;

    /// Until when nothing fires: the time to sleep until, before [`pop_expired`](Self::pop_expired) is of use again.
    ///
    /// Nothing if the queue is empty. It is never later than the moment in which a timer can be taken. The wheels may
    /// name an earlier one, at which nothing fires; asked again after `pop_expired`, they then name a later one. For
    /// one timer that happens at most as often as [the wheel](TimerWheel) has levels, 8 by default, and once more for
    /// each timer cancelled from a [`HashedWheel`].
    fn earliest(&self) -> Option<Time>;

    /// Takes the next timer that is due at `now`; called again, the next one, until there is none.
    ///
    /// An interval timer stays in the queue, armed for the next moment after `now` that is a whole number of intervals
    /// from its first expiry: a late one fires once, keeps its phase, and says how many expiries it
    /// [missed](Expired::missed). So a loop with one value of `now` ends, unless it schedules timers that are due at
    /// once.
    ///
    /// `now` is expected not to go back. If it does, fewer timers are found, and none too early.
    fn pop_expired(&mut self, now: Time) -> Option<Expired<P>>;

    /// How many timers there are.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many timers there can be.
    fn limit(&self) -> usize;

    /// Cancels all timers. Their memory is kept for others.
    fn clear(&mut self);
}

/// A timer that was due, as [`TimerQueue::pop_expired`] hands it out.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Expired<P> {
    /// Which timer. Unless it fires again, this id is stale by now.
    pub id: TimerId,
    /// For when it was scheduled: when late, the first expiry of those that it stands for.
    pub due: Time,
    /// How many further expiries of an interval timer have passed unseen, since it was looked at too late.
    pub missed: u64,
    /// When it fires again, if it does: an interval timer ends only where the next expiry is beyond [`Time::MAX`].
    pub next: Option<Time>,
    /// What it was scheduled with.
    pub payload: P,
}

/// A timer queue has no room: it holds as many timers as its limit allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the timer queue is full: it holds {limit} timers, its limit")]
#[non_exhaustive]
pub struct Full {
    /// The limit, from [`TimerOptions::limit`].
    pub limit: usize,
}
