//! A request created at run time.
//!
//! The marshaling of arguments is in `body`, deferred requests are in `deferred`.

use std::{any::Any as AnyType, borrow::Cow, cell::Cell, fmt};

use spandrel_cdr::{Any, CdrError, Decoder, Encode, Encoder, TypeCode, Typed};
use spandrel_giop::{CompletionStatus, SystemException, minor};
use spandrel_orb::interception::{DynamicRequest, Parameter, ParameterMode};
use spandrel_orb::{Answer, Context, Interface, ObjectRef};

use super::{
    RequestError, UnknownUserException,
    body::{Body, Maker},
};
use crate::{ArgMode, NamedValue, NvList, ValueTypes, fit::derived, named::bad_param, value_types::TypedBinder};

/// Creates requests for objects of any type: IDL `Object::create_request`.
pub trait CreateRequest {
    /// A request for this operation, without arguments. Attributes have the operations `_get_` and `_set_`
    /// with their names.
    fn request(&self, operation: impl Into<Cow<'static, str>>) -> Request;
}

impl<I: Interface> CreateRequest for I {
    fn request(&self, operation: impl Into<Cow<'static, str>>) -> Request {
        Request::new(self.as_object(), operation)
    }
}

/// An invocation assembled at run time: IDL `CORBA::Request`.
///
/// ```no_run
/// use spandrel_cdr::TypeCode;
/// use spandrel_dynamic::CreateRequest;
/// # fn example(account: &spandrel_orb::ObjectRef) -> Result<(), spandrel_dynamic::RequestError> {
/// let mut request = account.request("deposit");
/// request.add_in_arg(&100_i64)?.add_in_arg("from Ada")?.set_return_type(TypeCode::LONGLONG);
/// request.invoke()?;
/// let balance: i64 = request.return_value()?;
///
/// // The same once more, with another amount; nothing is allocated for it.
/// request.set_argument(0, &50_i64)?;
/// request.invoke()?;
/// # Ok(())
/// # }
/// ```
///
/// Arguments are marshaled when they are added, and sent from there. A request can be sent repeatedly, beyond
/// the standard; each time the earlier results are dropped. `inout` arguments are sent with their original
/// values each time.
#[derive(Debug)]
pub struct Request {
    pub(super) target: ObjectRef,
    pub(super) operation: Cow<'static, str>,
    pub(super) body: Body,
    pub(super) return_type: TypeCode,
    /// The Rust type as which the return value was requested, and which it therefore has.
    pub(super) return_maker: Cell<Option<Maker>>,
    exceptions: Vec<TypeCode>,
    context: Option<(Context, Vec<String>)>,
    /// The binder with the types from `set_value_types`.
    binder: Option<TypedBinder>,
    pub(super) state: State,
    /// Its reply that is collected later, or was, if it was sent so.
    pub(super) deferred: Option<Box<dyn DeferredReply>>,
}

/// The reply of a request that was sent deferred.
pub(super) trait DeferredReply: AnyType + Send + fmt::Debug {
    /// Whether it was not collected yet.
    fn is_expected(&self) -> bool;
}

/// The state of a request.
#[derive(Debug)]
pub(super) enum State {
    /// Not sent, or sent without a reply.
    Idle,
    Answered(Answer),
    /// Sent, and no results are available.
    Failed,
}

impl Request {
    /// A request for this operation, to which arguments are added.
    pub fn new(target: &ObjectRef, operation: impl Into<Cow<'static, str>>) -> Self {
        Self {
            target: target.clone(),
            operation: operation.into(),
            body: Body::new(target.wire()),
            return_type: TypeCode::VOID,
            return_maker: Cell::new(None),
            exceptions: Vec::new(),
            context: None,
            binder: None,
            state: State::Idle,
            deferred: None,
        }
    }

