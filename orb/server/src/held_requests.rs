//! Requests that must not be run before a start time of their clients (17.2.4.1). They keep no thread
//! meanwhile.
//!
//! Clients with this ORB hold such requests back themselves. Other ORBs send them at once, with the start
//! time.

use spandrel_cdr::Decoder;
use spandrel_giop::{CompletionStatus, SystemException, minor};
use spandrel_orb::timer::TimerFuture;
use spandrel_sync::time::Instant;

use super::{call::ServerCall, incoming_request::IncomingRequest, reply::answer_exception};

/// Has a request begin anew at its start time. `said`: the error of its service contexts, if they have one.
#[cold]
pub(super) fn hold(
    request: &IncomingRequest<'_>,
    said: &Result<(), SystemException>,
    arguments: &mut Decoder<'_>,
    start: Instant,
) {
    let orb = request.origin.orb().clone();
    let call = ServerCall::new(request, arguments);
    let held = said.clone().and_then(|()| {
        call.spawn(move |deferred| async move {
            if TimerFuture::of_request(&orb, start).await {
                deferred.begin();
            } else {
                let gone = SystemException::transient(minor::REQUEST_DISCARDED, CompletionStatus::No);
                deferred.end(Err(gone.with_detail("the ORB no longer waits for the start time of this request")));
            }
        })
    });
    if let Err(exception) = held {
        answer_exception(request, &exception);
    }
}
