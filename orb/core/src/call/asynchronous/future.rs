//! The future of a reply, and the methods of references that return one.

use std::{
    borrow::Cow,
    fmt,
    future::Future,
    marker::PhantomData,
    pin::Pin,
    task::{Context, Poll, Waker, ready},
};

use spandrel_cdr::{CdrError, Decoder, Encoder, Wire};
use spandrel_giop::{CompletionStatus, ResponseFlags, SystemException};
use spandrel_sync::{Arc, atomic::Ordering};

use super::{
    arguments::{Arguments, CallArguments, SharedArguments},
    call::{Call, Outcome},
};
use crate::{
    Answer, BoundCall, CallerState, Interface, ObjectRef, UserExceptions,
    call::invocation::unreadable,
    client::{Reply, first_failure, urgency::Urgency},
    reference::object::OBJECT_ID,
};

/// The reply to an asynchronous request. The request is sent whether or not the future is polled.
///
/// Any executor may poll it. It becomes ready with the reply, when the connection is lost, when the
/// reference's time-out has passed, or at the latest when the ORB is shut down (BAD_INV_ORDER).
///
/// Dropping it abandons the request: a later reply is dropped. If the reference names a server of this ORB's
/// kind, the server gets a CancelRequest (GIOP 1.2). It may nevertheless have acted on the request.
///
/// # Panics
/// If it is polled after it was ready.
///
/// ```
/// # use spandrel_orb as spandrel;
/// use spandrel::{ObjectRef, SystemException};
///
/// async fn exists(object: &ObjectRef) -> Result<bool, SystemException> {
///     let request = object.is_a_async("IDL:Bank/Account:1.0"); // the request is on its way
///     request.await
/// }
/// ```
#[must_use = "dropping it abandons the request"]
pub struct AsyncReply<R, E> {
    answer: AsyncRawReply,
    decode: fn(&mut Decoder<'_>) -> Result<R, CdrError>,
    error: PhantomData<fn() -> E>,
}

/// A reference narrowed to the interface `I`: the result of [`ObjectRef::narrow_async`]. The request is sent whether or
/// not the future is polled.
///
/// # Panics
/// If it is polled after it was ready.
#[must_use = "dropping it abandons the request"]
pub struct NarrowReply<I> {
    object: ObjectRef,
    /// None if the reference names the interface.
    request: Option<AsyncReply<bool, SystemException>>,
    interface: PhantomData<fn() -> I>,
}

impl<I: Interface> Future for NarrowReply<I> {
    type Output = Result<I, SystemException>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let is_a = match &mut self.request {
            Some(request) => ready!(Pin::new(request).poll(context))?,
            None => true,
        };
        let object = &self.object;
        Poll::Ready(if is_a { Ok(object.unchecked_narrow()) } else { Err(object.narrow_failure(I::REPOSITORY_ID)) })
    }
}

impl<I> fmt::Debug for NarrowReply<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NarrowReply").field("object", &self.object).finish_non_exhaustive()
    }
}

/// As [`AsyncReply`], but the caller decodes the reply; a one-way has none.
#[must_use = "dropping it abandons the request"]
pub struct AsyncRawReply(State);

enum State {
    Waiting(Arc<Call>),
    /// The request could not be sent.
    Failed(SystemException),
    Taken,
}

