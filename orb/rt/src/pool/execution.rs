//! The time that requests of a pool may take, and the consequences of exceeding it.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use spandrel_giop::{CompletionStatus, SystemException};
use spandrel_sync::Arc;

use crate::Priority;

/// The consequence for a request that exceeds its time. Each one includes those above it.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum OverrunAction {
    /// The observer is told.
    Report,
    /// Its thread becomes an ordinary one (`SCHED_OTHER`; with [`Other`](crate::SchedulingClass::Other), one of the nice
    /// value 19) until the request ends. Then it has its own priority again.
    Demote,
    /// The client gets TIMEOUT (COMPLETED_MAYBE) at once, and the request is cancelled. A thread cannot be ended: the
    /// servant goes on unless it looks at its [`CancellationToken`](spandrel_orb::CancellationToken), and its own outcome
    /// is dropped.
    Cancel,
}

/// The declared times of a pool's requests. A thread of the pool's own watches them.
///
/// The time of a request begins when a thread takes it and ends when its servant has returned. It is that of the clock:
/// waiting, calls to other objects and preemption by more urgent threads are part of it.
///
/// ```
/// use std::time::Duration;
/// use spandrel_rt::{ExecutionTimes, OverrunAction, Priority};
///
/// let times = ExecutionTimes::new(OverrunAction::Demote)
///     .all_lanes(Duration::from_millis(5))
///     .lane(Priority::new(20_000)?, Duration::from_micros(500))
///     .observer(|overrun: &spandrel_rt::Overrun| eprintln!("{overrun}"));
/// # Ok::<(), spandrel_giop::SystemException>(())
/// ```
#[derive(Clone)]
pub struct ExecutionTimes {
    action: OverrunAction,
    all_lanes: Option<Duration>,
    by_lane: BTreeMap<Priority, Duration>,
    observer: Option<Arc<dyn OverrunObserver>>,
}

impl ExecutionTimes {
    /// Without limits: [`all_lanes`](Self::all_lanes) and [`lane`](Self::lane) set them. Requests that exceed
    /// one are logged as warnings, unless there is an [observer](Self::observer).
    #[must_use]
    pub fn new(action: OverrunAction) -> Self {
        Self { action, all_lanes: None, by_lane: BTreeMap::new(), observer: None }
    }

    /// Sets the time for requests of the lanes without a time of their own.
    #[must_use]
    pub fn all_lanes(self, time: Duration) -> Self {
        Self { all_lanes: Some(time), ..self }
    }

    /// Sets the time for requests of the lane with this priority.
    #[must_use]
    pub fn lane(mut self, priority: Priority, time: Duration) -> Self {
        self.by_lane.insert(priority, time);
        self
    }

    /// Sets the observer that is called for each request that exceeds its time.
    #[must_use]
    pub fn observer(self, observer: impl OverrunObserver + 'static) -> Self {
        Self { observer: Some(Arc::new(observer)), ..self }
    }

    pub(super) fn action(&self) -> OverrunAction {
        self.action
    }

    /// The time for requests of the lane with this priority.
    pub(super) fn of_lane(&self, priority: Priority) -> Option<Duration> {
        self.by_lane.get(&priority).copied().or(self.all_lanes)
    }

    /// Checks the times against the lanes of a pool: BAD_PARAM for a time of zero, and for a lane that does not exist.
    pub(super) fn check(&self, has_lane: impl Fn(Priority) -> bool) -> Result<(), SystemException> {
        let wrong = |text: String| Err(SystemException::bad_param(0, CompletionStatus::No).with_detail(text));
        if self.all_lanes.iter().chain(self.by_lane.values()).any(Duration::is_zero) {
            return wrong("a request may not be declared to take no time".to_owned());
        }
        match self.by_lane.keys().find(|priority| !has_lane(**priority)) {
            Some(priority) => wrong(format!("no lane has the priority {priority}, for which a time is declared")),
            None => Ok(()),
        }
    }

    /// Tells the observer, or the log.
    pub(super) fn report(&self, overrun: &Overrun) {
        match &self.observer {
            Some(observer) => observer.exceeded(overrun),
            None => tracing::warn!("{overrun}"),
        }
    }
}

impl fmt::Debug for ExecutionTimes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExecutionTimes")
            .field("action", &self.action)
            .field("all_lanes", &self.all_lanes)
            .field("by_lane", &self.by_lane)
            .finish_non_exhaustive()
    }
}

/// Is told of requests that exceed their declared time. A function is an observer, too.
pub trait OverrunObserver: Send + Sync {
    /// Called once for a request, while its servant still runs, in the thread that watches the pool: at the most urgent
    /// native priority. Must be short and not wait, since no other request is watched meanwhile.
    fn exceeded(&self, overrun: &Overrun);
}

impl<F: Fn(&Overrun) + Send + Sync> OverrunObserver for F {
    fn exceeded(&self, overrun: &Overrun) {
        self(overrun);
    }
}

/// A request that has exceeded its time, and the consequences.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Overrun {
    /// The name of the adapter, such as `RootPOA/sensors`; `None` for work that the program has submitted.
    pub adapter: Option<Arc<str>>,
    /// The name of the operation; `None` for work that the program has submitted.
    pub operation: Option<String>,
    /// The CORBA priority at which the request runs.
    pub priority: Priority,
    /// The priority of the lane that accepted the request.
    pub lane: Priority,
    /// The time that [`ExecutionTimes`] permits it.
    pub limit: Duration,
    /// The time that it had taken when it was noticed.
    pub elapsed: Duration,
    /// Whether its thread was demoted.
    pub is_demoted: bool,
    /// Whether the client has the exception TIMEOUT, and the request is cancelled.
    pub is_cancelled: bool,
}

impl fmt::Display for Overrun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { adapter, operation, priority, lane, limit, elapsed, is_demoted, is_cancelled } = self;
        write!(f, "the request `{}`", operation.as_deref().unwrap_or("of the program"))?;
        if let Some(adapter) = adapter {
            write!(f, " to `{adapter}`")?;
        }
        write!(
            f,
            " of priority {priority} in the lane of priority {lane} exceeds its time of {limit:?} ({elapsed:?})"
        )?;
        let consequence = match (is_demoted, is_cancelled) {
            (true, true) => ": its thread is demoted, and it is cancelled",
            (true, false) => ": its thread is demoted",
            (false, true) => ": it is cancelled",
            (false, false) => "",
        };
        f.write_str(consequence)
    }
}

/// The exception for the client of a request that is cancelled.
pub(super) fn exceeded_time(limit: Duration) -> SystemException {
    SystemException::timeout(0, CompletionStatus::Maybe)
        .with_public_detail(|| format!("the servant exceeded its time of {limit:?}"))
}
