//! Executors: threads of a crate above, which run the requests of some adapters in place of the threads that read them.
//!
//! | part | crate | knows | never knows |
//! | --- | --- | --- | --- |
//! | [`RequestExecutor`], [`HandedOverRequest`], [`RunningRequest`] | this one | requests, their octets and deadlines | priorities, lanes, pools of threads |
//! | the policy that names an executor | `spandrel-poa` | which adapter has one, and that it excludes other thread policies | the same |
//! | an executor, such as the lanes of `spandrel-rt` | any above | service contexts and object ids, and from them a *level* | connections, adapters, servants |
//!
//! # The way of a request
//! 1. The thread that reads a connection finds the adapter. If that has an executor, it returns
//!    [`Resolution::Executor`](crate::Resolution::Executor) and touches no servant. Adapters without one pay nothing:
//!    they take the short path before the executor is looked at.
//! 2. [`RequestExecutor::choose_thread`] looks at the request, which is not copied yet, and chooses a level, refuses it with an
//!    exception, or lets the calling thread run it: a collocated caller that is a thread of the executor already.
//! 3. Otherwise the request is deferred: it owns its message and counts as a deferred request of its connection. So
//!    CancelRequest, CloseConnection, shutdown, `-ORBMaxDeferredRequests`, the charge of memory, statistics and
//!    interceptors are those of all deferred requests. The thread reads on.
//! 4. [`RequestExecutor::submit`] takes it and returns at once. A thread of the executor calls
//!    [`HandedOverRequest::run`], which checks cancellation and deadline, resolves the object anew from its key, and runs
//!    the servant; or [`HandedOverRequest::refuse`], which sends the exception.
//!
//! A request that waits for its adapter (a holding manager, a servant that is being incarnated) is resolved anew after
//! the wait and comes back to step 1. So an executor's thread never waits for an adapter.
//!
//! While the servant runs, another thread of the executor may end the request by [`RunningRequest::end_early`]: the
//! first of the two that has a reply sends it.
//!
//! Asynchronous servants leave the executor's thread at once: an executor may refuse them when they are activated
//! ([`RequestExecutor::check_servant`]).
//!
//! A collocated call passes the same steps; its caller waits for the reply. With `thread-pool`, the workers of the pool
//! are the threads that read, and requests pass that queue before.

use std::any::Any;
use std::fmt;

use spandrel_cdr::TaggedComponent;
use spandrel_giop::{ServiceContexts, SystemException};
use spandrel_orb::Orb;
use spandrel_sync::{Arc, time::Instant};
use spandrel_transport::{PacketPriority, PublishedAddresses};

use super::{request_memory::RequestMemory, servant::Servant};

/// Takes requests from the threads that read them, and runs them in threads of its own.
pub trait RequestExecutor: Any + Send + Sync + fmt::Debug {
    /// Chooses the thread for a request. Called in the thread that read it, or in that of a collocated caller, with no
    /// lock held. Must not wait.
    ///
    /// # Errors
    /// The exception with which the request is refused; COMPLETED_NO.
    fn choose_thread(&self, request: &RequestToPlace<'_>) -> Result<Placement, SystemException>;

    /// Takes a request that [`choose_thread`](Self::choose_thread) has given a level. It is to be [run](HandedOverRequest::run) or
    /// [refused](HandedOverRequest::refuse), now or later. Must not wait, except for a request that
    /// [permits it](HandedOverRequest::may_wait).
    fn submit(&self, request: HandedOverRequest);

    /// The memory of requests that have ended, for later ones.
    fn request_memory(&self) -> Option<&Arc<RequestMemory>> {
        None
    }

    /// Whether a call that does not marshal may run in the calling thread, without [`choose_thread`](Self::choose_thread).
    fn runs_direct_calls(&self, object_id: &[u8]) -> bool {
        _ = object_id;
        false
    }

    /// Checks a servant that is about to serve objects of the adapter.
    ///
    /// # Errors
    /// The exception with which its activation is refused.
    fn check_servant(&self, servant: &dyn Servant) -> Result<(), SystemException> {
        _ = servant;
        Ok(())
    }

    /// The dedicated endpoint with whose addresses references to this object are made, if it is open in the
    /// ORB; `None` for those of the ORB.
    fn endpoint(&self, object_id: &[u8]) -> Option<EndpointNumber> {
        _ = object_id;
        None
    }

    /// The addresses of references, in the order of preference: those of the ORB if there are none. `dedicated`: the
    /// addresses of the object's [endpoint](Self::endpoint).
    ///
    /// # Errors
    /// The exception with which the creation of a reference is refused.
    fn reference_addresses(
        &self,
        orb: &Orb,
        dedicated: Option<PublishedAddresses>,
    ) -> Result<Vec<PublishedAddresses>, SystemException> {
        _ = orb;
        Ok(dedicated.into_iter().collect())
    }

    /// The components that references to this object carry.
    fn reference_components(&self, object_id: &[u8]) -> Vec<TaggedComponent> {
        _ = object_id;
        Vec::new()
    }
}

/// The number of a dedicated endpoint within its ORB. The crate that opens the endpoint gives the number a meaning.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct EndpointNumber(pub u64);

/// A request whose thread is being chosen.
#[derive(Debug)]
pub struct RequestToPlace<'r> {
    /// The object's id within its adapter.
    pub object_id: &'r [u8],
    /// The name of the operation as in the request header, such as `_get_balance`.
    pub operation: &'r str,
    /// The service contexts as received, for example one with a priority.
    pub contexts: &'r ServiceContexts<'r>,
    /// Whether the calling thread waits for the reply: the caller is in the same ORB.
    pub is_collocated: bool,
    /// The [dedicated endpoint](crate::open_dedicated_endpoint) by which it came; `None` for those of the ORB, and callers
    /// in it.
    pub endpoint: Option<EndpointNumber>,
}

