//! Requests for a thread pool, and the ends of those that it does not run.

use std::fmt;

use spandrel_giop::{CompletionStatus, SystemException, minor};
use spandrel_server::RunningRequest;
use spandrel_sync::{Arc, NativeThreadId, time::Instant};

use crate::Priority;

/// A job of any type. It is called with `None` to run the request, and otherwise with the reason why it does not run.
pub type BoxedJob = Box<dyn FnOnce(Option<Discarded>) + Send>;

impl Job for BoxedJob {
    fn run(self, _: &PoolThread<'_>) {
        self(None);
    }

    fn discard(self, reason: Discarded) {
        self(Some(reason));
    }
}

/// The part of a request that a pool's thread carries out.
pub trait Job: Send + 'static {
    /// Runs the request, at its priority, in this thread.
    fn run(self, thread: &PoolThread<'_>);

    /// Ends a request that was accepted and does not run.
    fn discard(self, reason: Discarded);

    /// The request in the view of the thread that watches execution times; `None` (the default) for work that has no
    /// operation and cannot be ended early.
    fn running(&self) -> Option<Arc<dyn RunningRequest>> {
        None
    }
}

/// The thread of a pool, as the request that it runs sees it.
pub struct PoolThread<'p> {
    pub(super) release: &'p (dyn Fn() + Sync),
}

impl PoolThread<'_> {
    /// Makes the thread available for another request, which begins when the present one has ended. To be called when
    /// the rest is short, such as before the reply: the client may send the next request at once.
    pub fn release(&self) {
        (self.release)();
    }
}

impl fmt::Debug for PoolThread<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PoolThread").finish_non_exhaustive()
    }
}

/// The reason why a pool has dropped a request that it had accepted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Discarded {
    /// Its deadline had passed when a thread was free.
    Late,
    /// The pool is being destroyed.
    PoolDestroyed,
}

impl Discarded {
    /// The exception for the client: TIMEOUT, or TRANSIENT; COMPLETED_NO.
    #[must_use]
    pub fn exception(self) -> SystemException {
        match self {
            Self::Late => SystemException::timeout(0, CompletionStatus::No)
                .with_detail("the deadline of the request passed before a thread was free"),
            Self::PoolDestroyed => RefusalReason::PoolDestroyed.exception(),
        }
    }
}

/// A request with the data by which a pool chooses its lane and its turn.
#[derive(Clone, Debug)]
pub struct Work<J> {
    /// The name of the adapter, for the reports of execution times; `None` for work of the program.
    pub adapter: Option<Arc<str>>,
    /// The client that has sent it, such as a connection. Clients with waiting requests take turns; all work
    /// without a client counts as that of one.
    pub client: Option<usize>,
    /// The CORBA priority, which decides the lane.
    pub priority: Priority,
    /// The octets that it occupies while it waits.
    pub octets: usize,
    /// The time from which on it is not begun any more.
    pub deadline: Option<Instant>,
    /// The part that the pool's thread carries out.
    pub job: J,
}

impl<J> Work<J> {
    /// A request without a deadline.
    #[must_use]
    pub fn new(priority: Priority, octets: usize, job: J) -> Self {
        Self { adapter: None, client: None, priority, octets, deadline: None, job }
    }
}

/// A request with a limit of time, while a thread runs it.
pub(super) struct WatchedRequest {
    pub(super) adapter: Option<Arc<str>>,
    pub(super) request: Option<Arc<dyn RunningRequest>>,
    pub(super) thread: Option<NativeThreadId>,
    pub(super) priority: Priority,
    /// The lane of the request, by its index.
    pub(super) lane: usize,
    pub(super) begun: Instant,
    /// The time at which it has exceeded its limit; `None` once that was noticed.
    pub(super) end: Option<Instant>,
    /// Whether its thread has lost its native priority.
    pub(super) is_demoted: bool,
}

/// The reason why a pool did not accept a request.
#[derive(Clone, Copy, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RefusalReason {
    /// The priority is below that of the lowest lane.
    #[error("no lane of the thread pool serves this priority")]
    NoLane,
    /// The mapping has no native priority for that of the request, at which a thread of a pool without lanes
    /// would run it.
    #[error("the priority mapping has no native priority for the request")]
    NoNativePriority,
    /// The request came by the endpoint of another lane.
    #[error("the endpoint belongs to another lane than that of the request's priority")]
    OtherLane,
    /// All threads run requests, and the pool does not buffer any.
    #[error("all threads of the lane are busy, and requests are not buffered")]
    NoThread,
    /// The lane buffers its greatest number of requests.
    #[error("the lane buffers as many requests as it may")]
    TooManyRequests,
    /// The buffered requests of the lane would have too many octets.
    #[error("the lane buffers as many octets as it may")]
    TooManyOctets,
    /// The client has as many requests or octets in the buffer of the lane as it may.
    #[error("the requests of this client have their share of the lane's buffer")]
    TooManyOfClient,
    /// The pool was destroyed.
    #[error("the thread pool was destroyed")]
    PoolDestroyed,
}
spandrel_error::debug_as_report!(RefusalReason);

impl RefusalReason {
    /// The exception for the client, COMPLETED_NO: INV_POLICY if no lane serves the priority, or none at this endpoint,
    /// DATA_CONVERSION (minor code 2) without a native priority, otherwise TRANSIENT.
    #[must_use]
    pub fn exception(self) -> SystemException {
        let exception = match self {
            Self::NoLane | Self::OtherLane => SystemException::inv_policy(minor::POLICY_CONFLICT, CompletionStatus::No),
            Self::NoNativePriority => SystemException::data_conversion(minor::PRIORITY_MAPPING, CompletionStatus::No),
            _ => SystemException::transient(minor::REQUEST_DISCARDED, CompletionStatus::No),
        };
        exception.with_detail(|| self.to_string())
    }
}

/// A request that a pool did not accept, returned to its sender.
#[derive(Clone)]
pub struct Refused<J> {
    /// The reason, which [`exception`](RefusalReason::exception) turns into the client's exception.
    pub reason: RefusalReason,
    /// The request, as it was submitted.
    pub work: Work<J>,
}

impl<J> fmt::Debug for Refused<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.reason, f)
    }
}
