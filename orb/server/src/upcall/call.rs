//! One request as a skeleton sees it: arguments to read, and one answer to give.

use std::fmt;

use spandrel_cdr::{CdrError, Decoder, Encode, Encoder, GiopVersion, Ior, Wire, engine::Value};
use spandrel_giop::{
    AddressingDisposition, CompletionStatus, Message, ReplyStatus, RequestHeader, ResponseFlags, SystemException, minor,
};
use spandrel_orb::{
    CancellationToken, ObjectRef, Target, UserException, UserExceptions, diagnostics::ObservedRequest,
    object::OBJECT_ID,
};
use spandrel_sync::{Arc, atomic::Ordering};

use super::{
    incoming_request::{DeferredSlot, IncomingRequest, RequestFlow},
    interception::{self, PointDecision},
    marshaled_reply::ReplySlot,
    origin::RequestOrigin,
    reply::answer,
};
use crate::{Replied, Servant};

/// A request that waits for its reply. Replying consumes it, so that there is one reply at most.
pub struct ServerCall<'m> {
    request: &'m IncomingRequest<'m>,
    arguments: &'m Decoder<'m>,
    target: Option<&'m dyn Target>,
}

impl<'m> ServerCall<'m> {
    #[inline]
    pub(crate) fn new(request: &'m IncomingRequest<'m>, arguments: &'m Decoder<'m>) -> Self {
        Self { request, arguments, target: None }
    }

    pub(crate) fn request(&self) -> &'m IncomingRequest<'m> {
        self.request
    }

    /// What tells that nobody waits for the answer any more, and why. To ask for it costs little, and nothing if nobody does.
    #[must_use]
    pub fn cancellation(&self) -> CancellationToken {
        CancellationToken::new(self.request.cancellation_source())
    }

