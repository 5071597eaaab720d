//! A request as its skeleton handles it: the arguments, and at most one reply.
//!
//! A [`ServerCall`] finds the operation in the servant's table, and encodes the outcome. It does not know how
//! the reply is sent: [`answer`] passes it to the request's origin.

use std::fmt;

use spandrel_cdr::{CdrError, Decoder, Encode, Encoder, GiopVersion, Ior, Wire, engine::Value};
use spandrel_giop::{
    AddressingDisposition, CompletionStatus, Message, ReplyStatus, RequestHeader, ResponseFlags, SystemException, minor,
};
use spandrel_orb::{CancellationToken, ObjectRef, Target, UserException, UserExceptions, internal::ObservedRequest};
use spandrel_sync::Arc;

use super::{
    deferred_slot::DeferredSlot,
    interception::PointDecision,
    origin::RequestOrigin,
    received_request::{ReceivedRequest, RequestFlow, RequestState},
    reply::answer,
};

/// Proof that a call was answered, or has no reply. Only a [`ServerCall`] makes one.
#[derive(Debug)]
#[must_use]
pub struct Replied(pub(crate) ());

/// A request that waits for its reply.
///
/// The methods that reply consume the call, so that it has at most one reply. [`defer`](Self::defer) and
/// [`spawn`](Self::spawn) move the reply to a time after the upcall.
pub struct ServerCall<'m> {
    pub(super) state: &'m RequestState<'m>,
    pub(super) arguments: &'m Decoder<'m>,
    pub(super) target: Option<&'m dyn Target>,
    /// Whether an exception that the servant passes on is one of [its own operation](SystemException::passed_on):
    /// not for dynamic servants, which may do nothing but relay the request.
    pub(super) passes_on: bool,
}

impl<'m> ServerCall<'m> {
    #[inline]
    pub(crate) fn new(state: &'m RequestState<'m>, arguments: &'m Decoder<'m>) -> Self {
        Self { state, arguments, target: None, passes_on: false }
    }

    pub(crate) fn request(&self) -> &'m ReceivedRequest<'m> {
        self.state.request
    }

    /// The token that shows whether the reply is still needed, and if not, for what reason.
    ///
    /// Requests whose servants do not call this method do not pay for it.
    #[must_use]
    pub fn cancellation(&self) -> CancellationToken {
        CancellationToken::new(self.state.request.cancellation_source())
    }

