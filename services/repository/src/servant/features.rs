//! Attributes and operations, which interfaces and values have in common (CORBA 3.3 Part 1, 14.5.23 to 14.5.26).

use spandrel::types::{Interface, TypeCode};

use super::object::{Object, Outcome};
use super::parts::{check_operation, described_exceptions, is_exception};
use crate::core::Naming;
use crate::describe::{attribute_mode, operation_mode};
use crate::generated::corba::{
    AttributeDefServant, AttributeMode, ExceptionDef, ExceptionDescription, ExtAttributeDefServant,
    ExtAttributeDescription, IdlType, OperationDef, OperationDefServant, OperationMode, ParameterDescription,
};
use crate::model::{Model, Number};
use crate::records::records::{AttributeBody, Body, InterfaceFlavor, OperationBody};
use crate::types::derives;

impl AttributeDefServant for Object<'_> {
    fn r#type(&self) -> Outcome<TypeCode> {
        self.type_code(self.content::<AttributeBody>()?.r#type)
    }

    fn type_def(&self) -> Outcome<Option<IdlType>> {
        self.reference(self.content::<AttributeBody>()?.r#type)
    }

    fn set_type_def(&self, value: Option<&IdlType>) -> Outcome<()> {
        self.assign_type(|body: &mut AttributeBody| &mut body.r#type, value)
    }

    fn mode(&self) -> Outcome<AttributeMode> {
        Ok(attribute_mode(self.content::<AttributeBody>()?.is_readonly))
    }

    fn set_mode(&self, value: AttributeMode) -> Outcome<()> {
        self.assign(|body: &mut AttributeBody| &mut body.is_readonly, value == AttributeMode::AttrReadonly)
    }
}

impl ExtAttributeDefServant for Object<'_> {
    fn get_exceptions(&self) -> Outcome<Vec<ExceptionDescription>> {
        let exceptions = &self.content::<AttributeBody>()?.get_exceptions;
        self.describe(|describer| describer.exceptions(exceptions))
    }

    fn set_get_exceptions(&self, value: &[ExceptionDescription]) -> Outcome<()> {
        self.edit(|body: &mut AttributeBody, model| {
            body.get_exceptions = described_exceptions(model, value)?;
            Ok(())
        })
    }

    fn set_exceptions(&self) -> Outcome<Vec<ExceptionDescription>> {
        let exceptions = &self.content::<AttributeBody>()?.set_exceptions;
        self.describe(|describer| describer.exceptions(exceptions))
    }

    fn set_set_exceptions(&self, value: &[ExceptionDescription]) -> Outcome<()> {
        self.edit(|body: &mut AttributeBody, model| {
            body.set_exceptions = described_exceptions(model, value)?;
            Ok(())
        })
    }

    fn describe_attribute(&self) -> Outcome<ExtAttributeDescription> {
        self.describe(|describer| describer.ext_attribute(self.number))
    }
}

impl OperationDefServant for Object<'_> {
    fn result(&self) -> Outcome<TypeCode> {
        self.type_code(self.content::<OperationBody>()?.result)
    }

    fn result_def(&self) -> Outcome<Option<IdlType>> {
        self.reference(self.content::<OperationBody>()?.result)
    }

    fn set_result_def(&self, value: Option<&IdlType>) -> Outcome<()> {
        self.assign_type(|body: &mut OperationBody| &mut body.result, value)
    }

    fn params(&self) -> Outcome<Vec<ParameterDescription>> {
        let body = self.content()?;
        self.describe(|describer| describer.parameters(body))
    }

    fn set_params(&self, value: &[ParameterDescription]) -> Outcome<()> {
        self.edit_operation(|body, model| {
            body.parameters = self.core.parameters(model, value)?;
            Ok(())
        })
    }

    fn mode(&self) -> Outcome<OperationMode> {
        Ok(operation_mode(self.content::<OperationBody>()?.is_oneway))
    }

    fn set_mode(&self, value: OperationMode) -> Outcome<()> {
        self.edit_operation(|body, _| {
            body.is_oneway = value == OperationMode::OpOneway;
            Ok(())
        })
    }

    fn contexts(&self) -> Outcome<Vec<String>> {
        Ok(self.content::<OperationBody>()?.contexts.clone())
    }

    fn set_contexts(&self, value: &[String]) -> Outcome<()> {
        self.edit_operation(|body, _| {
            body.contexts = value.to_vec();
            Ok(())
        })
    }

    fn exceptions(&self) -> Outcome<Vec<Option<ExceptionDef>>> {
        self.references(&self.content::<OperationBody>()?.exceptions)
    }

    fn set_exceptions(&self, value: &[Option<ExceptionDef>]) -> Outcome<()> {
        self.edit_operation(|body, model| {
            body.exceptions = self.core.numbers(model, value, is_exception)?;
            Ok(())
        })
    }
}

impl Object<'_> {
    fn edit_operation(&self, change: impl FnOnce(&mut OperationBody, &Model) -> Outcome<()>) -> Outcome<()> {
        self.edit(|body, model| {
            change(body, model)?;
            check_operation(body)
        })
    }

    pub(super) fn add_attribute<T: Interface>(
        &self,
        naming: Naming,
        idl_type: Option<&IdlType>,
        mode: AttributeMode,
        get_exceptions: &[Option<ExceptionDef>],
        set_exceptions: &[Option<ExceptionDef>],
    ) -> Outcome<Option<T>> {
        self.create(naming, |model| {
            Ok(Body::AnAttribute(AttributeBody {
                r#type: self.core.type_number(model, idl_type)?,
                is_readonly: mode == AttributeMode::AttrReadonly,
                get_exceptions: self.core.numbers(model, get_exceptions, is_exception)?,
                set_exceptions: self.core.numbers(model, set_exceptions, is_exception)?,
            }))
        })
    }

    pub(super) fn add_operation(
        &self,
        naming: Naming,
        result: Option<&IdlType>,
        mode: OperationMode,
        params: &[ParameterDescription],
        exceptions: &[Option<ExceptionDef>],
        contexts: &[String],
    ) -> Outcome<Option<OperationDef>> {
        self.create(naming, |model| {
            let body = OperationBody {
                result: self.core.type_number(model, result)?,
                is_oneway: mode == OperationMode::OpOneway,
                parameters: self.core.parameters(model, params)?,
                exceptions: self.core.numbers(model, exceptions, is_exception)?,
                contexts: contexts.to_vec(),
            };
            check_operation(&body)?;
            Ok(Body::Operation(body))
        })
    }

    /// Whether the interface or value is, inherits from or supports the one with this repository id.
    pub(super) fn is_derived(&self, id: &str) -> Outcome<bool> {
        let (base, supported): (_, &[Number]) = match &self.definition.content {
            Body::Value(body) => ("IDL:omg.org/CORBA/ValueBase:1.0", &body.supported),
            Body::AnInterface(body) if body.flavor == InterfaceFlavor::FlavorAbstract => {
                ("IDL:omg.org/CORBA/AbstractBase:1.0", &[])
            }
            _ => ("IDL:omg.org/CORBA/Object:1.0", &[]),
        };
        self.read(|model| {
            let is_derived_from = |target| [self.number].iter().chain(supported).any(|it| derives(model, *it, target));
            Ok(id == base || model.by_id(id).is_some_and(is_derived_from))
        })
    }
}
