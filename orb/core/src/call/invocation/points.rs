//! The interception points of a call. To interceptors, each attempt is a request of its own (CORBA 3.3 Part 1,
//! 16.3.7).
//!
//! The drivers call the points; this module chooses them by the script of the call:
//!
//! | | before Lease | after Judge |
//! | --- | --- | --- |
//! | synchronous | `send_request` | an ending point |
//! | asynchronous (16.3.7.2) | `send_request`, then `receive_other` | `send_poll`, then an ending point |
//!
//! An asynchronous one-way that was sent has no second part.

use std::cell::Cell;

use spandrel_giop::{CompletionStatus, ReplyStatus, ServiceContext, SystemException};
use spandrel_sync::thread_local;

use super::{Invocation, Verdict};
use crate::{
    CallerState, ObjectRef,
    client::{
        Reply, ReplyKind,
        call_kind::{CallKind, joined},
    },
    interception::{self, ClientFlow, OutgoingContexts, RequestOutcome, ResponseRequest},
    reference::object::{EffectiveReference, Forward, ForwardKind},
};

/// The points around the attempts of the blocking driver.
pub(super) trait AttemptPoints {
    /// Calls the points before an attempt; false if an interceptor has forwarded the request.
    ///
    /// # Errors
    /// The exception that an interceptor raised.
    fn begin(
        &mut self,
        invocation: &mut Invocation<'_>,
        forward: Option<&Forward>,
        index: usize,
    ) -> Result<bool, SystemException>;

    /// Runs `attempt` with the service contexts that interceptors have added.
    fn with_contexts<'a, R>(&self, call_kind: &CallKind<'_, 'a>, attempt: impl FnOnce(&CallKind<'_, 'a>) -> R) -> R;

    /// Calls the points after an attempt, which may change its verdict.
    ///
    /// # Errors
    /// The exception that ends the call.
    fn end(
        &mut self,
        invocation: &mut Invocation<'_>,
        verdict: Result<Verdict, SystemException>,
        reply: Option<&Reply>,
    ) -> Result<Verdict, SystemException>;
}

/// A call without interceptors. A program that registers none contains only this implementation.
pub(super) struct Unintercepted;

impl AttemptPoints for Unintercepted {
    #[inline]
    fn begin(&mut self, _: &mut Invocation<'_>, _: Option<&Forward>, _: usize) -> Result<bool, SystemException> {
        Ok(true)
    }

    #[inline]
    fn with_contexts<'a, R>(&self, call_kind: &CallKind<'_, 'a>, attempt: impl FnOnce(&CallKind<'_, 'a>) -> R) -> R {
        attempt(call_kind)
    }

    #[inline]
    fn end(
        &mut self,
        _: &mut Invocation<'_>,
        verdict: Result<Verdict, SystemException>,
        _: Option<&Reply>,
    ) -> Result<Verdict, SystemException> {
        verdict
    }
}

/// A call with the service contexts of binding policies, and without interceptors.
pub(super) struct BoundPoints {
    caller: CallerState,
    /// Taken from the thread, and returned to it at the end of the call.
    contexts: Vec<ServiceContext>,
}

thread_local! {
    /// The contexts of this thread's last call, for the next one.
    static CONTEXTS: Cell<Vec<ServiceContext>> = const { Cell::new(Vec::new()) };
}

impl BoundPoints {
    pub(super) fn new(caller: CallerState) -> Self {
        Self { caller, contexts: CONTEXTS.with(Cell::take) }
    }
}

impl Drop for BoundPoints {
    fn drop(&mut self) {
        let contexts = std::mem::take(&mut self.contexts);
        // The thread may be ending.
        let _ = CONTEXTS.try_with(|unused| unused.set(contexts));
    }
}

impl AttemptPoints for BoundPoints {
    fn begin(
        &mut self,
        invocation: &mut Invocation<'_>,
        forward: Option<&Forward>,
        index: usize,
    ) -> Result<bool, SystemException> {
        let object = invocation.object;
        if let Some(binding) = object.orb().binding_policies() {
            let destination = &object.destinations(forward)?[index];
            binding.set_contexts(&self.caller, destination.policies.as_deref(), &mut self.contexts)?;
        }
        Ok(true)
    }

