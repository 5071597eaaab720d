//! Requests that any thread answers after their upcall has returned.
//!
//! A deferred call owns its message. Its origin has an entry for it, and a connection that closes orderly
//! waits for its reply. A call whose client has cancelled it, or is gone, ends without a reply.
//!
//! Asynchronous servants run so, as futures that an executor polls ([`ServerCall::spawn`]).
//!
//! Requests that wait for their adapter are deferred by `dispatch` (`serve_after`); `resolution` of
//! `spandrel-poa` decides whether a request has to wait, and for what.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use spandrel_cdr::Decoder;
use spandrel_giop::{
    CompletionStatus, GiopError, HeaderPositions, Message, ReplyStatus, RequestHeader, ResponseFlags, SystemException,
    minor,
};
use spandrel_orb::{
    CancelReason, CancellationToken, KeptUse, Orb, Spawn, Target,
    internal::{
        ObservedRequest, PollScope,
        cancellation::{CancellationSource, SERVING},
        request_deadlines::{InheritedDeadline, RequestDeadline},
        untraced,
    },
};
use spandrel_sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
    held,
    time::Instant,
};

use super::{
    call::{Replied, ServerCall},
    deferred_slot::{DeferredSlot, Entered, KeepInUse, SlotAddress, SpawnScope, UnusedMemory, begins_in_upcall},
    interception,
    marshaled_reply::ReplySlot,
    origin::{RequestOrigin, UpcallNumber},
    received_request::{ReceivedRequest, RequestContext, RequestFlow, RequestState},
    reply::{answer_exception, answer_marshaled, panicked},
    request_memory,
};
use crate::{
    long_wait::{UnbegunRequest, UnbegunRequests},
    reply_urgency::{ReplyUrgency, ReplyUrgencyScope},
    request_of_thread::ServedScope,
};

/// A request that is answered after its upcall. It owns the message, so that borrowed arguments stay valid.
///
/// A call that is dropped without a reply ends with an exception:
/// - TIMEOUT, if the deadline of the request has passed;
/// - UNKNOWN, if the thread panics;
/// - NO_RESPONSE otherwise.
///
/// A call that was cancelled for another reason ends without a reply.
pub struct DeferredCall {
    request: OwnedRequest,
    /// Whether the call has been answered, or is being answered.
    is_over: AtomicBool,
    /// Behind the request, because the end of the use comes after that of the entry.
    kept_use: UseByCall,
    /// Whether the servant has been called.
    is_begun: bool,
    /// Whether the use of the servant ends before the answer is sent.
    ends_before_reply: bool,
    /// As that of the [`ServerCall`].
    passes_on: bool,
}

/// The use of the servant by a call; `None` before the servant is called. The end of the call ends it, also if the future
/// that has served the call goes on.
struct UseByCall(Option<Arc<dyn KeptUse>>);

impl Drop for UseByCall {
    fn drop(&mut self) {
        if let Some(kept_use) = &self.0 {
            // An exception has no receiver.
            kept_use.end(Box::new(drop));
        }
    }
}

/// A request that owns its message.
#[derive(Clone)]
struct OwnedRequest {
    message: Message,
    /// The positions of its header; `None` if the header is decoded again when it is needed.
    header: Option<HeaderPositions>,
    /// The position of the arguments in the message.
    body: usize,
    /// The response that the client expected when the request was deferred.
    response: ResponseFlags,
    /// The request's record for interceptors.
    flow: Option<RequestFlow>,
    observed: Option<Arc<ObservedRequest>>,
    deferred_slot: Arc<DeferredSlot>,
    /// The level of the request at its executor, by which its reply is ordered among others in any thread.
    urgency: ReplyUrgency,
}

