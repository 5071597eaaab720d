//! Descriptions of definitions (the structs `…Description` of CORBA 3.3 Part 1, 14.5).

use crate::generated::corba::{
    self, AttributeDescription, AttributeMode, ConstantDescription, ExceptionDescription, ExtAttributeDescription,
    ExtInitializer, InterfaceDescription, ModuleDescription, OperationDescription, OperationMode, ParameterDescription,
    ParameterMode, StructMember, TypeDescription, UnionMember, ValueDescription, ValueMember,
};
use spandrel::SystemException;
use spandrel::types::Any;

use crate::core::Core;
use crate::errors::{bad_param, not_exist};
use crate::model::{Model, NONE, Number};
use crate::records::records::{Body, Definition, Direction, Kind, Member, OperationBody, UnionBody, ValueBody};
use crate::types::TypeCodes;

/// The descriptions of one state of the model.
pub(crate) struct Describer<'m> {
    core: &'m Core,
    pub(crate) model: &'m Model,
    types: TypeCodes<'m>,
}

type Described<T> = Result<T, SystemException>;

impl<'m> Describer<'m> {
    pub(crate) fn new(core: &'m Core, model: &'m Model) -> Self {
        Self { core, model, types: TypeCodes::new(model) }
    }

    pub(crate) fn type_code(&mut self, number: Number) -> Described<spandrel::types::TypeCode> {
        self.types.type_code(number)
    }

