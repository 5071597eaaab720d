//! One request as a skeleton sees it: arguments to read, and one answer to give.

use std::panic::{AssertUnwindSafe, catch_unwind};

use spandrel_cdr::{CdrError, Decoder, Encode, Encoder, GiopVersion, Ior, Wire, engine::Value};
use spandrel_giop::{
    CompletionStatus, LocateRequestHeader, LocateStatus, Message, ReplyStatus, RequestHeader, ResponseFlags,
    SystemException, begin_locate_reply, minor,
};

use spandrel_sync::{Arc, atomic::Ordering};

use super::{
    answering::{answer, answer_exception, panicked},
    asked::{Asked, Flow},
    origin::Origin,
    place::Place,
    points::{self, Instead},
};
use crate::{
    Located, ObjectRef, Replied, Servant, Target, UserException, object::OBJECT_ID, scratch, upcalls::UpcallScope,
};

/// A request that waits for its answer. Answering consumes it, so that nobody answers twice.
///
/// It is handed on from one to the next, and small enough (128 octets) to be moved without a call.
#[derive(Debug)]
pub struct ServerCall<'m> {
    asked: &'m Asked<'m>,
    arguments: Decoder<'m>,
}

impl<'m> ServerCall<'m> {
    #[inline]
    pub(super) fn new(asked: &'m Asked<'m>, arguments: Decoder<'m>) -> Self {
        Self { asked, arguments }
    }

    pub(super) fn origin(&self) -> &'m dyn Origin {
        self.asked.origin
    }

    pub(super) fn message(&self) -> &'m Message {
        self.asked.message
    }

    pub(super) fn request_id(&self) -> u32 {
        self.asked.header.request_id
    }

    pub(super) fn header(&self) -> &'m RequestHeader<'m> {
        self.asked.header
    }

    /// What interceptors know of it.
    pub(super) fn flow(&self) -> Option<&'m Flow> {
        self.asked.flow
    }

    pub(super) fn place(&self) -> Option<&'m Arc<Place>> {
        self.asked.place
    }

    /// What the client still waits for.
    pub(super) fn response(&self) -> ResponseFlags {
        self.asked.header.response
    }

    /// Runs the request on the servant that the adapter has found for it.
    ///
    /// # Errors
    /// The system exception to answer with, if the servant did not reply itself.
    #[inline]
    pub fn run(self, servant: &dyn Servant, target: &dyn Target) -> Result<Replied, SystemException> {
        let Self { asked, arguments } = self;
        if let Some(flow) = asked.flow
            && let Some(instead) = points::receive_request(flow, asked, servant, target)
        {
            return go_elsewhere(asked, instead);
        }
        if asked.header.response == ResponseFlags::WITH_SERVER {
            return run_answered(asked, arguments, servant, target);
        }
        let asked = Asked { target: Some(target), ..*asked };
        ServerCall { asked: &asked, arguments }.serve(servant, target)
    }

    /// Finds the operation, and runs it.
    #[inline]
    fn serve(self, servant: &dyn Servant, target: &dyn Target) -> Result<Replied, SystemException> {
        let (name, call) = (&*self.asked.header.operation, self);
        let operations = servant.operations();
        match call.look_up(operations, target.operation_demux()) {
            Some(operation) => servant.upcall(operation, call),
            None if operations.is_empty() => servant.dispatch(name, call),
            None => call.implicit(servant),
        }
    }

    /// What the adapter says of the object that the request is for; nothing before the adapter has found it.
    #[must_use]
    pub fn target(&self) -> Option<&'m dyn Target> {
        self.asked.target
    }

    /// It will be answered, or not, by whoever has it then: what comes of its upcall is no answer any more.
    pub(super) fn note_deferred(&self) {
        self.asked.is_answered.store(true, Ordering::Relaxed);
    }

    /// Where the arguments begin, or what has not been read of them.
    pub(super) fn body(&self) -> usize {
        self.arguments.position()
    }

    /// The name of the operation.
    #[must_use]
    pub fn operation(&self) -> &'m str {
        &self.asked.header.operation
    }

    /// True if the client waits for the answer.
    #[must_use]
    pub fn is_response_expected(&self) -> bool {
        self.asked.header.response.is_expected()
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
        &self.arguments
    }

    /// The same call, for one who answers it in place of this one; nothing of the arguments is left to read.
    pub(crate) fn again(&self) -> ServerCall<'m> {
        let arguments = Decoder::new(&[], self.arguments.wire());
        ServerCall { arguments, asked: self.asked }
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

    /// [`ServerCall::user_exception`] without its type.
    pub(crate) fn raise(self, repository_id: &str, members: &Value<'_>) -> Result<Replied, SystemException> {
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

    fn forward_to(self, target: &Ior) -> Result<Replied, SystemException> {
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
    pub fn implicit(mut self, servant: &dyn Servant) -> Result<Replied, SystemException> {
        match self.operation() {
            "_is_a" => {
                let id = self.arguments.str()?;
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
        answer(self.asked, status, encode)
            .map(|()| Replied(()))
            .map_err(|error| SystemException::from(error).with_completed(CompletionStatus::Yes))
    }
}

/// Runs the servant, and answers if it does not. No lock is held here.
///
/// `said`: what is wrong with what came before the arguments.
pub(super) fn upcall(asked: &Asked<'_>, said: Result<(), SystemException>, arguments: Decoder<'_>) {
    let _scope = UpcallScope::enter();
    let (flow, seen, _slots);
    let asked = if points::are_there(asked.origin.orb()) {
        let Some((begun, instead)) = points::begin(asked) else { return };
        flow = begun;
        seen = Asked { flow: Some(&flow), ..*asked };
        if let Some(instead) = instead {
            return go_elsewhere(&seen, instead).map_or_else(|exception| answer_exception(&seen, &exception), drop);
        }
        _slots = points::lend_slots(Some(&flow));
        &seen
    } else {
        asked
    };
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let orb = asked.origin.orb();
        let key = asked.header.target.object_key().ok_or_else(no_key)?;
        if let Some(target) = orb.aliases().target(&key) {
            return ServerCall::new(asked, arguments).forward_to(&target);
        }
        let adapter = orb.adapter().ok_or_else(no_adapter)?;
        said?;
        adapter.dispatch(&key, &asked.header.operation, ServerCall::new(asked, arguments))
    }));
    match outcome {
        Ok(Ok(_replied)) => {}
        Ok(Err(exception)) => answer_exception(asked, &exception),
        Err(panic) => {
            let exception = panicked(&asked.header.operation, &*panic);
            tracing::error!(peer = %asked.origin.name(), %exception);
            answer_exception(asked, &exception);
        }
    }
}

