//! Calls on objects of the same ORB: their order, and the message that caller and servant share.
//!
//! A two-way call is marshaled, and run in the calling thread by the [server side](crate::server_side).
//! One-ways and asynchronous calls, which must not wait for the servant, go through a socket. The first
//! two-way call of a thread after them takes the same way, so that it does not overtake them.

use std::{
    cell::{Cell, RefCell},
    sync::atomic::{AtomicU32, Ordering},
};

use spandrel_cdr::Encoder;
use spandrel_giop::{CompletionStatus, GiopError, Message, SystemException, ids};
use spandrel_message::ReceiveBuffer;
use spandrel_sync::thread_local;

pub use crate::invocation::call_collocated;
use crate::{Orb, client::CallFailure};

/// The initial size of a thread's buffer, in octets.
const BUFFER_OCTETS: usize = 16 * 1024;

/// The id of the next collocated request of the process.
static REQUEST_ID: AtomicU32 = AtomicU32::new(0);

thread_local! {
    /// The buffer of this thread's collocated requests and replies.
    static BUFFER: Cell<Option<ReceiveBuffer>> = const { Cell::new(None) };
    /// The ORBs to which this thread has sent one-ways, and no two-way call by the same way since.
    static UNSETTLED: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// Records that this thread sends a one-way to an object of this ORB.
pub fn note_one_way(orb: &Orb) {
    UNSETTLED.with(|unsettled| {
        let (mut unsettled, orb) = (unsettled.borrow_mut(), orb.instance());
        if !unsettled.contains(&orb) {
            unsettled.push(orb);
        }
    });
}

/// Whether a call of this thread may be run at once: it would overtake no one-ways.
#[inline]
pub fn is_settled(orb: &Orb) -> bool {
    UNSETTLED.with(|unsettled| {
        let unsettled = unsettled.borrow();
        unsettled.is_empty() || !unsettled.contains(&orb.instance())
    })
}

/// As [`is_settled`]. If it returns false, the call takes the way of the one-ways, and later calls need not.
#[inline]
pub fn settle(orb: &Orb) -> bool {
    is_settled(orb) || {
        UNSETTLED.with(|unsettled| unsettled.borrow_mut().retain(|other| *other != orb.instance()));
        false
    }
}

/// The id of a collocated request.
pub(crate) fn request_id() -> u32 {
    REQUEST_ID.fetch_add(1, Ordering::Relaxed)
}

/// Copies a message to an aligned buffer, as if it had been received.
///
/// # Errors
/// COMM_FAILURE for a malformed message.
pub fn deliver(message: &Encoder<'_>) -> Result<Message, CallFailure> {
    let len = message.position();
    let mut buffer = BUFFER.with(Cell::take).unwrap_or_else(|| ReceiveBuffer::new(BUFFER_OCTETS));
    buffer.reserve_message(len);
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
pub fn malformed(error: &GiopError) -> SystemException {
    SystemException::comm_failure(ids::COMM_FAILURE_PROTOCOL, CompletionStatus::Maybe)
        .with_detail(|| format!("a message to this ORB itself: {error}"))
}