impl ServerCall<'_> {
    /// Takes the request out of its upcall, to be answered later. The upcall returns the [`Replied`].
    ///
    /// # Errors
    /// TRANSIENT if too many requests of the connection are deferred (accepted connections:
    /// `-ORBMaxDeferredRequests`), or if a memory limit would be exceeded.
    pub fn defer(self) -> Result<(DeferredCall, Replied), SystemException> {
        self.defer_in(&mut request_memory::take_of_thread())
    }

    /// As [`defer`](Self::defer), in the memory of a request that has ended.
    pub(crate) fn defer_in(self, unused: &mut UnusedMemory) -> Result<(DeferredCall, Replied), SystemException> {
        let deferred_slot = self.enter_deferred(unused)?;
        let kept_use = self.target().map(Target::keep_in_use);
        Ok(self.into_deferred(deferred_slot, kept_use, unused))
    }

    fn into_deferred(
        self,
        deferred_slot: Arc<DeferredSlot>,
        kept_use: Option<Arc<dyn KeptUse>>,
        unused: &mut UnusedMemory,
    ) -> (DeferredCall, Replied) {
        self.record_deferred();
        let is_begun = self.target().is_some();
        let ends_before_reply = kept_use.as_ref().is_some_and(|kept_use| kept_use.ends_before_reply());
        let header = HeaderPositions::of(self.header(), self.message().octets());
        let message = self.message().kept_in(unused.octets.take());
        let (response, passes_on) = (self.response(), self.passes_on);
        let (flow, observed) = (self.flow().cloned(), self.observed().cloned());
        let urgency = ReplyUrgency::of_thread();
        let call = DeferredCall {
            request: OwnedRequest {
                message,
                header,
                body: self.body(),
                response,
                flow,
                observed,
                deferred_slot,
                urgency,
            },
            is_over: AtomicBool::new(false),
            kept_use: UseByCall(kept_use),
            is_begun,
            ends_before_reply,
            passes_on,
        };
        (call, Replied(()))
    }

    /// The way in which the servant stays in use, if the request may be [entered late](super::deferred_slot).
    ///
    /// # Errors
    /// Those of [`defer`](Self::defer).
    fn late_entry(&self) -> Result<Option<KeepInUse>, SystemException> {
        // The reply of a servant locator, or one with interceptors, follows the end of the use.
        let is_plain = self.deferred_slot().is_none() && self.flow().is_none() && self.state.reply_slot.is_none();
        // Relaxed: after another answer the executor is found out again.
        if !is_plain || !self.origin().services().polls_in_upcalls().load(Ordering::Relaxed) {
            return Ok(None);
        }
        let Some(keep_in_use) = self.target().and_then(Target::keep_later) else { return Ok(None) };
        Ok(self.origin().admits_late_entry(self.message().uncharged_len())?.then_some(keep_in_use))
    }

    /// Returns the entry that the request already has, or a new one.
    fn enter_deferred(&self, unused: &mut UnusedMemory) -> Result<Arc<DeferredSlot>, SystemException> {
        let is_one_way = !self.is_response_expected();
        // A one-way that was answered meanwhile gets a new entry, so that the end of the client does not
        // cancel it.
        if let Some(deferred_slot) = self.deferred_slot().filter(|slot| slot.request_key.is_one_way == is_one_way) {
            return Ok(Arc::clone(deferred_slot));
        }
        self.request().enter_deferred(is_one_way, unused)
    }

    /// Defers the call and starts a future that answers it.
    ///
    /// The ORB's executor ([`Spawn`](spandrel_orb::Spawn)) polls the future. By default this thread polls it first, as
    /// part of the upcall (in `thread-pool` a worker of the queue does), and later the threads of the server's pool do,
    /// which serve connections without a thread of their own. The future is dropped when the request is cancelled.
    ///
    /// # Errors
    /// The errors of [`defer`](Self::defer); NO_RESOURCES if the executor has no threads.
    pub fn spawn<F>(self, serve: impl FnOnce(DeferredCall) -> F) -> Result<Replied, SystemException>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (orb, origin) = (self.origin().orb(), self.origin());
        origin.record_spawn();
        let (mut call, mut serve, mut replied) = (Some(self), Some(serve), None);
        // Deferred only once there is an executor, because the drop of a deferred call answers it.
        let spawned = origin.services().with_spawner(&mut |spawner| {
            let (Some(call), Some(serve)) = (call.take(), serve.take()) else { return };
            replied = Some(call.spawn_in(spawner, orb, serve));
        });
        spawned.map_err(no_threads)?;
        replied.unwrap_or_else(|| unreachable!("the executor was called with"))
    }

    fn spawn_in<F>(
        self,
        spawner: &dyn Spawn,
        orb: &Orb,
        serve: impl FnOnce(DeferredCall) -> F,
    ) -> Result<Replied, SystemException>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let polls_in_upcalls = self.origin().services().polls_in_upcalls();
        let keep_in_use = self.late_entry()?;
        let (call, replied) = match keep_in_use {
            Some(keep_in_use) => {
                let mut unused = request_memory::take_of_thread();
                let deferred_slot = self.request().enter_late(keep_in_use, &mut unused);
                self.into_deferred(deferred_slot, None, &mut unused)
            }
            None => self.defer()?,
        };
        let deferred_slot = &call.request.deferred_slot;
        let (scope, slot) = (SpawnScope::enter(Arc::clone(deferred_slot)), SlotAddress::new(deferred_slot));
        let entry = match deferred_slot.entered() {
            Some(entered) => ServiceEntry::Entered {
                cancellation: Arc::clone(&entered.cancellation),
                kept_use: call.kept_use.0.clone(),
            },
            None => ServiceEntry::Unentered(Arc::clone(deferred_slot)),
        };
        let deadline = deferred_slot.deadline.and_then(|deadline| deadline.answer);
        let observed = call.request.observed.clone();
        let executor = call.origin().services().for_spawner().cloned();
        let unbegun = executor.as_ref().map(|requests| requests.give(orb));
        held::assert_none("a spawner");
        let (orb, task) = (orb.instance(), serve(call));
        spawner.spawn_servant(Box::pin(DeferredService {
            orb,
            slot,
            entry,
            deadline,
            observed,
            executor,
            unbegun,
            task,
        }));
        let was_polled = scope.was_polled();
        if polls_in_upcalls.load(Ordering::Relaxed) != was_polled {
            polls_in_upcalls.store(was_polled, Ordering::Relaxed);
        }
        Ok(replied)
    }
}

