//! Asynchronous calls with client interceptors (CORBA 3.3 Part 1, 16.3.7.2).
//!
//! To interceptors, each attempt of a call is two requests. The first ends when the request was sent
//! (`send_request`, `receive_other`). The second polls for the outcome (`send_poll`, and an ending point).
//! The client's own thread runs the points of the first attempt's sending. The ORB's thread for tasks runs
//! all others, never a thread that reads for other calls.

use spandrel_giop::{ReplyStatus, ResponseFlags, ServiceContext, SystemException};
use spandrel_sync::{Arc, Mutex};

use super::request::AsyncRequest;
use crate::{
    client::{Reply, ReplyKind},
    interception::{self, ClientFlow, OutgoingContexts, RequestOutcome, ResponseRequest},
    invocation::{ReplyAction, RetryState},
    object::EffectiveReference,
};

/// The state of client interceptors of a call.
#[derive(Debug, Default)]
pub(super) struct AsyncInterception {
    /// The service contexts and slots of the request, created by the client's thread.
    outgoing: Option<OutgoingContexts>,
    /// The target of the request that was sent and has no outcome yet.
    observed_target: Option<EffectiveTarget>,
    /// Whether that request will not arrive at its target.
    is_lost: bool,
}

/// The forwarded reference, if any, and the index of the profile.
type EffectiveTarget = (EffectiveReference, usize);

impl AsyncInterception {
    /// The service contexts that interceptors have added.
    pub(super) fn contexts(&self) -> &[ServiceContext] {
        self.outgoing.as_ref().map_or(&[], OutgoingContexts::contexts)
    }

    /// Records that the request will not arrive at its target.
    pub(super) fn mark_lost(&mut self) {
        self.is_lost = true;
    }

    /// Whether interceptors wait for the outcome of a request.
    pub(super) fn is_observed(&self) -> bool {
        self.observed_target.is_some()
    }

    /// Runs the starting points before the request is sent; false if an interceptor has forwarded it.
    ///
    /// # Errors
    /// The exception that an interceptor raised.
    pub(super) fn begin(
        &mut self,
        request: &AsyncRequest,
        retry_state: &mut RetryState,
        index: usize,
    ) -> Result<bool, SystemException> {
        let object = &request.object;
        if !object.orb().has_client_interceptors() {
            return Ok(true);
        }
        let is_lost = std::mem::take(&mut self.is_lost);
        if self.is_observed() && !is_lost {
            // The same attempt continues after waiting for a connection.
            return Ok(true);
        }
        if !self.end(request, retry_state, retry, None)? {
            return Ok(false);
        }
        let outgoing = match self.outgoing.take() {
            None => OutgoingContexts::of_thread(object),
            Some(before) => before.for_retry(object),
        };
        let target = (object.effective()?.1, index);
        let mut flow = ClientFlow::new(object, &request.operation, response_request(request), outgoing, target.clone());
        let started = flow.send_request();
        self.outgoing = Some(flow.outgoing().clone());
        // The ending point of the first request: control returns to the client now.
        let sent =
            started.and_then(|()| flow.end(RequestOutcome::Other(interception::ReplyStatus::Successful, None), None));
        match sent {
            Ok(()) => self.observed_target = Some(target),
            Err(request_outcome) => object.apply_interceptor_outcome(request_outcome, retry_state)?,
        }
        Ok(self.is_observed())
    }

    /// Runs the points of the second request; false if an interceptor has forwarded it.
    fn end(
        &mut self,
        request: &AsyncRequest,
        retry_state: &mut RetryState,
        request_outcome: impl FnOnce() -> RequestOutcome,
        reply: Option<&Reply>,
    ) -> Result<bool, SystemException> {
        let (Some(target), Some(outgoing)) = (self.observed_target.take(), &self.outgoing) else {
            return Ok(true);
        };
        let mut flow =
            ClientFlow::new(&request.object, &request.operation, response_request(request), outgoing.clone(), target);
        match flow.send_poll().and_then(|()| flow.end(request_outcome(), reply)) {
            Ok(()) => Ok(true),
            Err(changed) => request.object.apply_interceptor_outcome(changed, retry_state).map(|()| false),
        }
    }

    /// Runs the ending points for a reply and its evaluation.
    ///
    /// # Errors
    /// The exception that ends the call.
    pub(super) fn evaluate_reply(
        &mut self,
        request: &AsyncRequest,
        retry_state: &mut RetryState,
        reply: &Reply,
        evaluated: Result<ReplyAction, SystemException>,
    ) -> Result<ReplyAction, SystemException> {
        let object = &request.object;
        let request_outcome = || match &evaluated {
            Err(exception) => RequestOutcome::system(exception.clone()),
            Ok(ReplyAction::Resend) => object.resend_outcome(reply),
            Ok(ReplyAction::Answer) if reply.kind == ReplyKind::Reply(ReplyStatus::UserException) => {
                RequestOutcome::user(reply, object)
            }
            Ok(ReplyAction::Answer) if response_request(request).1 => {
                RequestOutcome::Other(interception::ReplyStatus::Successful, None)
            }
            Ok(ReplyAction::Answer) => RequestOutcome::Reply,
        };
        if self.end(request, retry_state, request_outcome, Some(reply))? { evaluated } else { Ok(ReplyAction::Resend) }
    }

    /// Runs the ending points for a request without a reply.
    ///
    /// # Errors
    /// The exception that ends the call, unless the request is sent again.
    pub(super) fn fail(
        &mut self,
        request: &AsyncRequest,
        retry_state: &mut RetryState,
        exception: SystemException,
    ) -> Result<(), SystemException> {
        let is_unchanged = self.end(request, retry_state, || RequestOutcome::system(exception.clone()), None)?;
        if is_unchanged { Err(exception) } else { Ok(()) }
    }
}

/// Continues the call in the ORB's thread for tasks if there are client interceptors: this thread may be
/// reading for other calls.
pub(super) fn run_on_client_reactor<C: Send + Sync + 'static>(
    request: &AsyncRequest,
    call: &Arc<C>,
    resume: impl FnOnce(Arc<C>) + Send + 'static,
) {
    let orb = request.object.orb();
    if !orb.has_client_interceptors() {
        return resume(Arc::clone(call));
    }
    let job = Arc::new(Mutex::new(Some(resume)));
    let (call, task) = (Arc::clone(call), Arc::clone(&job));
    let run = move || {
        let resume = task.lock().take();
        if let Some(resume) = resume {
            resume(Arc::clone(&call));
        }
    };
    let here = run.clone();
    if orb.client_reactor().run(Box::pin(async move { run() })).is_err() {
        // The ORB is shutting down, and reads no more.
        here();
    }
}

fn response_request(request: &AsyncRequest) -> ResponseRequest {
    (request.response, request.response != ResponseFlags::TWO_WAY)
}

fn retry() -> RequestOutcome {
    RequestOutcome::Other(interception::ReplyStatus::TransportRetry, None)
}
