//! Requests that are answered after their upcall has returned, by whatever thread.
//!
//! A deferred call owns its request, and keeps its connection from ending under it; the connection counts them. It is given up when the client cancels it or is
//! gone: nobody would read the answer.

use std::{
    any::Any,
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use spandrel_cdr::Decoder;
use spandrel_giop::{CompletionStatus, Message, RequestHeader, ResponseFlags, SystemException, minor};
use spandrel_orb::{
    CancelReason, CancellationToken, Spawn, Target,
    cancellation::{CancellationSource, SERVING},
    deadlines::{InheritedDeadline, RequestDeadline},
    diagnostics::{ObservedRequest, untraced},
    upcalls::PollScope,
};
use spandrel_sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
    held,
    time::Instant,
};

use super::{
    call::ServerCall,
    deferred_slot::DeferredSlot,
    frame::ServedScope,
    incoming_request::{IncomingRequest, RequestContext, RequestFlow},
    interception,
    origin::RequestOrigin,
    reply::{answer_exception, panicked},
    upcall,
};
use crate::{Replied, ServingOrb};

/// A request that is answered later. It owns what it was sent, so that borrowed arguments stay valid.
///
/// Dropped without an answer, it answers with NO_RESPONSE, or with UNKNOWN if that was a panic.
pub struct DeferredCall {
    origin: Arc<dyn RequestOrigin>,
    message: Message,
    /// Where the arguments begin.
    body: usize,
    /// What the client waited for when it was deferred.
    response: ResponseFlags,
    is_over: AtomicBool,
    /// What interceptors know of it.
    flow: Option<RequestFlow>,
    /// What those have of it who watch it.
    watched: Option<Arc<ObservedRequest>>,
    deferred_slot: Arc<DeferredSlot>,
    /// Keeps the object in use; nothing if the servant has not been called yet.
    detained: Option<Box<dyn Any + Send + Sync>>,
}

impl ServerCall<'_> {
    /// Takes the request out of its upcall, to be answered later. The [`Replied`] is for the upcall to return.
    ///
    /// # Errors
    /// TRANSIENT if a thousand calls of this connection are deferred.
    pub fn defer(self) -> Result<(DeferredCall, Replied), SystemException> {
        let deferred_slot = self.enter_deferred()?;
        self.note_deferred();
        let origin = Arc::clone(&deferred_slot.origin);
        let detained = self.target().map(Target::keep_in_use);
        let (message, body, response) = (self.message().kept(), self.body(), self.response());
        let (is_over, flow, watched) = (AtomicBool::new(false), self.flow().cloned(), self.watched().cloned());
        Ok((
            DeferredCall { origin, message, body, response, is_over, flow, watched, deferred_slot, detained },
            Replied(()),
        ))
    }

    /// The place that it has already, or a new one.
    fn enter_deferred(&self) -> Result<Arc<DeferredSlot>, SystemException> {
        let is_one_way = !self.is_response_expected();
        // Of a one-way that has been answered meanwhile the client may leave.
        if let Some(deferred_slot) = self.deferred_slot().filter(|deferred_slot| deferred_slot.is_one_way == is_one_way)
        {
            return Ok(Arc::clone(deferred_slot));
        }
        self.request().enter_deferred(is_one_way)
    }

    /// Defers the call, and has a future answer it, which the ORB's [`Spawn`](spandrel_orb::Spawn) polls: by default the threads that serve
    /// connections without a thread of their own. It is dropped when nobody waits for the answer any more.
    ///
    /// # Errors
    /// As [`defer`](Self::defer); NO_RESOURCES if there are no threads for it.
    pub fn spawn<F>(self, serve: impl FnOnce(DeferredCall) -> F) -> Result<Replied, SystemException>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let orb = self.origin().orb().clone();
        let workers;
        let spawner: &dyn Spawn = match &orb.server().settings().spawner {
            Some(spawner) => &*spawner.0,
            None => {
                // Before it is deferred: a deferred call that is dropped is answered by that.
                workers = orb.server().pool().workers().map_err(no_threads)?;
                &workers
            }
        };
        let (call, replied) = self.defer()?;
        let (cancellation, deadline) =
            (Arc::clone(&call.deferred_slot.cancellation), call.deferred_slot.due.and_then(|due| due.answer));
        let watched = call.watched.clone();
        held::assert_none("who runs asynchronous servants");
        spawner.spawn(Box::pin(DeferredService {
            orb: orb.instance(),
            cancellation,
            deadline,
            watched,
            task: Box::pin(serve(call)),
        }));
        Ok(replied)
    }
}

