//! Upcalls: the steps of a request from its header to its reply.
//!
//! [`run`] checks the deadline, calls the starting interception points and passes the request to
//! [`dispatch`], which has the order of all steps up to the end of the servant's use. The servant gets a
//! [`ServerCall`] and replies through it. [`handle_locate_request`] answers LocateRequests, because they go to
//! the same adapter.
//!
//! This module knows a request's source only as a [`RequestOrigin`]. It reads no messages and opens no
//! sockets.

pub(crate) mod adapter;
pub(crate) mod call;
pub(crate) mod deferred;
pub(crate) mod deferred_reply;
pub(crate) mod deferred_slot;
pub(crate) mod dispatch;
pub(crate) mod executor;
pub(crate) mod interception;
mod interface_definition;
pub(crate) mod marshaled_reply;
pub(crate) mod operation_lookup;
pub(crate) mod origin;
pub(crate) mod prediction;
pub(crate) mod received_request;
pub(crate) mod reply;
pub(crate) mod request_memory;
pub(crate) mod servant;
pub(crate) mod skeleton;

use std::panic::{AssertUnwindSafe, catch_unwind};

use spandrel_cdr::{Decoder, Encode, Encoder, GiopVersion};
use spandrel_giop::{
    AddressingDisposition, CompletionStatus, LocateRequestHeader, LocateStatus, SystemException, SystemExceptionKind,
    begin_locate_reply, minor,
};
use spandrel_orb::{
    Located,
    internal::{ObservedRequest, TimerFuture, UpcallScope, request_deadlines::InheritedDeadline, scratch},
};
use spandrel_sync::{Arc, time::Instant};

use adapter::ObjectAdapter;
use call::{ServerCall, apply_decision};
use origin::{AnswerKind, RequestOrigin};
use received_request::{RequestContext, RequestState};
use reply::{answer_exception, panicked};

/// Runs a request on an object of this adapter. If the servant does not reply, its exception is the reply. The
/// caller holds no lock.
pub(super) fn run(state: &RequestState<'_>, adapter: &Arc<dyn ObjectAdapter>, arguments: &mut Decoder<'_>) {
    let request = state.request;
    let orb = request.origin.orb();
    if state.observed.is_none() && orb.diagnostics().is_request_observed(request.header) {
        return run_observed(state, adapter, arguments);
    }
    let _scope = UpcallScope::enter();
    let _deadline = match request.request_context {
        None => None,
        Some(request_context) => match begin_in_time(request_context) {
            Ok(DeadlineCheck::Now(inherited)) => inherited,
            Ok(DeadlineCheck::Held(start)) => {
                return hold(state, &request_context.check, adapter, arguments, start);
            }
            Err(late) => return refuse_expired(state, &late),
        },
    };
    let (flow, intercepted, _slots);
    let state = if interception::are_there(orb) {
        let (begun, instead) = interception::begin(state);
        flow = begun;
        intercepted = RequestState { flow: Some(&flow), ..*state };
        if let Some(instead) = instead {
            return apply_decision(&intercepted, instead)
                .map_or_else(|exception| answer_exception(&intercepted, &exception), drop);
        }
        _slots = interception::lend_slots(Some(&flow));
        &intercepted
    } else {
        state
    };
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let Some(key) = request.header.target.object_key() else {
            return ServerCall::new(state, arguments).request_object_key();
        };
        if let Some(target) = orb.alias(&key) {
            return ServerCall::new(state, arguments).forward_to(&target);
        }
        if let Some(RequestContext { check: Err(wrong), .. }) = request.request_context {
            return Err(wrong.clone());
        }
        dispatch::serve(&key, ServerCall::new(state, arguments), adapter, None)
    }));
    match outcome {
        Ok(Ok(_replied)) => {}
        Ok(Err(exception)) => answer_exception(state, &exception),
        Err(panic) => {
            let exception = panicked(&request.header.operation, &*panic);
            orb.statistics().servant_panicked();
            log_limited!(error, request.origin.services(), "servant panicked", peer = %request.origin.name(), %exception, "a servant panicked");
            answer_exception(state, &exception);
        }
    }
}

/// Runs a request whose metrics, trace or log line are recorded.
#[cold]
fn run_observed(state: &RequestState<'_>, adapter: &Arc<dyn ObjectAdapter>, arguments: &mut Decoder<'_>) {
    let request = state.request;
    let (origin, octets) = (request.origin, request.message.header.total_len());
    let diagnostics = origin.orb().diagnostics();
    let observed = ObservedRequest::begin(diagnostics, origin.name(), origin.metrics(), request.header, octets);
    observed.in_scope(|| run(&RequestState { observed: Some(&observed), ..*state }, adapter, arguments));
}

