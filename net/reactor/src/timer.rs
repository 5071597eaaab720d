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
mod options;
mod queue;
mod slab;
mod strategy;
mod ticks;
mod wheel;

pub use clock::{Clock, MonotonicClock, TestClock, Time};
pub use hashed::HashedWheel;
pub use heap::TimerHeap;
pub use list::TimerList;
pub use options::TimerOptions;
pub use queue::{Expired, Full, TimerId, TimerQueue};
pub use strategy::{TimerStrategy, UnknownStrategy};
pub use wheel::TimerWheel;
