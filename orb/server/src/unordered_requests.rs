//! Requests that the pool's threads run side by side, while another thread goes on reading.
//!
//! These are requests by datagram, and requests over connections that this ORB has opened. This module
//! decides neither which request is next nor how its reply is sent.

use std::panic::{AssertUnwindSafe, catch_unwind};

use spandrel_cdr::Decoder;
use spandrel_giop::{GiopError, TransmissionCodeSets};
use spandrel_orb::{Orb, internal::cancellation::CancellationSource};
use spandrel_sync::Arc;

use crate::{
    request_of_thread,
    resources::ServingOrb,
    upcall::{
        self,
        received_request::{ReceivedRequest, RequestState},
    },
};

/// Runs `request` in this thread, which counts as blocked meanwhile. Runs nothing after the shutdown of the
/// ORB. `peer` is for messages; `unreadable` receives the error of a malformed request.
pub(super) fn run(
    orb: &Orb,
    peer: &str,
    request: impl FnOnce() -> Result<(), GiopError>,
    unreadable: impl FnOnce(&GiopError),
) {
    let Ok(_running) = orb.resources().running_calls.enter(orb) else { return };
    let _kept = BlockedWorker::begin(orb);
    let ran = catch_unwind(AssertUnwindSafe(request));
    if orb.is_copied() {
        // The original process answers the request.
        std::process::abort();
    }
    match ran {
        Ok(Ok(())) => {}
        Ok(Err(error)) => unreadable(&error),
        Err(_) => tracing::error!(peer, "a request could not be answered: its thread panicked"),
    }
}

/// Runs the upcall of a request. `cancellation` is the source of the servant's token; `code_sets` are those
/// of the arguments.
pub(super) fn serve(
    request: &ReceivedRequest<'_>,
    cancellation: &Arc<CancellationSource>,
    code_sets: TransmissionCodeSets,
    arguments: &mut Decoder<'_>,
) {
    let orb = request.origin.orb();
    request_of_thread::record_orb(orb);
    let _served = request_of_thread::ServedScope::enter(cancellation);
    arguments.set_code_sets(code_sets.char_set, code_sets.wchar_set);
    upcall::run(&RequestState::new(request), &orb.resources().adapter, arguments);
}

/// The time in which a thread of the pool counts as blocked, because its servant may take long.
struct BlockedWorker<'o>(&'o Orb);

impl<'o> BlockedWorker<'o> {
    fn begin(orb: &'o Orb) -> Self {
        orb.resources().pool.record_blocked();
        Self(orb)
    }
}

impl Drop for BlockedWorker<'_> {
    fn drop(&mut self) {
        self.0.resources().pool.record_unblocked();
    }
}
