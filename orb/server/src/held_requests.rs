//! Requests that must not be run yet, as their clients have said (17.2.4.1): they keep no thread meanwhile.
//!
//! Clients of ours hold them back themselves; other ORBs send them, and say from when on they may be delivered.

use spandrel_cdr::Decoder;
use spandrel_giop::{CompletionStatus, SystemException, minor};
use spandrel_orb::timer::TimerFuture;
use spandrel_sync::time::Instant;

use super::{call::ServerCall, incoming_request::IncomingRequest, reply::answer_exception};

/// Has a request begin anew when its time has come. `said`: what is wrong with what came before the arguments.
#[cold]
pub(super) fn hold(
    request: &IncomingRequest<'_>,
    said: &Result<(), SystemException>,
    arguments: &mut Decoder<'_>,
    start: Instant,
) {
    let orb = request.origin.orb().clone();
    let call = ServerCall::new(request, arguments.hand_over());
    let held = said.clone().and_then(|()| {
        call.spawn(move |deferred| async move {
            if TimerFuture::of_request(&orb, start).await {
                deferred.begin();
            } else {
                let gone = SystemException::transient(minor::REQUEST_DISCARDED, CompletionStatus::No);
                deferred.end(Err(gone.with_detail("the ORB does not wait any longer for the time of this request")));
            }
        })
    });
    if let Err(exception) = held {
        answer_exception(request, &exception);
    }
}