/// The entry of a deferred request as its future has it.
enum ServiceEntry {
    Unentered(Arc<DeferredSlot>),
    Entered { cancellation: Arc<CancellationSource>, kept_use: Option<Arc<dyn KeptUse>> },
}

impl ServiceEntry {
    fn from_entered(entered: &Entered) -> Self {
        Self::Entered { cancellation: Arc::clone(&entered.cancellation), kept_use: entered.kept_use.clone() }
    }
}

pin_project_lite::pin_project! {
    /// A future that serves a deferred call until the call is cancelled.
    struct DeferredService<F> {
        // The instance of the ORB (`Orb::instance`).
        orb: usize,
        slot: SlotAddress,
        entry: ServiceEntry,
        // The time from which the reply is not needed.
        deadline: Option<Instant>,
        observed: Option<Arc<ObservedRequest>>,
        // The executor of the application, if it polls the future.
        executor: Option<Arc<UnbegunRequests>>,
        // Until the first poll.
        unbegun: Option<UnbegunRequest>,
        #[pin]
        task: F,
    }
}

impl<F: Future<Output = ()>> Future for DeferredService<F> {
    type Output = ();

    /// The task is registered for the cancellation when it waits: those that need not wait register nothing.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut service = self.as_mut().project();
        *service.unbegun = None;
        let begins_in_upcall = begins_in_upcall(*service.slot);
        if let ServiceEntry::Unentered(deferred_slot) = service.entry {
            if begins_in_upcall {
                // The scopes of the upcall are those of the future. Calls that block are reported to an executor.
                let executor = service.executor.clone();
                let scope = executor.map(|executor| PollScope::enter(*service.orb, Some(executor as _)));
                let polled = service.task.as_mut().poll(cx);
                drop(scope);
                if polled.is_ready() {
                    return polled;
                }
                *service.entry = ServiceEntry::from_entered(deferred_slot.enter());
                return self.poll_cancellation(cx);
            }
            match deferred_slot.poll_entered(cx.waker()).map(ServiceEntry::from_entered) {
                Some(entered) => *service.entry = entered,
                None => return Poll::Pending,
            }
        }
        let ServiceEntry::Entered { cancellation, kept_use } = service.entry else { return Poll::Pending };
        if cancellation.is_cancelled() {
            return Poll::Ready(());
        }
        let scope = PollScope::enter(*service.orb, service.executor.clone().map(|executor| executor as _));
        let served = ServedScope::enter(cancellation);
        let deadline = service.deadline.map(InheritedDeadline::enter);
        let mut poll = || match service.observed {
            Some(observed) => observed.in_scope(|| service.task.as_mut().poll(cx)),
            None => untraced(|| service.task.as_mut().poll(cx)),
        };
        let mut polled = Poll::Pending;
        match kept_use {
            Some(kept_use) => kept_use.poll_inside(&mut || polled = poll()),
            None => polled = poll(),
        }
        drop((deadline, served, scope));
        if polled.is_pending() { self.poll_cancellation(cx) } else { polled }
    }
}

