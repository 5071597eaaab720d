//! The choice between the queues.

use std::fmt;
use std::str::FromStr;

use super::{HashedWheel, TimerHeap, TimerList, TimerOptions, TimerQueue, TimerWheel};

/// The data structure of a timer queue, which decides its costs and its resolution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TimerStrategy {
    /// [`TimerHeap`]: exact times, logarithmic costs.
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
    /// All four strategies, in the order of declaration.
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

/// A name that none of the strategies has.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("no timer queue is called `{0}`: there are `heap`, `wheel`, `hashed-wheel` and `list`")]
pub struct UnknownStrategy(String);
spandrel_error::debug_as_report!(UnknownStrategy);