impl ObjectRef {
    /// Invokes a two-way operation and returns at once: the arguments are marshaled, and the future waits for
    /// the reply.
    ///
    /// The call does not wait for the network. A thread opens a new connection, and octets that the transport
    /// does not accept at once are written later. The time of the call itself is that of marshaling and
    /// copying the arguments.
    ///
    /// A request is sent again under the same conditions as by [`invoke`](Self::invoke). The reference's
    /// [time-out](Self::timeout) begins with this call. The ORB's `pending_requests` limits the requests that
    /// wait on one connection; further requests end in TRANSIENT.
    pub fn invoke_async<'a, R, E: UserExceptions>(
        &self,
        operation: impl Into<Cow<'static, str>>,
        encode: impl Fn(&mut Encoder<'a>) -> Result<(), CdrError>,
        decode: fn(&mut Decoder<'_>) -> Result<R, CdrError>,
    ) -> AsyncReply<R, E> {
        AsyncReply::new(self.start(operation.into(), ResponseFlags::TWO_WAY, None, encode), decode)
    }

    /// As [`invoke_async`](Self::invoke_async), one of several requests with the same arguments to different objects. The
    /// first one marshals them by `encode`, and the others send the same octets. All name the same `operation`, and their
    /// functions `encode` write the same values.
    pub fn invoke_shared_async<'a, R, E: UserExceptions>(
        &self,
        operation: impl Into<Cow<'static, str>>,
        arguments: &SharedArguments,
        encode: impl Fn(&mut Encoder<'a>) -> Result<(), CdrError>,
        decode: fn(&mut Decoder<'_>) -> Result<R, CdrError>,
    ) -> AsyncReply<R, E> {
        AsyncReply::new(self.start(operation.into(), ResponseFlags::TWO_WAY, Some(arguments), encode), decode)
    }

    /// Invokes a one-way operation and returns at once. The future is ready once the transport has accepted
    /// the request, or later if the reference's sync scope requires it. Dropping it before may prevent the
    /// sending.
    pub fn send_oneway_async<'a>(
        &self,
        operation: impl Into<Cow<'static, str>>,
        encode: impl Fn(&mut Encoder<'a>) -> Result<(), CdrError>,
    ) -> AsyncReply<(), SystemException> {
        AsyncReply::new(self.start(operation.into(), self.oneway_response(), None, encode), |_| Ok(()))
    }

    /// As [`invoke_async`](Self::invoke_async), but returns the undecoded reply. Without an expected response
    /// it is a one-way as by [`send_oneway_async`](Self::send_oneway_async).
    pub fn invoke_raw_async<'a>(
        &self,
        operation: impl Into<Cow<'static, str>>,
        is_response_expected: bool,
        encode: impl Fn(&mut Encoder<'a>) -> Result<(), CdrError>,
    ) -> AsyncRawReply {
        let response = if is_response_expected { ResponseFlags::TWO_WAY } else { self.oneway_response() };
        AsyncRawReply::new(self.start(operation.into(), response, None, encode))
    }

    /// As [`is_a`](Self::is_a), asynchronously.
    ///
    /// # Errors
    /// Any system exception of the call.
    pub fn is_a_async(
        &self,
        repository_id: &str,
    ) -> impl Future<Output = Result<bool, SystemException>> + Send + 'static + use<> {
        let request = self.request_is_a(repository_id);
        async move {
            match request {
                Some(request) => request.await,
                None => Ok(true),
            }
        }
    }

    /// As [`narrow`](Self::narrow), asynchronously.
    ///
    /// # Errors
    /// BAD_PARAM if the object does not support the interface; any system exception of `_is_a`.
    pub fn narrow_async<I: Interface>(&self) -> NarrowReply<I> {
        NarrowReply { object: self.clone(), request: self.request_is_a(I::REPOSITORY_ID), interface: PhantomData }
    }

    /// The request of `_is_a`; `None` if the reference itself names the interface.
    fn request_is_a(&self, repository_id: &str) -> Option<AsyncReply<bool, SystemException>> {
        let is_known = repository_id == self.type_id() || repository_id == OBJECT_ID;
        (!is_known).then(|| self.invoke_async("_is_a", |out| out.short_str(repository_id), |input| input.bool()))
    }

    fn start<'a>(
        &self,
        operation: Cow<'static, str>,
        response: ResponseFlags,
        shared: Option<&SharedArguments>,
        encode: impl Fn(&mut Encoder<'a>) -> Result<(), CdrError>,
    ) -> Result<Arc<Call>, SystemException> {
        self.orb().check_running()?;
        if self.orb().has_client_interceptors()
            && let Some(binding) = self.orb().binding_policies()
        {
            let BoundCall { route, caller, urgency } = binding.begin_call(self)?;
            let bound = Some((caller, urgency));
            return route.as_ref().unwrap_or(self).start_bound(operation, response, shared, encode, bound);
        }
        self.start_bound(operation, response, shared, encode, None)
    }

    /// As [`start`](Self::start), by this reference. `bound`: the record of binding policies about the calling thread,
    /// and the urgency of the call.
    fn start_bound<'a>(
        &self,
        operation: Cow<'static, str>,
        response: ResponseFlags,
        shared: Option<&SharedArguments>,
        encode: impl Fn(&mut Encoder<'a>) -> Result<(), CdrError>,
        bound: Option<(CallerState, Urgency)>,
    ) -> Result<Arc<Call>, SystemException> {
        let forward = self.forwarded();
        let destinations = self.destinations(forward.as_deref())?;
        let preferred = self.preferred().load(Ordering::Relaxed) % destinations.len();
        let destination = &destinations[preferred];
        if destination.is_collocated
            && response != ResponseFlags::TWO_WAY
            && let Some(server_side) = self.orb().server_side()
        {
            server_side.record_one_way(self.orb());
        }
        let own = &self.orb().settings().code_sets;
        let marshal = || Arguments::marshal(destination, own, &operation, encode);
        let arguments = match shared {
            Some(shared) => shared.arguments(destination, own, marshal),
            None => marshal().map(CallArguments::Own),
        };
        let arguments = arguments.map_err(|failure| failure.exception)?;
        Call::start(self, operation, response, arguments, bound)
    }

    /// Writes the buffered one-ways of the connections of this thread's calls: those with the sync scope NONE, sent by
    /// any reference (`TAO::BUFFER_FLUSH`). Each other message on these connections also flushes them, and so
    /// does a short timer.
    ///
    /// # Errors
    /// TIMEOUT if the peer does not read within the reference's time-out; the one-ways stay buffered.
    /// COMM_FAILURE if they are lost.
    pub fn flush(&self) -> Result<(), SystemException> {
        self.orb().check_running()?;
        if let Some(binding) = self.orb().binding_policies()
            && let Some(route) = binding.begin_call(self)?.route
        {
            return route.flush();
        }
        let deadline = self.call_policies().deadline;
        let forward = self.forwarded();
        let destinations = self.destinations(forward.as_deref())?;
        let flushed = destinations.iter().map(|destination| destination.peer.flush(deadline.as_ref()));
        first_failure(flushed).map_err(|failure| failure.exception)
    }
}

impl AsyncRawReply {
    fn new(started: Result<Arc<Call>, SystemException>) -> Self {
        Self(started.map_or_else(|exception| State::Failed(exception.of_call()), State::Waiting))
    }

