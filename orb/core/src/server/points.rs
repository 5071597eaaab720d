//! Upcalls among server interceptors (CORBA 3.3 Part 1, 16.3.10): what is done besides when there are any.

use spandrel_cdr::{CdrError, Decode, Decoder, Encode, Encoder};
use spandrel_giop::{ReplyStatus, ServiceContext, SystemException, begin_reply};

use super::{
    answering::send,
    asked::{Asked, Flow},
};
use crate::{
    ObjectRef, Orb, Servant, Target,
    interception::{self, Ending, Interruption, LentSlots, RaisedException, Seen, ServerFlow, Source},
};

/// What is done instead of serving a request: it is forwarded, or ends in an exception.
pub(super) type Instead = Result<ObjectRef, SystemException>;

/// True if a request to this ORB is seen by interceptors.
#[inline]
pub(super) fn are_there(orb: &Orb) -> bool {
    orb.interception().has_server_points()
}

/// The starting points of a request, and what is done instead of serving it, if something is.
#[cold]
pub(super) fn begin(asked: &Asked<'_>) -> Option<(Flow, Option<Instead>)> {
    let flow = ServerFlow::new(asked.origin.orb());
    let outcome = flow.receive_request_service_contexts(&seen(asked));
    Some((flow, outcome.err().map(instead)))
}

fn instead(interruption: Interruption) -> Instead {
    match interruption {
        Interruption::System(exception) => Err(exception),
        Interruption::ForwardRequest(target) => Ok(target),
    }
}

/// The servant has been found: the intermediate points. What is done instead of calling it, if something is.
#[cold]
pub(super) fn receive_request(
    flow: &Flow,
    asked: &Asked<'_>,
    servant: &dyn Servant,
    target: &dyn Target,
) -> Option<Instead> {
    flow.receive_request(&Seen { header: asked.header, target: Some(target) }, servant).err().map(instead)
}

/// The time in which this thread has the slots of a request, if there are interceptors.
pub(super) fn lend_slots(flow: Option<&Flow>) -> Option<LentSlots<'_>> {
    flow.map(|flow| flow.lend_slots())
}

/// Answers, past the ending points. They come once it is certain that the answer can be written.
#[cold]
pub(super) fn answer<'a>(
    flow: &Flow,
    asked: &Asked<'_>,
    status: ReplyStatus,
    said: &[ServiceContext],
    encode: &dyn Fn(&mut Encoder<'a>) -> Result<(), CdrError>,
) -> Result<(), CdrError> {
    let mut out = Encoder::new(asked.origin.wire(asked.version));
    let body = begin_reply(&mut out, asked.header.request_id, status, said);
    let start = out.position();
    encode(&mut out).and_then(|()| body.end(&mut out))?;
    let ending = ending(asked, status, &out, start);
    let (ended, contexts) = flow.end(&seen(asked), ending);
    if !asked.header.response.is_expected() {
        return Ok(());
    }
    match ended {
        Ok(()) if !contexts.is_empty() => write(asked, status, &[said, &contexts].concat(), encode),
        Err(Ending::Other(_, Some(target))) => {
            write(asked, ReplyStatus::LocationForward, &contexts, &|out| target.ior().encode(out))
        }
        Err(Ending::Exception(exception)) => {
            let exception = exception.into_system();
            write(asked, ReplyStatus::SystemException, &contexts, &|out| exception.encode(out))
        }
        // As it was; interceptors make no other endings.
        Ok(()) | Err(Ending::Reply | Ending::Other(_, None)) => {
            send(asked, &out);
            Ok(())
        }
    }
}

fn write<'a>(
    asked: &Asked<'_>,
    status: ReplyStatus,
    contexts: &[ServiceContext],
    encode: &dyn Fn(&mut Encoder<'a>) -> Result<(), CdrError>,
) -> Result<(), CdrError> {
    let mut out = Encoder::new(asked.origin.wire(asked.version));
    let body = begin_reply(&mut out, asked.header.request_id, status, contexts);
    encode(&mut out).and_then(|()| body.end(&mut out))?;
    send(asked, &out);
    Ok(())
}

/// Nobody will be answered: the ending points are told why.
pub(super) fn give_up(flow: Option<&Flow>, asked: &Asked<'_>, exception: &SystemException) {
    if let Some(flow) = flow {
        let _ = flow.end(&seen(asked), Ending::system(exception.clone()));
    }
}

fn seen<'r>(asked: &Asked<'r>) -> Seen<'r> {
    Seen { header: asked.header, target: asked.target }
}

/// What an answer that was written says: its body begins at `start`.
fn ending(asked: &Asked<'_>, status: ReplyStatus, answer: &Encoder<'_>, start: usize) -> Ending {
    let (orb, wire) = (asked.origin.orb(), answer.wire());
    let unreadable = |error: CdrError| Ending::system(error.into());
    match status {
        ReplyStatus::NoException => Ending::Reply,
        ReplyStatus::UserException => {
            let source = Source::Sent(answer.to_vec());
            Ending::Exception(RaisedException::user_exception(source, start, wire, orb))
        }
        ReplyStatus::SystemException => {
            let octets = answer.to_vec();
            let mut input = Decoder::new(&octets, wire).at(start);
            let read = input.str().and_then(|id| SystemException::decode(&id, &mut input));
            read.map_or_else(unreadable, Ending::system)
        }
        // The request comes again, addressed otherwise.
        ReplyStatus::NeedsAddressingMode => Ending::Other(interception::ReplyStatus::Unknown, None),
        ReplyStatus::LocationForward | ReplyStatus::LocationForwardPerm => {
            let octets = answer.to_vec();
            let read = Decode::decode(&mut Decoder::new(&octets, wire).at(start));
            read.map_or_else(unreadable, |ior| Ending::forward(orb.reference(ior)))
        }
    }
}
