//! A request that the server has read: its message and its origin, and its state on the way to the reply.
//!
//! The steps of an upcall pass it on, and send the reply through it. Nothing is run here.

use std::fmt;

use spandrel_cdr::{CdrError, Encoder, GiopVersion};
use spandrel_giop::{
    ContextLimits, Message, ReplyStatus, RequestHeader, ResponseFlags, ServiceContext, ServiceContexts,
    SystemException, begin_reply,
};
use spandrel_orb::{
    Target,
    internal::{
        ObservedRequest, ServerFlow,
        cancellation::{CancellationSource, renew},
        request_deadline,
        request_deadlines::RequestDeadline,
        scratch,
    },
};
use spandrel_sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
    time::Instant,
};
use spandrel_transport::DecodedMemory;

use super::{
    deferred_slot::{DeferredEntry, DeferredSlot, Entered, KeepInUse, UnusedMemory},
    marshaled_reply::{MarshaledReply, ReplySlot},
    origin::{AnswerKind, RequestKey, RequestOrigin, UnusedSource, UpcallNumber},
};
use crate::reply_urgency;

/// A request's record for its interceptors.
pub(crate) type RequestFlow = Arc<ServerFlow>;

/// The contents of a request's service contexts. Few requests have any.
#[derive(Debug)]
pub(crate) struct RequestContext {
    /// The error of the contexts, if they have one.
    pub(crate) check: Result<(), SystemException>,
    /// The deadline of the request.
    pub(crate) deadline: Option<RequestDeadline>,
}

impl RequestContext {
    /// The contents of these contexts. If they are within the limits, `remember` records the ones that hold
    /// for later requests.
    pub(crate) fn from_contexts(
        contexts: &ServiceContexts<'_>,
        limits: ContextLimits,
        remember: impl FnOnce() -> Result<(), SystemException>,
    ) -> Self {
        let check = contexts.check(limits).and_then(|()| remember());
        Self { check, deadline: request_deadline(contexts) }
    }

    /// A context with a deadline only.
    pub(crate) fn of(deadline: Option<RequestDeadline>) -> Option<Self> {
        deadline.map(|deadline| Self { check: Ok(()), deadline: Some(deadline) })
    }
}

/// A request that the server has read. Its steps change nothing of it; [`RequestState`] has what they find.
pub(crate) struct ReceivedRequest<'m> {
    pub(crate) origin: &'m dyn RequestOrigin,
    pub(crate) message: &'m Message,
    pub(crate) header: &'m RequestHeader<'m>,
    /// The contents of its service contexts, if it has any.
    pub(crate) request_context: Option<&'m RequestContext>,
    /// The number of its upcall among those of its origin.
    upcall: UpcallNumber,
    /// Its entry among the deferred requests of its origin, if it was deferred.
    pub(crate) deferred_slot: Option<&'m Arc<DeferredSlot>>,
    /// Whether it was answered or deferred. If so, a failure of the servant sends no reply.
    is_answered: AtomicBool,
    /// Whether the reply is that of another thread, which ends the request before its servant.
    ends_early: bool,
}

impl<'m> ReceivedRequest<'m> {
    #[inline]
    pub(crate) fn new(origin: &'m dyn RequestOrigin, message: &'m Message, header: &'m RequestHeader<'m>) -> Self {
        let is_answered = AtomicBool::new(false);
        Self {
            origin,
            message,
            header,
            request_context: None,
            upcall: UpcallNumber::NONE,
            deferred_slot: None,
            is_answered,
            ends_early: false,
        }
    }

    #[inline]
    pub(crate) fn with_context(self, request_context: Option<&'m RequestContext>) -> Self {
        Self { request_context, ..self }
    }

    #[inline]
    pub(crate) fn with_upcall_number(self, upcall: UpcallNumber) -> Self {
        Self { upcall, ..self }
    }

    pub(crate) fn with_deferred_slot(self, deferred_slot: &'m Arc<DeferredSlot>) -> Self {
        Self { deferred_slot: Some(deferred_slot), ..self }
    }

    /// The request as the thread sees it that ends it before its servant.
    pub(crate) fn ending_early(self) -> Self {
        Self { ends_early: true, ..self }
    }

    /// The GIOP version of the request and of its reply.
    #[inline]
    pub(crate) fn version(&self) -> GiopVersion {
        self.message.header.version
    }

    pub(crate) fn is_answered(&self) -> bool {
        self.is_answered.load(Ordering::Relaxed)
    }

    /// Records that the outcome of the upcall is not the reply.
    #[inline]
    pub(crate) fn set_answered(&self) {
        self.is_answered.store(true, Ordering::Relaxed);
    }

    /// Sends a reply, unless the request was ended early. If there is no memory to keep it until the client takes it, that
    /// exception is sent instead.
    #[inline]
    pub(crate) fn send(&self, answer: &Encoder<'_>) {
        self.set_answered();
        // A one-way WITH_SERVER is answered before it runs.
        let is_awaited = self.header.response == ResponseFlags::TWO_WAY;
        let mut may_wait = false;
        match self.deferred_slot.and_then(|deferred_slot| deferred_slot.entered()) {
            Some(entered) => {
                if is_awaited && !entered.cancellation.mark_replying() && !self.ends_early {
                    return;
                }
                // An urgent reply leaves at once: a thread of lower urgency might have to write the held ones.
                may_wait = self.origin.uncharge_deferred(entered.key) && reply_urgency::current() == 0;
                reply_urgency::prepare_packets(self.origin.transport());
            }
            None if is_awaited => self.origin.mark_replying(self.upcall),
            None => {}
        }
        // From now on the answer is charged, and the request with it if both are kept.
        self.message.block().end_charge();
        let request_octets = self.message.header.total_len();
        if let Err(exception) = self.origin.send(answer, AnswerKind::Reply { request_octets, may_wait }) {
            self.refuse_over_budget(&exception);
        }
    }

