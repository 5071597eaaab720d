//! The operations of containers: searches and creation (`Container`, CORBA 3.3 Part 1, 14.5.4).

use crate::generated::corba::{
    AbstractInterfaceDef, Contained, DefinitionKind, ExtInitializer, IdlType, Initializer, InterfaceDef, StructMember,
    UnionMember, ValueDef, container,
};
use spandrel::SystemException;
use spandrel::dynamic::{ArgMode, NamedValue, NvList, ServerRequest};
use spandrel::types::{Any, Interface, Typed};

use super::{Definitions, Handled, arguments};
use crate::core::{Naming, kind};
use crate::describe::Describer;
use crate::errors::not_exist;
use crate::model::{Edit, Model, NONE, Number, is_flavor};
use crate::records::records::{Body, ConstantBody, InterfaceBody, InterfaceFlavor, Kind, UnionBody, ValueBody};

impl Definitions {
    pub(super) fn container(&self, request: &mut ServerRequest<'_>, number: Number) -> Handled {
        let core = &*self.0;
        match request.operation() {
            "lookup" => {
                arguments!(request, name: String);
                let objects =
                    self.read(|model| core.typed::<Contained>(model, model.lookup(number, &name).unwrap_or(NONE)))?;
                request.set_result(&objects)?;
            }
            "contents" => {
                arguments!(request, limit_type: DefinitionKind, exclude_inherited: bool);
                let objects = self.read(|model| {
                    let numbers = filtered(model, model.contents(number, !exclude_inherited), limit_type);
                    numbers.into_iter().map(|it| core.typed::<Contained>(model, it)).collect::<Result<Vec<_>, _>>()
                })?;
                request.set_result(&objects)?;
            }
            "lookup_name" => {
                arguments!(request, name: String, levels: i32, limit_type: DefinitionKind, exclude_inherited: bool);
                let objects = self.read(|model| {
                    let objects = within(model, number, levels, !exclude_inherited);
                    let mut objects = filtered(model, objects, limit_type);
                    objects.retain(|it| model.get(*it).is_some_and(|it| it.name == name));
                    objects.into_iter().map(|it| core.typed::<Contained>(model, it)).collect::<Result<Vec<_>, _>>()
                })?;
                request.set_result(&objects)?;
            }
            "describe_contents" => {
                arguments!(request, limit_type: DefinitionKind, exclude_inherited: bool, max: i32);
                let objects = self.read(|model| {
                    let mut objects = filtered(model, model.contents(number, !exclude_inherited), limit_type);
                    // -1 is no limit (14.5.4.2).
                    objects.truncate(usize::try_from(max).unwrap_or(usize::MAX));
                    let mut describer = Describer::new(core, model);
                    let described = objects.into_iter().map(|it| {
                        let kind = kind(&model.get(it).ok_or_else(not_exist)?.content);
                        let value = describer.description(it)?;
                        Ok(container::Description { contained_object: core.typed(model, it)?, kind, value })
                    });
                    described.collect::<Result<Vec<_>, SystemException>>()
                })?;
                request.set_result(&objects)?;
            }
            "create_module" => {
                arguments!(request, id: String, name: String, version: String);
                self.create(request, number, Naming { id, name, version }, |_| Ok(Body::Unlisted(Kind::KindModule)))?;
            }
            "create_native" => {
                arguments!(request, id: String, name: String, version: String);
                self.create(request, number, Naming { id, name, version }, |_| Ok(Body::Unlisted(Kind::KindNative)))?;
            }
            "create_constant" => {
                arguments!(request, id: String, name: String, version: String, idl_type: Option<IdlType>, value: Any);
                self.create(request, number, Naming { id, name, version }, |edit| {
                    let r#type = core.type_number(edit.model(), idl_type.as_ref())?;
                    super::typed::check_constant(edit.model(), r#type, &value)?;
                    Ok(Body::Constant(ConstantBody { r#type, value }))
                })?;
            }
            "create_struct" => {
                arguments!(request, id: String, name: String, version: String, members: Vec<StructMember>);
                self.create(request, number, Naming { id, name, version }, |edit| {
                    Ok(Body::Structure(core.members(edit.model(), members)?))
                })?;
            }
            "create_exception" => {
                arguments!(request, id: String, name: String, version: String, members: Vec<StructMember>);
                self.create(request, number, Naming { id, name, version }, |edit| {
                    Ok(Body::AnException(core.members(edit.model(), members)?))
                })?;
            }
            "create_union" => {
                arguments!(
                    request, id: String, name: String, version: String, idl_type: Option<IdlType>, members: Vec<UnionMember>
                );
                self.create(request, number, Naming { id, name, version }, |edit| {
                    let discriminator = core.type_number(edit.model(), idl_type.as_ref())?;
                    Ok(Body::AUnion(UnionBody { discriminator, branches: core.branches(edit.model(), members)? }))
                })?;
            }
            "create_enum" => {
                arguments!(request, id: String, name: String, version: String, members: Vec<String>);
                self.create(request, number, Naming { id, name, version }, |_| {
                    super::parts::check_distinct(members.iter())?;
                    Ok(Body::Enumeration(members))
                })?;
            }
            "create_alias" => {
                arguments!(request, id: String, name: String, version: String, idl_type: Option<IdlType>);
                self.create(request, number, Naming { id, name, version }, |edit| {
                    Ok(Body::Alias(core.type_number(edit.model(), idl_type.as_ref())?))
                })?;
            }
            "create_value_box" => {
                arguments!(request, id: String, name: String, version: String, idl_type: Option<IdlType>);
                self.create(request, number, Naming { id, name, version }, |edit| {
                    Ok(Body::ValueBox(core.type_number(edit.model(), idl_type.as_ref())?))
                })?;
            }
            "create_interface" => {
                arguments!(request, id: String, name: String, version: String, bases: Vec<Option<InterfaceDef>>);
                let naming = Naming { id, name, version };
                self.create_interface(request, number, naming, InterfaceFlavor::FlavorRemote, bases)?;
            }
            "create_abstract_interface" => {
                arguments!(
                    request, id: String, name: String, version: String, bases: Vec<Option<AbstractInterfaceDef>>
                );
                let (naming, flavor) = (Naming { id, name, version }, InterfaceFlavor::FlavorAbstract);
                self.create_interface(request, number, naming, flavor, bases)?;
            }
            "create_local_interface" => {
                arguments!(request, id: String, name: String, version: String, bases: Vec<Option<InterfaceDef>>);
                let naming = Naming { id, name, version };
                self.create_interface(request, number, naming, InterfaceFlavor::FlavorLocal, bases)?;
            }
            operation @ ("create_value" | "create_ext_value") => {
                self.create_value(request, number, operation == "create_ext_value")?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Creates a definition, and returns its reference.
    pub(super) fn create(
        &self,
        request: &mut ServerRequest<'_>,
        container: Number,
        naming: Naming,
        content: impl FnOnce(&mut Edit<'_>) -> Result<Body, SystemException>,
    ) -> Result<(), SystemException> {
        let core = &*self.0;
        let created = core.change(|edit| {
            let content = content(edit)?;
            let number = core.create(edit, container, naming, content)?;
            core.reference(edit.model(), number)
        })?;
        // The declared type of the result has the same encoding.
        request.set_result(&Some(created))
    }

    fn create_interface<B: Interface>(
        &self,
        request: &mut ServerRequest<'_>,
        container: Number,
        naming: Naming,
        flavor: InterfaceFlavor,
        bases: Vec<Option<B>>,
    ) -> Result<(), SystemException> {
        let core = &*self.0;
        self.create(request, container, naming, |edit| {
            let bases = core.numbers(edit.model(), &bases, |it| matches!(it, Body::AnInterface(_)))?;
            super::parts::check_bases(edit.model(), flavor, &bases)?;
            Ok(Body::AnInterface(InterfaceBody { flavor, bases }))
        })
    }

    fn create_value(
        &self,
        request: &mut ServerRequest<'_>,
        container: Number,
        is_extended: bool,
    ) -> Result<(), SystemException> {
        let core = &*self.0;
        let initializers =
            if is_extended { <Vec<ExtInitializer>>::type_code() } else { <Vec<Initializer>>::type_code() };
        let types = [
            ("id", String::type_code()),
            ("name", String::type_code()),
            ("version", String::type_code()),
            ("is_custom", bool::type_code()),
            ("is_abstract", bool::type_code()),
            ("base_value", <Option<ValueDef>>::type_code()),
            ("is_truncatable", bool::type_code()),
            ("abstract_base_values", <Vec<Option<ValueDef>>>::type_code()),
            ("supported_interfaces", <Vec<Option<InterfaceDef>>>::type_code()),
            ("initializers", initializers),
        ];
        let list =
            types.into_iter().map(|(name, type_code)| NamedValue::of_type(name, ArgMode::In, type_code)).collect();
        let list = request.arguments(list)?;
        let naming = Naming { id: list.extract(0)?, name: list.extract(1)?, version: list.extract(2)? };
        let (is_custom, is_abstract): (bool, bool) = (list.extract(3)?, list.extract(4)?);
        let base: Option<ValueDef> = list.extract(5)?;
        let is_truncatable: bool = list.extract(6)?;
        let abstract_bases: Vec<Option<ValueDef>> = list.extract(7)?;
        let supported: Vec<Option<InterfaceDef>> = list.extract(8)?;
        let initializers: Vec<ExtInitializer> = match is_extended {
            true => list.extract(9)?,
            false => super::parts::extended(list.extract(9)?),
        };
        self.create(request, container, naming, |edit| {
            let model = edit.model();
            let is_value = |it: &Body| matches!(it, Body::Value(_));
            let base = match &base {
                Some(base) => core.numbers(model, &[Some(base.clone())], is_value)?.pop().unwrap_or(NONE),
                None => NONE,
            };
            Ok(Body::Value(ValueBody {
                is_abstract,
                is_custom,
                is_truncatable,
                base,
                abstract_bases: core.numbers(model, &abstract_bases, is_value)?,
                supported: core.numbers(model, &supported, |it| matches!(it, Body::AnInterface(_)))?,
                factories: core.factories(model, initializers)?,
            }))
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