    /// A request with these arguments (`create_request` with a list).
    ///
    /// # Errors
    /// BAD_PARAM for a sent argument without a value; a value that cannot be encoded.
    pub fn with_arguments(
        target: &ObjectRef,
        operation: impl Into<Cow<'static, str>>,
        arguments: &NvList,
    ) -> Result<Self, SystemException> {
        let mut request = Self::new(target, operation);
        for argument in arguments {
            request.add_arg(argument)?;
        }
        Ok(request)
    }

    /// The reference by which the request is sent.
    #[must_use]
    pub fn target(&self) -> &ObjectRef {
        &self.target
    }

    /// Sends the request by another reference from now on.
    pub fn set_target(&mut self, target: &ObjectRef) -> &mut Self {
        self.target = target.clone();
        self
    }

    /// The name of the operation, `_get_` and `_set_` of attributes included.
    #[must_use]
    pub fn operation(&self) -> &str {
        &self.operation
    }

    /// Removes the arguments and results, for a call with others; keeps the operation, its return type, its
    /// exceptions and its contexts, and all memory. An outstanding reply is abandoned.
    pub fn reset(&mut self) -> &mut Self {
        self.body.clear();
        self.state = State::Idle;
        self.deferred = None;
        self
    }

    /// As [`Request::reset`], for another operation: its return type is `void`, and it has no exceptions and
    /// no contexts.
    pub fn reset_for(&mut self, operation: impl Into<Cow<'static, str>>) -> &mut Self {
        self.operation = operation.into();
        self.exceptions.clear();
        self.context = None;
        self.set_return_type(TypeCode::VOID).reset()
    }

    /// Appends an `in` argument with this value.
    ///
    /// # Errors
    /// A value that cannot be encoded, such as a string with NUL in it.
    pub fn add_in_arg<T: Encode + Typed + ?Sized>(&mut self, value: &T) -> Result<&mut Self, SystemException> {
        self.add_in_arg_named("", value)
    }

    /// Appends an `inout` argument, whose value the reply replaces.
    ///
    /// # Errors
    /// As [`Request::add_in_arg`].
    pub fn add_inout_arg<T: Encode + Typed + ?Sized>(&mut self, value: &T) -> Result<&mut Self, SystemException> {
        self.add_inout_arg_named("", value)
    }

    /// Appends an `out` argument of this type.
    pub fn add_out_arg(&mut self, type_code: TypeCode) -> &mut Self {
        self.add_out_arg_named("", type_code)
    }

    /// Adds an `in` argument with a name, for people: names are not sent.
    ///
    /// # Errors
    /// As [`Request::add_in_arg`].
    pub fn add_in_arg_named<T: Encode + Typed + ?Sized>(
        &mut self,
        name: impl Into<Cow<'static, str>>,
        value: &T,
    ) -> Result<&mut Self, SystemException> {
        self.body.push(name.into(), ArgMode::In, value)?;
        Ok(self)
    }

    /// Appends an `inout` argument with its parameter's name, which the request does not carry.
    ///
    /// # Errors
    /// As [`Request::add_in_arg`].
    pub fn add_inout_arg_named<T: Encode + Typed + ?Sized>(
        &mut self,
        name: impl Into<Cow<'static, str>>,
        value: &T,
    ) -> Result<&mut Self, SystemException> {
        self.body.push(name.into(), ArgMode::InOut, value)?;
        Ok(self)
    }

    /// Appends an `out` argument with its parameter's name, which the request does not carry.
    pub fn add_out_arg_named(&mut self, name: impl Into<Cow<'static, str>>, type_code: TypeCode) -> &mut Self {
        self.body.push_out(name.into(), type_code);
        self
    }

