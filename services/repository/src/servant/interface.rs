//! Interfaces (CORBA 3.3 Part 1, 14.5.27 to 14.5.29).

use super::object::{Object, Outcome};
use super::parts::{check_acyclic, check_bases, is_interface};
use crate::core::Naming;
use crate::describe::without_exceptions;
use crate::generated::corba::{
    AbstractInterfaceDefServant, AttributeDef, AttributeMode, ExceptionDef, ExtAbstractInterfaceDefServant,
    ExtAttributeDef, ExtInterfaceDefServant, ExtLocalInterfaceDefServant, IdlType, InterfaceAttrExtensionServant,
    InterfaceDef, InterfaceDefServant, LocalInterfaceDefServant, OperationDef, OperationMode, ParameterDescription,
    interface_attr_extension::ExtFullInterfaceDescription, interface_def::FullInterfaceDescription,
};
use crate::records::records::InterfaceBody;

impl InterfaceDefServant for Object<'_> {
    fn base_interfaces(&self) -> Outcome<Vec<Option<InterfaceDef>>> {
        self.references(&self.content::<InterfaceBody>()?.bases)
    }

    fn set_base_interfaces(&self, value: &[Option<InterfaceDef>]) -> Outcome<()> {
        self.edit(|body: &mut InterfaceBody, model| {
            let bases = self.core.numbers(model, value, is_interface)?;
            check_bases(model, body.flavor, &bases)?;
            check_acyclic(model, self.number, &bases)?;
            body.bases = bases;
            Ok(())
        })
    }

    fn is_a(&self, interface_id: &str) -> Outcome<bool> {
        self.is_derived(interface_id)
    }

    fn describe_interface(&self) -> Outcome<FullInterfaceDescription> {
        let described = self.describe_ext_interface()?;
        Ok(FullInterfaceDescription {
            name: described.name,
            id: described.id,
            defined_in: described.defined_in,
            version: described.version,
            operations: described.operations,
            attributes: without_exceptions(described.attributes),
            base_interfaces: described.base_interfaces,
            r#type: described.r#type,
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

impl InterfaceAttrExtensionServant for Object<'_> {
    fn describe_ext_interface(&self) -> Outcome<ExtFullInterfaceDescription> {
        self.describe(|describer| describer.interface(self.number))
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

impl ExtInterfaceDefServant for Object<'_> {}
impl AbstractInterfaceDefServant for Object<'_> {}
impl ExtAbstractInterfaceDefServant for Object<'_> {}
impl LocalInterfaceDefServant for Object<'_> {}
impl ExtLocalInterfaceDefServant for Object<'_> {}
