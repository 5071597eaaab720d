//! Calls with descriptions of interfaces.

use std::borrow::Cow;

use spandrel_cdr::{Any, Decode, TypeCode, Typed};
use spandrel_giop::{CompletionStatus, SystemException, minor};
use spandrel_orb::{Context, ObjectRef};
use spandrel_sync::Arc;

use super::{InterfaceDescription, OperationDescription, ParameterDescription};
use crate::{ArgMode, NamedValue, Request, RequestError, fit::fitted, named::bad_param};

/// An object with the description of its interface: a stub without generated code.
#[derive(Clone, Debug)]
pub struct DynamicObject {
    object: ObjectRef,
    interface: Arc<InterfaceDescription>,
    /// The properties for `context` clauses.
    context: Context,
}

/// The results of a call: the return value, and the `inout` and `out` parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The return value; of type `void` without one.
    pub result: Any,
    /// The `inout` and `out` parameters, in their order.
    pub outs: Vec<NamedValue>,
}

impl DynamicObject {
    /// An object with this interface, without a remote type check.
    pub fn new(object: ObjectRef, interface: impl Into<Arc<InterfaceDescription>>) -> Self {
        Self { object, interface: interface.into(), context: Context::new() }
    }

    /// The same object, with these properties for operations with a `context` clause. Without properties such
    /// an operation sends none.
    #[must_use]
    pub fn with_context(&self, context: &Context) -> Self {
        Self { context: context.clone(), ..self.clone() }
    }

    /// The reference to which calls are sent.
    #[must_use]
    pub fn object(&self) -> &ObjectRef {
        &self.object
    }

    /// The operations and attributes by which calls are checked.
    #[must_use]
    pub fn interface(&self) -> &InterfaceDescription {
        &self.interface
    }

    /// Invokes an operation: `arguments` are the values of its `in` and `inout` parameters, in order. A
    /// one-way call returns once it is sent.
    ///
    /// # Errors
    /// The exceptions of the operation, and the system exception that ended the call. BAD_OPERATION, before
    /// anything is sent, for an operation that the interface lacks; BAD_PARAM for arguments of other types,
    /// named in the detail.
    pub fn call(&self, operation: &str, arguments: &[Any]) -> Result<Outcome, RequestError> {
        let mut request = self.prepare(operation, arguments)?;
        if self.operation(operation)?.is_oneway {
            request.send_oneway()?;
            return Ok(Outcome::without_results()?);
        }
        request.invoke()?;
        self.outcome(&request)
    }

    /// As [`DynamicObject::call`], asynchronously. No thread waits. A drop of the future abandons the call.
    ///
    /// # Errors
    /// As [`DynamicObject::call`].
    #[cfg(feature = "asynchronous")]
    pub async fn call_async(&self, operation: &str, arguments: &[Any]) -> Result<Outcome, RequestError> {
        let mut request = self.prepare(operation, arguments)?;
        if self.operation(operation)?.is_oneway {
            request.send_oneway_async().await?;
            return Ok(Outcome::without_results()?);
        }
        request.invoke_async().await?;
        self.outcome(&request)
    }

    /// Calls the getter of an attribute.
    ///
    /// # Errors
    /// As [`DynamicObject::call`].
    pub fn get(&self, attribute: &str) -> Result<Any, RequestError> {
        self.call(&format!("_get_{attribute}"), &[]).map(|outcome| outcome.result)
    }

    /// Calls the setter of an attribute.
    ///
    /// # Errors
    /// As [`DynamicObject::call`].
    pub fn set(&self, attribute: &str, value: &Any) -> Result<(), RequestError> {
        self.call(&format!("_set_{attribute}"), std::slice::from_ref(value)).map(drop)
    }

