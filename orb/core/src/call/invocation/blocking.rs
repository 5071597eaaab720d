//! The blocking driver: the calling thread selects a destination, sends the request and waits for the reply,
//! until the call has its outcome. After a time-out it sends CancelRequest (`ClientConnection::cancel` in
//! `client/connection/closing.rs`).

use std::time::Duration;

use spandrel_cdr::Encoder;
use spandrel_connection::RequestLoss;
use spandrel_giop::{CompletionStatus, ResponseFlags, ServiceContext, SystemException, ids};
use spandrel_sync::Arc;
use spandrel_transport::Deadline;

use super::{
    Invocation, InvocationState, Verdict,
    points::{AttemptPoints, BoundPoints, ClientPoints, Unintercepted},
};
use crate::{
    BoundCall, ObjectRef, Orb,
    call::{connection_contexts::ConnectionContexts, scratch},
    client::{
        CallFailure, ClientConnection, Lease, Peer, Reply, ReplyKind,
        call_kind::{CallKind, joined},
        destination::Destination,
        urgency::UrgencyScope,
    },
    diagnostics::{CallObserver, ObservedCall},
    interception,
    orb::parts::ObserveCall,
    policy::thread_flags,
    servant_side::upcall_scope,
};

impl ObjectRef {
    /// Makes a call and waits for its reply; a one-way without a response has none.
    #[inline]
    pub(super) fn invoke_blocking(&self, call_kind: &CallKind<'_, '_>) -> Result<Option<Reply>, SystemException> {
        self.invoke_with_diagnostics(call_kind).map_err(SystemException::of_call)
    }

    fn invoke_with_diagnostics(&self, call_kind: &CallKind<'_, '_>) -> Result<Option<Reply>, SystemException> {
        if let CallKind::Request { observer: None, .. } = call_kind
            && self.orb().diagnostics().is_observed()
            && let Some(observe_call) = self.orb().parts().observe_call()
        {
            return self.invoke_observed(observe_call, call_kind);
        }
        self.orb().check_running()?;
        if let CallKind::Request { .. } = call_kind
            && let Some(invoke_intercepted) = interception::invoke_fn(self.orb())
        {
            return invoke_intercepted(self, call_kind);
        }
        self.drive(call_kind, Unintercepted)
    }

    /// As `invoke_blocking`, observed by diagnostics.
    #[cold]
    #[inline(never)]
    fn invoke_observed(
        &self,
        observe_call: ObserveCall,
        call_kind: &CallKind<'_, '_>,
    ) -> Result<Option<Reply>, SystemException> {
        let invoke = &mut |call_kind: &CallKind<'_, '_>| self.invoke_blocking(call_kind);
        observe_call(self.orb(), self.interface_label(), call_kind, invoke)
    }

    /// As `invoke_blocking`, with client interceptors.
    #[cold]
    pub(crate) fn invoke_intercepted(&self, call_kind: &CallKind<'_, '_>) -> Result<Option<Reply>, SystemException> {
        let CallKind::Request { response, is_one_way, .. } = *call_kind else {
            return Err(SystemException::internal(0, CompletionStatus::No));
        };
        self.drive(call_kind, ClientPoints::new(self, (response, is_one_way), false))
    }

    /// As `invoke_blocking`, with binding policies and client interceptors.
    #[cold]
    pub(crate) fn invoke_bound(&self, call_kind: &CallKind<'_, '_>) -> Result<Option<Reply>, SystemException> {
        let (CallKind::Request { response, is_one_way, .. }, Some(binding)) =
            (*call_kind, self.orb().binding_policies())
        else {
            return Err(SystemException::internal(0, CompletionStatus::No));
        };
        let BoundCall { route, caller, urgency } = binding.begin_call(self)?;
        let _urgency = UrgencyScope::enter(urgency);
        let object = route.as_ref().unwrap_or(self);
        if interception::client_interceptors(self.orb()).is_empty() {
            return object.drive(call_kind, BoundPoints::new(caller));
        }
        object.drive(call_kind, ClientPoints::new(object, (response, is_one_way), false).bound(caller))
    }

    /// Makes a two-way call without arguments and results, for implicit operations such as those that bind a
    /// connection. It carries these service contexts, and none of interceptors or binding policies.
    ///
    /// # Errors
    /// The system exception that ended the call.
    pub fn call_implicit(&self, operation: &str, contexts: &[ServiceContext]) -> Result<(), SystemException> {
        self.orb().check_running()?;
        let call_kind = CallKind::Request {
            operation,
            response: ResponseFlags::TWO_WAY,
            is_one_way: false,
            marshal: &|_| Ok(()),
            contexts,
            buffering: None,
            observer: None,
        };
        self.drive(&call_kind, Unintercepted).map(drop)
    }