/// The answer of [`RequestExecutor::choose_thread`].
pub enum Placement {
    /// The calling thread. The value is dropped after the request has run.
    Here(Box<dyn Any>),
    /// A thread of the executor, for a request of this level. The executor alone gives the number a meaning.
    HandOver {
        /// The number with which the executor gets the request back ([`HandedOverRequest::level`]); the urgency of its reply.
        level: u32,
        /// The priority of the reply's packets, in whichever thread the reply is sent; `None` for that of its connection. Of
        /// two replies that leave at the same time over one connection, one may have that of the other.
        reply_packets: Option<PacketPriority>,
    },
    /// None: the operation is one of the executor's own, and its reply has no results.
    Acknowledge,
}

/// A request that an executor is to run. One that is dropped ends with NO_RESPONSE.
pub struct HandedOverRequest {
    pub(crate) level: u32,
    pub(crate) octets: usize,
    pub(crate) deadline: Option<Instant>,
    pub(crate) client: usize,
    pub(crate) work: Arc<dyn HandedOverWork>,
}

/// The parts of a handed-over request that lead to its servant. It ends when the last reference to it is dropped.
pub(crate) trait HandedOverWork: RunningRequest {
    /// Runs the servant in the calling thread and sends the reply. `before_reply` is called just before.
    fn run(self: Arc<Self>, before_reply: &(dyn Fn() + Sync));

    /// Sends this exception as the reply.
    fn refuse(self: Arc<Self>, exception: SystemException);

    /// Whether the thread that hands the request over may wait: see [`HandedOverRequest::may_wait`].
    fn may_wait(&self) -> bool;
}

/// A handed-over request as seen by the threads that do not run it.
pub trait RunningRequest: Send + Sync {
    /// The operation that the request calls.
    fn operation(&self) -> String;

    /// Replies with this exception while the servant runs, and cancels the request
    /// ([`TimeExceeded`](spandrel_orb::CancelReason::TimeExceeded)). The servant goes on: it can see the cancellation by
    /// its token. Its own outcome is dropped; interceptors see that outcome, and not this exception.
    ///
    /// Returns false, without an effect, if the reply was sent before or the client does not need it any more.
    fn end_early(&self, exception: &SystemException) -> bool;
}

impl HandedOverRequest {
    /// The number that [`RequestExecutor::choose_thread`] chose, with a meaning to the executor alone.
    #[must_use]
    pub fn level(&self) -> u32 {
        self.level
    }

    /// The octets of its message, which it occupies while it waits.
    #[must_use]
    pub fn octets(&self) -> usize {
        self.octets
    }

    /// A number that all requests of one connection have, and no others that exist at the same time. Callers in the same
    /// ORB have one each.
    #[must_use]
    pub fn client(&self) -> usize {
        self.client
    }

    /// Whether [`RequestExecutor::submit`] may wait at present: its thread reads a
    /// [dedicated endpoint](crate::open_dedicated_endpoint) alone, and the ORB is not shutting down. Clients of that
    /// endpoint then wait in their writes.
    #[must_use]
    pub fn may_wait(&self) -> bool {
        self.work.may_wait()
    }

    /// The time from which on it is not begun any more.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Runs the servant in the calling thread, unless the request was cancelled or its deadline has passed, and sends
    /// the reply. A panic of the servant ends here.
    ///
    /// `before_reply` is called once or more, at last when the servant has returned: just before the reply is sent, so
    /// that the client's next request may find the thread free.
    pub fn run(self, before_reply: &(dyn Fn() + Sync)) {
        self.work.run(before_reply);
    }

    /// The request in the view of another thread, which may end it while it runs.
    #[must_use]
    pub fn running(&self) -> Arc<dyn RunningRequest> {
        Arc::clone(&self.work) as _
    }

    /// Replies with this exception instead of running the request.
    pub fn refuse(self, exception: SystemException) {
        self.work.refuse(exception);
    }
}

impl fmt::Debug for HandedOverRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { level, octets, deadline, .. } = self;
        f.debug_struct("HandedOverRequest")
            .field("level", level)
            .field("octets", octets)
            .field("deadline", deadline)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Here(_) => f.write_str("Here"),
            Self::Acknowledge => f.write_str("Acknowledge"),
            Self::HandOver { level, .. } => f.debug_struct("HandOver").field("level", level).finish_non_exhaustive(),
        }
    }
}

/// The [reservation](crate::Reservation) of a request whose thread was chosen: it runs in the calling thread.
#[derive(Clone, Copy, Debug)]
pub struct Placed;
