//! The options of a reactor.

use std::fmt;
use std::thread::available_parallelism;
use std::time::Duration;

use spandrel_sync::Arc;

use crate::demux::Backend;
use crate::timer::{Clock, MonotonicClock, TimerOptions, TimerStrategy};

/// Options of a [`Reactor`](crate::Reactor).
///
/// ```
/// use spandrel_reactor::{Backend, Options, Reactor}; // spandrel::net::reactor
/// use spandrel_reactor::timer::TimerStrategy;
///
/// let options = Options::new().backend(Backend::Polling).timers(TimerStrategy::Heap);
/// let reactor = Reactor::with(&options)?;
/// # drop(reactor);
/// # Ok::<(), std::io::Error>(())
/// ```
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
    pub(crate) takeover_after: Duration,
    pub(crate) share_after: Duration,
    /// The number of threads that dispatch at a time, unless they are stuck.
    pub(crate) processors: usize,
    pub(crate) before_wait: Option<BeforeWait>,
}

/// A function that is called before each wait.
#[derive(Clone)]
pub(crate) struct BeforeWait(pub(crate) Arc<dyn Fn() + Send + Sync>);

impl fmt::Debug for BeforeWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BeforeWait")
    }
}

impl Options {
    /// The default options, which the other methods document.
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
            takeover_after: Duration::from_millis(1),
            share_after: Duration::from_micros(100),
            processors: available_parallelism().map_or(usize::MAX, usize::from),
            before_wait: None,
        }
    }

    /// The mechanism that waits for the handles; [`Backend::Auto`] by default.
    #[must_use]
    pub fn backend(mut self, backend: Backend) -> Self {
        self.backend = backend;
        self
    }

    /// The mechanism, where the system's best depends on the threads.
    pub(crate) fn chosen_backend(&self) -> Backend {
        let is_for_one_thread = self.backend == Backend::Auto && self.threads == ThreadStrategy::Reactive;
        if cfg!(windows) && is_for_one_thread { Backend::Select } else { self.backend }
    }

    /// The timer queue; a hierarchical wheel by default.
    #[must_use]
    pub fn timers(mut self, strategy: TimerStrategy) -> Self {
        self.timers = strategy;
        self
    }

    /// Sets the limit and the resolution of the timer queue.
    #[must_use]
    pub fn timer_options(mut self, options: TimerOptions) -> Self {
        self.timer_options = options;
        self
    }

    /// The clock of the timers: the monotonic clock by default, for tests a
    /// [`TestClock`](crate::timer::TestClock).
    ///
    /// With a clock other than the monotonic one, a waiting reactor does not notice its changes: code that
    /// advances it calls [`wake`](crate::Registry::wake) or [`run_once`](crate::Reactor::run_once) with a
    /// timeout of zero.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// The threads that dispatch; leader/followers by default.
    #[must_use]
    pub fn threads(mut self, strategy: ThreadStrategy) -> Self {
        self.threads = strategy;
        self
    }

    /// The maximum number of handlers: 65,536 by default, at most 2^31.
    #[must_use]
    pub fn max_handlers(mut self, handlers: usize) -> Self {
        self.max_handlers = handlers.clamp(1, 1 << 31);
        self
    }

    /// The maximum number of ready handles that are dispatched between two waits: 64 by default. It also
    /// limits expired timers, and notices and jobs, each by themselves.
    #[must_use]
    pub fn max_events_per_wait(mut self, events: usize) -> Self {
        self.max_events_per_wait = events.clamp(1, 65_536);
        self
    }

    /// The maximum number of pending notices and jobs: 65,536 by default.
    #[must_use]
    pub fn max_notices(mut self, notices: usize) -> Self {
        self.max_notices = notices.max(1);
        self
    }

    /// A function that each thread calls before it waits, for work that handlers leave to the end of a round; none by
    /// default. The thread has dispatched its events of the round
    /// ([`Context::is_one_of_several`](crate::Context::is_one_of_several)) then. After an event that was the only one
    /// of its wait, the function is not called.
    #[must_use]
    pub fn before_wait(mut self, function: impl Fn() + Send + Sync + 'static) -> Self {
        self.before_wait = Some(BeforeWait(Arc::new(function)));
        self
    }

    /// The time after which a follower takes over the leadership from a long dispatch, or dispatches the
    /// other events of its wait: 1 ms by default, and not less. A handler that blocks need not wait for that
    /// if it calls [`Context::promote`](crate::Context::promote).
    #[must_use]
    pub fn takeover_after(mut self, takeover_after: Duration) -> Self {
        self.takeover_after = takeover_after.max(Duration::from_millis(1));
        self
    }

    /// As on a machine with so many processors.
    #[cfg(all(test, shuttle))]
    #[must_use]
    pub(crate) fn processors(mut self, processors: usize) -> Self {
        self.processors = processors;
        self
    }

    /// The time for which a thread dispatches the events of one wait alone, before it wakes followers to help it: 0.1 ms
    /// by default. Shorter dispatches are cheaper than waking a thread, and share system calls
    /// ([`before_wait`](Self::before_wait)); with more threads each event of a large round comes sooner. No more threads
    /// dispatch than there are processors, apart from those whose handlers take longer than this.
    #[must_use]
    pub fn share_after(mut self, share_after: Duration) -> Self {
        self.share_after = share_after;
        self
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}

/// The threads that may dispatch events, and their cooperation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ThreadStrategy {
    /// The one thread in [`run`](crate::Reactor::run); no other may run it.
    Reactive,
    /// Any number of threads call [`run`](crate::Reactor::run). One of them, the leader, waits. It dispatches
    /// a single event in place. Several events are shared with the followers, one of which leads then.
    #[default]
    LeaderFollowers,
    /// The thread in [`run`](crate::Reactor::run) only waits, and passes events through a bounded queue to
    /// the reactor's own worker threads, which dispatch (paper 002, half-sync/half-async).
    HalfSyncHalfAsync {
        /// The number of worker threads.
        workers: usize,
        /// The capacity of the queue; when it is full, the waiting thread waits for room.
        queue: usize,
    },
}
