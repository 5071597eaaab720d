//! The call engine: all requests and LocateRequests of an ORB's clients.
//!
//! An [`Invocation`] makes the decisions of one call and has no socket, thread or lock. Two drivers execute
//! them. The blocking driver (`blocking`) makes synchronous calls; its program counter is the state. The polling
//! driver (`asynchronous`) stores the [`InvocationState`] while a call waits for an event. Futures, reply
//! handlers, pollers and deferred requests use it. The dynamic invocation interface uses both.
//!
//! | state | event | next state |
//! | --- | --- | --- |
//! | HeldUntilStart | the request's start time has come | Select |
//! | Select | a destination is left in this round | Lease |
//! | Select | an interceptor forwards the request | Select |
//! | Select | none is left; the next round has the destinations in force then | Select |
//! | Lease | a connection; or the object is in this ORB, or gets datagrams | Send |
//! | Lease | no connection | Judge |
//! | Send | a one-way without a response was written | Done |
//! | Send | a response is expected | Await |
//! | Send | the request cannot be sent | Judge |
//! | Send | the arguments need code sets, and the reference names none; a LocateRequest is sent | Await |
//! | Await | a reply, or its loss | Judge |
//! | Judge | a result or a user exception | HeldReply |
//! | Judge | an exception that ends the call | Done |
//! | Judge | another destination, a forwarding, or a permitted retry | Select |
//! | HeldReply | the reply's start time has come, or there is none | Done |
//! | any | the deadline has passed, the call is cancelled, or the ORB shuts down | Done, with an exception |
//!
//! The decisions, each in one place:
//!
//! - the next destination, and the time for its connection: [`ProfileSelector`];
//! - the end of the time to send: [`Invocation::begin_attempt`];
//! - the consequences of a failure, and whether the request is sent again: [`Invocation::failed`];
//! - the consequences of a reply: [`Invocation::replied`], and `forwarding` for all but results;
//! - the start times: [`StartTimes`](crate::orb::start_times::StartTimes);
//! - the exception after a deadline, a cancellation or a shutdown: `ExpiryReason`.
//!
//! Client interceptors are called between Select and Lease, and after Judge (`points`). Calls that a stub makes
//! on the servant directly are not made by this engine (`collocated::direct` of the crate of the server side).

#[cfg(feature = "asynchronous")]
pub(crate) mod await_reply;
mod blocking;
mod calls;
mod exception_details;
mod forwarding;
#[cfg(feature = "asynchronous")]
mod helped_attempt;
mod local;
#[cfg(feature = "asynchronous")]
pub(crate) mod nesting;
mod points;
mod profile_selector;

use std::time::Duration;

use spandrel_cdr::GiopVersion;
use spandrel_giop::{CompletionStatus, LocateStatus, ReplyStatus, SystemException};
use spandrel_sync::Arc;
use spandrel_transport::Deadline;

pub(crate) use blocking::observe_call;
pub(crate) use calls::Raise;
pub(crate) use exception_details::unreadable;
pub use local::encode_collocated;
pub(crate) use local::send_datagram;
#[cfg(feature = "asynchronous")]
pub(crate) use {blocking::unexpected_reply_kind, points::ClientPoints};

use crate::{
    ObjectRef,
    client::{
        CallFailure, ClientConnection, Reply, ReplyKind, destination::Destination, no_reconnecting, not_sent_in_time,
    },
    policy::RebindPolicy,
};
use forwarding::ForwardHistory;
use profile_selector::ProfileSelector;

/// One call: its constant part, and its state.
#[derive(Debug)]
pub(crate) struct Invocation<'c> {
    object: &'c ObjectRef,
    operation: &'c str,
    deadline: Option<&'c Deadline>,
    state: &'c mut InvocationState,
}

/// The state of a call between two events.
#[derive(Debug, Default)]
pub(crate) struct InvocationState {
    rebind: RebindPolicy,
    stage: AttemptStage,
    /// The destinations of the current round. No round has begun while it has none left.
    selector: ProfileSelector,
    /// The forwardings of this call.
    history: ForwardHistory,
    has_resent: bool,
    has_dropped_forward: bool,
}

/// The stage that an attempt has reached. It decides on the consequence of a failure.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum AttemptStage {
    /// A destination is selected. Requests within the ORB and datagrams have no further stage.
    #[default]
    Selected,
    /// A connection is being leased.
    Leasing,
    /// The request is sent on a connection. `fresh`: it was opened for this request.
    Leased { fresh: bool },
}

/// The consequence of an attempt.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Verdict {
    /// The call has its reply, or its one-way was sent.
    Done,
    /// The request is sent to another destination of this round.
    NextDestination,
    /// The request is sent again, in a new round.
    Resend,
    /// The request is sent to the object that it was forwarded to, in a new round.
    Forwarded,
}

impl InvocationState {
    /// The state before the first attempt.
    pub(crate) fn new(rebind: RebindPolicy) -> Self {
        Self { rebind, ..Self::default() }
    }
}

impl<'c> Invocation<'c> {
    pub(crate) fn new(
        object: &'c ObjectRef,
        operation: &'c str,
        deadline: Option<&'c Deadline>,
        state: &'c mut InvocationState,
    ) -> Self {
        Self { object, operation, deadline, state }
    }

    /// Begins a round over this number of destinations.
    #[inline]
    pub(crate) fn begin_round(&mut self, destinations: usize) {
        self.state.selector = ProfileSelector::new(self.object, destinations);
    }

