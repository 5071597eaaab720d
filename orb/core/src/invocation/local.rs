//! Attempts without a connection: on objects of this ORB, and by datagram.

use spandrel_cdr::Encoder;
use spandrel_giop::ResponseFlags;

use super::Invocation;
use crate::{
    client::{CallFailure, Reply},
    destination::Destination,
    object::CallKind,
    scratch,
    server::collocated,
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
        let waits = match call_kind {
            CallKind::Request { response, .. } => *response == ResponseFlags::TWO_WAY,
            CallKind::Locate => true,
        };
        if destination.is_collocated {
            if !waits {
                collocated::note_one_way(self.object.orb());
            } else if collocated::settle(self.object.orb()) {
                return Some(self.exchange_here(destination, call_kind).map(Some));
            }
        }
        match self.send_datagram(destination, call_kind) {
            Ok(false) => None,
            sent => Some(sent.map(|_| None)),
        }
    }

    /// Sends the request to an object of this ORB. This thread runs it.
    fn exchange_here(&self, destination: &Destination, call_kind: &CallKind<'_, '_>) -> Result<Reply, CallFailure> {
        let (orb, wire) = (self.object.orb(), destination.template.wire());
        let mut out = Encoder::reusing(scratch::take(), wire);
        // No contexts: both sides use the same code sets.
        let request_id = orb.locals().request_id();
        let written = call_kind.write(&mut out, destination, request_id, &[], None);
        if let CallKind::Request { observer: Some(call), .. } = call_kind {
            call.sent(None, &destination.object_key, request_id, out.position());
        }
        let message = written.and_then(|()| collocated::deliver(&out));
        // The servant may need the buffer.
        scratch::give(out.into_scratch());
        let mut reply = collocated::ask(orb, &message?, wire, self.deadline)?;
        reply.wire = wire;
        Ok(reply)
    }

    /// Sends a request without a response as a datagram, if enabled; whether it was sent.
    #[inline]
    fn send_datagram(&self, destination: &Destination, call_kind: &CallKind<'_, '_>) -> Result<bool, CallFailure> {
        let CallKind::Request { response: ResponseFlags::NONE, .. } = call_kind else { return Ok(false) };
        let sent = destination.uses_datagram(|out, sent| call_kind.write(out, destination, 0, sent, self.deadline))?;
        if sent {
            self.object.orb().statistics().note(Event::DatagramSent);
        }
        Ok(sent)
    }
}