    fn with_contexts<'a, R>(&self, call_kind: &CallKind<'_, 'a>, attempt: impl FnOnce(&CallKind<'_, 'a>) -> R) -> R {
        with_contexts(&self.contexts, call_kind, attempt)
    }

    fn end(
        &mut self,
        _: &mut Invocation<'_>,
        verdict: Result<Verdict, SystemException>,
        _: Option<&Reply>,
    ) -> Result<Verdict, SystemException> {
        verdict
    }
}

/// Runs `attempt` with these service contexts before those of the call.
fn with_contexts<'a, R>(
    contexts: &[ServiceContext],
    call_kind: &CallKind<'_, 'a>,
    attempt: impl FnOnce(&CallKind<'_, 'a>) -> R,
) -> R {
    let mut call_kind = *call_kind;
    let all;
    if let CallKind::Request { contexts: added, .. } = &mut call_kind {
        all = joined(contexts, added);
        *added = &all;
    }
    attempt(&call_kind)
}

/// The client interceptors of one call.
#[derive(Debug)]
pub(crate) struct ClientPoints {
    response_request: ResponseRequest,
    is_asynchronous: bool,
    /// The data of the request, created by the client's thread; `None` while interceptors run.
    outgoing: Option<OutgoingContexts>,
    /// The target of the request whose ending points are to be called.
    target: Option<EffectiveTarget>,
    /// Whether a request has begun. Later ones are new requests with the same slots (16.3.6.5).
    has_begun: bool,
    /// The record of binding policies about the calling thread, if the ORB obeys such policies.
    caller: Option<CallerState>,
}

/// The forwarded reference, if any, and the index of the profile.
type EffectiveTarget = (EffectiveReference, usize);

impl ClientPoints {
    /// The points of a call by this thread.
    pub(crate) fn new(object: &ObjectRef, response_request: ResponseRequest, is_asynchronous: bool) -> Self {
        let outgoing = Some(OutgoingContexts::of_thread(object));
        Self { response_request, is_asynchronous, outgoing, target: None, has_begun: false, caller: None }
    }

    /// These points, with the service contexts of binding policies.
    pub(crate) fn bound(self, caller: CallerState) -> Self {
        Self { caller: Some(caller), ..self }
    }

    /// The service contexts that interceptors have added.
    pub(crate) fn contexts(&self) -> &[ServiceContext] {
        self.outgoing.as_ref().map_or(&[], OutgoingContexts::contexts)
    }

    /// Begins a request to this target, in the interceptors' view.
    pub(crate) fn begin_request(
        &mut self,
        invocation: &mut Invocation<'_>,
        forward: Option<&Forward>,
        index: usize,
    ) -> Result<bool, SystemException> {
        let object = invocation.object;
        let mut outgoing = match self.outgoing.take() {
            Some(outgoing) if !self.has_begun => outgoing,
            Some(before) => before.for_retry(object),
            None => OutgoingContexts::of_thread(object),
        };
        self.has_begun = true;
        if let (Some(caller), Some(binding)) = (&self.caller, object.orb().binding_policies()) {
            let destination = &object.destinations(forward)?[index];
            let mut contexts = Vec::new();
            binding.set_contexts(caller, destination.policies.as_deref(), &mut contexts)?;
            outgoing.extend(contexts);
        }
        let target: EffectiveTarget = (forward.map(|forward| forward.ior.clone()), index);
        let mut flow = ClientFlow::new(object, invocation.operation, self.response_request, outgoing, target.clone());
        let mut started = flow.send_request();
        if started.is_ok() && self.is_asynchronous {
            // Control returns to the client now.
            started = flow.end(sent(), None);
        }
        self.outgoing = Some(flow.into_outgoing());
        match started {
            Ok(()) => self.target = Some(target),
            Err(outcome) => invocation.apply_interceptor_outcome(outcome)?,
        }
        Ok(self.target.is_some())
    }

