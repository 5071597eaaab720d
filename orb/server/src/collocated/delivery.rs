//! The messages of collocated calls, and their exceptions.

use std::cell::Cell;

use spandrel_cdr::{Decoder, Encoder, Wire};
use spandrel_giop::{CompletionStatus, GiopError, Message, SystemException, ids, minor};
use spandrel_message::ReceiveBuffer;
use spandrel_orb::{Orb, internal::CallFailure};
use spandrel_sync::thread_local;

/// The initial size of a thread's buffer, in octets.
const BUFFER_OCTETS: usize = 16 * 1024;

thread_local! {
    /// The buffer of this thread's collocated requests and replies.
    static BUFFER: Cell<Option<ReceiveBuffer>> = const { Cell::new(None) };
}

/// Copies a message to an aligned buffer, as if it had been received.
///
/// # Errors
/// COMM_FAILURE for a malformed message.
pub(crate) fn deliver(message: &Encoder<'_>) -> Result<Message, CallFailure> {
    let len = message.position();
    let mut buffer = BUFFER.with(Cell::take).unwrap_or_else(|| ReceiveBuffer::new(BUFFER_OCTETS));
    let _ = buffer.reserve_message(len); // without an account, nothing is refused
    let mut room = buffer.spare(len);
    for part in &message.parts() {
        let (here, rest) = room.split_at_mut(part.len());
        here.copy_from_slice(part);
        room = rest;
    }
    buffer.commit(len);
    let block = buffer.take(len);
    BUFFER.with(|kept| kept.set(Some(buffer)));
    Message::whole(block).map_err(|error| CallFailure::new(malformed(&error)))
}

/// COMM_FAILURE for a collocated message that cannot be decoded.
pub(super) fn malformed(error: &GiopError) -> SystemException {
    SystemException::comm_failure(ids::COMM_FAILURE_PROTOCOL, CompletionStatus::Maybe)
        .with_detail(|| format!("a message to this ORB itself: {error}"))
}

/// A decoder of such a message.
pub(super) fn read<'m>(orb: &'m Orb, wire: Wire, message: &'m Message) -> Decoder<'m> {
    message.decoder(wire.limits).with_binder(orb).with_code_sets(wire.char_set, wire.wchar_set)
}

/// TIMEOUT for a reply that came too late or has not come.
pub(super) fn too_late() -> SystemException {
    SystemException::timeout(minor::ROUND_TRIP_EXPIRED, CompletionStatus::Maybe)
        .with_detail("a servant of this ORB did not reply before the deadline of the call (-ORBRequestTimeout, or the timeout policy)")
}

/// COMM_FAILURE for a call that the end of the ORB does not wait for.
pub(super) fn cut_off() -> SystemException {
    SystemException::comm_failure(0, CompletionStatus::Maybe)
        .with_detail("this ORB was shut down before its servant had replied")
}

/// INTERNAL for a call whose servant has given no answer.
pub(super) fn unanswered() -> SystemException {
    SystemException::internal(0, CompletionStatus::Maybe)
        .with_detail("the reply of a servant of this ORB could not be marshaled")
}
