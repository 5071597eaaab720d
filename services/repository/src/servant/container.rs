//! The operations of containers: searches and creation (`Container`, CORBA 3.3 Part 1, 14.5.4).

use spandrel::types::{Any, Interface};

use super::object::{Object, Outcome};
use super::parts::{check_bases, check_distinct, extended, is_interface, is_value};
use super::types::check_constant;
use crate::core::{Naming, kind};
use crate::errors::not_exist;
use crate::generated::corba::{
    AbstractInterfaceDef, AliasDef, ConstantDef, Contained, ContainerServant, DefinitionKind, EnumDef, ExceptionDef,
    ExtInitializer, ExtValueDef, IdlType, Initializer, InterfaceDef, LocalInterfaceDef, ModuleDef, NativeDef,
    StructDef, StructMember, UnionDef, UnionMember, ValueBoxDef, ValueDef, container,
};
use crate::model::{Model, NONE, Number, is_flavor};
use crate::records::records::{Body, ConstantBody, InterfaceBody, InterfaceFlavor, Kind, UnionBody, ValueBody};

impl ContainerServant for Object<'_> {
    fn lookup(&self, search_name: &str) -> Outcome<Option<Contained>> {
        self.read(|model| self.core.typed(model, model.lookup(self.number, search_name).unwrap_or(NONE)))
    }

    fn contents(&self, limit_type: DefinitionKind, exclude_inherited: bool) -> Outcome<Vec<Option<Contained>>> {
        self.read(|model| {
            let numbers = filtered(model, model.contents(self.number, !exclude_inherited), limit_type);
            numbers.into_iter().map(|it| self.core.typed(model, it)).collect()
        })
    }

    fn lookup_name(
        &self,
        search_name: &str,
        levels_to_search: i32,
        limit_type: DefinitionKind,
        exclude_inherited: bool,
    ) -> Outcome<Vec<Option<Contained>>> {
        self.read(|model| {
            let numbers = within(model, self.number, levels_to_search, !exclude_inherited);
            let mut numbers = filtered(model, numbers, limit_type);
            numbers.retain(|it| model.get(*it).is_some_and(|it| it.name == search_name));
            numbers.into_iter().map(|it| self.core.typed(model, it)).collect()
        })
    }

    fn describe_contents(
        &self,
        limit_type: DefinitionKind,
        exclude_inherited: bool,
        max_returned_objs: i32,
    ) -> Outcome<Vec<container::Description>> {
        self.describe(|describer| {
            let model = describer.model;
            let mut numbers = filtered(model, model.contents(self.number, !exclude_inherited), limit_type);
            // -1 is no limit (14.5.4.2).
            numbers.truncate(usize::try_from(max_returned_objs).unwrap_or(usize::MAX));
            let described = numbers.into_iter().map(|it| {
                let kind = kind(&model.get(it).ok_or_else(not_exist)?.content);
                let value = describer.description(it)?;
                Ok(container::Description { contained_object: self.core.typed(model, it)?, kind, value })
            });
            described.collect()
        })
    }

    fn create_module(&self, id: &str, name: &str, version: &str) -> Outcome<Option<ModuleDef>> {
        self.create(Naming::new(id, name, version), |_| Ok(Body::Unlisted(Kind::KindModule)))
    }

    fn create_constant(
        &self,
        id: &str,
        name: &str,
        version: &str,
        r#type: Option<&IdlType>,
        value: &Any,
    ) -> Outcome<Option<ConstantDef>> {
        self.create(Naming::new(id, name, version), |model| {
            let r#type = self.core.type_number(model, r#type)?;
            check_constant(model, r#type, value)?;
            Ok(Body::Constant(ConstantBody { r#type, value: value.clone() }))
        })
    }

    fn create_struct(
        &self,
        id: &str,
        name: &str,
        version: &str,
        members: &[StructMember],
    ) -> Outcome<Option<StructDef>> {
        let content = |model: &_| Ok(Body::Structure(self.core.members(model, members)?));
        self.create(Naming::new(id, name, version), content)
    }

    fn create_union(
        &self,
        id: &str,
        name: &str,
        version: &str,
        discriminator_type: Option<&IdlType>,
        members: &[UnionMember],
    ) -> Outcome<Option<UnionDef>> {
        self.create(Naming::new(id, name, version), |model| {
            let discriminator = self.core.type_number(model, discriminator_type)?;
            Ok(Body::AUnion(UnionBody { discriminator, branches: self.core.branches(model, members)? }))
        })
    }

    fn create_enum(&self, id: &str, name: &str, version: &str, members: &[String]) -> Outcome<Option<EnumDef>> {
        self.create(Naming::new(id, name, version), |_| {
            check_distinct(members)?;
            Ok(Body::Enumeration(members.to_vec()))
        })
    }

    fn create_alias(
        &self,
        id: &str,
        name: &str,
        version: &str,
        original_type: Option<&IdlType>,
    ) -> Outcome<Option<AliasDef>> {
        let content = |model: &_| Ok(Body::Alias(self.core.type_number(model, original_type)?));
        self.create(Naming::new(id, name, version), content)
    }

    fn create_interface(
        &self,
        id: &str,
        name: &str,
        version: &str,
        base_interfaces: &[Option<InterfaceDef>],
    ) -> Outcome<Option<InterfaceDef>> {
        self.create_of_flavor(Naming::new(id, name, version), InterfaceFlavor::FlavorRemote, base_interfaces)
    }

    fn create_value(
        &self,
        id: &str,
        name: &str,
        version: &str,
        is_custom: bool,
        is_abstract: bool,
        base_value: Option<&ValueDef>,
        is_truncatable: bool,
        abstract_base_values: &[Option<ValueDef>],
        supported_interfaces: &[Option<InterfaceDef>],
        initializers: &[Initializer],
    ) -> Outcome<Option<ValueDef>> {
        let created = self.create_ext_value(
            id,
            name,
            version,
            is_custom,
            is_abstract,
            base_value,
            is_truncatable,
            abstract_base_values,
            supported_interfaces,
            &extended(initializers),
        )?;
        Ok(created.map(|created| ValueDef::from_object(created.as_object().clone())))
    }

    fn create_value_box(
        &self,
        id: &str,
        name: &str,
        version: &str,
        original_type_def: Option<&IdlType>,
    ) -> Outcome<Option<ValueBoxDef>> {
        let content = |model: &_| Ok(Body::ValueBox(self.core.type_number(model, original_type_def)?));
        self.create(Naming::new(id, name, version), content)
    }

    fn create_exception(
        &self,
        id: &str,
        name: &str,
        version: &str,
        members: &[StructMember],
    ) -> Outcome<Option<ExceptionDef>> {
        let content = |model: &_| Ok(Body::AnException(self.core.members(model, members)?));
        self.create(Naming::new(id, name, version), content)
    }

    fn create_native(&self, id: &str, name: &str, version: &str) -> Outcome<Option<NativeDef>> {
        self.create(Naming::new(id, name, version), |_| Ok(Body::Unlisted(Kind::KindNative)))
    }

    fn create_abstract_interface(
        &self,
        id: &str,
        name: &str,
        version: &str,
        base_interfaces: &[Option<AbstractInterfaceDef>],
    ) -> Outcome<Option<AbstractInterfaceDef>> {
        self.create_of_flavor(Naming::new(id, name, version), InterfaceFlavor::FlavorAbstract, base_interfaces)
    }

    fn create_local_interface(
        &self,
        id: &str,
        name: &str,
        version: &str,
        base_interfaces: &[Option<InterfaceDef>],
    ) -> Outcome<Option<LocalInterfaceDef>> {
        self.create_of_flavor(Naming::new(id, name, version), InterfaceFlavor::FlavorLocal, base_interfaces)
    }

    fn create_ext_value(
        &self,
        id: &str,
        name: &str,
        version: &str,
        is_custom: bool,
        is_abstract: bool,
        base_value: Option<&ValueDef>,
        is_truncatable: bool,
        abstract_base_values: &[Option<ValueDef>],
        supported_interfaces: &[Option<InterfaceDef>],
        initializers: &[ExtInitializer],
    ) -> Outcome<Option<ExtValueDef>> {
        self.create(Naming::new(id, name, version), |model| {
            let core = self.core;
            Ok(Body::Value(ValueBody {
                is_abstract,
                is_custom,
                is_truncatable,
                base: core.base_value(model, base_value)?,
                abstract_bases: core.numbers(model, abstract_base_values, is_value)?,
                supported: core.numbers(model, supported_interfaces, is_interface)?,
                factories: core.factories(model, initializers)?,
            }))
        })
    }
}

impl Object<'_> {
    fn create_of_flavor<T: Interface, B: Interface>(
        &self,
        naming: Naming,
        flavor: InterfaceFlavor,
        bases: &[Option<B>],
    ) -> Outcome<Option<T>> {
        self.create(naming, |model| {
            let bases = self.core.numbers(model, bases, is_interface)?;
            check_bases(model, flavor, &bases)?;
            Ok(Body::AnInterface(InterfaceBody { flavor, bases }))
        })
    }
}

/// Definitions of a kind; `dk_all` are all, `dk_Typedef` all named types but interfaces and values.
fn filtered(model: &Model, mut numbers: Vec<Number>, limit: DefinitionKind) -> Vec<Number> {
    let is_wanted = |content: &Body| match limit {
        DefinitionKind::DkAll => true,
        DefinitionKind::DkTypedef => matches!(
            content,
            Body::Structure(_)
                | Body::AUnion(_)
                | Body::Enumeration(_)
                | Body::Alias(_)
                | Body::ValueBox(_)
                | Body::Unlisted(Kind::KindNative)
        ),
        DefinitionKind::DkInterface => is_flavor(content, InterfaceFlavor::FlavorRemote),
        limit => kind(content) == limit,
    };
    numbers.retain(|number| model.get(*number).is_some_and(|it| is_wanted(&it.content)));
    numbers
}

/// The contents of a container to this depth: 1 is the container itself, -1 all.
fn within(model: &Model, container: Number, levels: i32, with_inherited: bool) -> Vec<Number> {
    let mut numbers = Vec::new();
    let mut level = vec![container];
    let mut left = if levels < 0 { u32::MAX } else { u32::try_from(levels).unwrap_or(0) };
    while left > 0 && !level.is_empty() {
        level = level.into_iter().flat_map(|it| model.contents(it, with_inherited)).collect();
        numbers.extend_from_slice(&level);
        left -= 1;
    }
    numbers
}
