//! From a request that was read to its servant: whether it is in time, who is told of it, and where its object is.
//!
//! What the servant is given, and how it answers, is [`ServerCall`]. Questions for an object's place are answered here as well, since
//! they are asked of the same adapter.

use std::panic::{AssertUnwindSafe, catch_unwind};

use spandrel_cdr::{Decoder, Encode, Encoder, GiopVersion};
use spandrel_giop::{
    AddressingDisposition, CompletionStatus, LocateRequestHeader, LocateStatus, SystemException, SystemExceptionKind,
    begin_locate_reply, minor,
};
#[cfg(feature = "policies")]
use spandrel_sync::time::Instant;

#[cfg(feature = "policies")]
use super::held;
use super::{
    answering::{answer_exception, panicked},
    asked::{Asked, Noted},
    call::{ServerCall, go_elsewhere},
    origin::{AnswerKind, Origin},
    points,
};
#[cfg(feature = "diagnostics")]
use crate::diagnostics::WatchedRequest;
use crate::{Located, deadlines::Inherited, scratch, upcalls::UpcallScope};

/// Runs the servant, and answers if it does not. No lock is held here.
pub(super) fn run(asked: &Asked<'_>, arguments: &mut Decoder<'_>) {
    let orb = asked.origin.orb();
    #[cfg(feature = "diagnostics")]
    if asked.watched.is_none() && orb.diagnostics().is_request_watched(asked.header) {
        return run_watched(asked, arguments);
    }
    let _scope = UpcallScope::enter();
    let _deadline = match asked.noted {
        None => None,
        Some(noted) => match begin_in_time(noted) {
            Ok(Begun::Now(inherited)) => inherited,
            #[cfg(feature = "policies")]
            Ok(Begun::Held(start)) => return held::hold(asked, &noted.said, arguments, start),
            Err(late) => return refuse_late(asked, &late),
        },
    };
    let (flow, seen, _slots);
    let asked = if points::are_there(orb) {
        let Some((begun, instead)) = points::begin(asked) else { return };
        flow = begun;
        seen = Asked { flow: Some(&flow), ..*asked };
        if let Some(instead) = instead {
            return go_elsewhere(&seen, instead).map_or_else(|exception| answer_exception(&seen, &exception), drop);
        }
        _slots = points::lend_slots(Some(&flow));
        &seen
    } else {
        asked
    };
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let Some(key) = asked.header.target.object_key() else {
            return ServerCall::new(asked, arguments.hand_over()).ask_for_key();
        };
        if let Some(target) = orb.aliases().target(&key) {
            return ServerCall::new(asked, arguments.hand_over()).forward_to(&target);
        }
        let adapter = orb.adapter().ok_or_else(no_adapter)?;
        if let Some(Noted { said: Err(wrong), .. }) = asked.noted {
            return Err(wrong.clone());
        }
        adapter.dispatch(&key, &asked.header.operation, ServerCall::new(asked, arguments.hand_over()))
    }));
    match outcome {
        Ok(Ok(_replied)) => {}
        Ok(Err(exception)) => answer_exception(asked, &exception),
        Err(panic) => {
            let exception = panicked(&asked.header.operation, &*panic);
            orb.statistics().servant_panicked();
            log_limited!(error, orb, "servant panicked", peer = %asked.origin.name(), %exception, "a servant panicked");
            answer_exception(asked, &exception);
        }
    }
}

/// As `run`, seen by those who watch.
#[cfg(feature = "diagnostics")]
#[cold]
fn run_watched(asked: &Asked<'_>, arguments: &mut Decoder<'_>) {
    let (origin, octets) = (asked.origin, asked.message.header.total_len());
    let diagnostics = origin.orb().diagnostics();
    let watched = WatchedRequest::begin(diagnostics, origin.name(), origin.metrics(), asked.header, octets);
    watched.in_scope(|| run(&Asked { watched: Some(&watched), ..*asked }, arguments));
}

/// Whether a request with a deadline begins.
enum Begun {
    /// Calls that are made meanwhile have as much time as it.
    Now(Option<Inherited>),
    /// It must not be run before that.
    #[cfg(feature = "policies")]
    Held(Instant),
}

#[cold]
fn begin_in_time(noted: &Noted) -> Result<Begun, SystemException> {
    let Some(due) = noted.due else { return Ok(Begun::Now(None)) };
    due.check()?;
    #[cfg(feature = "policies")]
    if let Some(start) = due.start.filter(|start| *start > Instant::now()) {
        return Ok(Begun::Held(start));
    }
    Ok(Begun::Now(due.answer.map(Inherited::enter)))
}

/// Its turn has come too late.
#[cold]
fn refuse_late(asked: &Asked<'_>, late: &SystemException) {
    asked.origin.orb().statistics().refused_expired();
    answer_exception(asked, late);
}

/// Answers a LocateRequest.
pub(super) fn say_where(origin: &dyn Origin, request: &LocateRequestHeader<'_>, version: GiopVersion) {
    let (orb, key) = (origin.orb(), request.target.object_key());
    let located = key.as_deref().map(|key| {
        let alias = orb.aliases().target(key).map(|ior| Ok(Located::Forward(ior)));
        alias.or_else(|| Some(orb.adapter()?.locate(key))).unwrap_or(Ok(Located::Unknown))
    });
    let status = match &located {
        Some(Ok(Located::Here)) => LocateStatus::ObjectHere,
        Some(Ok(Located::Unknown)) => LocateStatus::UnknownObject,
        Some(Ok(Located::ForwardPermanently(_))) if version >= GiopVersion::V1_2 => LocateStatus::ObjectForwardPerm,
        Some(Ok(Located::Forward(_) | Located::ForwardPermanently(_))) => LocateStatus::ObjectForward,
        Some(Err(exception)) if exception.kind() == SystemExceptionKind::ObjectNotExist => LocateStatus::UnknownObject,
        // Before GIOP 1.2 that cannot be said (9.4.6.1): the request will be told.
        Some(Err(_)) if version < GiopVersion::V1_2 => LocateStatus::ObjectHere,
        Some(Err(_)) => LocateStatus::LocSystemException,
        // As a request would be told; only GIOP 1.2 can name an object without its key.
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
    scratch::give(out.into_scratch());
}

fn no_adapter() -> SystemException {
    SystemException::object_not_exist(minor::NO_SUCH_ADAPTER, CompletionStatus::No)
        .with_detail("no object adapter is installed")
}