    /// Selects the destination of the next attempt; `None` if the next round begins.
    #[inline]
    pub(crate) fn select(&mut self, destinations: &[Destination]) -> Option<usize> {
        self.state.selector.next(destinations)
    }

    /// Begins an attempt at the selected destination, or begins it again after waiting for a connection.
    ///
    /// # Errors
    /// TIMEOUT, COMPLETED_NO, if the time to send the request is over.
    #[inline]
    pub(crate) fn begin_attempt(&mut self) -> Result<(), CallFailure> {
        self.state.stage = AttemptStage::Selected;
        if self.has_time_to_send() { Ok(()) } else { Err(CallFailure::new(not_sent_in_time(self.deadline))) }
    }

    #[inline]
    fn has_time_to_send(&self) -> bool {
        self.deadline.is_none_or(|deadline| !deadline.left_to_send().is_zero())
    }

    /// Begins the lease of a connection. Returns the time for opening one.
    #[inline]
    pub(crate) fn begin_lease(&mut self) -> Option<Duration> {
        self.state.stage = AttemptStage::Leasing;
        self.state.selector.connect_time(self.deadline)
    }

    /// Whether only open connections may be used (NO_RECONNECT, for a bound reference).
    #[inline]
    pub(crate) fn keeps_connections(&self) -> bool {
        self.state.rebind == RebindPolicy::NoReconnect && self.object.is_bound()
    }

    /// Returns a connection that the server has opened, and over which it accepts requests.
    #[inline]
    pub(crate) fn adopted(&self, destination: &Destination) -> Option<Arc<ClientConnection>> {
        if self.object.orb().is_bidirectional() { self.find_adopted(destination) } else { None }
    }

    #[cold]
    fn find_adopted(&self, destination: &Destination) -> Option<Arc<ClientConnection>> {
        if destination.wire().version < GiopVersion::V1_2 || self.object.has_own_connections() {
            return None;
        }
        let server_side = self.object.orb().server_side()?;
        server_side.adopted_connection(destination.peer.address(), destination.code_sets().first())
    }

    /// Records that a connection is leased. `fresh`: it was opened for this request.
    #[inline]
    pub(crate) fn leased(&mut self, fresh: bool) {
        self.state.stage = AttemptStage::Leased { fresh };
    }

    /// Decides on the consequence of a failure, in the stage that the attempt has reached.
    ///
    /// # Errors
    /// The exception that ends the call.
    #[cold]
    pub(crate) fn failed(
        &mut self,
        failure: CallFailure,
        destination: &Destination,
    ) -> Result<Verdict, SystemException> {
        let selector = &mut self.state.selector;
        let continues = match self.state.stage {
            AttemptStage::Selected => Err(selector.server_failure_or(failure)),
            AttemptStage::Leasing => {
                let failure = match SystemException::KEEPS_DETAIL {
                    true => exception_details::explain_address(failure, self.object),
                    false => failure,
                };
                selector.connect_failed(failure);
                Ok(())
            }
            AttemptStage::Leased { fresh } => selector.request_failed(failure, fresh, destination),
        };
        let last = match continues {
            Err(failure) => failure,
            Ok(()) => match selector.take_failure() {
                Some(failure) => failure,
                None => return Ok(Verdict::NextDestination),
            },
        };
        self.retry(last)
    }

    /// Permits a retry if the server certainly has not acted on the request and it was not repeated before.
    fn retry(&mut self, failure: CallFailure) -> Result<Verdict, SystemException> {
        let (may_repeat, exception) = (failure.may_repeat(), failure.exception);
        let is_safe = exception.completed() == CompletionStatus::No && self.has_time_to_send();
        if is_safe && self.drop_forward_once() {
            return Ok(self.end_round(Verdict::Resend));
        }
        if is_safe && may_repeat && self.keeps_connections() {
            return Err(no_reconnecting().with_source(exception));
        }
        if is_safe && may_repeat && !std::mem::replace(&mut self.state.has_resent, true) {
            self.object.orb().statistics().retried();
            tracing::debug!(%exception, "sending again on another connection");
            return Ok(self.end_round(Verdict::Resend));
        }
        Err(exception)
    }

    /// Decides on the consequence of a reply; `None` for a one-way that was sent and gets none.
    ///
    /// # Errors
    /// The exception that ends the call.
    // Where it is not inlined, each call pays for a large result.
    #[inline(always)]
    pub(crate) fn replied(&mut self, reply: Option<&Reply>) -> Result<Verdict, SystemException> {
        if let AttemptStage::Leased { .. } = self.state.stage {
            if reply.is_some_and(|reply| self.state.selector.continues_after(reply, (self.object, self.operation))) {
                return Ok(Verdict::NextDestination);
            }
            self.state.selector.mark_preferred(self.object);
        }
        let Some(reply) = reply else { return Ok(Verdict::Done) };
        if SystemException::KEEPS_DETAIL && reply.has_contexts {
            exception_details::check_contexts(reply, self.object.orb().settings().context_limits)?;
        }
        match reply.kind {
            ReplyKind::Reply(ReplyStatus::NoException | ReplyStatus::UserException)
            | ReplyKind::Locate(LocateStatus::ObjectHere) => {
                self.object.set_bound(true);
                Ok(Verdict::Done)
            }
            _ => self.evaluate_unusual_reply(reply),
        }
    }

    /// Ends the round: the next one has the destinations in force then.
    fn end_round(&mut self, verdict: Verdict) -> Verdict {
        self.state.selector = ProfileSelector::default();
        verdict
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests;
