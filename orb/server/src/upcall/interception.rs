//! The interception points of upcalls (CORBA 3.3 Part 1, 16.3.10), for ORBs with server interceptors.
//!
//! This module calls the points and converts their outcomes to replies. [`dispatch`](super::dispatch) has
//! their order.

use spandrel_cdr::{CdrError, Decode, Decoder, Encode, Encoder};
use spandrel_giop::{ReplyStatus, ServiceContext, SystemException, begin_reply};
use spandrel_orb::{
    ObjectRef, Orb, SupportedInterfaces, Target,
    interception::{self, Interruption, RaisedException},
    internal::{
        self, ExceptionOctets, LentSlots, RequestOutcome, RequestView, ServerFlow, WeakOrb,
        cancellation::CancellationSource,
    },
};

use crate::request_of_thread::ServedScope;

use super::{
    RequestOrigin,
    marshaled_reply::{MarshaledBody, MarshaledReply},
    received_request::{RequestFlow, RequestState},
};

/// The outcome that an interceptor gives a request instead of serving it: a forward or an exception.
pub(crate) type PointDecision = Result<ObjectRef, SystemException>;

/// Whether the ORB has interceptors with server points.
#[inline]
pub(crate) fn are_there(orb: &Orb) -> bool {
    orb.interception().has_server_points()
}

/// Calls the starting points of a request. Returns its record, and the outcome that replaces the upcall, if
/// there is one.
#[cold]
pub(crate) fn begin(state: &RequestState<'_>) -> (RequestFlow, Option<PointDecision>) {
    let flow = ServerFlow::new(state.request.origin.orb());
    let outcome = flow.receive_request_service_contexts(&seen(state));
    (flow, outcome.err().map(instead))
}

/// Calls the points of a LocateRequest.
///
/// # Errors
/// The exception of an interceptor.
#[cold]
pub(crate) fn receive_locate_request(origin: &dyn RequestOrigin, key: &[u8]) -> Result<(), SystemException> {
    let peer = origin.peer_address();
    // As in the upcall of a request, interceptors can ask for the peer and its stream.
    let _served = peer.map(|peer| {
        let cancellation = CancellationSource::of_peer(peer, origin.transport(), WeakOrb::of(origin.orb()), None);
        ServedScope::enter(&cancellation)
    });
    internal::receive_locate_request(origin.orb(), key, peer.map(|address| &**address))
}

fn instead(interruption: Interruption) -> PointDecision {
    match interruption {
        Interruption::System(exception) => Err(exception),
        Interruption::ForwardRequest(target) => Ok(target),
    }
}

/// Calls the intermediate points of a request whose servant was found. Returns the outcome that replaces the
/// upcall, if there is one.
#[cold]
pub(crate) fn receive_request(
    flow: &RequestFlow,
    state: &RequestState<'_>,
    interfaces: &dyn SupportedInterfaces,
    target: &dyn Target,
) -> Option<PointDecision> {
    let view = RequestView { target: Some(target), ..seen(state) };
    flow.receive_request(&view, interfaces).err().map(instead)
}

/// The time in which this thread has the slots of a request, if there are interceptors.
pub(crate) fn lend_slots(flow: Option<&RequestFlow>) -> Option<LentSlots<'_>> {
    flow.map(|flow| flow.lend_slots())
}

/// Calls the ending points of a request, and sends its reply or the outcome that they give it.
#[cold]
pub(crate) fn answer(flow: &RequestFlow, state: &RequestState<'_>, reply: &MarshaledReply) -> Result<(), CdrError> {
    let (ended, contexts) = flow.end(&seen(state), ending(state, reply));
    if !state.response.is_expected() {
        return Ok(());
    }
    match ended {
        Err(RequestOutcome::Other(_, Some(target))) => {
            write(state, ReplyStatus::LocationForward, &contexts, &|out| target.ior().encode(out))
        }
        Err(RequestOutcome::Exception(exception)) => {
            let exception = exception.into_system();
            write(state, ReplyStatus::SystemException, &contexts, &|out| exception.encode(out))
        }
        // The reply of the servant, unchanged. Interceptors produce no other outcomes.
        Ok(()) | Err(RequestOutcome::Reply | RequestOutcome::Other(_, None)) => state.send_marshaled(reply, &contexts),
    }
}

fn write<'a>(
    state: &RequestState<'_>,
    status: ReplyStatus,
    contexts: &[ServiceContext],
    encode: &dyn Fn(&mut Encoder<'a>) -> Result<(), CdrError>,
) -> Result<(), CdrError> {
    let mut out = Encoder::new(state.request.origin.wire(state.request.version()));
    let body = begin_reply(&mut out, state.request.header.request_id, status, contexts);
    encode(&mut out).and_then(|()| body.end(&mut out))?;
    state.request.send(&out);
    Ok(())
}

/// Calls the ending points of a request that gets no reply.
pub(crate) fn give_up(state: &RequestState<'_>, exception: &SystemException) {
    if let Some(flow) = state.flow {
        let _ = flow.end(&seen(state), RequestOutcome::system(exception.clone()));
    }
}

fn seen<'r>(state: &RequestState<'r>) -> RequestView<'r> {
    RequestView {
        header: state.request.header,
        response: state.response,
        target: state.target,
        peer: state.request.origin.peer_address().map(|address| &**address),
    }
}

/// The outcome of a request by its reply.
fn ending(state: &RequestState<'_>, reply: &MarshaledReply) -> RequestOutcome {
    let (orb, wire) = (state.request.origin.orb(), state.request.origin.wire(state.request.version()));
    let unreadable = |error: CdrError| RequestOutcome::system(error.into());
    let MarshaledBody { octets, start, .. } = &reply.body;
    let body = || Decoder::new(octets, wire).at(*start);
    match reply.status {
        ReplyStatus::NoException => RequestOutcome::Reply,
        ReplyStatus::UserException => {
            let source = ExceptionOctets::Sent(octets.clone());
            RequestOutcome::Exception(RaisedException::user_exception(source, *start, wire, orb))
        }
        ReplyStatus::SystemException => {
            let mut input = body();
            let read = input.str().and_then(|id| SystemException::decode(&id, &mut input));
            read.map_or_else(unreadable, RequestOutcome::system)
        }
        // The client sends the request again, with another address.
        ReplyStatus::NeedsAddressingMode => RequestOutcome::Other(interception::ReplyStatus::Unknown, None),
        ReplyStatus::LocationForward | ReplyStatus::LocationForwardPerm => {
            let read = Decode::decode(&mut body());
            read.map_or_else(unreadable, |ior| RequestOutcome::forward(orb.reference(ior)))
        }
    }
}