    /// Adds an argument of its value's type (`add_arg`). An argument of IDL type `any` is one whose value is
    /// an `Any`. The value may be of a type that derives from the argument's, or one permitted in an abstract
    /// interface.
    ///
    /// # Errors
    /// BAD_PARAM for a sent argument without a value, or of another type; a value that cannot be encoded.
    pub fn add_arg(&mut self, argument: &NamedValue) -> Result<&mut Self, SystemException> {
        let name = argument.name.clone();
        match &argument.value {
            Some(value) if argument.mode.is_sent() => {
                let fitting = derived(value, &argument.type_code).ok_or_else(|| {
                    let (label, type_code) = (argument.label(self.body.arguments().len()), &argument.type_code);
                    bad_param().with_detail(|| format!("{label} is of type `{type_code}`, not `{}`", value.type_code()))
                })?;
                self.body.push_any(name, argument.mode, &fitting, argument.type_code.clone())?
            }
            None if argument.mode.is_sent() => {
                let label = argument.label(self.body.arguments().len());
                return Err(
                    bad_param().with_detail(|| format!("{label} is `{}` and has no value", argument.mode.keyword()))
                );
            }
            _ => self.body.push_out(name, argument.type_code.clone()),
        }
        Ok(self)
    }

    /// Adds an argument of a type that includes this value.
    pub(crate) fn add_arg_of(
        &mut self,
        name: Cow<'static, str>,
        mode: ArgMode,
        value: &Any,
        type_code: TypeCode,
    ) -> Result<&mut Self, SystemException> {
        self.body.push_any(name, mode, value, type_code)?;
        Ok(self)
    }

    /// Replaces the value of an `in` or `inout` argument.
    ///
    /// # Errors
    /// BAD_PARAM for an unknown argument, another type, or an `out` argument; a value that cannot be encoded.
    /// The old value stays then.
    pub fn set_argument<T: Encode + Typed + ?Sized>(
        &mut self,
        index: usize,
        value: &T,
    ) -> Result<&mut Self, SystemException> {
        self.body.set(index, value)?;
        Ok(self)
    }

    /// As [`Request::set_argument`], with a value in an [`Any`].
    ///
    /// # Errors
    /// As [`Request::set_argument`].
    pub fn set_argument_any(&mut self, index: usize, value: &Any) -> Result<&mut Self, SystemException> {
        self.body.set_any(index, value)?;
        Ok(self)
    }

    /// Sets the value types that are permitted in results where one of their bases, `ValueBase` or an
    /// abstract interface is declared. Values of other types are truncated to a known type if possible, and
    /// else are MARSHAL.
    pub fn set_value_types(&mut self, types: &ValueTypes) -> &mut Self {
        self.binder =
            Some(types).filter(|types| !types.is_empty()).map(|types| TypedBinder::new(types, Some(self.target.orb())));
        self
    }

    /// A decoder of the results, with the known types of values.
    pub(super) fn read<'r>(&'r self, answer: &'r Answer) -> Decoder<'r> {
        match &self.binder {
            Some(binder) => answer.body().with_binder(binder),
            None => answer.body(),
        }
    }

    /// Sets the type of the return value; the default is `void`.
    pub fn set_return_type(&mut self, type_code: TypeCode) -> &mut Self {
        self.return_type = type_code;
        self.return_maker.set(None);
        self
    }

    /// The type by which the return value will be decoded; `void` by default.
    #[must_use]
    pub fn return_type(&self) -> &TypeCode {
        &self.return_type
    }

    /// Adds an exception that the operation may raise (`exceptions`). An unlisted one becomes UNKNOWN.
    pub fn add_exception(&mut self, type_code: TypeCode) -> &mut Self {
        self.exceptions.push(type_code);
        self
    }

    /// Sends the properties of the context with these names, which are those of the operation's `context`
    /// clause (`ctx`, `contexts`).
    pub fn set_context<N: Into<String>>(&mut self, context: &Context, names: impl IntoIterator<Item = N>) -> &mut Self {
        self.context = Some((context.clone(), names.into_iter().map(Into::into).collect()));
        self
    }

    pub(super) fn write<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        write(&self.body, self.context.as_ref(), out)
    }

    /// Sends it and waits for the reply.
    ///
    /// # Errors
    /// [`RequestError::Raised`] for a listed exception, and the system exception that ended the call;
    /// BAD_INV_ORDER while an earlier reply is outstanding.
    pub fn invoke(&mut self) -> Result<(), RequestError> {
        self.begin()?;
        let answer = self.described(|| self.target.invoke_raw(&self.operation, &|out| self.write(out)))?;
        self.accept(answer)
    }