    /// The states of a call, from HeldUntilStart to Done.
    fn drive(
        &self,
        call_kind: &CallKind<'_, '_>,
        mut points: impl AttemptPoints,
    ) -> Result<Option<Reply>, SystemException> {
        let call_policies = self.call_policies();
        let deadline = call_policies.deadline.as_ref();
        let start_times = call_policies.start_times.as_ref();
        if let Some(start_times) = start_times {
            start_times.hold_request(self.orb(), deadline)?;
        }
        let mut state = InvocationState::new(call_policies.rebind);
        let mut invocation = Invocation::new(self, call_kind.operation(), deadline, &mut state);
        loop {
            let forward = self.forwarded();
            let destinations = self.destinations(forward.as_deref())?;
            invocation.begin_round(destinations.len());
            while let Some(index) = invocation.select(destinations) {
                let destination = &destinations[index];
                if !points.begin(&mut invocation, forward.as_deref(), index)? {
                    break;
                }
                let outcome = points.with_contexts(call_kind, |call_kind| invocation.attempt(destination, call_kind));
                match outcome {
                    Ok(reply) => {
                        let verdict = invocation.replied(reply.as_ref());
                        if points.end(&mut invocation, verdict, reply.as_ref())? == Verdict::Done {
                            if let (Some(start_times), Some(_)) = (start_times, &reply) {
                                start_times.hold_reply(self.orb())?;
                            }
                            return Ok(reply);
                        }
                    }
                    Err(failure) => {
                        let verdict = invocation.failed_or_located(failure, destination);
                        points.end(&mut invocation, verdict, None)?;
                    }
                }
            }
        }
    }
}

/// Makes a call of the interface with this label by `invoke`, observed by diagnostics.
#[cold]
pub(crate) fn observe_call<'a>(
    orb: &Orb,
    interface: &str,
    call_kind: &CallKind<'_, 'a>,
    invoke: &mut dyn FnMut(&CallKind<'_, 'a>) -> Result<Option<Reply>, SystemException>,
) -> Result<Option<Reply>, SystemException> {
    let CallKind::Request { operation, .. } = *call_kind else { return invoke(call_kind) };
    let call = ObservedCall::begin(orb.diagnostics(), interface, operation);
    let mut call_kind = *call_kind;
    let joined;
    if let CallKind::Request { contexts, observer, .. } = &mut call_kind {
        joined = [*contexts, call.contexts()].concat();
        (*contexts, *observer) = (&joined, Some(&call as &dyn CallObserver));
    }
    let outcome = call.in_scope(|| invoke(&call_kind));
    call.end(interface, operation, outcome.as_ref().map(|reply| reply.as_ref().and_then(Reply::status)));
    outcome
}

