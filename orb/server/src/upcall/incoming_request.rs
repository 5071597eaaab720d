//! A request that is being served: what it asks, where it came from, and what is known of it so far.

use std::fmt;

use spandrel_cdr::GiopVersion;
use spandrel_giop::{ContextLimits, Message, RequestHeader, ResponseFlags, ServiceContexts, SystemException};
use spandrel_orb::{
    Target, cancellation::CancellationSource, deadlines::RequestDeadline, diagnostics::ObservedRequest,
    interception::ServerFlow, policies::request_deadline,
};
use spandrel_sync::{Arc, atomic::AtomicBool};

use super::{
    marshaled_reply::ReplySlot,
    origin::{RequestKey, RequestOrigin},
};

/// What a request has with it for its interceptors.
pub(crate) type RequestFlow = Arc<ServerFlow>;

/// What a request says besides what it asks; few say anything.
#[derive(Debug)]
pub(crate) struct RequestContext {
    /// What is wrong with it.
    pub(crate) said: Result<(), SystemException>,
    /// Until when the request is worth anything.
    pub(crate) due: Option<RequestDeadline>,
}

impl RequestContext {
    /// What these contexts say of a request. `remember` keeps what they say for those after it, if they are not too many or too long.
    pub(crate) fn from_contexts(
        contexts: &ServiceContexts<'_>,
        limits: ContextLimits,
        remember: impl FnOnce() -> Result<(), SystemException>,
    ) -> Self {
        let said = contexts.check(limits).and_then(|()| remember());
        Self { said, due: request_deadline(contexts) }
    }

    /// Only that.
    pub(crate) fn of(due: Option<RequestDeadline>) -> Option<Self> {
        due.map(|due| Self { said: Ok(()), due: Some(due) })
    }
}

/// What was asked, by whom, and in which version it must be answered.
pub(crate) struct IncomingRequest<'m> {
    pub(crate) origin: &'m dyn RequestOrigin,
    pub(crate) message: &'m Message,
    pub(crate) header: &'m RequestHeader<'m>,
    pub(crate) version: GiopVersion,
    /// The object, for the interception points of the reply.
    pub(crate) target: Option<&'m dyn Target>,
    /// What interceptors know of it.
    pub(crate) flow: Option<&'m RequestFlow>,
    /// What those have of it who watch it.
    pub(crate) watched: Option<&'m Arc<ObservedRequest>>,
    /// What it has had since it was deferred, if it was.
    pub(crate) deferred_slot: Option<&'m Arc<DeferredSlot>>,
    /// The place for its reply, if that is marshaled whole before it is sent.
    pub(crate) reply_slot: Option<&'m ReplySlot>,
    /// Which upcall of its origin it is.
    pub(crate) turn: u64,
    /// What its client has said besides.
    pub(crate) request_context: Option<&'m RequestContext>,
    /// Set once an answer was sent, or is somebody else's matter: a servant that fails after that gets no second one.
    pub(crate) is_answered: &'m AtomicBool,
}

impl<'m> IncomingRequest<'m> {
    #[inline]
    pub(crate) fn new(
        origin: &'m dyn RequestOrigin,
        message: &'m Message,
        header: &'m RequestHeader<'m>,
        is_answered: &'m AtomicBool,
    ) -> Self {
        Self {
            origin,
            message,
            header,
            version: message.header.version,
            target: None,
            flow: None,
            watched: None,
            deferred_slot: None,
            reply_slot: None,
            turn: 0,
            request_context: None,
            is_answered,
        }
    }
}

impl IncomingRequest<'_> {
    /// Until when it is worth anything, if its client has said.
    pub(crate) fn due(&self) -> Option<RequestDeadline> {
        self.request_context?.due
    }

    /// Which request it is of its origin's.
    pub(crate) fn request_key(&self, is_one_way: bool) -> RequestKey {
        RequestKey { request_id: self.header.request_id, is_one_way, turn: self.turn }
    }

    /// A place among the deferred requests of its origin, for one that runs.
    ///
    /// # Errors
    /// TRANSIENT if too many have one.
    pub(crate) fn enter_deferred(&self, is_one_way: bool) -> Result<Arc<DeferredSlot>, SystemException> {
        let (origin, due) = (self.origin.shared(), self.due());
        let request_key = self.request_key(is_one_way);
        let cancellation = origin.cancellation_source(request_key, due.and_then(|due| due.answer));
        let key = origin.enter_deferred(request_key, self.message.header.total_len(), &cancellation)?;
        Ok(Arc::new(DeferredSlot { origin, key, is_one_way, cancellation, due }))
    }

    /// What may cancel it.
    pub(crate) fn cancellation_source(&self) -> Arc<CancellationSource> {
        match self.deferred_slot {
            Some(deferred_slot) => Arc::clone(&deferred_slot.cancellation),
            None => {
                let is_one_way = self.header.response != ResponseFlags::TWO_WAY;
                self.origin.cancellation_source(self.request_key(is_one_way), self.due().and_then(|due| due.answer))
            }
        }
    }
}

impl fmt::Debug for IncomingRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asked").field("header", self.header).field("version", &self.version).finish_non_exhaustive()
    }
}

/// A place among the deferred calls of an origin. A request that is deferred again while it is answered keeps it: it is not in its own way.
#[derive(Debug)]
pub(crate) struct DeferredSlot {
    pub(crate) origin: Arc<dyn RequestOrigin>,
    pub(crate) key: u64,
    pub(crate) is_one_way: bool,
    pub(crate) cancellation: Arc<CancellationSource>,
    /// Until when it is worth anything, if its client has said.
    pub(crate) due: Option<RequestDeadline>,
}

impl Drop for DeferredSlot {
    fn drop(&mut self) {
        // In a copy of the process it is the original's.
        if !self.origin.orb().is_copied() {
            self.cancellation.mark_answered();
            self.origin.leave_deferred(self.key);
        }
    }
}
