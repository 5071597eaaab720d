//! Upcalls: the servant of an object is found, run, and released, for requests and for direct calls.
//!
//! The adapter finds the servant and returns an [`Upcall`]; this module alone runs servants. A request that
//! has to wait for its adapter, or that the main thread has to run, is deferred and then resolved anew from
//! its key, as if it had just arrived (CORBA 3.3 Part 1, 15.3.9.4 requires that).
//!
//! # Order
//! A request with interceptors and a servant locator passes these steps (15.3.7.2, 16.3.10.2):
//!
//! 1. `receive_request_service_contexts`;
//! 2. `preinvoke`, in [`ObjectAdapter::resolve`];
//! 3. `receive_request`;
//! 4. the servant, whose reply is marshaled whole;
//! 5. `postinvoke`: an exception that it raises replaces results of the servant, and no other outcome;
//! 6. `send_reply`, `send_exception` or `send_other`;
//! 7. the reply is sent;
//! 8. the upcall is dropped: the use of the servant ends if it has not ended at step 5 (deactivation,
//!    etherealization), then the thread's turn in a single-threaded adapter.
//!
//! The upcall of a servant that fails or panics is dropped before its exception passes steps 6 and 7.
//!
//! Without interceptors and without a locator, the servant sends its reply from its own memory at step 4, and
//! no octet of it is copied.
//!
//! A deferred request leaves its upcall at step 4 and keeps its servant in use. Its answer passes steps 4 to
//! 7 later; then the use ends. Direct calls have steps 4 and 8 only.

use spandrel_giop::{CompletionStatus, ReplyStatus, RequestHeader, SystemException};
use spandrel_sync::{Arc, Mutex};

use super::{call::ServerCall, incoming_request::IncomingRequest, marshaled_reply::ReplySlot, reply::answer_marshaled};
use crate::{AdapterWait, Entry, ObjectAdapter, Replied, Reservation, Resolution, Servant, Upcall};

/// Runs a request on the object with this key, or defers it. `reservation`: the result of its last wait.
///
/// # Errors
/// The exception to reply with, if the servant has not replied itself.
#[inline]
pub(crate) fn serve(
    object_key: &[u8],
    call: ServerCall<'_>,
    reservation: Option<Reservation>,
) -> Result<Replied, SystemException> {
    let request = call.request();
    let adapter = request.origin.adapter();
    let entry = Entry::Request { last: request, reservation };
    match adapter.resolve(object_key, &request.header.operation, entry)? {
        Resolution::Serve(upcall) => {
            if request.flow.is_some() || upcall.ends_before_reply() {
                return serve_marshaled(&upcall, call);
            }
            let (servant, target) = upcall.parts();
            call.run(&**servant, &*target)
        }
        other => answer_without_servant(other, call),
    }
}

/// Forwards, defers or rejects a request that has no servant now.
#[cold]
#[inline(never)]
fn answer_without_servant(resolution: Resolution, call: ServerCall<'_>) -> Result<Replied, SystemException> {
    match resolution {
        Resolution::Forward(target) => call.forward(&target),
        Resolution::ForwardPermanently(target) => call.forward_permanently(&target),
        Resolution::Wait(wait) => serve_after(wait, call),
        Resolution::MainThread => serve_in_main_thread(call),
        Resolution::Serve(_) | Resolution::Marshal => Err(misplaced()),
    }
}

/// Runs a request whose use of the servant, or interception points, come between its servant and its reply.
#[cold]
#[inline(never)]
fn serve_marshaled(upcall: &Upcall, call: ServerCall<'_>) -> Result<Replied, SystemException> {
    let request = call.request();
    let reply_slot = ReplySlot::default();
    let served = call.run_marshaled(&**upcall.servant(), &*upcall.target(), &reply_slot);
    let ended = if upcall.ends_before_reply() { upcall.end() } else { Ok(()) };
    if let Err(exception) = &ended {
        tracing::debug!(%exception, operation = %request.header.operation, "postinvoke raised an exception");
    }
    let replied = served?;
    let Some(reply) = reply_slot.take() else { return Ok(replied) };
    if reply.status == ReplyStatus::NoException {
        ended?;
    }
    let target = upcall.target();
    let header = RequestHeader { response: reply.response, ..request.header.clone() };
    answer_marshaled(&IncomingRequest { header: &header, target: Some(&*target), ..*request }, &reply)
        .map_err(|error| SystemException::from(error).with_completed(CompletionStatus::Yes))?;
    Ok(replied)
}

/// Calls the servant of an object without a request, inside the context of a request's upcall. Returns false,
/// without a call, if that needs a request.
///
/// # Errors
/// The exception that the call ends with.
pub(crate) fn call_directly(
    adapter: &dyn ObjectAdapter,
    object_key: &[u8],
    operation: &str,
    call: &mut dyn FnMut(&Arc<dyn Servant>),
) -> Result<bool, SystemException> {
    let Resolution::Serve(upcall) = adapter.resolve(object_key, operation, Entry::Direct)? else { return Ok(false) };
    call(&upcall.servant());
    Ok(true)
}

/// Defers a request until its adapter's wait has ended.
#[cold]
fn serve_after(wait: AdapterWait, call: ServerCall<'_>) -> Result<Replied, SystemException> {
    call.spawn(move |deferred| async move {
        let reservation = wait.await;
        let outcome = deferred.answer(|call| serve_again(call, reservation));
        deferred.end(outcome);
    })
}

/// Has the main thread run a request.
#[cold]
fn serve_in_main_thread(call: ServerCall<'_>) -> Result<Replied, SystemException> {
    let orb = call.origin().orb().clone();
    let (deferred, replied) = call.defer()?;
    // Shared, so that the request can be rejected if the job is.
    let deferred = Arc::new(Mutex::new(Some(deferred)));
    let job = Arc::clone(&deferred);
    let rejected = orb.run_in_main(Box::new(move || {
        let Some(deferred) = job.lock().take() else { return };
        let outcome = deferred.answer(|call| serve_again(call, None));
        deferred.end(outcome);
    }));
    if let Err(exception) = rejected {
        let deferred = deferred.lock().take();
        deferred.into_iter().for_each(|deferred| deferred.end(Err(exception.clone())));
    }
    Ok(replied)
}

/// Serves a deferred request by its key.
fn serve_again(call: ServerCall<'_>, reservation: Option<Reservation>) -> Result<Replied, SystemException> {
    match call.header().target.object_key() {
        Some(object_key) => serve(&object_key, call, reservation),
        None => call.request_full_address(),
    }
}

/// The exception for an adapter that returns the resolution of a direct call for a request.
#[cold]
fn misplaced() -> SystemException {
    SystemException::internal(0, CompletionStatus::No).with_detail("the object adapter has not resolved a request")
}