impl<F> DeferredService<F> {
    /// Registers the task for the cancellation. Ready if the request is cancelled.
    fn poll_cancellation(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let ServiceEntry::Entered { cancellation, .. } = self.project().entry else { return Poll::Pending };
        cancellation.poll(SERVING, cx.waker()).map_or(Poll::Pending, |_| Poll::Ready(()))
    }
}

impl OwnedRequest {
    fn origin(&self) -> &Arc<dyn RequestOrigin> {
        &self.deferred_slot.origin
    }

    /// A decoder of the request, whose values are charged while this exists.
    fn decoder(&self) -> Decoder<'_> {
        let decoder = self.origin().decoder(&self.message);
        match &self.deferred_slot.memory {
            Some(memory) => memory.of(decoder),
            None => decoder,
        }
    }

    /// The header, and a decoder of the arguments.
    #[inline]
    fn parts<'r>(&'r self, origin: &'r dyn RequestOrigin) -> Result<(RequestHeader<'r>, Decoder<'r>), GiopError> {
        let mut arguments = origin.decoder(&self.message);
        let header = self.header.as_ref().and_then(|header| header.header(self.message.octets()));
        match header {
            Some(header) => Ok((header, arguments.at(self.body))),
            None => Ok((RequestHeader::decode(&mut arguments)?, arguments)),
        }
    }

    /// The state of the request when it was deferred.
    fn state<'r>(&'r self, request: &'r ReceivedRequest<'r>) -> RequestState<'r> {
        let (flow, observed) = (self.flow.as_ref(), self.observed.as_ref());
        RequestState { response: self.response, flow, observed, ..RequestState::new(request) }
    }

    /// Calls `then` with the decoded request.
    fn with(&self, then: impl FnOnce(&RequestState<'_>)) {
        if self.origin().orb().is_copied() {
            return;
        }
        let Ok((header, _)) = self.parts(&**self.origin()) else { return };
        let _urgency = ReplyUrgencyScope::enter(self.urgency);
        let request =
            ReceivedRequest::new(&**self.origin(), &self.message, &header).with_deferred_slot(&self.deferred_slot);
        let state = self.state(&request);
        match state.observed {
            Some(observed) => observed.in_scope(|| then(&state)),
            None => then(&state),
        }
    }
}

impl DeferredCall {
    fn slot(&self) -> &DeferredSlot {
        &self.request.deferred_slot
    }