    /// Sends the exception for a reply that exceeds a memory limit.
    #[cold]
    fn refuse_over_budget(&self, exception: &SystemException) {
        let mut out = Encoder::new(self.origin.wire(self.version()));
        let detail = self.origin.services().settings().sent_detail(exception);
        let body = begin_reply(&mut out, self.header.request_id, ReplyStatus::SystemException, detail.as_slice());
        let sent = exception.encode(&mut out).and_then(|()| body.end(&mut out));
        if let Err(error) = sent.map(|()| self.origin.send(&out, AnswerKind::Refusal)) {
            let services = self.origin.services();
            log_limited!(error, services, "exception", %error, %exception, "an exception could not be marshaled");
        }
    }

    /// The deadline of the request, if it has one.
    pub(crate) fn deadline(&self) -> Option<RequestDeadline> {
        self.request_context?.deadline
    }

    /// The key of the request among those of its origin.
    pub(crate) fn request_key(&self, is_one_way: bool) -> RequestKey {
        RequestKey { request_id: self.header.request_id, is_one_way, upcall: self.upcall }
    }

    /// Enters the running request among the deferred ones of its origin.
    ///
    /// # Errors
    /// TRANSIENT if too many requests are deferred, or if a memory limit would be exceeded.
    pub(crate) fn enter_deferred(
        &self,
        is_one_way: bool,
        unused: &mut UnusedMemory,
    ) -> Result<Arc<DeferredSlot>, SystemException> {
        let unused_source = UnusedSource { deadline: self.answer_deadline(), memory: unused.cancellation.take() };
        let entry = self.unentered(is_one_way, None);
        let (key, cancellation) = entry.origin.enter_deferred(entry.request_key, entry.octets, unused_source)?;
        entry.set_entered(Entered { key, cancellation, kept_use: None });
        Ok(renew(unused.slot.take(), DeferredSlot::new(entry)))
    }

    /// A slot of the running request, which is entered when its future has to wait. `keep_in_use`: keeps its servant in use
    /// then.
    pub(crate) fn enter_late(&self, keep_in_use: KeepInUse, unused: &mut UnusedMemory) -> Arc<DeferredSlot> {
        let is_one_way = self.header.response != ResponseFlags::TWO_WAY;
        renew(unused.slot.take(), DeferredSlot::new(self.unentered(is_one_way, Some(keep_in_use))))
    }

    fn unentered(&self, is_one_way: bool, keep_in_use: Option<KeepInUse>) -> DeferredEntry {
        let origin = self.origin.shared();
        let limit = origin.wire(self.version()).limits.decoded_memory(self.message.octets().len());
        let memory = origin.account().map(|account| DecodedMemory::new(Arc::clone(account), limit));
        let (key, octets) = (self.request_key(is_one_way), self.message.uncharged_len());
        DeferredEntry::new(origin, key, octets, self.deadline(), memory, keep_in_use)
    }

    fn answer_deadline(&self) -> Option<Instant> {
        self.deadline().and_then(|deadline| deadline.answer)
    }

    /// The state by which the request can be cancelled.
    pub(crate) fn cancellation_source(&self) -> Arc<CancellationSource> {
        match self.deferred_slot {
            Some(deferred_slot) => deferred_slot.cancellation(),
            None => {
                let is_one_way = self.header.response != ResponseFlags::TWO_WAY;
                self.origin.cancellation_source(self.request_key(is_one_way), self.answer_deadline())
            }
        }
    }
}

/// The state of a request on the way to its reply. Each step that finds more makes another one.
#[derive(Clone, Copy)]
pub(crate) struct RequestState<'m> {
    pub(crate) request: &'m ReceivedRequest<'m>,
    /// The response that the client still expects: none for a one-way WITH_SERVER that was answered before it runs.
    pub(crate) response: ResponseFlags,
    /// The object, for the interception points of the reply.
    pub(crate) target: Option<&'m dyn Target>,
    /// Its record for interceptors, if there are any.
    pub(crate) flow: Option<&'m RequestFlow>,
    /// The state of its observation, if it is observed.
    pub(crate) observed: Option<&'m Arc<ObservedRequest>>,
    /// The slot for its reply, if the reply is marshaled whole before it is sent.
    pub(crate) reply_slot: Option<&'m ReplySlot>,
}

impl<'m> RequestState<'m> {
    #[inline]
    pub(crate) fn new(request: &'m ReceivedRequest<'m>) -> Self {
        let response = request.header.response;
        Self { request, response, target: None, flow: None, observed: None, reply_slot: None }
    }

    /// Sends a marshaled reply with further contexts, if the client waits for one.
    pub(crate) fn send_marshaled(&self, reply: &MarshaledReply, added: &[ServiceContext]) -> Result<(), CdrError> {
        if !self.response.is_expected() {
            return Ok(());
        }
        let mut out = Encoder::reusing(scratch::take(), self.request.origin.wire(self.request.version()));
        let written = reply.write(self.request.header.request_id, added, &mut out);
        if written.is_ok() {
            self.request.send(&out);
        }
        scratch::give(out);
        written
    }
}

impl fmt::Debug for ReceivedRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReceivedRequest")
            .field("header", self.header)
            .field("version", &self.version())
            .finish_non_exhaustive()
    }
}
