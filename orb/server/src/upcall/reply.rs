//! The replies of requests: marshaled, passed through the ending interception points if there are any, and
//! sent. [`dispatch`](super::dispatch) has the order of these steps and of the end of the servant's use.
//!
//! The origin of a request takes the marshaled reply. This module knows no connection.

use spandrel_cdr::{CdrError, Encoder};
use spandrel_giop::{CompletionStatus, ReplyStatus, ResponseFlags, ServiceContext, SystemException, begin_reply, ids};
use spandrel_orb::internal::scratch;

use super::{interception, marshaled_reply::MarshaledReply, received_request::RequestState};

/// Writes the reply of a request, if the client expects one. A peer that is gone is no error; the reader of
/// its connection notices that.
#[inline]
pub(crate) fn answer<'a>(
    state: &RequestState<'_>,
    status: ReplyStatus,
    encode: &dyn Fn(&mut Encoder<'a>) -> Result<(), CdrError>,
) -> Result<(), CdrError> {
    answer_with(state, status, &[], encode)
}

/// Writes the reply of a request as [`answer`] does, with these contexts.
#[inline]
fn answer_with<'a>(
    state: &RequestState<'_>,
    status: ReplyStatus,
    contexts: &[ServiceContext],
    encode: &dyn Fn(&mut Encoder<'a>) -> Result<(), CdrError>,
) -> Result<(), CdrError> {
    if let Some(reply_slot) = state.reply_slot {
        // A one-way needs a reply for its interceptors only.
        if state.response.is_expected() || state.flow.is_some() {
            reply_slot.set(marshaled(state, status, contexts, encode)?);
        }
        return Ok(());
    }
    if state.flow.is_some() {
        return marshaled(state, status, contexts, encode).and_then(|reply| answer_marshaled(state, &reply));
    }
    let written = write(state, status, contexts, encode);
    if let (Some(observed), Ok(())) = (state.observed, &written) {
        observed.record_reply(status);
    }
    written
}

/// Marshals the reply of a request.
#[cold]
fn marshaled<'a>(
    state: &RequestState<'_>,
    status: ReplyStatus,
    contexts: &[ServiceContext],
    encode: &dyn Fn(&mut Encoder<'a>) -> Result<(), CdrError>,
) -> Result<MarshaledReply, CdrError> {
    let wire = state.request.origin.wire(state.request.version());
    let request_id = state.request.header.request_id;
    MarshaledReply::new(wire, request_id, state.response, status, contexts, state.flow.is_some(), encode)
}

/// Sends a marshaled reply, after the ending interception points if there are any.
#[cold]
pub(crate) fn answer_marshaled(state: &RequestState<'_>, reply: &MarshaledReply) -> Result<(), CdrError> {
    let written = match state.flow {
        Some(flow) => interception::answer(flow, state, reply),
        None => state.send_marshaled(reply, &[]),
    };
    if let (Some(observed), Ok(())) = (state.observed, &written) {
        observed.record_reply(reply.status);
    }
    written
}

#[inline]
fn write<'a>(
    state: &RequestState<'_>,
    status: ReplyStatus,
    contexts: &[ServiceContext],
    encode: &dyn Fn(&mut Encoder<'a>) -> Result<(), CdrError>,
) -> Result<(), CdrError> {
    if !state.response.is_expected() {
        return Ok(());
    }
    let mut out = Encoder::reusing(scratch::take(), state.request.origin.wire(state.request.version()));
    let body = begin_reply(&mut out, state.request.header.request_id, status, contexts);
    let written = encode(&mut out).and_then(|()| body.end(&mut out));
    if written.is_ok() {
        state.request.send(&out);
    }
    scratch::give(out);
    written
}

/// Writes a SYSTEM_EXCEPTION reply, unless the request was answered or deferred.
pub(crate) fn answer_exception(state: &RequestState<'_>, exception: &SystemException) {
    let is_answered = state.request.is_answered();
    if let Some(observed) = state.observed {
        observed.record_exception(exception);
    }
    if is_answered && state.response == ResponseFlags::WITH_SERVER {
        tracing::debug!(%exception, "a one-way failed after the server had answered");
        interception::give_up(state, exception);
        return;
    }
    if is_answered {
        let services = state.request.origin.services();
        log_limited!(error, services, "failed after its answer", %exception, "a servant failed after it had answered");
        return;
    }
    let services = state.request.origin.services();
    if exception.withholds_reason() && !services.settings().sends_exception_details {
        let (peer, operation) = (state.request.origin.name(), &state.request.header.operation);
        log_limited!(info, services, "withheld detail", %peer, %operation, %exception, "an exception is sent without its reason");
    }
    let detail = services.settings().sent_detail(exception);
    let sent = answer_with(state, ReplyStatus::SystemException, detail.as_slice(), &|out| exception.encode(out));
    if let Err(error) = sent {
        log_limited!(error, services, "exception", %error, %exception, "an exception could not be marshaled");
    }
}

/// The exception for a servant that panicked.
pub(crate) fn panicked(operation: &str, panic: &(dyn std::any::Any + Send)) -> SystemException {
    let message = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    SystemException::unknown(ids::UNKNOWN_PANIC, CompletionStatus::Maybe)
        .with_public_detail(|| format!("the servant panicked in `{operation}`"))
        .with_detail(|| format!("the servant panicked in `{operation}`: {message}"))
}
