//! The choice between the queues, and their settings.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::{HashedWheel, TimerHeap, TimerList, TimerQueue, TimerWheel};

/// The settings of a timer queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimerOptions {
    pub(super) limit: usize,
    pub(super) capacity: usize,
    pub(super) resolution: Duration,
    pub(super) buckets: usize,
}

impl TimerOptions {
    /// The defaults.
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

/// A kind of timer queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TimerStrategy {
    /// [`TimerHeap`]: exact, logarithmic.
    Heap,
    /// [`TimerWheel`]: constant steps, suits most.
    #[default]
    Wheel,
    /// [`HashedWheel`]: constant steps as long as there are few timers per bucket.
    HashedWheel,
    /// [`TimerList`]: exact, for few timers or equal delays.
    List,
}

impl TimerStrategy {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Heap, Self::Wheel, Self::HashedWheel, Self::List];

    /// An empty queue of this kind.
    #[must_use]
    pub fn queue<P: Clone + Send + 'static>(self) -> Box<dyn TimerQueue<P>> {
        self.queue_with(&TimerOptions::new())
    }

    /// An empty queue of this kind, with other settings.
    #[must_use]
    pub fn queue_with<P: Clone + Send + 'static>(self, options: &TimerOptions) -> Box<dyn TimerQueue<P>> {
        match self {
            Self::Heap => Box::new(TimerHeap::with(options)),
            Self::Wheel => Box::new(TimerWheel::with(options)),
            Self::HashedWheel => Box::new(HashedWheel::with(options)),
            Self::List => Box::new(TimerList::with(options)),
        }
    }

    /// Its name in configurations and on command lines.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Heap => "heap",
            Self::Wheel => "wheel",
            Self::HashedWheel => "hashed-wheel",
            Self::List => "list",
        }
    }
}

impl fmt::Display for TimerStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for TimerStrategy {
    type Err = UnknownStrategy;
    fn from_str(name: &str) -> Result<Self, UnknownStrategy> {
        Self::ALL.into_iter().find(|strategy| strategy.name() == name).ok_or_else(|| UnknownStrategy(name.to_owned()))
    }
}

/// The name of an unknown timer queue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no timer queue is called `{0}`: there are `heap`, `wheel`, `hashed-wheel` and `list`")]
pub struct UnknownStrategy(String);