    pub(crate) fn origin(&self) -> &'m dyn RequestOrigin {
        self.state.request.origin
    }

    pub(crate) fn message(&self) -> &'m Message {
        self.state.request.message
    }

    pub(crate) fn header(&self) -> &'m RequestHeader<'m> {
        self.state.request.header
    }

    /// The request's record for interceptors, if there are any.
    pub(crate) fn flow(&self) -> Option<&'m RequestFlow> {
        self.state.flow
    }

    /// The state of the request's observation, if it is observed.
    pub(crate) fn observed(&self) -> Option<&'m Arc<ObservedRequest>> {
        self.state.observed
    }

    /// The request's entry among the deferred ones of its origin, if it was deferred.
    pub(crate) fn deferred_slot(&self) -> Option<&'m Arc<DeferredSlot>> {
        self.state.request.deferred_slot
    }

    /// The response that the client still expects.
    pub(crate) fn response(&self) -> ResponseFlags {
        self.state.response
    }

    /// The adapter's information on the target object; `None` before the adapter has found the object.
    #[must_use]
    pub fn target(&self) -> Option<&'m dyn Target> {
        self.target
    }

    /// Marks the request as deferred: the outcome of its upcall is not its reply.
    pub(crate) fn record_deferred(&self) {
        self.state.request.set_answered();
    }

    /// The position of the arguments in the message.
    pub(crate) fn body(&self) -> usize {
        self.arguments.position()
    }

    /// The operation's name; `_get_` or `_set_` precedes that of an attribute.
    #[must_use]
    pub fn operation(&self) -> &'m str {
        &self.state.request.header.operation
    }

    /// Whether the client expects a reply to this request.
    #[must_use]
    pub fn is_response_expected(&self) -> bool {
        self.state.response.is_expected()
    }

    /// Returns a decoder of the arguments, from their beginning on. Values lent from it live as long as the
    /// request.
    ///
    /// # Errors
    /// None at present. The result allows for requests whose arguments arrive after their header.
    #[inline]
    pub fn arguments(&mut self) -> Result<Decoder<'m>, SystemException> {
        Ok(self.arguments.clone())
    }

    /// The decoder of the arguments, at their beginning.
    pub(crate) fn unread(&self) -> &Decoder<'m> {
        self.arguments
    }

    /// A copy of the call, for a reply if this one makes none.
    pub(crate) fn again(&self) -> ServerCall<'m> {
        ServerCall { ..*self }
    }

    /// Replies with the results of the operation, which `encode` writes.
    ///
    /// # Errors
    /// A result cannot be marshaled; nothing was sent.
    #[inline]
    pub fn reply<'a>(
        self,
        encode: impl Fn(&mut Encoder<'a>) -> Result<(), CdrError>,
    ) -> Result<Replied, SystemException> {
        self.send(ReplyStatus::NoException, &encode)
    }

    /// Replies with the user exception that `error` contains.
    ///
    /// # Errors
    /// The system exception, if `error` is one. MARSHAL if a member cannot be marshaled. Nothing was sent.
    pub fn raise<E: UserExceptions>(self, error: &E) -> Result<Replied, SystemException> {
        let (repository_id, members) = error.members()?;
        self.raise_members(repository_id, &members)
    }

    /// Replies with a user exception, which `raises` of the operation should name: this is not checked.
    ///
    /// # Errors
    /// A member cannot be marshaled; nothing was sent.
    pub fn user_exception<X: UserException>(self, exception: &X) -> Result<Replied, SystemException> {
        self.send(ReplyStatus::UserException, &|out| {
            out.short_str(X::REPOSITORY_ID)?;
            exception.encode(out)
        })
    }

    /// Replies with a user exception of a type that is known only at run time. `encode` writes its members.
    ///
    /// # Errors
    /// A member cannot be marshaled; nothing was sent.
    pub fn raise_encoded<'a>(
        self,
        repository_id: &str,
        encode: &dyn Fn(&mut Encoder<'a>) -> Result<(), CdrError>,
    ) -> Result<Replied, SystemException> {
        self.send(ReplyStatus::UserException, &|out| {
            out.short_str(repository_id)?;
            encode(out)
        })
    }

    /// Replies with a user exception that has these members, as [`ServerCall::raise`] does.
    fn raise_members(self, repository_id: &str, members: &Value<'_>) -> Result<Replied, SystemException> {
        self.send(ReplyStatus::UserException, &|out| {
            out.short_str(repository_id)?;
            members.encode(out)
        })
    }

    /// Forwards the client to another object, for this request and later ones (LOCATION_FORWARD).
    ///
    /// # Errors
    /// The reference cannot be marshaled; nothing was sent.
    pub fn forward(self, target: &ObjectRef) -> Result<Replied, SystemException> {
        self.forward_to(target.ior())
    }

    /// Forwards the client to another object permanently (LOCATION_FORWARD_PERM). The reference by which it
    /// called is invalid from now on.
    ///
    /// GIOP 1.0 and 1.1 have no such reply; their clients get that of [`forward`](Self::forward).
    ///
    /// # Errors
    /// The reference cannot be marshaled; nothing was sent.
    pub fn forward_permanently(self, target: &ObjectRef) -> Result<Replied, SystemException> {
        if self.state.request.version() < GiopVersion::V1_2 {
            return self.forward(target);
        }
        self.send(ReplyStatus::LocationForwardPerm, &|out| target.ior().encode(out))
    }

    /// Replies NEEDS_ADDRESSING_MODE, so that the client sends the object key: the profile in the request
    /// contains no key that can be read here.
    #[cold]
    pub(crate) fn request_object_key(self) -> Result<Replied, SystemException> {
        self.send(ReplyStatus::NeedsAddressingMode, &|out| {
            AddressingDisposition::Key.encode(out);
            Ok(())
        })
    }

    /// Replies LOCATION_FORWARD with this reference.
    pub(crate) fn forward_to(self, target: &Ior) -> Result<Replied, SystemException> {
        self.send(ReplyStatus::LocationForward, &|out| target.encode(out))
    }

    /// Ends a one-way. If the peer nevertheless expects a response, it gets an empty reply.
    pub fn finish_oneway(self) -> Replied {
        self.send(ReplyStatus::NoException, &|_| Ok(())).unwrap_or(Replied(()))
    }

    /// Returns BAD_OPERATION. A function of its own, because the trait's default methods are compiled for
    /// each servant.
    #[cold]
    #[inline(never)]
    pub(crate) fn refuse(self) -> Result<Replied, SystemException> {
        Err(SystemException::bad_operation(minor::UNKNOWN_OPERATION, CompletionStatus::No)
            .with_public_detail(|| format!("the object has no operation `{}`", self.operation())))
    }

    fn send<'a>(
        self,
        status: ReplyStatus,
        encode: &dyn Fn(&mut Encoder<'a>) -> Result<(), CdrError>,
    ) -> Result<Replied, SystemException> {
        answer(self.state, status, encode)
            .map(|()| Replied(()))
            .map_err(|error| SystemException::from(error).with_completed(CompletionStatus::Yes))
    }
}

impl fmt::Debug for ServerCall<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerCall").field("request", self.state.request).finish_non_exhaustive()
    }
}

/// Replies with the outcome that interceptors have chosen. The arguments are not read.
#[cold]
pub(crate) fn apply_decision(state: &RequestState<'_>, instead: PointDecision) -> Result<Replied, SystemException> {
    ServerCall::new(state, &Decoder::new(&[], Wire::default())).forward(&instead?)
}