    /// Whether the reply has arrived, or the call has failed; if not, `waker` will be woken then. Decodes
    /// nothing.
    #[must_use]
    pub fn is_ready(&self, waker: &Waker) -> bool {
        match &self.0 {
            State::Waiting(call) => call.has_ended(waker),
            State::Failed(_) | State::Taken => true,
        }
    }

    /// The outcome, and its call if the request was started.
    fn poll_outcome(&mut self, cx: &Context<'_>) -> Poll<(Outcome, Option<Arc<Call>>)> {
        if let State::Waiting(call) = &self.0 {
            let Poll::Ready(outcome) = call.poll(cx.waker()) else { return Poll::Pending };
            let call = Arc::clone(call);
            self.0 = State::Taken;
            return Poll::Ready((outcome, Some(call)));
        }
        match std::mem::replace(&mut self.0, State::Taken) {
            State::Failed(exception) => Poll::Ready((Err(exception), None)),
            _ => panic!("the reply to a request was polled after it was ready"),
        }
    }
}

impl Future for AsyncRawReply {
    type Output = Result<Option<Answer>, SystemException>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Poll::Ready((outcome, call)) = self.poll_outcome(cx) else { return Poll::Pending };
        let answer = |reply| call.map(|call| Answer::new(call.object().clone(), reply));
        Poll::Ready(outcome.map(|reply| reply.and_then(answer)))
    }
}

impl Drop for AsyncRawReply {
    fn drop(&mut self) {
        if let State::Waiting(call) = &self.0 {
            call.abandon();
        }
    }
}

impl fmt::Debug for AsyncRawReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.0 {
            State::Waiting(call) => call.operation(),
            State::Failed(_) => "failed",
            State::Taken => "taken",
        };
        f.debug_tuple("AsyncRawReply").field(&state).finish()
    }
}

impl<R, E> AsyncReply<R, E> {
    fn new(started: Result<Arc<Call>, SystemException>, decode: fn(&mut Decoder<'_>) -> Result<R, CdrError>) -> Self {
        Self { answer: AsyncRawReply::new(started), decode, error: PhantomData }
    }

    /// Whether polling would return a result now; if not, the waker is called when it would.
    pub(crate) fn is_ready(&self, waker: &Waker) -> bool {
        self.answer.is_ready(waker)
    }
}

impl<R, E: UserExceptions> Future for AsyncReply<R, E> {
    type Output = Result<R, E>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Poll::Ready((outcome, call)) = self.answer.poll_outcome(cx) else { return Poll::Pending };
        Poll::Ready(match (outcome, call) {
            (Ok(outcome), Some(call)) => read(&call, outcome, self.decode),
            (Err(exception), _) => Err(exception.into()),
            (Ok(_), None) => Err(SystemException::internal(0, CompletionStatus::Maybe).into()),
        })
    }
}

fn read<R, E: UserExceptions>(
    call: &Call,
    reply: Option<Reply>,
    decode: fn(&mut Decoder<'_>) -> Result<R, CdrError>,
) -> Result<R, E> {
    match reply {
        Some(reply) => call.object().read_answer(call.operation(), &reply, decode),
        None => decode(&mut Decoder::new(&[], Wire::default()))
            .map_err(|error| unreadable(call.operation(), error, CompletionStatus::Yes).into()),
    }
}

impl<R, E> fmt::Debug for AsyncReply<R, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AsyncReply").field(&self.answer).finish()
    }
}
