//! Values and their members (CORBA 3.3 Part 1, 14.5.30 to 14.5.33).

use spandrel::types::TypeCode;

use super::object::{Object, Outcome};
use super::parts::{check_access, check_acyclic, extended, is_interface, is_value};
use crate::core::Naming;
use crate::describe::without_exceptions;
use crate::generated::corba::{
    AttributeDef, AttributeMode, ExceptionDef, ExtAttributeDef, ExtInitializer, ExtValueDefServant, IdlType,
    Initializer, InterfaceDef, OperationDef, OperationMode, ParameterDescription, ValueDef, ValueDefServant,
    ValueMemberDef, ValueMemberDefServant, ext_value_def::ExtFullValueDescription, value_def::FullValueDescription,
};
use crate::model::NONE;
use crate::records::records::{Body, ValueBody, ValueMemberBody};

impl ValueDefServant for Object<'_> {
    fn supported_interfaces(&self) -> Outcome<Vec<Option<InterfaceDef>>> {
        self.references(&self.content::<ValueBody>()?.supported)
    }

    fn set_supported_interfaces(&self, value: &[Option<InterfaceDef>]) -> Outcome<()> {
        self.edit(|body: &mut ValueBody, model| {
            body.supported = self.core.numbers(model, value, is_interface)?;
            Ok(())
        })
    }

    fn initializers(&self) -> Outcome<Vec<Initializer>> {
        Ok(self.ext_initializers()?.into_iter().map(without_raised).collect())
    }

    fn set_initializers(&self, value: &[Initializer]) -> Outcome<()> {
        self.set_ext_initializers(&extended(value))
    }

    fn base_value(&self) -> Outcome<Option<ValueDef>> {
        self.reference(self.content::<ValueBody>()?.base)
    }

    fn set_base_value(&self, value: Option<&ValueDef>) -> Outcome<()> {
        self.edit(|body: &mut ValueBody, model| {
            let base = self.core.base_value(model, value)?;
            if base != NONE {
                check_acyclic(model, self.number, &[base])?;
            }
            body.base = base;
            Ok(())
        })
    }

    fn abstract_base_values(&self) -> Outcome<Vec<Option<ValueDef>>> {
        self.references(&self.content::<ValueBody>()?.abstract_bases)
    }

    fn set_abstract_base_values(&self, value: &[Option<ValueDef>]) -> Outcome<()> {
        self.edit(|body: &mut ValueBody, model| {
            let bases = self.core.numbers(model, value, is_value)?;
            check_acyclic(model, self.number, &bases)?;
            body.abstract_bases = bases;
            Ok(())
        })
    }

    fn is_abstract(&self) -> Outcome<bool> {
        Ok(self.content::<ValueBody>()?.is_abstract)
    }

    fn set_is_abstract(&self, value: bool) -> Outcome<()> {
        self.assign(|body: &mut ValueBody| &mut body.is_abstract, value)
    }

    fn is_custom(&self) -> Outcome<bool> {
        Ok(self.content::<ValueBody>()?.is_custom)
    }

    fn set_is_custom(&self, value: bool) -> Outcome<()> {
        self.assign(|body: &mut ValueBody| &mut body.is_custom, value)
    }

    fn is_truncatable(&self) -> Outcome<bool> {
        Ok(self.content::<ValueBody>()?.is_truncatable)
    }

    fn set_is_truncatable(&self, value: bool) -> Outcome<()> {
        self.assign(|body: &mut ValueBody| &mut body.is_truncatable, value)
    }

    fn is_a(&self, id: &str) -> Outcome<bool> {
        self.is_derived(id)
    }

    fn describe_value(&self) -> Outcome<FullValueDescription> {
        let described = self.describe_ext_value()?;
        Ok(FullValueDescription {
            name: described.name,
            id: described.id,
            is_abstract: described.is_abstract,
            is_custom: described.is_custom,
            defined_in: described.defined_in,
            version: described.version,
            operations: described.operations,
            attributes: without_exceptions(described.attributes),
            members: described.members,
            initializers: described.initializers.into_iter().map(without_raised).collect(),
            supported_interfaces: described.supported_interfaces,
            abstract_base_values: described.abstract_base_values,
            is_truncatable: described.is_truncatable,
            base_value: described.base_value,
            r#type: described.r#type,
        })
    }

    fn create_value_member(
        &self,
        id: &str,
        name: &str,
        version: &str,
        r#type: Option<&IdlType>,
        access: i16,
    ) -> Outcome<Option<ValueMemberDef>> {
        check_access(access)?;
        self.create(Naming::new(id, name, version), |model| {
            let r#type = self.core.type_number(model, r#type)?;
            Ok(Body::ValueMember(ValueMemberBody { r#type, access }))
        })
    }

    fn create_attribute(
        &self,
        id: &str,
        name: &str,
        version: &str,
        r#type: Option<&IdlType>,
        mode: AttributeMode,
    ) -> Outcome<Option<AttributeDef>> {
        self.add_attribute(Naming::new(id, name, version), r#type, mode, &[], &[])
    }

    fn create_operation(
        &self,
        id: &str,
        name: &str,
        version: &str,
        result: Option<&IdlType>,
        mode: OperationMode,
        params: &[ParameterDescription],
        exceptions: &[Option<ExceptionDef>],
        contexts: &[String],
    ) -> Outcome<Option<OperationDef>> {
        self.add_operation(Naming::new(id, name, version), result, mode, params, exceptions, contexts)
    }
}

impl ExtValueDefServant for Object<'_> {
    fn ext_initializers(&self) -> Outcome<Vec<ExtInitializer>> {
        let body = self.content()?;
        self.describe(|describer| describer.ext_initializers(body))
    }

    fn set_ext_initializers(&self, value: &[ExtInitializer]) -> Outcome<()> {
        self.edit(|body: &mut ValueBody, model| {
            body.factories = self.core.factories(model, value)?;
            Ok(())
        })
    }

    fn describe_ext_value(&self) -> Outcome<ExtFullValueDescription> {
        self.describe(|describer| describer.value(self.number))
    }

    fn create_ext_attribute(
        &self,
        id: &str,
        name: &str,
        version: &str,
        r#type: Option<&IdlType>,
        mode: AttributeMode,
        get_exceptions: &[Option<ExceptionDef>],
        set_exceptions: &[Option<ExceptionDef>],
    ) -> Outcome<Option<ExtAttributeDef>> {
        self.add_attribute(Naming::new(id, name, version), r#type, mode, get_exceptions, set_exceptions)
    }
}

impl ValueMemberDefServant for Object<'_> {
    fn r#type(&self) -> Outcome<TypeCode> {
        self.type_code(self.content::<ValueMemberBody>()?.r#type)
    }

    fn type_def(&self) -> Outcome<Option<IdlType>> {
        self.reference(self.content::<ValueMemberBody>()?.r#type)
    }

    fn set_type_def(&self, value: Option<&IdlType>) -> Outcome<()> {
        self.assign_type(|body: &mut ValueMemberBody| &mut body.r#type, value)
    }

    fn access(&self) -> Outcome<i16> {
        Ok(self.content::<ValueMemberBody>()?.access)
    }

    fn set_access(&self, value: i16) -> Outcome<()> {
        check_access(value)?;
        self.assign(|body: &mut ValueMemberBody| &mut body.access, value)
    }
}

fn without_raised(ExtInitializer { members, name, .. }: ExtInitializer) -> Initializer {
    Initializer { members, name }
}