    /// A request for an operation with these arguments, to be sent by the caller; [`outcome`](Self::outcome)
    /// decodes its results.
    ///
    /// # Errors
    /// BAD_OPERATION and BAD_PARAM, as [`DynamicObject::call`].
    pub fn prepare(&self, operation: &str, arguments: &[Any]) -> Result<Request, SystemException> {
        let operation = self.operation(operation)?;
        let expected_count = operation.parameters.iter().filter(|parameter| parameter.mode.is_sent()).count();
        if arguments.len() != expected_count {
            let detail = || format!("`{operation}` takes {expected_count} arguments, not {}", arguments.len());
            return Err(bad_param().with_detail(detail));
        }
        let mut request = Request::new(&self.object, operation.name.clone());
        let mut arguments = arguments.iter();
        for parameter in &operation.parameters {
            let ParameterDescription { name, mode, type_code } = parameter;
            let name: Cow<'static, str> = name.clone().into();
            match mode {
                ArgMode::Out => request.add_out_arg_named(name, type_code.clone()),
                _ => {
                    let argument = arguments.next().expect("the number of arguments was checked");
                    let value = fitted(argument, type_code).ok_or_else(|| refused(operation, parameter, argument))?;
                    request.add_arg_of(name, *mode, &value, type_code.clone())?
                }
            };
        }
        request.set_return_type(operation.result.clone()).set_value_types(self.interface.value_types());
        if !operation.contexts.is_empty() {
            request.set_context(&self.context, operation.contexts.iter().cloned());
        }
        for exception in &operation.exceptions {
            request.add_exception(exception.clone());
        }
        Ok(request)
    }

    /// Decodes the results of a request that was [prepared](Self::prepare) for an operation of this
    /// interface.
    ///
    /// # Errors
    /// BAD_INV_ORDER without a reply; MARSHAL if the results do not match the operation.
    pub fn outcome(&self, request: &Request) -> Result<Outcome, RequestError> {
        let operation = self.operation(request.operation())?;
        let mut results = request.results()?;
        let result = match operation.result.kind() {
            spandrel_cdr::TcKind::Void => void()?,
            _ => results.take_any()?,
        };
        let returned = operation.parameters.iter().filter(|parameter| parameter.mode.is_returned());
        let outs = returned.map(|ParameterDescription { name, mode, .. }| {
            results.take_any().map(|value| NamedValue::new(name.clone(), *mode, value))
        });
        Ok(Outcome { result, outs: outs.collect::<Result<_, _>>()? })
    }

    fn operation(&self, name: &str) -> Result<&OperationDescription, SystemException> {
        self.interface.find(name).ok_or_else(|| {
            SystemException::bad_operation(minor::UNKNOWN_OPERATION, CompletionStatus::No)
                .with_detail(|| self.interface.missing_reason(name))
        })
    }
}

fn refused(operation: &OperationDescription, parameter: &ParameterDescription, argument: &Any) -> SystemException {
    let ParameterDescription { name, type_code, .. } = parameter;
    bad_param().with_detail(|| {
        format!("parameter `{name}` of `{}` is of type `{type_code}`, not `{}`", operation.name, argument.type_code())
    })
}

fn void() -> Result<Any, spandrel_cdr::CdrError> {
    Any::write(TypeCode::VOID, |_| Ok(()))
}

impl Outcome {
    /// The outcome of a one-way.
    fn without_results() -> Result<Self, spandrel_cdr::CdrError> {
        Ok(Self { result: void()?, outs: Vec::new() })
    }

    /// The return value as a Rust value.
    ///
    /// # Errors
    /// BAD_PARAM if it is of another type.
    pub fn result<T: Decode + Typed>(&self) -> Result<T, SystemException> {
        self.result.extract().map_err(|error| bad_param().with_completed(CompletionStatus::Yes).with_source(error))
    }

    /// The value of an `inout` or `out` parameter as a Rust value.
    ///
    /// # Errors
    /// BAD_PARAM for an unknown parameter, or another type.
    pub fn out<T: Decode + Typed>(&self, name: &str) -> Result<T, SystemException> {
        let refused = || bad_param().with_completed(CompletionStatus::Yes);
        let Some(value) = self.outs.iter().find(|out| out.name == name).and_then(|out| out.value.as_ref()) else {
            return Err(refused().with_detail(|| format!("no parameter `{name}` was returned")));
        };
        value.extract().map_err(|error| refused().with_source(error))
    }
}