/// Whether a request begins now, according to its deadline.
enum DeadlineCheck {
    /// The request begins. Calls that its servant makes inherit the deadline.
    Now(Option<InheritedDeadline>),
    /// The request must not begin before this start time.
    Held(Instant),
}

/// Checks whether a request begins now, and lets the calls of its servant inherit its deadline.
///
/// # Errors
/// TIMEOUT if the deadline has passed.
#[cold]
fn begin_in_time(request_context: &RequestContext) -> Result<DeadlineCheck, SystemException> {
    let Some(deadline) = request_context.deadline else { return Ok(DeadlineCheck::Now(None)) };
    deadline.check()?;
    if let Some(start) = deadline.start.filter(|start| *start > Instant::now()) {
        return Ok(DeadlineCheck::Held(start));
    }
    Ok(DeadlineCheck::Now(deadline.answer.map(InheritedDeadline::enter)))
}

/// Rejects a request whose deadline has passed before it began.
#[cold]
fn refuse_expired(state: &RequestState<'_>, late: &SystemException) {
    state.request.origin.orb().statistics().refused_expired();
    answer_exception(state, late);
}

/// Holds a request until its start time (17.2.4.1), without a waiting thread. Then it begins anew. Clients
/// with this ORB hold such requests back themselves; other ORBs send them at once.
///
/// `check`: the error of the request's service contexts, if they have one.
#[cold]
fn hold(
    state: &RequestState<'_>,
    check: &Result<(), SystemException>,
    adapter: &Arc<dyn ObjectAdapter>,
    arguments: &mut Decoder<'_>,
    start: Instant,
) {
    let (orb, adapter) = (state.request.origin.orb().clone(), Arc::clone(adapter));
    let call = ServerCall::new(state, arguments);
    let held = check.clone().and_then(|()| {
        call.spawn(move |deferred| async move {
            if TimerFuture::of_request(&orb, start).await {
                deferred.begin(|state, arguments| run(state, &adapter, arguments));
            } else {
                let gone = SystemException::transient(minor::REQUEST_DISCARDED, CompletionStatus::No);
                deferred.end(Err(gone.with_detail("the ORB no longer waits for the start time of this request")));
            }
        })
    });
    if let Err(exception) = held {
        answer_exception(state, &exception);
    }
}

/// Answers a LocateRequest.
pub(super) fn handle_locate_request(
    origin: &dyn RequestOrigin,
    adapter: &Arc<dyn ObjectAdapter>,
    request: &LocateRequestHeader<'_>,
    version: GiopVersion,
) {
    let (orb, key) = (origin.orb(), request.target.object_key());
    let located = key.as_deref().map(|key| {
        if interception::are_there(orb) {
            interception::receive_locate_request(origin, key)?;
        }
        let alias = orb.alias(key).map(|ior| Ok(Located::Forward(ior)));
        alias.unwrap_or_else(|| adapter.locate(key))
    });
    let status = match &located {
        Some(Ok(Located::Here)) => LocateStatus::ObjectHere,
        Some(Ok(Located::Unknown)) => LocateStatus::UnknownObject,
        Some(Ok(Located::ForwardPermanently(_))) if version >= GiopVersion::V1_2 => LocateStatus::ObjectForwardPerm,
        Some(Ok(Located::Forward(_) | Located::ForwardPermanently(_))) => LocateStatus::ObjectForward,
        Some(Err(exception)) if exception.kind() == SystemExceptionKind::ObjectNotExist => LocateStatus::UnknownObject,
        // Before GIOP 1.2 there is no status for an exception (9.4.6.1). The request gets the exception.
        Some(Err(_)) if version < GiopVersion::V1_2 => LocateStatus::ObjectHere,
        Some(Err(_)) => LocateStatus::LocSystemException,
        // A request would get the same answer. Only GIOP 1.2 can address an object without its key.
        None => LocateStatus::LocNeedsAddressingMode,
    };
    let mut out = Encoder::reusing(scratch::take(), origin.wire(version));
    let body = begin_locate_reply(&mut out, request.request_id, status);
    let written = match &located {
        Some(Ok(Located::Forward(ior) | Located::ForwardPermanently(ior))) => ior.encode(&mut out),
        Some(Err(exception)) if status == LocateStatus::LocSystemException => exception.encode(&mut out),
        Some(_) => Ok(()),
        None => {
            AddressingDisposition::Key.encode(&mut out);
            Ok(())
        }
    };
    match written.and_then(|()| body.end(&mut out)) {
        Ok(()) => drop(origin.send(&out, AnswerKind::Refusal)),
        Err(error) => tracing::error!(%error, "a LocateReply could not be marshaled"),
    }
    scratch::give(out);
}
