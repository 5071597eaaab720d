//! The choices that a reactor is made with.

use std::time::Duration;

use spandrel_sync::Arc;

use crate::demux::Backend;
use crate::timer::{Clock, MonotonicClock, TimerOptions, TimerStrategy};

/// How a [`Reactor`](crate::Reactor) is made.
#[derive(Clone, Debug)]
pub struct Options {
    pub(crate) backend: Backend,
    pub(crate) timers: TimerStrategy,
    pub(crate) timer_options: TimerOptions,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) threads: ThreadStrategy,
    pub(crate) max_handlers: usize,
    pub(crate) max_events_per_wait: usize,
    pub(crate) max_notices: usize,
    pub(crate) patience: Duration,
}

impl Options {
    /// The defaults, which each of the other methods names.
    #[must_use]
    pub fn new() -> Self {
        Self {
            backend: Backend::Auto,
            timers: TimerStrategy::default(),
            timer_options: TimerOptions::new(),
            clock: Arc::new(MonotonicClock::new()),
            threads: ThreadStrategy::default(),
            max_handlers: 65_536,
            max_events_per_wait: 64,
            max_notices: 65_536,
            patience: Duration::from_millis(1),
        }
    }

    /// What waits for the handles; [`Backend::Auto`] by default.
    #[must_use]
    pub fn backend(mut self, backend: Backend) -> Self {
        self.backend = backend;
        self
    }

    /// How timers are kept; a hierarchical wheel by default.
    #[must_use]
    pub fn timers(mut self, strategy: TimerStrategy) -> Self {
        self.timers = strategy;
        self
    }

    /// Settings of the timer queue.
    #[must_use]
    pub fn timer_options(mut self, options: TimerOptions) -> Self {
        self.timer_options = options;
        self
    }

    /// The clock of the timers: the monotonic clock by default, for tests a [`TestClock`](crate::timer::TestClock).
    ///
    /// With a clock of another kind than the monotonic one, a reactor that waits does not see it move: whoever moves it calls
    /// [`wake`](crate::Registry::wake) or [`run_once`](crate::Reactor::run_once) with a time of zero.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Who dispatches; leader/followers by default.
    #[must_use]
    pub fn threads(mut self, strategy: ThreadStrategy) -> Self {
        self.threads = strategy;
        self
    }

    /// How many handlers there can be: 65,536 by default, and never more than 2^31.
    #[must_use]
    pub fn max_handlers(mut self, handlers: usize) -> Self {
        self.max_handlers = handlers.clamp(1, 1 << 31);
        self
    }

    /// How many ready handles, and again as many expired timers, notices and jobs, are dispatched between two waits: 64 by default.
    #[must_use]
    pub fn max_events_per_wait(mut self, events: usize) -> Self {
        self.max_events_per_wait = events.clamp(1, 65_536);
        self
    }

    /// How many notices and jobs can be under way: 65,536 by default.
    #[must_use]
    pub fn max_notices(mut self, notices: usize) -> Self {
        self.max_notices = notices.max(1);
        self
    }

    /// How long a dispatch may keep the leadership before a follower takes it over: 1 ms by default, which is also the least.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience.max(Duration::from_millis(1));
        self
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}

/// Which threads dispatch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ThreadStrategy {
    /// The one thread in [`run`](crate::Reactor::run), and no other may join it.
    Reactive,
    /// Any number of threads call [`run`](crate::Reactor::run). One of them, the leader, waits; it dispatches a single event in
    /// place, and shares several with the followers, of whom another then leads.
    #[default]
    LeaderFollowers,
    /// The thread in [`run`](crate::Reactor::run) only waits, and hands what is ready through a bounded queue to workers of the
    /// reactor's own, which dispatch (paper 002, half-sync/half-async).
    HalfSyncHalfAsync {
        /// How many threads dispatch.
        workers: usize,
        /// How many events the queue holds; when it is full, the waiting thread waits for room.
        queue: usize,
    },
}
