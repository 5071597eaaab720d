//! One request on one connection, or to an object of this ORB: it is encoded, sent, and its reply checked.

use std::borrow::Cow;

use spandrel_cdr::Encoder;
use spandrel_giop::ResponseFlags;
use spandrel_giop::{CompletionStatus, ServiceContext, SystemException, ids};
use spandrel_sync::Arc;
use spandrel_transport::Deadline;

#[cfg(feature = "asynchronous")]
use super::await_reply;
use crate::{
    Orb,
    client::{CallFailure, ClientConnection, Reply, ReplyKind},
    collocated,
    connection_contexts::ConnectionContexts,
    destination::Destination,
    object::CallKind,
    scratch,
    server_side::no_server_side,
};

/// One request on one connection.
pub(super) fn exchange(
    orb: &Orb,
    connection: &Arc<ClientConnection>,
    destination: &Destination,
    call_kind: &CallKind<'_, '_>,
    deadline: Option<&Deadline>,
) -> Result<Option<Reply>, CallFailure> {
    let mut out = Encoder::reusing(scratch::take(), destination.template.wire());
    let request_id = connection.request_id();
    let two_way = |out: &Encoder<'_>| {
        #[cfg(feature = "asynchronous")]
        if await_reply::is_needed(orb) {
            return await_reply::two_way(orb, connection, request_id, out, deadline, destination.peer.bounds());
        }
        #[cfg(not(feature = "asynchronous"))]
        let _ = orb;
        connection.two_way(request_id, out, deadline)
    };
    let connection_contexts =
        (!connection.has_sent_contexts()).then(|| ConnectionContexts::new(orb, connection, destination));
    let sent = connection_contexts.as_ref().map_or(&[][..], |connection_contexts| &connection_contexts.contexts);
    let written = call_kind.write(&mut out, destination, request_id, sent, deadline);
    if let CallKind::Request { observer: Some(call), .. } = call_kind {
        call.sent(Some((connection.metrics(), connection.peer())), &destination.object_key, request_id, out.position());
    }
    let mut sent = written.and_then(|()| match call_kind {
        #[cfg(feature = "asynchronous")]
        CallKind::Request { buffering: Some(buffering), .. } => {
            let (limit, maintenance_thread) = (destination.peer.bounds().octets, destination.peer.maintenance_thread());
            connection.buffer_one_way(&out, buffering, limit, maintenance_thread, deadline).map(|()| None)
        }
        CallKind::Request { response, .. } if !response.is_expected() => {
            connection.one_way(&out, deadline).map(|()| None)
        }
        _ => two_way(&out).map(Some),
    });
    if let Some(connection_contexts) = connection_contexts
        && sent.is_ok()
        && matches!(call_kind, CallKind::Request { .. })
    {
        connection_contexts.mark_sent(connection);
    }
    scratch::give(out.into_scratch());
    match &mut sent {
        Ok(Some(reply)) if reply.kind.answers(call_kind) => reply.wire = destination.template.wire(),
        Ok(Some(_)) => return Err(unexpected_reply_kind(connection)),
        Err(failure) if destination.is_ours => {
            connection.cancel(request_id, destination.template.wire(), failure);
        }
        Ok(None) | Err(_) => {}
    }
    sent
}

/// One request to an object of this ORB, run by this thread.
pub(super) fn exchange_here(
    orb: &Orb,
    destination: &Destination,
    call_kind: &CallKind<'_, '_>,
    deadline: Option<&Deadline>,
) -> Result<Reply, CallFailure> {
    let wire = destination.template.wire();
    let mut out = Encoder::reusing(scratch::take(), wire);
    // No contexts: both sides use the same code sets.
    let request_id = orb.collocated_request_id();
    let written = call_kind.write(&mut out, destination, request_id, &[], None);
    if let CallKind::Request { observer: Some(call), .. } = call_kind {
        call.sent(None, &destination.object_key, request_id, out.position());
    }
    let message = written.and_then(|()| collocated::deliver(&out));
    // The servant may need the buffer.
    scratch::give(out.into_scratch());
    let server_side = orb.server_side().ok_or_else(|| CallFailure::new(no_server_side()))?;
    let mut reply = server_side.call(orb, &message?, wire, deadline)?;
    reply.wire = wire;
    Ok(reply)
}

impl<'a> CallKind<'_, 'a> {
    /// Whether the caller waits until the servant has finished.
    pub(super) fn waits(&self) -> bool {
        match self {
            Self::Request { response, .. } => *response == ResponseFlags::TWO_WAY,
            Self::Locate => true,
        }
    }

    /// Sends a request without a response as a datagram, if enabled; whether it was sent.
    #[inline]
    pub(super) fn send_datagram(
        &self,
        orb: &Orb,
        destination: &Destination,
        deadline: Option<&Deadline>,
    ) -> Result<bool, CallFailure> {
        let Self::Request { response: ResponseFlags::NONE, .. } = self else { return Ok(false) };
        let sent = destination.uses_datagram(|out, sent| self.write(out, destination, 0, sent, deadline))?;
        if sent {
            orb.statistics().note(crate::statistics::Event::DatagramSent);
        }
        Ok(sent)
    }

    /// Encodes the whole message. `sent`: the service contexts of the connection.
    #[inline(always)]
    fn write(
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
                written.map_err(|error| CallFailure::new(destination.not_encodable(error)))
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

/// Joins the service contexts of the connection and of the request; usually there are none of either.
#[inline]
pub(crate) fn joined<'c>(sent: &'c [ServiceContext], added: &'c [ServiceContext]) -> Cow<'c, [ServiceContext]> {
    if added.is_empty() { Cow::Borrowed(sent) } else { Cow::Owned([sent, added].concat()) }
}

/// COMM_FAILURE for a reply of the wrong message type.
pub(crate) fn unexpected_reply_kind(connection: &ClientConnection) -> CallFailure {
    connection.retire();
    let exception = SystemException::comm_failure(ids::COMM_FAILURE_PROTOCOL, CompletionStatus::Maybe);
    CallFailure::new(exception.with_detail("the server answered with the wrong message (Reply or LocateReply)"))
}