    /// Returns a decoder of the arguments. Values lent from it live as long as this call.
    ///
    /// # Errors
    /// None at present, as for [`ServerCall::arguments`].
    pub fn arguments(&self) -> Result<Decoder<'_>, SystemException> {
        Ok(self.request.decoder().at(self.request.body))
    }

    /// Whether the reply is no longer needed. [`CancelReason`] has the reasons.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.slot().cancellation().is_cancelled()
    }

    /// The token that shows whether the reply is still needed, and if not, for what reason.
    #[must_use]
    pub fn cancellation(&self) -> CancellationToken {
        CancellationToken::new(self.slot().cancellation())
    }

    /// Calls `how` to reply. If the call was answered or cancelled before, `how` is not called.
    ///
    /// # Errors
    /// The error of `how`. If it has not replied, the call can be answered again.
    pub fn answer(
        &self,
        how: impl FnOnce(ServerCall<'_>) -> Result<Replied, SystemException>,
    ) -> Result<Replied, SystemException> {
        self.answer_through(self.origin(), how)
    }

    /// As [`answer`](Self::answer), with a reply through `origin`, which stands for that of the request.
    pub(crate) fn answer_through(
        &self,
        origin: &dyn RequestOrigin,
        serve: impl FnOnce(ServerCall<'_>) -> Result<Replied, SystemException>,
    ) -> Result<Replied, SystemException> {
        let OwnedRequest { message, flow, deferred_slot, .. } = &self.request;
        origin.orb().check_process()?;
        let (header, arguments) = self.request.parts(origin)?;
        let request_context = RequestContext::of(deferred_slot.deadline);
        let is_marshaled = self.is_begun && (flow.is_some() || self.ends_before_reply);
        let reply_slot = is_marshaled.then(ReplySlot::default);
        // The reply ends the cancellation of the upcall, if the request has none of its own.
        let upcall =
            if deferred_slot.entered().is_none() { deferred_slot.request_key.upcall } else { UpcallNumber::NONE };
        let request = ReceivedRequest::new(origin, message, &header)
            .with_upcall_number(upcall)
            .with_deferred_slot(deferred_slot)
            .with_context(request_context.as_ref());
        let state = RequestState { reply_slot: reply_slot.as_ref(), ..self.request.state(&request) };
        if self.slot().is_cancelled() || self.is_over.swap(true, Ordering::SeqCst) {
            return Ok(Replied(()));
        }
        if let (false, Some(deadline)) = (self.is_begun, &deferred_slot.deadline)
            && let Err(late) = deadline.check()
        {
            // The request waited for its servant, and its deadline has passed meanwhile.
            self.is_over.store(false, Ordering::SeqCst);
            origin.orb().statistics().refused_expired();
            return Err(late);
        }
        let mut slots = interception::lend_slots(flow.as_ref());
        let _urgency = ReplyUrgencyScope::enter(self.request.urgency);
        let _served = deferred_slot.entered().map(|entered| ServedScope::enter(&entered.cancellation));
        let _deadline = deferred_slot.deadline.and_then(|deadline| deadline.answer).map(InheritedDeadline::enter);
        let attempt = ReplyAttempt { is_over: &self.is_over, request: &request };
        let replied = match state.observed {
            Some(observed) => observed.in_scope(|| serve(ServerCall::new(&state, &arguments))),
            None => serve(ServerCall::new(&state, &arguments)),
        }?;
        std::mem::forget(attempt);
        if self.ends_before_reply {
            // Another thread may end the call.
            drop(slots.take());
        }
        if let Some(reply) = reply_slot.and_then(|reply_slot| reply_slot.take()) {
            self.conclude(move |state, ended| match ended {
                Err(exception) if reply.status == ReplyStatus::NoException => answer_exception(state, &exception),
                _ => {
                    if let Err(error) = answer_marshaled(state, &reply) {
                        tracing::error!(%error, "a deferred reply could not be marshaled");
                    }
                }
            });
        }
        Ok(replied)
    }

    /// Ends the call. An error is sent as its reply, unless the call was answered before.
    pub fn end(self, outcome: Result<Replied, SystemException>) {
        self.end_with(outcome);
        request_memory::give_to_thread(self.into_memory());
    }

    pub(crate) fn end_with(&self, outcome: Result<Replied, SystemException>) {
        if let (Err(exception), false) = (outcome, self.is_over.swap(true, Ordering::SeqCst)) {
            self.fail(if self.passes_on { exception.passed_on() } else { exception });
        }
    }

    fn fail(&self, exception: SystemException) {
        self.conclude(move |state, _| answer_exception(state, &exception));
    }

    /// Ends the use of the servant if it has to end before the reply. Then calls `then`, possibly in another
    /// thread.
    fn conclude(&self, then: impl FnOnce(&RequestState<'_>, Result<(), SystemException>) + Send + 'static) {
        match &self.kept_use.0 {
            Some(kept_use) if self.ends_before_reply => {
                let request = self.request.clone();
                kept_use.end(Box::new(move |ended| {
                    if let Err(exception) = &ended {
                        tracing::debug!(%exception, "postinvoke raised an exception");
                    }
                    request.with(|state| then(state, ended));
                }));
            }
            _ => self.request.with(|state| then(state, Ok(()))),
        }
    }

    /// Cancels the call ([`CancelReason::TimeExceeded`]) and sends the exception, while another thread answers it: that
    /// reply is not sent. False, without an effect, if it was cancelled before, or a reply is being sent or was sent.
    pub(crate) fn end_early(&self, exception: &SystemException) -> bool {
        let (origin, OwnedRequest { message, response, deferred_slot, .. }) = (self.origin(), &self.request);
        let Ok((header, _)) = self.request.parts(origin) else { return false };
        if origin.orb().is_copied()
            || self.is_cancelled()
            || !deferred_slot.cancellation().try_cancel(CancelReason::TimeExceeded)
        {
            return false;
        }
        let _urgency = ReplyUrgencyScope::enter(self.request.urgency);
        let request = ReceivedRequest::new(origin, message, &header).with_deferred_slot(deferred_slot).ending_early();
        // Interceptors and diagnostics see the servant's own outcome.
        answer_exception(&RequestState { response: *response, ..RequestState::new(&request) }, exception);
        true
    }

    /// Begins a held request at its start time: `run` runs it anew.
    pub(crate) fn begin(self, run: impl FnOnce(&RequestState<'_>, &mut Decoder<'_>)) {
        if self.slot().is_cancelled() || self.is_over.swap(true, Ordering::SeqCst) {
            return;
        }
        let OwnedRequest { message, deferred_slot, .. } = &self.request;
        let mut arguments = self.request.decoder();
        let Ok(header) = RequestHeader::decode(&mut arguments) else { return };
        let deadline = deferred_slot.deadline.map(|deadline| RequestDeadline { start: None, ..deadline });
        let request_context = RequestContext::of(deadline);
        let request = ReceivedRequest::new(self.origin(), message, &header)
            .with_deferred_slot(deferred_slot)
            .with_context(request_context.as_ref());
        run(&self.request.state(&request), &mut arguments);
    }

    /// TIMEOUT for a deadline that has passed. It is sent, because the client may still wait if clocks
    /// differ.
    fn too_late(&self) -> SystemException {
        let begun = if self.is_begun { CompletionStatus::Maybe } else { CompletionStatus::No };
        SystemException::timeout(minor::ROUND_TRIP_EXPIRED, begun)
            .with_detail("the deadline of the client passed before the servant had replied")
    }

    /// Ends the call, and returns its memory for another one, as far as nothing else refers to it.
    pub(crate) fn into_memory(self) -> UnusedMemory {
        let (octets, mut slot) = (self.request.message.reusable_block(), Arc::clone(&self.request.deferred_slot));
        drop(self);
        let cancellation = Arc::get_mut(&mut slot).and_then(DeferredSlot::leave);
        let slot = cancellation.is_some().then_some(slot);
        UnusedMemory { octets, cancellation, slot, work: None }
    }

    /// Gives the reply the urgency that an executor has chosen for the request.
    pub(crate) fn set_urgency(&mut self, urgency: ReplyUrgency) {
        self.request.urgency = urgency;
    }

    /// The address of the request's origin, which the request keeps alive.
    pub(crate) fn origin_address(&self) -> usize {
        Arc::as_ptr(self.request.origin()).addr()
    }

    /// The origin of the request.
    pub(crate) fn origin(&self) -> &dyn RequestOrigin {
        &**self.request.origin()
    }

    pub(crate) fn operation(&self) -> String {
        self.request.parts(self.origin()).map_or_else(|_| String::new(), |(header, _)| header.operation.to_string())
    }
}

/// The time in which a call is being answered. If the attempt fails before a reply was sent, another may
/// follow.
struct ReplyAttempt<'c> {
    is_over: &'c AtomicBool,
    request: &'c ReceivedRequest<'c>,
}

impl Drop for ReplyAttempt<'_> {
    fn drop(&mut self) {
        if !self.request.is_answered() {
            self.is_over.store(false, Ordering::SeqCst);
        }
    }
}

impl Drop for DeferredCall {
    fn drop(&mut self) {
        if self.origin().orb().is_copied() {
            // The original process answers the call.
            return;
        }
        if self.is_over.load(Ordering::SeqCst) {
            return;
        }
        let reason = self.slot().cancellation().reason();
        if reason == Some(CancelReason::DeadlineElapsed) {
            self.fail(self.too_late());
        } else if reason.is_some() && self.request.flow.is_some() {
            let cancelled = SystemException::transient(minor::REQUEST_CANCELLED, CompletionStatus::Maybe);
            self.conclude(move |state, _| interception::give_up(state, &cancelled));
        } else if reason.is_none() {
            let exception = if std::thread::panicking() {
                panicked(&self.operation(), &"a task of it")
            } else {
                SystemException::no_response(0, CompletionStatus::Maybe).with_detail("the servant never answered")
            };
            self.fail(exception);
        }
    }
}

impl fmt::Debug for DeferredCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeferredCall").field("request_key", &self.slot().request_key).finish_non_exhaustive()
    }
}

fn no_threads(error: std::io::Error) -> SystemException {
    SystemException::no_resources(0, CompletionStatus::No)
        .with_detail("the threads for asynchronous servants could not be started")
        .with_source(error)
}
