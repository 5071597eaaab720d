//! Asynchronous calls among client interceptors (CORBA 3.3 Part 1, 16.3.7.2).
//!
//! To interceptors each leg of a call, from one sending to its outcome, is two requests: the first is over when it is on its way
//! (`send_request`, `receive_other`), the second asks for what has become of it (`send_poll`, and an ending point). The first leg's sending is
//! seen by the client's own thread, all else by the ORB's thread that runs tasks: never by one that reads for others.

use spandrel_giop::{ReplyStatus, ResponseFlags, ServiceContext, SystemException};
use spandrel_sync::{Arc, Mutex};

use super::request::AsyncRequest;
use crate::{
    client::{Reply, ReplyKind},
    interception::{self, ClientFlow, OutgoingContexts, RequestOutcome, ResponseRequest},
    invocation::{ReplyAction, RetryState},
    object::EffectiveReference,
};

/// What interceptors know of a call.
#[derive(Debug, Default)]
pub(super) struct AsyncInterception {
    /// What it has with it; made by the client's thread.
    outgoing: Option<OutgoingContexts>,
    /// It is on its way there, and its outcome not yet known.
    observed_target: Option<EffectiveTarget>,
    /// It will not arrive there.
    is_lost: bool,
}

/// Where the object is, if not where its reference says, and by which profile it is reached.
type EffectiveTarget = (EffectiveReference, usize);

impl AsyncInterception {
    /// What interceptors add to the request.
    pub(super) fn contexts(&self) -> &[ServiceContext] {
        self.outgoing.as_ref().map_or(&[], OutgoingContexts::contexts)
    }

    /// It will not arrive where it is on its way to.
    pub(super) fn mark_lost(&mut self) {
        self.is_lost = true;
    }

    /// True if there is somebody to tell of the outcome.
    pub(super) fn is_observed(&self) -> bool {
        self.observed_target.is_some()
    }

    /// It is about to be sent; false if it is to be sent elsewhere instead.
    ///
    /// # Errors
    /// What it ends with instead.
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
            // It has waited for a connection.
            return Ok(true);
        }
        if !self.end(request, retry_state, retry, None)? {
            return Ok(false);
        }
        let outgoing = match self.outgoing.take() {
            None => OutgoingContexts::of_thread(object),
            Some(before) => before.again(object),
        };
        let target = (object.effective()?.1, index);
        let mut flow = ClientFlow::new(object, &request.operation, response_request(request), outgoing, target.clone());
        let started = flow.send_request();
        self.outgoing = Some(flow.outgoing().clone());
        // Control returns to the client now.
        let sent =
            started.and_then(|()| flow.end(RequestOutcome::Other(interception::ReplyStatus::Successful, None), None));
        match sent {
            Ok(()) => self.observed_target = Some(target),
            Err(request_outcome) => object.apply_interceptor_outcome(request_outcome, retry_state)?,
        }
        Ok(self.is_observed())
    }

    /// Tells of the outcome; false if it is to be sent elsewhere instead.
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
        let mut flow = ClientFlow::new(&request.object, &request.operation, response_request(request), outgoing.clone(), target);
        match flow.send_poll().and_then(|()| flow.end(request_outcome(), reply)) {
            Ok(()) => Ok(true),
            Err(changed) => request.object.apply_interceptor_outcome(changed, retry_state).map(|()| false),
        }
    }

    /// A reply has come, of which this is thought.
    ///
    /// # Errors
    /// What the call ends with.
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

    /// There will be no reply.
    ///
    /// # Errors
    /// What the call ends with, unless it is to be sent once more.
    pub(super) fn fail(
        &mut self,
        request: &AsyncRequest,
        retry_state: &mut RetryState,
        exception: SystemException,
    ) -> Result<(), SystemException> {
        let as_it_was = self.end(request, retry_state, || RequestOutcome::system(exception.clone()), None)?;
        if as_it_was { Err(exception) } else { Ok(()) }
    }
}

/// Has the thread for it go on with the call, if interceptors are to be told: this one may be reading for others.
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
        // The ORB ends, and reads no more.
        here();
    }
}

fn response_request(request: &AsyncRequest) -> ResponseRequest {
    (request.response, request.response != ResponseFlags::TWO_WAY)
}

fn retry() -> RequestOutcome {
    RequestOutcome::Other(interception::ReplyStatus::TransportRetry, None)
}