    pub(crate) fn origin(&self) -> &'m dyn RequestOrigin {
        self.request.origin
    }

    pub(crate) fn message(&self) -> &'m Message {
        self.request.message
    }

    pub(crate) fn header(&self) -> &'m RequestHeader<'m> {
        self.request.header
    }

    /// What interceptors know of it.
    pub(crate) fn flow(&self) -> Option<&'m RequestFlow> {
        self.request.flow
    }

    /// What those have of it who watch it.
    pub(crate) fn watched(&self) -> Option<&'m Arc<ObservedRequest>> {
        self.request.watched
    }

    pub(crate) fn deferred_slot(&self) -> Option<&'m Arc<DeferredSlot>> {
        self.request.deferred_slot
    }

    /// What the client still waits for.
    pub(crate) fn response(&self) -> ResponseFlags {
        self.request.header.response
    }

    /// Runs the request on the servant that the adapter has found for it.
    ///
    /// # Errors
    /// The system exception to answer with, if the servant did not reply itself.
    #[inline]
    pub(crate) fn run(self, servant: &dyn Servant, target: &dyn Target) -> Result<Replied, SystemException> {
        if self.request.header.response == ResponseFlags::WITH_SERVER {
            return self.run_answered(servant, target);
        }
        self.serve(servant, target)
    }

    /// Runs the request as [`run`](Self::run) does, after the intermediate interception points; the slot receives
    /// the reply.
    #[cold]
    pub(crate) fn run_marshaled(
        self,
        servant: &dyn Servant,
        target: &dyn Target,
        reply_slot: &ReplySlot,
    ) -> Result<Replied, SystemException> {
        let request = IncomingRequest { target: Some(target), reply_slot: Some(reply_slot), ..*self.request };
        let receive = |flow| interception::receive_request(flow, &request, servant, target);
        match request.flow.and_then(receive) {
            Some(instead) => apply_decision(&request, instead),
            None => ServerCall::new(&request, self.arguments).run(servant, target),
        }
    }

    /// Runs a one-way whose client waits for the server, and not for the servant (9.4.2.1; sync scope
    /// WITH_SERVER).
    #[cold]
    fn run_answered(self, servant: &dyn Servant, target: &dyn Target) -> Result<Replied, SystemException> {
        let request = self.request;
        // Interceptors and diagnostics see the end of the upcall, not this reply.
        let request_alone = IncomingRequest { flow: None, watched: None, reply_slot: None, ..*request };
        answer(&request_alone, ReplyStatus::NoException, &|_| Ok(()))?;
        // From here on it is like other one-ways.
        let header = RequestHeader { response: ResponseFlags::NONE, ..request.header.clone() };
        let request = IncomingRequest { header: &header, ..*request };
        ServerCall::new(&request, self.arguments).serve(servant, target)
    }

    /// Finds the operation, and runs it.
    #[inline(always)]
    fn serve(self, servant: &dyn Servant, target: &dyn Target) -> Result<Replied, SystemException> {
        // The result of the upcall does not borrow the target.
        let call = ServerCall { target: Some(target), ..self };
        let name = self.operation();
        let operations = servant.operations();
        let found = self.look_up(operations, target.operation_demux());
        if let Some(watched) = self.request.watched {
            watched.record_servant(servant.repository_id(), name, found.is_some() || operations.is_empty());
        }
        match found {
            Some(operation) => servant.upcall(operation, call),
            None if operations.is_empty() => servant.dispatch(name, call),
            None => call.implicit(servant),
        }
    }

    /// What the adapter says of the object that the request is for; nothing before the adapter has found it.
    #[must_use]
    pub fn target(&self) -> Option<&'m dyn Target> {
        self.target
    }

    /// It will be answered, or not, by whoever has it then: what comes of its upcall is no answer any more.
    pub(crate) fn note_deferred(&self) {
        self.request.is_answered.store(true, Ordering::Relaxed);
    }

    /// Where the arguments begin, or what has not been read of them.
    pub(crate) fn body(&self) -> usize {
        self.arguments.position()
    }

    /// The name of the operation.
    #[must_use]
    pub fn operation(&self) -> &'m str {
        &self.request.header.operation
    }

    /// True if the client waits for the answer.
    #[must_use]
    pub fn is_response_expected(&self) -> bool {
        self.request.header.response.is_expected()
    }

    /// Reads the arguments; values lent from it live as long as the call.
    ///
    /// # Errors
    /// None now; the result leaves room for requests whose arguments arrive later than their header.
    #[inline]
    pub fn arguments(&mut self) -> Result<Decoder<'m>, SystemException> {
        Ok(self.arguments.clone())
    }

    /// The arguments, not yet read.
    pub(crate) fn unread(&self) -> &Decoder<'m> {
        self.arguments
    }

    /// The same call, for a reply in place of this one.
    pub(crate) fn again(&self) -> ServerCall<'m> {
        ServerCall { ..*self }
    }

    /// Answers with results.
    ///
    /// # Errors
    /// If a result cannot be marshaled; nothing was sent then.
    #[inline]
    pub fn reply<'a>(
        self,
        encode: impl Fn(&mut Encoder<'a>) -> Result<(), CdrError>,
    ) -> Result<Replied, SystemException> {
        self.send(ReplyStatus::NoException, &encode)
    }

    /// Answers with the exception that the operation raised.
    ///
    /// # Errors
    /// The system exception, if it is one. MARSHAL if a member cannot be marshaled; nothing was sent then.
    pub fn raise<E: UserExceptions>(self, error: &E) -> Result<Replied, SystemException> {
        let (repository_id, members) = error.members()?;
        self.raise_members(repository_id, &members)
    }

    /// Answers with an exception that the operation raises.
    ///
    /// # Errors
    /// If a member cannot be marshaled; nothing was sent then.
    pub fn user_exception<X: UserException>(self, exception: &X) -> Result<Replied, SystemException> {
        self.send(ReplyStatus::UserException, &|out| {
            out.short_str(X::REPOSITORY_ID)?;
            exception.encode(out)
        })
    }

    /// [`ServerCall::user_exception`], of one whose type only the program knows: `encode` writes its members.
    ///
    /// # Errors
    /// If a member cannot be marshaled; nothing was sent then.
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

    /// [`ServerCall::raise`] without the type of the exception.
    fn raise_members(self, repository_id: &str, members: &Value<'_>) -> Result<Replied, SystemException> {
        self.send(ReplyStatus::UserException, &|out| {
            out.short_str(repository_id)?;
            members.encode(out)
        })
    }

    /// Tells the client to ask another object instead, now and from now on (LOCATION_FORWARD).
    ///
    /// # Errors
    /// If the reference cannot be marshaled; nothing was sent then.
    pub fn forward(self, target: &ObjectRef) -> Result<Replied, SystemException> {
        self.forward_to(target.ior())
    }

    /// The same for good: the reference that led here is worthless from now on (LOCATION_FORWARD_PERM). Clients of GIOP 1.0 and 1.1 know
    /// only [`forward`](Self::forward), and are told that.
    ///
    /// # Errors
    /// If the reference cannot be marshaled; nothing was sent then.
    pub fn forward_permanently(self, target: &ObjectRef) -> Result<Replied, SystemException> {
        if self.request.version < GiopVersion::V1_2 {
            return self.forward(target);
        }
        self.send(ReplyStatus::LocationForwardPerm, &|out| target.ior().encode(out))
    }

    /// The profile by which the client names the object has no key that can be read here: it is to say the key itself.
    #[cold]
    pub(crate) fn request_full_address(self) -> Result<Replied, SystemException> {
        self.send(ReplyStatus::NeedsAddressingMode, &|out| {
            AddressingDisposition::Key.encode(out);
            Ok(())
        })
    }

    pub(crate) fn forward_to(self, target: &Ior) -> Result<Replied, SystemException> {
        self.send(ReplyStatus::LocationForward, &|out| target.encode(out))
    }

    /// Ends a one-way call. A peer that nevertheless asked for a response gets an empty one.
    pub fn finish_oneway(self) -> Replied {
        self.send(ReplyStatus::NoException, &|_| Ok(())).unwrap_or(Replied(()))
    }

    /// Answers the operations that every object has (CORBA 3.3 Part 1, 8.3), and refuses the rest.
    ///
    /// # Errors
    /// BAD_OPERATION for an operation that nobody knows; MARSHAL for unreadable arguments.
    pub fn implicit(self, servant: &dyn Servant) -> Result<Replied, SystemException> {
        match self.operation() {
            "_is_a" => {
                let mut arguments = self.arguments.clone();
                let id = arguments.str()?;
                let answer = id == OBJECT_ID || servant.is_a(&id);
                self.reply(|out| {
                    out.bool(answer);
                    Ok(())
                })
            }
            // GIOP 1.0 and 1.1 clients may say it without the underscore's second word (9.4.2.1).
            "_non_existent" | "_not_existent" => {
                let answer = servant.non_existent();
                self.reply(|out| {
                    out.bool(answer);
                    Ok(())
                })
            }
            "_repository_id" => self.reply(|out| out.short_str(servant.repository_id())),
            "_interface" => match servant.interface() {
                Some(interface) => self.reply(|out| interface.ior().encode(out)),
                None => Err(SystemException::intf_repos(0, CompletionStatus::No)
                    .with_detail("no interface repository is configured")),
            },
            // No policy domains: nobody manages the object (8.3.11).
            "_domain_managers" => self.reply(|out| out.len(0)),
            "_component" => {
                let component = servant.component();
                self.reply(|out| component.encode(out))
            }
            operation => {
                let detail = || format!("`{}` has no operation `{operation}`", servant.repository_id());
                Err(SystemException::bad_operation(minor::UNKNOWN_OPERATION, CompletionStatus::No).with_detail(detail))
            }
        }
    }

    /// Refuses the operation. Once for all servants, each of which has what is written in the trait.
    #[cold]
    #[inline(never)]
    pub(crate) fn refuse(self) -> Result<Replied, SystemException> {
        Err(SystemException::bad_operation(minor::UNKNOWN_OPERATION, CompletionStatus::No))
    }

    fn send<'a>(
        self,
        status: ReplyStatus,
        encode: &dyn Fn(&mut Encoder<'a>) -> Result<(), CdrError>,
    ) -> Result<Replied, SystemException> {
        answer(self.request, status, encode)
            .map(|()| Replied(()))
            .map_err(|error| SystemException::from(error).with_completed(CompletionStatus::Yes))
    }
}

impl fmt::Debug for ServerCall<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerCall").field("request", self.request).finish_non_exhaustive()
    }
}

/// What interceptors want done instead of serving the request; nobody reads its arguments.
#[cold]
pub(crate) fn apply_decision(
    request: &IncomingRequest<'_>,
    instead: PointDecision,
) -> Result<Replied, SystemException> {
    ServerCall::new(request, &Decoder::new(&[], Wire::default())).forward(&instead?)
}
