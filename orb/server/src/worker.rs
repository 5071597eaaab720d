//! Requests that threads of the pool run side by side, because whoever read them goes on reading: those by datagram, and those over connections
//! that this ORB has opened itself.

use std::panic::{AssertUnwindSafe, catch_unwind};

use spandrel_cdr::Decoder;
use spandrel_giop::{GiopError, TransmissionCodeSets};
use spandrel_orb::{Orb, cancellation::CancellationSource};
use spandrel_sync::Arc;

use super::{frame, incoming_request::IncomingRequest, upcall};
use crate::ServingOrb;

/// Has a request run by this thread, which may stay with its servant. Once shutdown has begun nothing is acted on. `peer` is for messages.
pub(super) fn run(
    orb: &Orb,
    peer: &str,
    request: impl FnOnce() -> Result<(), GiopError>,
    unreadable: impl FnOnce(&GiopError),
) {
    let Ok(_running) = orb.collocated_calls().enter(orb) else { return };
    let _kept = BlockedWorker::begin(orb);
    let ran = catch_unwind(AssertUnwindSafe(request));
    if orb.is_copied() {
        // The original's thread answers.
        std::process::abort();
    }
    match ran {
        Ok(Ok(())) => {}
        Ok(Err(error)) => unreadable(&error),
        Err(_) => tracing::error!(peer, "a request could not be answered: its thread panicked"),
    }
}

/// Runs the servant. `cancellation` tells it that it is cancelled, `code_sets` are those of the arguments.
pub(super) fn serve(
    request: &IncomingRequest<'_>,
    cancellation: &Arc<CancellationSource>,
    code_sets: TransmissionCodeSets,
    arguments: &mut Decoder<'_>,
) {
    frame::note_orb(request.origin.orb());
    let _served = frame::ServedScope::enter(cancellation);
    arguments.set_code_sets(code_sets.char_set, code_sets.wchar_set);
    upcall::run(request, arguments);
}

/// A thread of the pool is with a servant, and may stay there.
struct BlockedWorker<'o>(&'o Orb);

impl<'o> BlockedWorker<'o> {
    fn begin(orb: &'o Orb) -> Self {
        orb.server().pool().note_blocked();
        Self(orb)
    }
}

impl Drop for BlockedWorker<'_> {
    fn drop(&mut self) {
        self.0.server().pool().note_unblocked();
    }
}
