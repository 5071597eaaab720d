//! The settings of the queues.

use std::time::Duration;

/// The limit and the resolution of a timer queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimerOptions {
    pub(super) limit: usize,
    pub(super) capacity: usize,
    pub(super) resolution: Duration,
    pub(super) buckets: usize,
}

impl TimerOptions {
    /// The defaults: at most 2^21 timers, ticks of 2^20 ns, 4096 buckets.
    #[must_use]
    pub const fn new() -> Self {
        Self { limit: 2 << 20, capacity: 0, resolution: Duration::from_nanos(1 << 20), buckets: 4096 }
    }

    /// The maximum number of timers: 2,097,152 by default, and never more than 2^32 - 1.
    #[must_use]
    pub const fn limit(mut self, timers: usize) -> Self {
        self.limit = timers;
        self
    }

    /// The number of timers for which memory is allocated from the start: none by default.
    #[must_use]
    pub const fn capacity(mut self, timers: usize) -> Self {
        self.capacity = timers;
        self
    }

    /// The length of a tick of the wheels: 2^20 nanoseconds by default. Rounded down to a power of two of
    /// nanoseconds. The heap and the list have no ticks.
    #[must_use]
    pub const fn resolution(mut self, tick: Duration) -> Self {
        self.resolution = tick;
        self
    }

    /// The number of buckets of the hashed wheel: 4,096 by default, at most 32,768. Rounded up to a power of
    /// two. The other strategies have none.
    #[must_use]
    pub const fn buckets(mut self, buckets: usize) -> Self {
        self.buckets = buckets;
        self
    }
}

impl Default for TimerOptions {
    fn default() -> Self {
        Self::new()
    }
}