    fn get(&self, number: Number) -> Described<&'m Definition> {
        self.model.get(number).map(|it| &**it).ok_or_else(not_exist)
    }

    pub(crate) fn ids(&self, numbers: &[Number]) -> Vec<String> {
        numbers.iter().filter_map(|number| self.model.get(*number)).map(|it| it.id.clone()).collect()
    }

    /// The id of the container; empty for the repository (14.5.4).
    fn container_id(&self, definition: &Definition) -> String {
        self.model.get(definition.parent).map(|it| it.id.clone()).unwrap_or_default()
    }

    /// The value of `Contained::Description`.
    pub(crate) fn description(&mut self, number: Number) -> Described<Any> {
        let definition = self.get(number)?;
        let (name, id, version) = (definition.name.clone(), definition.id.clone(), definition.version.clone());
        let defined_in = self.container_id(definition);
        Ok(match &definition.content {
            Body::Unlisted(Kind::KindModule) => Any::new(ModuleDescription { name, id, defined_in, version }),
            Body::Constant(body) => {
                let (r#type, value) = (self.type_code(body.r#type)?, body.value.clone());
                Any::new(ConstantDescription { name, id, defined_in, version, r#type, value })
            }
            Body::AnException(_) => Any::new(self.exception(number)?),
            Body::AnAttribute(_) => Any::new(self.attribute(number)?),
            Body::Operation(_) => Any::new(self.operation(number)?),
            Body::AnInterface(body) => {
                let base_interfaces = self.ids(&body.bases);
                Any::new(InterfaceDescription { name, id, defined_in, version, base_interfaces })
            }
            Body::Value(body) => Any::new(ValueDescription {
                name,
                id,
                is_abstract: body.is_abstract,
                is_custom: body.is_custom,
                defined_in,
                version,
                supported_interfaces: self.ids(&body.supported),
                abstract_base_values: self.ids(&body.abstract_bases),
                is_truncatable: body.is_truncatable,
                base_value: self.ids(&[body.base]).pop().unwrap_or_default(),
            }),
            Body::ValueMember(_) => Any::new(self.value_member(number)?),
            _ => {
                let r#type = self.type_code(number)?;
                Any::new(TypeDescription { name, id, defined_in, version, r#type })
            }
        }?)
    }

    pub(crate) fn exception(&mut self, number: Number) -> Described<ExceptionDescription> {
        let definition = self.get(number)?;
        Ok(ExceptionDescription {
            name: definition.name.clone(),
            id: definition.id.clone(),
            defined_in: self.container_id(definition),
            version: definition.version.clone(),
            r#type: self.type_code(number)?,
        })
    }

    pub(crate) fn exceptions(&mut self, numbers: &[Number]) -> Described<Vec<ExceptionDescription>> {
        numbers.iter().map(|number| self.exception(*number)).collect()
    }

    fn attribute(&mut self, number: Number) -> Described<AttributeDescription> {
        let described = self.ext_attribute(number)?;
        let ExtAttributeDescription { name, id, defined_in, version, r#type, mode, .. } = described;
        Ok(AttributeDescription { name, id, defined_in, version, r#type, mode })
    }

    pub(crate) fn ext_attribute(&mut self, number: Number) -> Described<ExtAttributeDescription> {
        let definition = self.get(number)?;
        let Body::AnAttribute(body) = &definition.content else { return Err(not_exist()) };
        Ok(ExtAttributeDescription {
            name: definition.name.clone(),
            id: definition.id.clone(),
            defined_in: self.container_id(definition),
            version: definition.version.clone(),
            r#type: self.type_code(body.r#type)?,
            mode: attribute_mode(body.is_readonly),
            get_exceptions: self.exceptions(&body.get_exceptions)?,
            put_exceptions: self.exceptions(&body.set_exceptions)?,
        })
    }

    fn operation(&mut self, number: Number) -> Described<OperationDescription> {
        let definition = self.get(number)?;
        let Body::Operation(body) = &definition.content else { return Err(not_exist()) };
        Ok(OperationDescription {
            name: definition.name.clone(),
            id: definition.id.clone(),
            defined_in: self.container_id(definition),
            version: definition.version.clone(),
            result: self.type_code(body.result)?,
            mode: operation_mode(body.is_oneway),
            contexts: body.contexts.clone(),
            parameters: self.parameters(body)?,
            exceptions: self.exceptions(&body.exceptions)?,
        })
    }

    pub(crate) fn parameters(&mut self, body: &OperationBody) -> Described<Vec<ParameterDescription>> {
        let described = body.parameters.iter().map(|parameter| {
            Ok(ParameterDescription {
                name: parameter.name.clone(),
                r#type: self.types.type_code(parameter.r#type)?,
                type_def: self.core.typed(self.model, parameter.r#type)?,
                mode: match parameter.mode {
                    Direction::DirectionIn => ParameterMode::ParamIn,
                    Direction::DirectionOut => ParameterMode::ParamOut,
                    Direction::DirectionInout => ParameterMode::ParamInout,
                },
            })
        });
        described.collect()
    }

    pub(crate) fn members(&mut self, members: &[Member]) -> Described<Vec<StructMember>> {
        let described = members.iter().map(|member| {
            let (r#type, type_def) =
                (self.types.type_code(member.r#type)?, self.core.typed(self.model, member.r#type)?);
            Ok(StructMember { name: member.name.clone(), r#type, type_def })
        });
        described.collect()
    }

    pub(crate) fn branches(&mut self, body: &UnionBody) -> Described<Vec<UnionMember>> {
        let described = body.branches.iter().map(|branch| {
            let (r#type, type_def) =
                (self.types.type_code(branch.r#type)?, self.core.typed(self.model, branch.r#type)?);
            Ok(UnionMember { name: branch.name.clone(), label: branch.label.clone(), r#type, type_def })
        });
        described.collect()
    }

    pub(crate) fn ext_initializers(&mut self, body: &ValueBody) -> Described<Vec<ExtInitializer>> {
        let described = body.factories.iter().map(|factory| {
            Ok(ExtInitializer {
                members: self.members(&factory.members)?,
                exceptions: self.exceptions(&factory.exceptions)?,
                name: factory.name.clone(),
            })
        });
        described.collect()
    }

    fn value_member(&mut self, number: Number) -> Described<ValueMember> {
        let definition = self.get(number)?;
        let Body::ValueMember(body) = &definition.content else { return Err(not_exist()) };
        Ok(ValueMember {
            name: definition.name.clone(),
            id: definition.id.clone(),
            defined_in: self.container_id(definition),
            version: definition.version.clone(),
            r#type: self.type_code(body.r#type)?,
            type_def: self.core.typed(self.model, body.r#type)?,
            access: body.access,
        })
    }

    /// The operations and attributes of an interface or value: those of its bases first.
    fn features(&mut self, number: Number) -> Described<(Vec<OperationDescription>, Vec<ExtAttributeDescription>)> {
        let mut interfaces = self.model.all_bases(number);
        interfaces.push(number);
        // A value has the operations of the interfaces that it supports, too.
        if let Body::Value(body) = &self.get(number)?.content {
            let supported = body.supported.iter();
            let more: Vec<Number> =
                supported.flat_map(|it| self.model.all_bases(*it).into_iter().chain([*it])).collect();
            interfaces.splice(0..0, more);
        }
        let (mut operations, mut attributes) = (Vec::new(), Vec::new());
        for content in interfaces.into_iter().flat_map(|it| self.model.contents(it, false)) {
            match self.get(content)?.content {
                Body::Operation(_) => operations.push(self.operation(content)?),
                Body::AnAttribute(_) => attributes.push(self.ext_attribute(content)?),
                _ => {}
            }
        }
        Ok((operations, attributes))
    }

    pub(crate) fn interface(
        &mut self,
        number: Number,
    ) -> Described<corba::interface_attr_extension::ExtFullInterfaceDescription> {
        let definition = self.get(number)?;
        let Body::AnInterface(body) = &definition.content else {
            return Err(bad_param(0, format!("`{}` is not an interface", definition.name)));
        };
        let (operations, attributes) = self.features(number)?;
        Ok(corba::interface_attr_extension::ExtFullInterfaceDescription {
            name: definition.name.clone(),
            id: definition.id.clone(),
            defined_in: self.container_id(definition),
            version: definition.version.clone(),
            operations,
            attributes,
            base_interfaces: self.ids(&body.bases),
            r#type: self.type_code(number)?,
        })
    }

    pub(crate) fn value(&mut self, number: Number) -> Described<corba::ext_value_def::ExtFullValueDescription> {
        let definition = self.get(number)?;
        let Body::Value(body) = &definition.content else {
            return Err(bad_param(0, format!("`{}` is not a value type", definition.name)));
        };
        let (operations, attributes) = self.features(number)?;
        let is_member =
            |it: &&Number| self.model.get(**it).is_some_and(|it| matches!(it.content, Body::ValueMember(_)));
        let members: Vec<Number> = definition.contents.iter().filter(is_member).copied().collect();
        let base = Some(body.base).filter(|base| *base != NONE);
        Ok(corba::ext_value_def::ExtFullValueDescription {
            name: definition.name.clone(),
            id: definition.id.clone(),
            is_abstract: body.is_abstract,
            is_custom: body.is_custom,
            defined_in: self.container_id(definition),
            version: definition.version.clone(),
            operations,
            attributes,
            members: members.into_iter().map(|it| self.value_member(it)).collect::<Described<_>>()?,
            initializers: self.ext_initializers(body)?,
            supported_interfaces: self.ids(&body.supported),
            abstract_base_values: self.ids(&body.abstract_bases),
            is_truncatable: body.is_truncatable,
            base_value: base.map(|base| self.ids(&[base])).and_then(|mut ids| ids.pop()).unwrap_or_default(),
            r#type: self.type_code(number)?,
        })
    }
}

pub(crate) fn without_exceptions(attributes: Vec<ExtAttributeDescription>) -> Vec<AttributeDescription> {
    let plain = |it: ExtAttributeDescription| {
        let ExtAttributeDescription { name, id, defined_in, version, r#type, mode, .. } = it;
        AttributeDescription { name, id, defined_in, version, r#type, mode }
    };
    attributes.into_iter().map(plain).collect()
}

pub(crate) fn attribute_mode(is_readonly: bool) -> AttributeMode {
    if is_readonly { AttributeMode::AttrReadonly } else { AttributeMode::AttrNormal }
}

pub(crate) fn operation_mode(is_oneway: bool) -> OperationMode {
    if is_oneway { OperationMode::OpOneway } else { OperationMode::OpNormal }
}
