//! Interfaces of typed events with the absolute names of their operations.

use std::collections::BTreeMap;
use std::time::Duration;

use spandrel::net::sync::Arc;
use spandrel::services::cos_notification::Property;
use spandrel::services::repository::{corba::DefinitionKind, default_repository};
use spandrel::types::Any;
use spandrel::{ObjectRef, Orb, SystemException};
use spandrel_cdr::{Decode, Encode};
use spandrel_delivery::TypedInterface;

use crate::content::Content;

/// An interface whose operations are events.
#[derive(Debug)]
pub(crate) struct EventInterface {
    pub(crate) typed: TypedInterface,
    /// The names of operations by their absolute names, such as `::Plant::Alarms::raised`. An inherited operation has
    /// the name in its base.
    operations: BTreeMap<String, String>,
}

impl EventInterface {
    /// The interface with this repository id, or that whose pull interface has it.
    ///
    /// # Errors
    /// As for [`TypedInterface::of_push`].
    pub(crate) fn find(
        orb: &Orb,
        is_push: bool,
        id: &str,
        timeout: Duration,
    ) -> Result<Option<Arc<Self>>, SystemException> {
        let find = if is_push { TypedInterface::of_push } else { TypedInterface::of_pull };
        let Some(typed) = find(orb, id, timeout)? else { return Ok(None) };
        let repository = default_repository(orb)?.with_timeout(Some(timeout));
        let definition: Option<ObjectRef> = call(&repository, "lookup_id", &[&typed.events.id()])?;
        let Some(definition) = definition else { return Ok(None) };
        let definition = definition.with_timeout(Some(timeout));
        // With those of the bases.
        let definitions: Vec<Option<ObjectRef>> =
            call(&definition, "contents", &[&DefinitionKind::DkOperation, &false])?;
        let mut operations = BTreeMap::new();
        for operation in definitions.into_iter().flatten() {
            let operation = operation.with_timeout(Some(timeout));
            let name = call(&operation, "_get_name", &[])?;
            operations.insert(call(&operation, "_get_absolute_name", &[])?, name);
        }
        Ok(Some(Arc::new(Self { typed, operations })))
    }

    /// The event of a call of an operation with these arguments.
    pub(crate) fn event(&self, operation: &str, arguments: Vec<Any>) -> Content {
        let absolute = self.operations.iter().find(|(_, name)| *name == operation).map(|(absolute, _)| &**absolute);
        let parameters = self.typed.events.find(operation).map_or(&[][..], |operation| &operation.parameters);
        let arguments = parameters.iter().zip(arguments);
        let arguments = arguments.map(|(parameter, value)| Property { name: parameter.name.clone(), value });
        Content::from_call(absolute.unwrap_or(operation), arguments)
    }

    /// The operation of this interface that an event calls; `None` for other events.
    pub(crate) fn operation_of(&self, content: &Content) -> Option<&str> {
        let (absolute, properties) = content.to_call()?;
        let name = self.operations.get(&absolute)?;
        let parameters = &self.typed.events.find(name)?.parameters;
        let arguments = properties.get(1..)?;
        let is_call = parameters.len() == arguments.len()
            && parameters.iter().zip(arguments).all(|(parameter, argument)| {
                parameter.name == argument.name && parameter.type_code.equivalent(argument.value.type_code())
            });
        is_call.then_some(name)
    }
}

/// Calls an operation of an object of the repository.
fn call<R: Decode>(
    object: &ObjectRef,
    operation: &'static str,
    arguments: &[&dyn Encode],
) -> Result<R, SystemException> {
    object.invoke(operation, |out| arguments.iter().try_for_each(|argument| argument.encode(out)), R::decode)
}

/// The arguments of a call.
pub(crate) fn arguments(content: &Content) -> Vec<Any> {
    let properties = content.to_call().map(|(_, properties)| properties.into_owned()).unwrap_or_default();
    properties.into_iter().skip(1).map(|property| property.value).collect()
}
