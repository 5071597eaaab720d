//! Servants with descriptions of interfaces: skeletons without generated code.

use std::borrow::Cow;

use spandrel_cdr::{Any, TcKind};
use spandrel_giop::{CompletionStatus, SystemException, minor};
use spandrel_orb::Context;
use spandrel_sync::Arc;

use super::{DynamicObject, InterfaceDescription, OperationDescription};
use crate::{DynamicImplementation, DynamicServant, NamedValue, NvList, RequestError, ServerRequest, fit::fitted};

/// The operation and the object of a call, for [`DescribedOperations`].
#[derive(Debug)]
#[non_exhaustive]
pub struct DescribedCall<'c> {
    /// The operation that the client calls, by which its arguments are typed.
    pub operation: &'c OperationDescription,
    /// The id by which the adapter knows the object.
    pub object_id: &'c [u8],
    /// The context sent for the operation's `context` clause, if it has one.
    pub context: Option<Context>,
}

/// The implementation of a described interface's operations, such as a closure of this signature.
pub trait DescribedOperations: Send + Sync {
    /// Runs an operation: the list has the received values, and gets the returned ones. Returns the return
    /// value, which is ignored if the type is `void`.
    ///
    /// # Errors
    /// An exception that the operation may raise, or a system exception.
    fn call(&self, call: &DescribedCall<'_>, arguments: &mut NvList) -> Result<Any, RequestError>;
}

impl<F> DescribedOperations for F
where
    F: Fn(&DescribedCall<'_>, &mut NvList) -> Result<Any, RequestError> + Send + Sync,
{
    fn call(&self, call: &DescribedCall<'_>, arguments: &mut NvList) -> Result<Any, RequestError> {
        self(call, arguments)
    }
}

/// A bridge: forwards every request to the object, and its results back. The description of the object's
/// interface determines the encoding, not that of the bridge's.
impl DescribedOperations for DynamicObject {
    fn call(&self, call: &DescribedCall<'_>, arguments: &mut NvList) -> Result<Any, RequestError> {
        let sent: Vec<Any> = arguments.iter().filter_map(|item| item.value.clone()).collect();
        let outcome = match &call.context {
            Some(context) => DynamicObject::call(&self.with_context(context), &call.operation.name, &sent)?,
            None => DynamicObject::call(self, &call.operation.name, &sent)?,
        };
        let mut outs = outcome.outs.into_iter();
        for item in arguments.iter_mut().filter(|item| item.mode.is_returned()) {
            item.value = outs.next().and_then(|out| out.value);
        }
        Ok(outcome.result)
    }
}

/// A dynamic servant whose arguments and results are checked by a description.
pub type DescribedServant<S> = DynamicServant<Described<S>>;

/// Decodes and validates requests, and validates results, with the interface's description.
#[derive(Debug)]
pub struct Described<S> {
    interface: Arc<InterfaceDescription>,
    operations: S,
}

impl<S: DescribedOperations> DescribedServant<S> {
    /// Serves this interface by the application's `operations`.
    pub fn described(interface: impl Into<Arc<InterfaceDescription>>, operations: S) -> Self {
        Self::new(Described { interface: interface.into(), operations })
    }
}

impl<S: DescribedOperations> DynamicImplementation for Described<S> {
    fn invoke(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        let operation = self.interface.find(request.operation()).ok_or_else(|| request.unknown_operation())?;
        let object_id = request.object_id();
        request.set_value_types(self.interface.value_types());
        request.arguments(list_of(operation))?;
        let context = if operation.contexts.is_empty() { None } else { Some(request.context()?) };
        let list = request.list().expect("the arguments were decoded");
        match self.operations.call(&DescribedCall { operation, object_id, context }, list) {
            Ok(result) => {
                list.iter_mut().enumerate().try_for_each(|(index, item)| fit(index, item))?;
                if operation.result.kind() != TcKind::Void {
                    request.set_result_any(fitting_result(operation, &result)?)?;
                }
                Ok(())
            }
            Err(RequestError::Raised(raised)) => {
                check_listed(operation, &raised.exception)?;
                request.set_exception(raised.exception)
            }
            Err(RequestError::System(exception)) => Err(exception),
        }
    }

    fn primary_interface(&self, _object_id: &[u8]) -> String {
        self.interface.id().to_owned()
    }

    fn is_a(&self, _object_id: &[u8], repository_id: &str) -> bool {
        self.interface.is_a(repository_id)
    }
}

fn list_of(operation: &OperationDescription) -> NvList {
    let parameters = operation.parameters.iter();
    parameters.map(|it| NamedValue::of_type(it.name.clone(), it.mode, it.type_code.clone())).collect()
}

/// Adapts a returned value to its parameter's type: the list accepts any value.
fn fit(index: usize, item: &mut NamedValue) -> Result<(), SystemException> {
    let Some(value) = item.value.as_ref().filter(|_| item.mode.is_returned()) else { return Ok(()) };
    let fitting = fitted(value, &item.type_code).ok_or_else(|| {
        wrong(|| format!("{} is of type `{}`, not `{}`", item.label(index), item.type_code, value.type_code()))
    })?;
    if let Cow::Owned(fitting) = fitting {
        item.value = Some(fitting);
    }
    Ok(())
}

fn fitting_result(operation: &OperationDescription, result: &Any) -> Result<Any, SystemException> {
    fitted(result, &operation.result).map(Cow::into_owned).ok_or_else(|| {
        wrong(|| format!("`{}` returns `{}`, not `{}`", operation.name, operation.result, result.type_code()))
    })
}

fn check_listed(operation: &OperationDescription, exception: &Any) -> Result<(), SystemException> {
    if operation.exceptions.iter().any(|type_code| type_code.equivalent(exception.type_code())) {
        return Ok(());
    }
    let detail = || format!("`{}` does not raise `{}`", operation.name, exception.type_code());
    Err(SystemException::unknown(minor::UNLISTED_USER_EXCEPTION, CompletionStatus::Yes).with_detail(detail))
}

/// The exception for invalid results: the operation ran, and its values cannot be sent.
fn wrong(detail: impl FnOnce() -> String) -> SystemException {
    SystemException::marshal(0, CompletionStatus::Yes).with_detail(detail)
}