    /// Sends it without a reply: returns once the transport has accepted it.
    ///
    /// # Errors
    /// The system exception of a failure to send; BAD_INV_ORDER while an earlier reply is outstanding.
    pub fn send_oneway(&mut self) -> Result<(), SystemException> {
        self.begin()?;
        self.described(|| self.target.send_oneway(&self.operation, |out| self.write(out)))
    }

    /// Creates the request, with its description for interceptors.
    pub(super) fn described<R>(&self, request: impl FnOnce() -> R) -> R {
        self.target.orb().describing(|| self.description(), request)
    }

    fn description(&self) -> DynamicRequest {
        let arguments = self.body.arguments().iter().enumerate().map(|(index, argument)| Parameter {
            argument: argument.mode.is_sent().then(|| self.body.sent(index, self.target.orb()).ok()).flatten(),
            type_code: argument.type_code.clone(),
            mode: match argument.mode {
                ArgMode::In => ParameterMode::In,
                ArgMode::Out => ParameterMode::Out,
                ArgMode::InOut => ParameterMode::InOut,
            },
        });
        let (operation_context, contexts) = self.context.clone().unwrap_or_default();
        DynamicRequest {
            arguments: arguments.collect(),
            return_type: self.return_type.clone(),
            exceptions: self.exceptions.clone(),
            contexts,
            operation_context,
        }
    }

    /// Drops the old reply: the connection will receive into its block.
    pub(super) fn begin(&mut self) -> Result<(), SystemException> {
        self.check_not_pending()?;
        self.state = State::Failed;
        self.deferred = None;
        Ok(())
    }

    pub(super) fn check_not_pending(&self) -> Result<(), SystemException> {
        if self.deferred.as_ref().is_some_and(|reply| reply.is_expected()) {
            return Err(bad_inv_order(minor::REQUEST_ALREADY_SENT));
        }
        Ok(())
    }

    /// Stores the results, or returns the exception of the reply.
    pub(super) fn accept(&mut self, answer: Answer) -> Result<(), RequestError> {
        if answer.is_exception() {
            self.state = State::Failed;
            return Err(self.raised(&answer));
        }
        self.state = State::Answered(answer);
        Ok(())
    }

    #[cold]
    fn raised(&self, answer: &Answer) -> RequestError {
        let unreadable = |error| {
            let detail = || format!("the exception that `{}` raised cannot be read", self.operation);
            SystemException::from(error).with_completed(CompletionStatus::Yes).with_detail(detail).into()
        };
        let id = match answer.body().str() {
            Ok(id) => id.into_owned(),
            Err(error) => return unreadable(error),
        };
        match self
            .exceptions
            .iter()
            .find(|type_code| type_code.without_aliases().id().is_ok_and(|exception_id| exception_id == id))
        {
            // Its id precedes its members, as within an `Any`.
            Some(type_code) => match Any::read(type_code.clone(), &mut self.read(answer)) {
                Ok(exception) => UnknownUserException { exception }.into(),
                Err(error) => unreadable(error),
            },
            None => SystemException::unknown(minor::UNLISTED_USER_EXCEPTION, CompletionStatus::Yes)
                .with_detail(|| format!("`{}` raised `{id}`, which the request does not list", self.operation))
                .into(),
        }
    }
}

pub(super) fn bad_inv_order(minor: u32) -> SystemException {
    SystemException::bad_inv_order(minor, CompletionStatus::No)
}

fn write<'a>(
    body: &'a Body,
    context: Option<&'a (Context, Vec<String>)>,
    out: &mut Encoder<'a>,
) -> Result<(), CdrError> {
    body.write(out)?;
    match context {
        Some((context, names)) => {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            context.encode_named(&names, out)
        }
        None => Ok(()),
    }
}
