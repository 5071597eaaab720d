//! Contents of events: values, and calls of typed suppliers.

use spandrel::dynamic::InterfaceDescription;
use spandrel::net::sync::Arc;
use spandrel::types::{Any, TypeCode};
use spandrel::{CompletionStatus, SystemException};

/// The content of an event.
#[derive(Clone, Debug)]
pub(crate) struct EventContent {
    /// The value, as untyped consumers get it. That of a call is a structure of its arguments.
    pub(crate) value: Any,
    /// The call of a typed supplier.
    call: Option<Call>,
}

/// The operation that a typed supplier has called. Its arguments are the members of the event's value.
#[derive(Clone, Debug)]
struct Call {
    interface: Arc<InterfaceDescription>,
    operation: String,
}

impl From<Any> for EventContent {
    fn from(value: Any) -> Self {
        Self { value, call: None }
    }
}

impl EventContent {
    /// The event of a call of an operation with these arguments. Its value is a structure with the repository id of the
    /// operation: `IDL:Plant/Alarms:1.0` and `raised` make `IDL:Plant/Alarms/raised:1.0`.
    ///
    /// # Errors
    /// BAD_PARAM for arguments that have no encoding.
    pub(crate) fn from_call(
        interface: &Arc<InterfaceDescription>,
        operation: &str,
        arguments: &[Any],
    ) -> Result<Self, SystemException> {
        let id = match interface.id().rsplit_once(':') {
            Some((path, version)) => format!("{path}/{operation}:{version}"),
            None => format!("{}/{operation}", interface.id()),
        };
        let invalid = |error: &dyn std::fmt::Display| {
            let detail = format!("the arguments of `{operation}` are no event: {error}");
            SystemException::bad_param(0, CompletionStatus::No).with_detail(detail)
        };
        let parameters = interface.find(operation).map_or(&[][..], |operation| &operation.parameters);
        let members: Vec<(String, TypeCode)> = parameters
            .iter()
            .zip(arguments)
            .map(|(parameter, value)| (parameter.name.clone(), value.type_code().clone()))
            .collect();
        let type_code = TypeCode::structure(id, operation.to_owned(), &members).map_err(|error| invalid(&error))?;
        let value = Any::write(type_code, |out| arguments.iter().try_for_each(|value| value.write_value(out)));
        let call = Call { interface: Arc::clone(interface), operation: operation.to_owned() };
        Ok(Self { value: value.map_err(|error| invalid(&error))?, call: Some(call) })
    }

    /// Whether it is a call that an object with this interface understands.
    pub(crate) fn is_call_of(&self, interface: &InterfaceDescription) -> bool {
        self.call
            .as_ref()
            .is_some_and(|call| call.interface.is_a(interface.id()) && interface.find(&call.operation).is_some())
    }

    /// The operation of a call.
    pub(crate) fn operation(&self) -> Option<&str> {
        self.call.as_ref().map(|call| &*call.operation)
    }

    /// The arguments of a call.
    ///
    /// # Errors
    /// INTERNAL if they cannot be read again.
    pub(crate) fn arguments(&self) -> Result<Vec<Any>, SystemException> {
        let unreadable = |error: &dyn std::fmt::Display| {
            SystemException::internal(0, CompletionStatus::No).with_detail(error.to_string())
        };
        let (type_code, mut input) = (self.value.type_code(), self.value.value());
        let count = type_code.member_count().map_err(|error| unreadable(&error))?;
        let arguments = (0..count).map(|index| {
            let member = type_code.member_type(index).map_err(|error| unreadable(&error))?;
            Any::read(member, &mut input).map_err(|error| unreadable(&error))
        });
        arguments.collect()
    }
}
