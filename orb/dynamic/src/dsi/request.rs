//! A request in a dynamic servant.

use spandrel_cdr::{Any, CdrError, Decode, Decoder, Encode, Encoder, TcKind, Typed};
use spandrel_giop::{CompletionStatus, SystemException, minor};
use spandrel_orb::{Context, ObjectRef};
use spandrel_server::{DeferredCall, Replied, ServerCall};

use crate::{NvList, ValueTypes, value_types::TypedBinder};

/// A request that a dynamic servant runs: IDL `CORBA::ServerRequest`.
///
/// The servant declares the types of the arguments once ([`arguments`](Self::arguments)), and gets their
/// values. It changes the returned ones, and sets the result or an exception. The ORB sends these when the
/// servant returns.
#[derive(Debug)]
pub struct ServerRequest<'m> {
    /// `None` once `defer` took the call.
    call: Option<ServerCall<'m>>,
    deferred: Option<Replied>,
    operation: &'m str,
    progress: Progress,
}

/// A request that is answered after the servant has returned, by any thread. Dropped without
/// [`finish`](Self::finish), it is answered with NO_RESPONSE.
#[derive(Debug)]
pub struct DeferredRequest {
    call: DeferredCall,
    operation: String,
    progress: Progress,
}

/// The progress of a request: arguments, context and outcome.
#[derive(Debug, Default)]
struct Progress {
    /// The permitted types of values where a base of theirs is declared.
    value_types: ValueTypes,
    arguments: Option<NvList>,
    /// The end of the arguments: in octets from the request's start.
    end: Option<usize>,
    context_was_read: bool,
    outcome: Option<Outcome>,
}

#[derive(Debug)]
enum Outcome {
    Result(Any),
    Raised(Any),
    System(SystemException),
    Forward(ObjectRef),
}

/// The source of a request's octets.
trait Source {
    /// A decoder at the first argument.
    fn input(&mut self) -> Result<Decoder<'_>, SystemException>;
}

impl Source for Option<ServerCall<'_>> {
    fn input(&mut self) -> Result<Decoder<'_>, SystemException> {
        self.as_mut().ok_or_else(already_deferred)?.arguments()
    }
}

impl Source for DeferredCall {
    fn input(&mut self) -> Result<Decoder<'_>, SystemException> {
        self.arguments()
    }
}

#[cold]
fn already_deferred() -> SystemException {
    SystemException::bad_inv_order(0, CompletionStatus::No).with_detail("the request was deferred")
}

fn bad_inv_order(minor: u32) -> SystemException {
    SystemException::bad_inv_order(minor, CompletionStatus::No)
}

impl Progress {
    fn arguments(&mut self, input: Decoder<'_>, mut list: NvList) -> Result<&mut NvList, SystemException> {
        if self.arguments.is_some() || self.outcome.is_some() {
            return Err(bad_inv_order(minor::ARGUMENTS_OUT_OF_ORDER));
        }
        let binder = TypedBinder::new(&self.value_types, input.binder());
        let mut input = if self.value_types.is_empty() { input } else { input.with_binder(&binder) };
        for (index, item) in list.iter_mut().enumerate().filter(|(_, item)| item.mode.is_sent()) {
            let read = Any::read(item.type_code.clone(), &mut input);
            item.value = Some(read.map_err(|error| unreadable(error, &item.label(index)))?);
        }
        self.end = Some(input.position());
        Ok(self.arguments.insert(list))
    }

    fn context(&mut self, input: Decoder<'_>) -> Result<Context, SystemException> {
        let end = self.end.filter(|_| !self.context_was_read && self.outcome.is_none());
        let end = end.ok_or_else(|| bad_inv_order(minor::CTX_OUT_OF_ORDER))?;
        self.context_was_read = true;
        Context::decode(&mut input.at(end)).map_err(|error| unreadable(error, "the context"))
    }

    fn set_result(&mut self, value: Any) -> Result<(), SystemException> {
        if self.arguments.is_none() || self.outcome.is_some() {
            return Err(bad_inv_order(minor::RESULT_OUT_OF_ORDER));
        }
        self.outcome = Some(Outcome::Result(value));
        Ok(())
    }