    /// Ends the request that has begun, in the interceptors' view; otherwise returns the verdict unchanged.
    pub(crate) fn end_request(
        &mut self,
        invocation: &mut Invocation<'_>,
        verdict: Result<Verdict, SystemException>,
        reply: Option<&Reply>,
    ) -> Result<Verdict, SystemException> {
        let Some(target) = self.target.take() else { return verdict };
        if self.is_asynchronous && reply.is_none() && verdict == Ok(Verdict::Done) {
            return verdict;
        }
        let Some(outgoing) = self.outgoing.take() else { return verdict };
        let object = invocation.object;
        let (operation, response_request) = (invocation.operation, self.response_request);
        let mut flow = ClientFlow::new(object, operation, response_request, outgoing, target);
        let resumed = if self.is_asynchronous { flow.send_poll() } else { flow.resume_request() };
        let ended = resumed.and_then(|()| {
            let (outcome, reply) = self.outcome(object, &verdict, reply);
            flow.end(outcome, reply)
        });
        self.outgoing = Some(flow.into_outgoing());
        match ended {
            Ok(()) => verdict,
            Err(changed) => invocation.apply_interceptor_outcome(changed).map(|()| Verdict::Resend),
        }
    }

    /// The outcome for the ending points, and its reply.
    fn outcome<'r>(
        &self,
        object: &ObjectRef,
        verdict: &Result<Verdict, SystemException>,
        reply: Option<&'r Reply>,
    ) -> (RequestOutcome, Option<&'r Reply>) {
        let outcome = match (verdict, reply) {
            (Err(exception), _) => RequestOutcome::system(exception.clone()),
            // The rejection by one destination is not passed to the client.
            (Ok(Verdict::NextDestination), _) => return (retried(), None),
            (Ok(Verdict::Resend), _) => retried(),
            (Ok(Verdict::Forwarded), _) => match object.forwarded() {
                Some(forward) => RequestOutcome::forward(object.orb().reference((*forward.ior).clone())),
                None => retried(),
            },
            (Ok(Verdict::Done), Some(reply)) if reply.kind == ReplyKind::Reply(ReplyStatus::UserException) => {
                RequestOutcome::user(reply, object)
            }
            // Nor is the server's reply to a one-way.
            (Ok(Verdict::Done), Some(_)) if !self.response_request.1 => RequestOutcome::Reply,
            (Ok(Verdict::Done), _) => sent(),
        };
        (outcome, reply)
    }
}

impl AttemptPoints for ClientPoints {
    fn begin(
        &mut self,
        invocation: &mut Invocation<'_>,
        forward: Option<&Forward>,
        index: usize,
    ) -> Result<bool, SystemException> {
        self.begin_request(invocation, forward, index)
    }

    fn with_contexts<'a, R>(&self, call_kind: &CallKind<'_, 'a>, attempt: impl FnOnce(&CallKind<'_, 'a>) -> R) -> R {
        with_contexts(self.contexts(), call_kind, attempt)
    }

    fn end(
        &mut self,
        invocation: &mut Invocation<'_>,
        verdict: Result<Verdict, SystemException>,
        reply: Option<&Reply>,
    ) -> Result<Verdict, SystemException> {
        self.end_request(invocation, verdict, reply)
    }
}

impl Invocation<'_> {
    /// Applies the exception or the forwarding that an interceptor raised.
    ///
    /// # Errors
    /// The exception that ends the call; otherwise the request is sent again.
    fn apply_interceptor_outcome(&mut self, outcome: RequestOutcome) -> Result<(), SystemException> {
        match outcome {
            // As for a LOCATION_FORWARD.
            RequestOutcome::Other(_, Some(target)) => self.forward_to(target.ior(), ForwardKind::Temporary)?,
            RequestOutcome::Exception(exception) => return Err(exception.into_system()),
            // Interceptors cannot create these outcomes.
            RequestOutcome::Reply | RequestOutcome::Other(_, None) => {
                return Err(SystemException::internal(0, CompletionStatus::Maybe));
            }
        }
        self.end_round(Verdict::Resend);
        Ok(())
    }
}

/// The outcome of a one-way that was sent, and of an asynchronous request whose control returns to the client.
fn sent() -> RequestOutcome {
    RequestOutcome::Other(interception::ReplyStatus::Successful, None)
}

/// The outcome of a request that is sent again.
fn retried() -> RequestOutcome {
    RequestOutcome::Other(interception::ReplyStatus::TransportRetry, None)
}