/// A future that serves a call, as long as somebody waits for the answer.
struct DeferredService<F> {
    /// Its ORB's place.
    orb: usize,
    cancellation: Arc<CancellationSource>,
    /// When nobody waits for the answer any more.
    deadline: Option<Instant>,
    watched: Option<Arc<ObservedRequest>>,
    task: Pin<Box<F>>,
}

impl<F: Future<Output = ()>> Future for DeferredService<F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.cancellation.poll(SERVING, cx.waker()).is_some() {
            return Poll::Ready(());
        }
        let _scope = PollScope::enter(self.orb);
        let _served = ServedScope::enter(&self.cancellation);
        let _deadline = self.deadline.map(InheritedDeadline::enter);
        let Self { watched, task, .. } = &mut *self;
        match watched {
            Some(watched) => watched.in_scope(|| task.as_mut().poll(cx)),
            None => untraced(|| task.as_mut().poll(cx)),
        }
    }
}

impl DeferredCall {
    /// The arguments; values lent from it live as long as this call.
    ///
    /// # Errors
    /// None now, as [`ServerCall::arguments`].
    pub fn arguments(&self) -> Result<Decoder<'_>, SystemException> {
        Ok(self.origin.decoder(&self.message).at(self.body))
    }

    /// True once nobody waits for the answer any more: the client has cancelled the request, or is gone.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.deferred_slot.cancellation.is_cancelled()
    }

    /// What tells that nobody waits for the answer any more, and why.
    #[must_use]
    pub fn cancellation(&self) -> CancellationToken {
        CancellationToken::new(Arc::clone(&self.deferred_slot.cancellation))
    }

    /// Answers, as `how` says. Only the first answer counts.
    ///
    /// # Errors
    /// Those of `how`; nothing was sent then.
    pub fn answer(
        &self,
        how: impl FnOnce(ServerCall<'_>) -> Result<Replied, SystemException>,
    ) -> Result<Replied, SystemException> {
        self.origin.orb().check_process()?;
        let mut arguments = self.origin.decoder(&self.message);
        let header = RequestHeader { response: self.response, ..RequestHeader::decode(&mut arguments)? };
        let is_answered = AtomicBool::new(false);
        let (flow, deferred_slot) = (self.flow.as_ref(), Some(&self.deferred_slot));
        let request_context = RequestContext::of(self.deferred_slot.due);
        let (watched, request_context) = (self.watched.as_ref(), request_context.as_ref());
        let request = IncomingRequest {
            flow,
            watched,
            deferred_slot,
            request_context,
            ..IncomingRequest::new(&*self.origin, &self.message, &header, &is_answered)
        };
        if self.is_cancelled() || self.is_over.swap(true, Ordering::SeqCst) {
            return Ok(Replied(()));
        }
        if let (None, Some(due)) = (&self.detained, &self.deferred_slot.due)
            && let Err(late) = due.check()
        {
            // Its turn to be begun has come only now.
            self.is_over.store(false, Ordering::SeqCst);
            self.origin.orb().statistics().refused_expired();
            return Err(late);
        }
        let _slots = interception::lend_slots(self.flow.as_ref());
        let _served = ServedScope::enter(&self.deferred_slot.cancellation);
        let _deadline = self.deferred_slot.due.and_then(|due| due.answer).map(InheritedDeadline::enter);
        let attempt = ReplyAttempt { is_over: &self.is_over, request: &request };
        let replied = match watched {
            Some(watched) => watched.in_scope(|| how(ServerCall::new(&request, arguments))),
            None => how(ServerCall::new(&request, arguments)),
        }?;
        std::mem::forget(attempt);
        Ok(replied)
    }

    /// Ends the call: an error is answered with.
    pub fn end(self, outcome: Result<Replied, SystemException>) {
        if let (Err(exception), false) = (outcome, self.is_over.swap(true, Ordering::SeqCst)) {
            self.fail(&exception);
        }
    }

    fn fail(&self, exception: &SystemException) {
        self.with_request(|request| answer_exception(request, exception));
    }

    fn with_request(&self, then: impl FnOnce(&IncomingRequest<'_>)) {
        if self.origin.orb().is_copied() {
            return;
        }
        let mut arguments = self.origin.decoder(&self.message);
        let Ok(header) = RequestHeader::decode(&mut arguments) else { return };
        let header = RequestHeader { response: self.response, ..header };
        let is_answered = AtomicBool::new(false);
        let (flow, watched) = (self.flow.as_ref(), self.watched.as_ref());
        then(&IncomingRequest {
            flow,
            watched,
            ..IncomingRequest::new(&*self.origin, &self.message, &header, &is_answered)
        });
    }

    /// Begins it anew, when it has been held back.
    pub(super) fn begin(self) {
        if self.is_cancelled() || self.is_over.swap(true, Ordering::SeqCst) {
            return;
        }
        let mut arguments = self.origin.decoder(&self.message);
        let Ok(header) = RequestHeader::decode(&mut arguments) else { return };
        let header = RequestHeader { response: self.response, ..header };
        let is_answered = AtomicBool::new(false);
        let due = self.deferred_slot.due.map(|due| RequestDeadline { start: None, ..due });
        let request_context = RequestContext::of(due);
        let (watched, deferred_slot, request_context) =
            (self.watched.as_ref(), Some(&self.deferred_slot), request_context.as_ref());
        let request = IncomingRequest {
            watched,
            deferred_slot,
            request_context,
            ..IncomingRequest::new(&*self.origin, &self.message, &header, &is_answered)
        };
        upcall::run(&request, &mut arguments);
    }

    /// TIMEOUT for a deadline that has passed: if clocks differ, the client may still wait.
    fn too_late(&self) -> SystemException {
        let begun = if self.detained.is_some() { CompletionStatus::Maybe } else { CompletionStatus::No };
        SystemException::timeout(minor::ROUND_TRIP_EXPIRED, begun)
            .with_detail("the client's time for the request passed before the servant had answered")
    }

    fn operation(&self) -> String {
        let header = RequestHeader::decode(&mut self.origin.decoder(&self.message));
        header.map_or_else(|_| String::new(), |header| header.operation.to_string())
    }
}

/// The time in which a call is being answered. If that fails before anything was sent, it may be tried again.
struct ReplyAttempt<'c> {
    is_over: &'c AtomicBool,
    request: &'c IncomingRequest<'c>,
}