/// What interceptors want done instead of serving the request; nobody reads its arguments.
#[cold]
fn go_elsewhere(asked: &Asked<'_>, instead: Instead) -> Result<Replied, SystemException> {
    ServerCall::new(asked, Decoder::new(&[], Wire::default())).forward(&instead?)
}

/// Runs a one-way whose client waits for the server, and not for the servant (9.4.2.1; sync scope WITH_SERVER).
#[cold]
fn run_answered(
    asked: &Asked<'_>,
    arguments: Decoder<'_>,
    servant: &dyn Servant,
    target: &dyn Target,
) -> Result<Replied, SystemException> {
    // What interceptors are told of the end comes with the end.
    answer(&Asked { flow: None, ..*asked }, ReplyStatus::NoException, &|_| Ok(()))?;
    // From here on it is a one-way like others.
    let header = RequestHeader { response: ResponseFlags::NONE, ..asked.header.clone() };
    let asked = Asked { header: &header, target: Some(target), ..*asked };
    ServerCall { asked: &asked, arguments }.serve(servant, target)
}

/// Answers a LocateRequest.
pub(super) fn say_where(origin: &dyn Origin, request: &LocateRequestHeader<'_>, version: GiopVersion) {
    let (orb, key) = (origin.orb(), request.target.object_key());
    let key = key.as_deref();
    let alias = key.and_then(|key| orb.aliases().target(key)).map(Located::Forward);
    let located = alias.or_else(|| Some(orb.adapter()?.locate(key?))).unwrap_or(Located::Unknown);
    let status = match located {
        Located::Here => LocateStatus::ObjectHere,
        Located::Unknown => LocateStatus::UnknownObject,
        Located::Forward(_) => LocateStatus::ObjectForward,
    };
    let mut out = Encoder::reusing(scratch::take(), origin.wire(version));
    let body = begin_locate_reply(&mut out, request.request_id, status);
    let written = match &located {
        Located::Forward(ior) => ior.encode(&mut out),
        _ => Ok(()),
    };
    match written.and_then(|()| body.end(&mut out)) {
        Ok(()) => origin.send(&out),
        Err(error) => tracing::error!(%error, "a LocateReply could not be marshaled"),
    }
    scratch::give(out.into_scratch());
}

fn no_adapter() -> SystemException {
    SystemException::object_not_exist(minor::NO_SUCH_ADAPTER, CompletionStatus::No)
        .with_detail("no object adapter is installed")
}

fn no_key() -> SystemException {
    SystemException::object_not_exist(0, CompletionStatus::No).with_detail("the request's target has no object key")
}
