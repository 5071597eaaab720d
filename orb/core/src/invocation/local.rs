//! Attempts without a connection: on objects of this ORB, and by datagram.

use spandrel_cdr::{Encoder, Wire};
use spandrel_giop::{Message, ResponseFlags};
use spandrel_transport::Deadline;

use super::Invocation;
use crate::{
    client::{CallFailure, Reply},
    collocated,
    destination::Destination,
    object::CallKind,
    scratch,
    statistics::Event,
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
                server_side.note_one_way(orb);
            } else if server_side.settle(orb) {
                return Some(server_side.call(orb, destination, call_kind, self.deadline).map(Some));
            }
        }
        let CallKind::Request { response: ResponseFlags::NONE, .. } = call_kind else { return None };
        match destination.datagrams()?.send(destination, call_kind, self.deadline) {
            Ok(false) => None,
            Ok(true) => {
                orb.statistics().note(Event::DatagramSent);
                Some(Ok(None))
            }
            Err(failure) => Some(Err(failure)),
        }
    }
}

/// Makes a request to an object of this ORB, which `run` runs in this thread. Only the server side names this
/// function, so that a program without one does not contain it.
///
/// # Errors
/// For arguments that cannot be marshaled, and those of `run`.
pub fn call_collocated(
    destination: &Destination,
    call_kind: &CallKind<'_, '_>,
    run: impl FnOnce(&Message, Wire) -> Result<Reply, CallFailure>,
) -> Result<Reply, CallFailure> {
    let wire = destination.template.wire();
    let mut out = Encoder::reusing(scratch::take(), wire);
    let request_id = collocated::request_id();
    // No contexts: both sides use the same code sets.
    let written = call_kind.write(&mut out, destination, request_id, &[], None);
    if let CallKind::Request { observer: Some(call), .. } = call_kind {
        call.sent(None, &destination.object_key, request_id, out.position());
    }
    let message = written.and_then(|()| collocated::deliver(&out));
    // The servant may need the buffer.
    scratch::give(out.into_scratch());
    let mut reply = run(&message?, wire)?;
    reply.wire = wire;
    Ok(reply)
}

/// Writes a request without a response for a datagram, and hands it to `send`. Only senders of datagrams name
/// this function.
pub(crate) fn send_datagram(
    destination: &Destination,
    call_kind: &CallKind<'_, '_>,
    deadline: Option<&Deadline>,
    send: impl FnOnce(&Encoder<'_>) -> bool,
) -> Result<bool, CallFailure> {
    let mut out = Encoder::reusing(scratch::take(), destination.template.wire());
    // Each has the contexts: any may be the first that arrives.
    let written = call_kind.write(&mut out, destination, 0, destination.code_sets(), deadline);
    let sent = written.map(|()| send(&out));
    scratch::give(out.into_scratch());
    sent
}