impl Drop for ReplyAttempt<'_> {
    fn drop(&mut self) {
        if !self.request.is_answered.load(Ordering::Relaxed) {
            self.is_over.store(false, Ordering::SeqCst);
        }
    }
}

impl Drop for DeferredCall {
    fn drop(&mut self) {
        if self.origin.orb().is_copied() {
            // The original answers it.
            return;
        }
        let is_over = self.is_over.load(Ordering::SeqCst);
        if !is_over && self.deferred_slot.cancellation.reason() == Some(CancelReason::DeadlineElapsed) {
            self.fail(&self.too_late());
        } else if !is_over && self.is_cancelled() && self.flow.is_some() {
            let cancelled = SystemException::transient(minor::REQUEST_CANCELLED, CompletionStatus::Maybe);
            self.with_request(|request| interception::give_up(self.flow.as_ref(), request, &cancelled));
        } else if !is_over && !self.is_cancelled() {
            let exception = if std::thread::panicking() {
                panicked(&self.operation(), &"a task of it")
            } else {
                SystemException::no_response(0, CompletionStatus::Maybe).with_detail("the servant never answered")
            };
            self.fail(&exception);
        }
    }
}

impl fmt::Debug for DeferredCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeferredCall").field("key", &self.deferred_slot.key).finish_non_exhaustive()
    }
}

fn no_threads(error: std::io::Error) -> SystemException {
    SystemException::no_resources(0, CompletionStatus::No)
        .with_detail("no threads for asynchronous servants")
        .with_source(error)
}