    fn set_exception(&mut self, exception: Any) -> Result<(), SystemException> {
        let type_code = exception.type_code().without_aliases();
        if type_code.kind() != TcKind::Except {
            return Err(SystemException::bad_param(minor::NOT_AN_EXCEPTION, CompletionStatus::No)
                .with_detail(|| format!("`{}` is not an exception", exception.type_code())));
        }
        let id = type_code.id().unwrap_or_default();
        self.outcome = Some(match is_system_exception(id) {
            true => Outcome::System(SystemException::decode(id, &mut exception.members())?),
            false => Outcome::Raised(exception),
        });
        Ok(())
    }

    /// Sends the reply, exception or forward that the implementation chose.
    fn answer(&self, call: ServerCall<'_>) -> Result<Replied, SystemException> {
        match &self.outcome {
            Some(Outcome::System(exception)) => Err(exception.clone()),
            Some(Outcome::Forward(target)) => call.forward(target),
            Some(Outcome::Raised(exception)) => {
                let type_code = exception.type_code().without_aliases();
                call.raise_encoded(type_code.id().unwrap_or_default(), &|out| exception.write_members(out))
            }
            Some(Outcome::Result(result)) => self.reply(call, Some(result)),
            None => self.reply(call, None),
        }
    }

    fn reply(&self, call: ServerCall<'_>, result: Option<&Any>) -> Result<Replied, SystemException> {
        if !call.is_response_expected() {
            return Ok(call.finish_oneway());
        }
        let returned = || self.arguments.iter().flatten().enumerate().filter(|(_, item)| item.mode.is_returned());
        if let Some((index, item)) = returned().find(|(_, item)| item.value.is_none()) {
            return Err(SystemException::marshal(0, CompletionStatus::Yes)
                .with_detail(|| format!("the servant set no value for {}", item.label(index))));
        }
        call.reply(|out: &mut Encoder<'_>| {
            result.map_or(Ok(()), |result| result.write_value(out))?;
            let mut values = returned().filter_map(|(_, item)| item.value.as_ref());
            values.try_for_each(|value| value.write_value(out))
        })
    }
}

fn is_system_exception(id: &str) -> bool {
    id.strip_prefix("IDL:omg.org/CORBA/").is_some_and(|rest| rest.ends_with(":1.0"))
}

fn unreadable(error: CdrError, value: &str) -> SystemException {
    SystemException::from(error).with_detail(|| format!("{value} cannot be decoded"))
}