impl Invocation<'_> {
    /// As [`failed`](Self::failed), after the object is located if the request only lacks code sets.
    #[cold]
    fn failed_or_located(
        &mut self,
        failure: CallFailure,
        destination: &Destination,
    ) -> Result<Verdict, SystemException> {
        if failure.loss != RequestLoss::CodeSetsUnknown {
            return self.failed(failure, destination);
        }
        match self.attempt(destination, &CallKind::Locate) {
            Ok(reply) => self.located(reply.as_ref(), failure, destination),
            Err(not_located) => self.failed(not_located, destination),
        }
    }

    /// One attempt: Lease, Send and Await.
    fn attempt(
        &mut self,
        destination: &Destination,
        call_kind: &CallKind<'_, '_>,
    ) -> Result<Option<Reply>, CallFailure> {
        self.begin_attempt()?;
        if let Some(outcome) = self.attempt_without_connection(destination, call_kind) {
            return outcome;
        }
        let orb = self.object.orb();
        if thread_flags::are_in_use() && call_kind.expects_reply() {
            upcall_scope::call_blocks(call_kind.operation());
            orb.parts().add_thread_help();
        }
        let help = orb.parts().helped_attempts();
        let lease = self.lease(destination, |peer, connect_time| match help {
            None => peer.lease(connect_time),
            Some(help) => (help.lease)(peer, call_kind, connect_time),
        })?;
        self.exchange(&lease, destination, call_kind, |out, request_id| match help {
            None => call_kind.transmit(&lease, out, request_id, self.deadline),
            Some(help) => (help.transmit)(orb, destination, &lease, call_kind, out, request_id, self.deadline),
        })
    }

    /// Leases a connection for an attempt; by `lease`, if a new one may be opened.
    #[inline(always)]
    pub(super) fn lease<'d>(
        &mut self,
        destination: &'d Destination,
        lease: impl FnOnce(&'d Peer, Option<Duration>) -> Result<Lease<&'d Peer>, CallFailure>,
    ) -> Result<Lease<&'d Peer>, CallFailure> {
        let connect_time = self.begin_lease();
        let lease = if let Some(adopted) = self.adopted(destination) {
            Lease::of(&*destination.peer, adopted)
        } else if thread_flags::are_in_use() && self.keeps_connections() {
            destination.peer.lease_open()?
        } else {
            lease(&destination.peer, connect_time)?
        };
        self.leased(lease.fresh);
        Ok(lease)
    }

    /// Sends the request on a leased connection and waits for its reply, both by `transmit`, which is given the
    /// message and the request id.
    #[inline]
    pub(super) fn exchange(
        &self,
        connection: &Arc<ClientConnection>,
        destination: &Destination,
        call_kind: &CallKind<'_, '_>,
        transmit: impl FnOnce(&Encoder<'_>, u32) -> Result<Option<Reply>, CallFailure>,
    ) -> Result<Option<Reply>, CallFailure> {
        let (orb, deadline) = (self.object.orb(), self.deadline);
        let mut out = Encoder::reusing(scratch::take(), destination.template.wire());
        let request_id = connection.request_id();
        let connection_contexts =
            (!connection.has_sent_contexts()).then(|| ConnectionContexts::new(orb, connection, destination));
        let sent = connection_contexts.as_ref().map_or(&[][..], |connection_contexts| &connection_contexts.contexts);
        let written = call_kind.write(&mut out, destination, request_id, sent, deadline);
        if let CallKind::Request { observer: Some(call), .. } = call_kind {
            let (metrics, peer) = (connection.metrics(), connection.peer());
            call.sent(Some((metrics, peer)), &destination.object_key, request_id, out.position());
        }
        let mut sent = written.and_then(|()| transmit(&out, request_id));
        if let Some(connection_contexts) = connection_contexts
            && sent.is_ok()
            && matches!(call_kind, CallKind::Request { .. })
        {
            connection_contexts.mark_sent(connection);
        }
        scratch::give(out);
        match &mut sent {
            Ok(Some(reply)) if reply.kind.answers(call_kind) => reply.wire = destination.template.wire(),
            Ok(Some(_)) => return Err(unexpected_reply_kind(connection)),
            // Only a deadline, or the cancellation of the request that this thread serves, abandons a request.
            Err(failure) if destination.is_ours && (deadline.is_some() || orb.server_side().is_some()) => {
                connection.cancel(request_id, destination.template.wire(), failure);
            }
            Ok(None) | Err(_) => {}
        }
        sent
    }
}

impl<'a> CallKind<'_, 'a> {
    /// Sends the encoded message on a connection; the calling thread reads the reply.
    #[inline(always)]
    pub(super) fn transmit(
        &self,
        connection: &ClientConnection,
        out: &Encoder<'_>,
        request_id: u32,
        deadline: Option<&Deadline>,
    ) -> Result<Option<Reply>, CallFailure> {
        if self.expects_reply() {
            connection.two_way(request_id, out, deadline).map(Some)
        } else {
            connection.one_way(out, deadline).map(|()| None)
        }
    }

    /// Whether the message is answered.
    #[inline]
    pub(super) fn expects_reply(&self) -> bool {
        match self {
            Self::Request { response, .. } => response.is_expected(),
            Self::Locate => true,
        }
    }

    /// Encodes the whole message. `sent`: the service contexts of the connection.
    #[inline(always)]
    pub(super) fn write(
        &self,
        out: &mut Encoder<'a>,
        destination: &Destination,
        request_id: u32,
        sent: &[ServiceContext],
        deadline: Option<&Deadline>,
    ) -> Result<(), CallFailure> {
        match self {
            Self::Request { operation, response, marshal, contexts: added, .. } => {
                let contexts = joined(sent, added);
                let body = destination.begin(out, request_id, *response, operation, &contexts, deadline);
                let written = marshal(out).and_then(|()| body.end(out));
                written.map_err(|error| destination.not_encodable(error))
            }
            Self::Locate => destination.locate(out, request_id).map_err(|error| CallFailure::new(error.into())),
        }
    }
}

impl ReplyKind {
    fn answers(self, call_kind: &CallKind<'_, '_>) -> bool {
        matches!(self, Self::Locate(_)) == matches!(call_kind, CallKind::Locate)
    }
}

/// COMM_FAILURE for a reply of the wrong message type.
pub(crate) fn unexpected_reply_kind(connection: &ClientConnection) -> CallFailure {
    connection.retire();
    let exception = SystemException::comm_failure(ids::COMM_FAILURE_PROTOCOL, CompletionStatus::Maybe);
    CallFailure::new(exception.with_detail(|| {
        format!("{} answered a Request by a LocateReply, or a LocateRequest by a Reply", connection.peer())
    }))
}
