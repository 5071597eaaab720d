//! Attempts without a connection: on objects of this ORB, and by datagram.

use spandrel_cdr::Encoder;
use spandrel_giop::ResponseFlags;
use spandrel_transport::Deadline;

use super::Invocation;
use crate::{
    call::scratch,
    client::{CallFailure, Reply, call_kind::CallKind, datagrams::DatagramSender, destination::Destination},
    diagnostics::statistics::Event,
};

impl Invocation<'_> {
    /// An attempt without a connection; `None` if the request needs one.
    ///
    /// This thread runs a two-way to an object of this ORB. One-ways use a connection, since another thread has
    /// to run them. So does the first two-way after them, which must not overtake them.
    #[inline]
    pub(super) fn attempt_without_connection(
        &self,
        destination: &Destination,
        call_kind: &CallKind<'_, '_>,
    ) -> Option<Result<Option<Reply>, CallFailure>> {
        let orb = self.object.orb();
        if destination.is_collocated
            && let Some(server_side) = orb.server_side()
        {
            let waits = match call_kind {
                CallKind::Request { response, .. } => *response == ResponseFlags::TWO_WAY,
                CallKind::Locate => true,
            };
            if !waits {
                server_side.record_one_way(orb);
            } else if server_side.settle(orb) {
                let mut reply = server_side.call(orb, destination, call_kind, self.deadline);
                if let Ok(reply) = &mut reply {
                    reply.wire = destination.wire();
                }
                return Some(reply.map(Some));
            }
        }
        let CallKind::Request { response: ResponseFlags::NONE, .. } = call_kind else { return None };
        match destination.send_datagram(call_kind, self.deadline)? {
            Ok(false) => None,
            Ok(true) => {
                orb.statistics().note(Event::DatagramSent);
                Some(Ok(None))
            }
            Err(failure) => Some(Err(failure)),
        }
    }
}

/// Encodes a request to an object of this ORB, and hands it to `deliver`. Only the server side names this
/// function, so that a program without one does not contain it.
///
/// # Errors
/// For arguments that cannot be marshaled, and those of `deliver`.
pub fn encode_collocated<M>(
    destination: &Destination,
    call_kind: &CallKind<'_, '_>,
    request_id: u32,
    deliver: impl FnOnce(&Encoder<'_>) -> Result<M, CallFailure>,
) -> Result<M, CallFailure> {
    let mut out = Encoder::reusing(scratch::take(), destination.wire());
    // No contexts: both sides use the same code sets.
    let written = call_kind.write(&mut out, destination, request_id, &[], None);
    if let CallKind::Request { observer: Some(call), .. } = call_kind {
        call.sent(None, &destination.object_key, request_id, out.position());
    }
    let delivered = written.and_then(|()| deliver(&out));
    // The servant may need the buffer.
    scratch::give(out);
    delivered
}

/// Sends a request without a response by datagram; returns false if it must be sent over a connection. An ORB
/// has this function if datagrams are enabled; other programs do not contain it.
pub(crate) fn send_datagram(
    destination: &Destination,
    call_kind: &CallKind<'_, '_>,
    deadline: Option<&Deadline>,
    sender: &dyn DatagramSender,
) -> Result<bool, CallFailure> {
    let mut out = Encoder::reusing(scratch::take(), destination.wire());
    // Each has the contexts: any may be the first that arrives.
    let written = call_kind.write(&mut out, destination, 0, destination.code_sets(), deadline);
    let sent = written.map(|()| sender.send(&out));
    scratch::give(out);
    sent
}