macro_rules! operations {
    ($($request:ty)*) => {$(
        impl $request {
            /// Sets the value types that are permitted where one of their bases, `ValueBase` or an abstract
            /// interface is declared; to be called before [`arguments`](Self::arguments). Values of other
            /// types are truncated to a known type if possible, and else are MARSHAL.
            pub fn set_value_types(&mut self, types: &ValueTypes) {
                self.progress.value_types = types.clone();
            }

            /// The arguments: `in` and `inout` ones with the received values. The servant changes the
            /// returned ones in the list, which stays with the request. To be called once, even without
            /// arguments.
            ///
            /// # Errors
            /// BAD_INV_ORDER for a second call, or after an outcome was set; MARSHAL for malformed octets.
            pub fn arguments(&mut self, list: NvList) -> Result<&mut NvList, SystemException> {
                let input = self.call.input()?;
                self.progress.arguments(input, list)
            }

            /// The list that [`arguments`](Self::arguments) has filled.
            #[must_use]
            pub fn list(&mut self) -> Option<&mut NvList> {
                self.progress.arguments.as_mut()
            }

            /// The context after the arguments of an operation with a `context` clause (`ctx`). To be called
            /// once at most.
            ///
            /// # Errors
            /// BAD_INV_ORDER before the arguments, for a second call, or after an outcome was set; MARSHAL
            /// without a context.
            pub fn context(&mut self) -> Result<Context, SystemException> {
                let input = self.call.input()?;
                self.progress.context(input)
            }

            /// Sets the return value; `void` needs none.
            ///
            /// # Errors
            /// BAD_INV_ORDER before the arguments, or after another outcome was set; a value that cannot be
            /// encoded.
            pub fn set_result<T: Encode + Typed + ?Sized>(&mut self, value: &T) -> Result<(), SystemException> {
                self.progress.set_result(Any::new(value)?)
            }

            /// Sets the return value, with the type of the `Any`.
            ///
            /// # Errors
            /// BAD_INV_ORDER before the arguments, or after another outcome was set.
            pub fn set_result_any(&mut self, value: Any) -> Result<(), SystemException> {
                self.progress.set_result(value)
            }

            /// Answers with this exception, which replaces an earlier outcome: one that the operation raises,
            /// or a system exception.
            ///
            /// # Errors
            /// BAD_PARAM for another type; MARSHAL for a malformed system exception.
            pub fn set_exception(&mut self, exception: Any) -> Result<(), SystemException> {
                self.progress.set_exception(exception)
            }

            /// Answers with an exception that is a Rust value.
            ///
            /// # Errors
            /// BAD_PARAM for another type; a value that cannot be encoded.
            pub fn raise<X: Encode + Typed>(&mut self, exception: &X) -> Result<(), SystemException> {
                self.progress.set_exception(Any::new(exception)?)
            }

            /// Forwards the client to another object (LOCATION_FORWARD).
            pub fn forward(&mut self, target: &ObjectRef) {
                self.progress.outcome = Some(Outcome::Forward(target.clone()));
            }

            /// The exception BAD_OPERATION, for an operation that the servant does not have.
            #[must_use]
            pub fn unknown_operation(&self) -> SystemException {
                SystemException::bad_operation(minor::UNKNOWN_OPERATION, CompletionStatus::No)
                    .with_public_detail(|| format!("unknown operation `{}`", self.operation()))
            }
        }
    )*};
}

operations!(ServerRequest<'_> DeferredRequest);

impl<'m> ServerRequest<'m> {
    pub(super) fn new(call: ServerCall<'m>) -> Self {
        Self { operation: call.operation(), call: Some(call), deferred: None, progress: Progress::default() }
    }

    /// The operation's name; for an attribute `_get_` or `_set_` with its name.
    #[must_use]
    pub fn operation(&self) -> &'m str {
        self.operation
    }

    /// The object's id within its adapter; empty without an adapter.
    #[must_use]
    pub fn object_id(&self) -> &'m [u8] {
        self.call.as_ref().and_then(ServerCall::target).map_or(&[], |target| target.object_id())
    }

    /// Whether the client waits for the reply.
    #[must_use]
    pub fn is_response_expected(&self) -> bool {
        self.call.as_ref().is_some_and(ServerCall::is_response_expected)
    }

    /// Detaches the request from its upcall, with its arguments and outcome so far, to be answered later. The
    /// servant then returns.
    ///
    /// # Errors
    /// BAD_INV_ORDER if it was deferred already; TRANSIENT if too many requests are deferred.
    pub fn defer(&mut self) -> Result<DeferredRequest, SystemException> {
        let call = self.call.take().ok_or_else(already_deferred)?;
        let (call, replied) = call.defer()?;
        self.deferred = Some(replied);
        Ok(DeferredRequest { call, operation: self.operation.to_owned(), progress: std::mem::take(&mut self.progress) })
    }

    /// Sends the reply, unless the request was deferred.
    pub(super) fn finish(self) -> Result<Replied, SystemException> {
        let Self { call, deferred, progress, .. } = self;
        match (call, deferred) {
            (Some(call), _) => progress.answer(call),
            (None, Some(replied)) => Ok(replied),
            (None, None) => Err(SystemException::no_response(0, CompletionStatus::Maybe)),
        }
    }
}

impl DeferredRequest {
    /// The name of the operation, `_get_` and `_set_` of attributes included.
    #[must_use]
    pub fn operation(&self) -> &str {
        &self.operation
    }

    /// Whether no caller waits for the reply any more.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.call.is_cancelled()
    }

    /// Sends the outcome set before, or the exception in `outcome`.
    pub fn finish(self, outcome: Result<(), SystemException>) {
        let Self { call, progress, .. } = self;
        let replied = outcome.and_then(|()| call.answer(|call| progress.answer(call)));
        call.end(replied);
    }
}
