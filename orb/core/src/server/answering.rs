//! Writing answers, past the interceptors if there are any.

use spandrel_cdr::{CdrError, Encoder};
use spandrel_giop::{
    CompletionStatus, ReplyStatus, ResponseFlags, ServiceContext, SystemException, SystemExceptionKind, begin_reply,
    exception_detail,
};
use spandrel_sync::atomic::Ordering;

use super::{asked::Asked, origin::AnswerKind, points};
use crate::scratch;

/// Writes one reply, if one is expected. A peer that is gone is noticed by whoever reads next.
#[inline]
pub(super) fn answer<'a>(
    asked: &Asked<'_>,
    status: ReplyStatus,
    encode: &dyn Fn(&mut Encoder<'a>) -> Result<(), CdrError>,
) -> Result<(), CdrError> {
    answer_with(asked, status, &[], encode)
}

/// The same, with these contexts.
#[inline]
fn answer_with<'a>(
    asked: &Asked<'_>,
    status: ReplyStatus,
    contexts: &[ServiceContext],
    encode: &dyn Fn(&mut Encoder<'a>) -> Result<(), CdrError>,
) -> Result<(), CdrError> {
    let written = match asked.flow {
        Some(flow) => points::answer(flow, asked, status, contexts, encode),
        None => write(asked, status, contexts, encode),
    };
    if let (Some(watched), Ok(())) = (asked.watched, &written) {
        watched.answered(status);
    }
    written
}

#[inline]
fn write<'a>(
    asked: &Asked<'_>,
    status: ReplyStatus,
    contexts: &[ServiceContext],
    encode: &dyn Fn(&mut Encoder<'a>) -> Result<(), CdrError>,
) -> Result<(), CdrError> {
    if !asked.header.response.is_expected() {
        return Ok(());
    }
    let mut out = Encoder::reusing(scratch::take(), asked.origin.wire(asked.version));
    let body = begin_reply(&mut out, asked.header.request_id, status, contexts);
    let written = encode(&mut out).and_then(|()| body.end(&mut out));
    if written.is_ok() {
        send(asked, &out);
    }
    scratch::give(out.into_scratch());
    written
}

/// Sends an answer, or the reason for which it cannot be kept until the client takes it.
#[inline]
pub(super) fn send(asked: &Asked<'_>, answer: &Encoder<'_>) {
    asked.is_answered.store(true, Ordering::Relaxed);
    if let Some(place) = asked.place {
        asked.origin.uncharge_deferred(place.key);
    }
    let request_octets = asked.message.header.total_len();
    if let Err(exception) = asked.origin.send(answer, AnswerKind::Reply { request_octets }) {
        refuse_to_keep(asked, &exception);
    }
}

#[cold]
fn refuse_to_keep(asked: &Asked<'_>, exception: &SystemException) {
    let mut out = Encoder::new(asked.origin.wire(asked.version));
    let says_more = asked.origin.orb().settings().serving.sends_exception_details;
    let detail = if says_more { exception_detail(exception) } else { None };
    let body = begin_reply(&mut out, asked.header.request_id, ReplyStatus::SystemException, detail.as_slice());
    let sent = exception.encode(&mut out).and_then(|()| body.end(&mut out));
    if let Err(error) = sent.map(|()| asked.origin.send(&out, AnswerKind::Refusal)) {
        tracing::error!(%error, %exception, "an exception could not be marshaled");
    }
}

/// Writes a SYSTEM_EXCEPTION reply.
pub(super) fn answer_exception(asked: &Asked<'_>, exception: &SystemException) {
    let is_answered = asked.is_answered.load(Ordering::Relaxed);
    if let Some(watched) = asked.watched {
        watched.raised(exception);
    }
    if is_answered && asked.header.response == ResponseFlags::WITH_SERVER {
        tracing::debug!(%exception, "a one-way failed after the server had answered");
        points::give_up(asked.flow, asked, exception);
        return;
    }
    if is_answered {
        tracing::error!(%exception, "a servant failed after it had answered");
        return;
    }
    let says_more = asked.origin.orb().settings().serving.sends_exception_details;
    let detail = if says_more { exception_detail(exception) } else { None };
    let sent = answer_with(asked, ReplyStatus::SystemException, detail.as_slice(), &|out| exception.encode(out));
    if let Err(error) = sent {
        tracing::error!(%error, %exception, "an exception could not be marshaled");
    }
}

/// The exception for a servant that panicked.
pub(crate) fn panicked(operation: &str, panic: &(dyn std::any::Any + Send)) -> SystemException {
    let said = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    SystemException::new(SystemExceptionKind::Unknown, 0, CompletionStatus::Maybe)
        .with_detail(|| format!("the servant panicked in `{operation}`: {said}"))
}
