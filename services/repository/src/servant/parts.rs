//! The attributes and operations of each kind of definition (CORBA 3.3 Part 1, 14.5.7 to 14.5.33).

use std::collections::HashSet;

use crate::generated::corba::{
    AttributeMode, ExcDescriptionSeq, ExceptionDef, ExceptionDescription, ExtInitializer, IdlType, Initializer,
    InterfaceDef, OperationMode, ParameterDescription, ParameterMode, PrimitiveKind, StructMember, UnionMember,
    ValueDef, ext_value_def, interface_attr_extension, interface_def, value_def,
};
use spandrel::dynamic::{ArgMode, NamedValue, NvList, ServerRequest};
use spandrel::types::{Any, Typed};
use spandrel::{SystemException, minor};

use super::{Definitions, Handled, arguments};
use crate::core::{Core, Naming, check_name};
use crate::describe::{Describer, attribute_mode, operation_mode, without_exceptions};
use crate::errors::bad_param;
use crate::model::{Edit, Model, NONE, Number};
use crate::records::records::{
    AttributeBody, Body, Branch, Direction, Factory, InterfaceFlavor, Member, OperationBody, Parameter, ValueMemberBody,
};
use crate::types::derives;

impl Definitions {
    pub(super) fn parts(&self, request: &mut ServerRequest<'_>, number: Number, content: &Body) -> Handled {
        match content {
            Body::Structure(members) | Body::AnException(members) => self.structure(request, number, members),
            Body::AUnion(_) => self.union(request, number, content),
            Body::Enumeration(names) => self.enumeration(request, number, names),
            Body::AnAttribute(body) => self.attribute(request, number, body),
            Body::Operation(body) => self.operation(request, number, body, content),
            Body::AnInterface(_) => {
                Ok(self.interface(request, number, content)? || self.features(request, number, content)?)
            }
            Body::Value(_) => Ok(self.value(request, number, content)? || self.features(request, number, content)?),
            _ => self.simple(request, number, content),
        }
    }

    fn replace(&self, number: Number, change: impl FnOnce(&mut Body)) -> Result<(), SystemException> {
        self.0.change(|edit| self.0.replace(edit, number, change))
    }

    /// Replaces the content by one that depends on the model.
    fn rebuild(
        &self,
        number: Number,
        change: impl FnOnce(&mut Body, &Core, &Model) -> Result<(), SystemException>,
    ) -> Result<(), SystemException> {
        let core = &*self.0;
        core.change(|edit: &mut Edit<'_>| {
            let mut content = edit.model().get(number).ok_or_else(crate::errors::not_exist)?.content.clone();
            change(&mut content, core, edit.model())?;
            core.replace(edit, number, |place| *place = content)
        })
    }

    fn structure(&self, request: &mut ServerRequest<'_>, number: Number, members: &[Member]) -> Handled {
        match request.operation() {
            "_get_members" => {
                request.arguments(NvList::new())?;
                let found = self.read(|model| Describer::new(&self.0, model).members(members))?;
                request.set_result(&found)?;
            }
            "_set_members" => {
                arguments!(request, members: Vec<StructMember>);
                self.rebuild(number, |content, core, model| {
                    if let Body::Structure(place) | Body::AnException(place) = content {
                        *place = core.members(model, members)?;
                    }
                    Ok(())
                })?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn union(&self, request: &mut ServerRequest<'_>, number: Number, content: &Body) -> Handled {
        match request.operation() {
            "_get_members" => {
                request.arguments(NvList::new())?;
                let found = self.read(|model| Describer::new(&self.0, model).branches(content))?;
                request.set_result(&found)?;
            }
            "_set_members" => {
                arguments!(request, members: Vec<UnionMember>);
                self.rebuild(number, |content, core, model| {
                    if let Body::AUnion(body) = content {
                        body.branches = core.branches(model, members)?;
                    }
                    Ok(())
                })?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn enumeration(&self, request: &mut ServerRequest<'_>, number: Number, names: &Vec<String>) -> Handled {
        match request.operation() {
            "_get_members" => {
                request.arguments(NvList::new())?;
                request.set_result(names)?;
            }
            "_set_members" => {
                arguments!(request, names: Vec<String>);
                check_distinct(names.iter())?;
                self.replace(number, |content| *content = Body::Enumeration(names))?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Definitions with one or two numbers.
    fn simple(&self, request: &mut ServerRequest<'_>, number: Number, content: &Body) -> Handled {
        match (content, request.operation()) {
            (Body::Constant(body), "_get_value") => {
                request.arguments(NvList::new())?;
                request.set_result(&body.value)?;
            }
            (Body::Constant(_), "_set_value") => {
                arguments!(request, value: Any);
                self.rebuild(number, |content, _, model| {
                    if let Body::Constant(body) = content {
                        super::typed::check_constant(model, body.r#type, &value)?;
                        body.value = value;
                    }
                    Ok(())
                })?;
            }
            (Body::Primitive(kind), "_get_kind") => {
                request.arguments(NvList::new())?;
                request.set_result(&PrimitiveKind::try_from(*kind)?)?;
            }
            (Body::Text(count) | Body::WideText(count), "_get_bound") => {
                request.arguments(NvList::new())?;
                request.set_result(count)?;
            }
            (Body::ASequence(body), "_get_bound") | (Body::AnArray(body), "_get_length") => {
                request.arguments(NvList::new())?;
                request.set_result(&body.count)?;
            }
            (Body::Text(_) | Body::WideText(_) | Body::ASequence(_), "_set_bound")
            | (Body::AnArray(_), "_set_length") => {
                arguments!(request, new: u32);
                self.replace(number, |content| match content {
                    Body::Text(count) | Body::WideText(count) => *count = new,
                    Body::ASequence(body) | Body::AnArray(body) => body.count = new,
                    _ => {}
                })?;
            }
            (Body::Decimal(body), "_get_digits") => {
                request.arguments(NvList::new())?;
                request.set_result(&body.digits)?;
            }
            (Body::Decimal(body), "_get_scale") => {
                request.arguments(NvList::new())?;
                request.set_result(&body.scale)?;
            }
            (Body::Decimal(_), "_set_digits") => {
                arguments!(request, digits: u16);
                self.replace(number, |content| {
                    if let Body::Decimal(body) = content {
                        body.digits = digits;
                    }
                })?;
            }
            (Body::Decimal(_), "_set_scale") => {
                arguments!(request, scale: i16);
                self.replace(number, |content| {
                    if let Body::Decimal(body) = content {
                        body.scale = scale;
                    }
                })?;
            }
            (Body::ValueMember(body), "_get_access") => {
                request.arguments(NvList::new())?;
                request.set_result(&body.access)?;
            }
            (Body::ValueMember(_), "_set_access") => {
                arguments!(request, access: i16);
                check_access(access)?;
                self.replace(number, |content| {
                    if let Body::ValueMember(body) = content {
                        body.access = access;
                    }
                })?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn attribute(&self, request: &mut ServerRequest<'_>, number: Number, body: &AttributeBody) -> Handled {
        match request.operation() {
            "_get_mode" => {
                request.arguments(NvList::new())?;
                request.set_result(&attribute_mode(body.is_readonly))?;
            }
            "_set_mode" => {
                arguments!(request, mode: AttributeMode);
                self.replace(number, |content| {
                    if let Body::AnAttribute(body) = content {
                        body.is_readonly = mode == AttributeMode::AttrReadonly;
                    }
                })?;
            }
            operation @ ("_get_get_exceptions" | "_get_set_exceptions") => {
                request.arguments(NvList::new())?;
                let exceptions =
                    if operation == "_get_get_exceptions" { &body.get_exceptions } else { &body.set_exceptions };
                let found = self.read(|model| Describer::new(&self.0, model).exceptions(exceptions))?;
                request.set_result(&found)?;
            }
            operation @ ("_set_get_exceptions" | "_set_set_exceptions") => {
                arguments!(request, exceptions: ExcDescriptionSeq);
                self.rebuild(number, |content, _, model| {
                    let found = described_exceptions(model, &exceptions)?;
                    match content {
                        Body::AnAttribute(body) if operation == "_set_get_exceptions" => body.get_exceptions = found,
                        Body::AnAttribute(body) => body.set_exceptions = found,
                        _ => {}
                    }
                    Ok(())
                })?;
            }
            "describe_attribute" => {
                request.arguments(NvList::new())?;
                let found = self.read(|model| Describer::new(&self.0, model).ext_attribute(number))?;
                request.set_result(&found)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn operation(
        &self,
        request: &mut ServerRequest<'_>,
        number: Number,
        body: &OperationBody,
        content: &Body,
    ) -> Handled {
        match request.operation() {
            "_get_params" => {
                request.arguments(NvList::new())?;
                let found = self.read(|model| Describer::new(&self.0, model).parameters(content))?;
                request.set_result(&found)?;
            }
            "_set_params" => {
                arguments!(request, params: Vec<ParameterDescription>);
                self.rebuild_operation(number, |body, core, model| {
                    body.parameters = core.parameters(model, params)?;
                    Ok(())
                })?;
            }
            "_get_mode" => {
                request.arguments(NvList::new())?;
                request.set_result(&operation_mode(body.is_oneway))?;
            }
            "_set_mode" => {
                arguments!(request, mode: OperationMode);
                self.rebuild_operation(number, |body, _, _| {
                    body.is_oneway = mode == OperationMode::OpOneway;
                    Ok(())
                })?;
            }
            "_get_contexts" => {
                request.arguments(NvList::new())?;
                request.set_result(&body.contexts)?;
            }
            "_set_contexts" => {
                arguments!(request, contexts: Vec<String>);
                self.rebuild_operation(number, |body, _, _| {
                    body.contexts = contexts;
                    Ok(())
                })?;
            }
            "_get_exceptions" => {
                request.arguments(NvList::new())?;
                let core = &*self.0;
                let found = self.read(|model| {
                    let found = body.exceptions.iter().map(|it| core.typed::<ExceptionDef>(model, *it));
                    found.collect::<Result<Vec<_>, _>>()
                })?;
                request.set_result(&found)?;
            }
            "_set_exceptions" => {
                arguments!(request, exceptions: Vec<Option<ExceptionDef>>);
                self.rebuild_operation(number, |body, core, model| {
                    body.exceptions = core.numbers(model, &exceptions, is_exception)?;
                    Ok(())
                })?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn rebuild_operation(
        &self,
        number: Number,
        change: impl FnOnce(&mut OperationBody, &Core, &Model) -> Result<(), SystemException>,
    ) -> Result<(), SystemException> {
        self.rebuild(number, |content, core, model| {
            let Body::Operation(body) = content else { return Ok(()) };
            change(body, core, model)?;
            check_operation(body)
        })
    }

    fn interface(&self, request: &mut ServerRequest<'_>, number: Number, content: &Body) -> Handled {
        let core = &*self.0;
        let Body::AnInterface(body) = content else { return Ok(false) };
        match request.operation() {
            "_get_base_interfaces" => {
                request.arguments(NvList::new())?;
                request.set_result(&self.references::<InterfaceDef>(&body.bases)?)?;
            }
            "_set_base_interfaces" => {
                arguments!(request, bases: Vec<Option<InterfaceDef>>);
                let flavor = body.flavor;
                self.rebuild(number, |content, core, model| {
                    let bases = core.numbers(model, &bases, |it| matches!(it, Body::AnInterface(_)))?;
                    check_bases(model, flavor, &bases)?;
                    check_acyclic(model, number, &bases)?;
                    if let Body::AnInterface(body) = content {
                        body.bases = bases;
                    }
                    Ok(())
                })?;
            }
            "describe_interface" => {
                request.arguments(NvList::new())?;
                let found = self.read(|model| Describer::new(core, model).interface(number))?;
                request.set_result(&interface_def::FullInterfaceDescription {
                    name: found.name,
                    id: found.id,
                    defined_in: found.defined_in,
                    version: found.version,
                    operations: found.operations,
                    attributes: without_exceptions(found.attributes),
                    base_interfaces: found.base_interfaces,
                    r#type: found.r#type,
                })?;
            }
            "describe_ext_interface" => {
                request.arguments(NvList::new())?;
                let found: interface_attr_extension::ExtFullInterfaceDescription =
                    self.read(|model| Describer::new(core, model).interface(number))?;
                request.set_result(&found)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The operations that interfaces and values have in common.
    fn features(&self, request: &mut ServerRequest<'_>, number: Number, content: &Body) -> Handled {
        let core = &*self.0;
        match request.operation() {
            "is_a" => {
                arguments!(request, id: String);
                let base = match content {
                    Body::Value(_) => "IDL:omg.org/CORBA/ValueBase:1.0",
                    Body::AnInterface(body) if body.flavor == InterfaceFlavor::FlavorAbstract => {
                        "IDL:omg.org/CORBA/AbstractBase:1.0"
                    }
                    _ => "IDL:omg.org/CORBA/Object:1.0",
                };
                let found = self.read(|model| {
                    let target = model.by_id(&id);
                    let supported = |target| match content {
                        Body::Value(body) => body.supported.iter().any(|it| derives(model, *it, target)),
                        _ => false,
                    };
                    Ok(id == base || target.is_some_and(|target| derives(model, number, target) || supported(target)))
                })?;
                request.set_result(&found)?;
            }
            "create_attribute" => {
                arguments!(
                    request, id: String, name: String, version: String, idl_type: Option<IdlType>, mode: AttributeMode
                );
                self.create(request, number, Naming { id, name, version }, |edit| {
                    Ok(Body::AnAttribute(AttributeBody {
                        r#type: core.type_number(edit.model(), idl_type.as_ref())?,
                        is_readonly: mode == AttributeMode::AttrReadonly,
                        ..AttributeBody::default()
                    }))
                })?;
            }
            "create_ext_attribute" => {
                arguments!(
                    request, id: String, name: String, version: String, idl_type: Option<IdlType>, mode: AttributeMode,
                    get: Vec<Option<ExceptionDef>>, set: Vec<Option<ExceptionDef>>
                );
                self.create(request, number, Naming { id, name, version }, |edit| {
                    Ok(Body::AnAttribute(AttributeBody {
                        r#type: core.type_number(edit.model(), idl_type.as_ref())?,
                        is_readonly: mode == AttributeMode::AttrReadonly,
                        get_exceptions: core.numbers(edit.model(), &get, is_exception)?,
                        set_exceptions: core.numbers(edit.model(), &set, is_exception)?,
                    }))
                })?;
            }
            "create_operation" => {
                arguments!(
                    request, id: String, name: String, version: String, result: Option<IdlType>, mode: OperationMode,
                    params: Vec<ParameterDescription>, exceptions: Vec<Option<ExceptionDef>>, contexts: Vec<String>
                );
                self.create(request, number, Naming { id, name, version }, |edit| {
                    let body = OperationBody {
                        result: core.type_number(edit.model(), result.as_ref())?,
                        is_oneway: mode == OperationMode::OpOneway,
                        parameters: core.parameters(edit.model(), params)?,
                        exceptions: core.numbers(edit.model(), &exceptions, is_exception)?,
                        contexts,
                    };
                    check_operation(&body)?;
                    Ok(Body::Operation(body))
                })?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn value(&self, request: &mut ServerRequest<'_>, number: Number, content: &Body) -> Handled {
        let core = &*self.0;
        let Body::Value(body) = content else { return Ok(false) };
        let is_value = |it: &Body| matches!(it, Body::Value(_));
        match request.operation() {
            "_get_supported_interfaces" => {
                request.arguments(NvList::new())?;
                request.set_result(&self.references::<InterfaceDef>(&body.supported)?)?;
            }
            "_set_supported_interfaces" => {
                arguments!(request, supported: Vec<Option<InterfaceDef>>);
                self.rebuild(number, |content, core, model| {
                    if let Body::Value(body) = content {
                        body.supported = core.numbers(model, &supported, |it| matches!(it, Body::AnInterface(_)))?;
                    }
                    Ok(())
                })?;
            }
            "_get_base_value" => {
                request.arguments(NvList::new())?;
                request.set_result(&self.read(|model| core.typed::<ValueDef>(model, body.base))?)?;
            }
            "_set_base_value" => {
                arguments!(request, base: Option<ValueDef>);
                self.rebuild(number, |content, core, model| {
                    let bases = match base {
                        Some(base) => core.numbers(model, &[Some(base)], is_value)?,
                        None => Vec::new(),
                    };
                    check_acyclic(model, number, &bases)?;
                    if let Body::Value(body) = content {
                        body.base = bases.first().copied().unwrap_or(NONE);
                    }
                    Ok(())
                })?;
            }
            "_get_abstract_base_values" => {
                request.arguments(NvList::new())?;
                request.set_result(&self.references::<ValueDef>(&body.abstract_bases)?)?;
            }
            "_set_abstract_base_values" => {
                arguments!(request, bases: Vec<Option<ValueDef>>);
                self.rebuild(number, |content, core, model| {
                    let bases = core.numbers(model, &bases, is_value)?;
                    check_acyclic(model, number, &bases)?;
                    if let Body::Value(body) = content {
                        body.abstract_bases = bases;
                    }
                    Ok(())
                })?;
            }
            operation @ ("_get_is_abstract" | "_get_is_custom" | "_get_is_truncatable") => {
                request.arguments(NvList::new())?;
                request.set_result(&match operation {
                    "_get_is_abstract" => body.is_abstract,
                    "_get_is_custom" => body.is_custom,
                    _ => body.is_truncatable,
                })?;
            }
            operation @ ("_set_is_abstract" | "_set_is_custom" | "_set_is_truncatable") => {
                arguments!(request, is_set: bool);
                self.replace(number, |content| match (content, operation) {
                    (Body::Value(body), "_set_is_abstract") => body.is_abstract = is_set,
                    (Body::Value(body), "_set_is_custom") => body.is_custom = is_set,
                    (Body::Value(body), _) => body.is_truncatable = is_set,
                    _ => {}
                })?;
            }
            "_get_initializers" => {
                request.arguments(NvList::new())?;
                request.set_result(&self.read(|model| Describer::new(core, model).initializers(content))?)?;
            }
            "_get_ext_initializers" => {
                request.arguments(NvList::new())?;
                request.set_result(&self.read(|model| Describer::new(core, model).ext_initializers(content))?)?;
            }
            "_set_initializers" => {
                arguments!(request, initializers: Vec<Initializer>);
                self.set_initializers(number, extended(initializers))?;
            }
            "_set_ext_initializers" => {
                arguments!(request, initializers: Vec<ExtInitializer>);
                self.set_initializers(number, initializers)?;
            }
            "describe_value" => {
                request.arguments(NvList::new())?;
                let found = self.read(|model| Describer::new(core, model).value(number))?;
                let plain = |it: ExtInitializer| Initializer { members: it.members, name: it.name };
                request.set_result(&value_def::FullValueDescription {
                    name: found.name,
                    id: found.id,
                    is_abstract: found.is_abstract,
                    is_custom: found.is_custom,
                    defined_in: found.defined_in,
                    version: found.version,
                    operations: found.operations,
                    attributes: without_exceptions(found.attributes),
                    members: found.members,
                    initializers: found.initializers.into_iter().map(plain).collect(),
                    supported_interfaces: found.supported_interfaces,
                    abstract_base_values: found.abstract_base_values,
                    is_truncatable: found.is_truncatable,
                    base_value: found.base_value,
                    r#type: found.r#type,
                })?;
            }
            "describe_ext_value" => {
                request.arguments(NvList::new())?;
                let found: ext_value_def::ExtFullValueDescription =
                    self.read(|model| Describer::new(core, model).value(number))?;
                request.set_result(&found)?;
            }
            "create_value_member" => {
                arguments!(request, id: String, name: String, version: String, idl_type: Option<IdlType>, access: i16);
                check_access(access)?;
                self.create(request, number, Naming { id, name, version }, |edit| {
                    let r#type = core.type_number(edit.model(), idl_type.as_ref())?;
                    Ok(Body::ValueMember(ValueMemberBody { r#type, access }))
                })?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn set_initializers(&self, number: Number, initializers: Vec<ExtInitializer>) -> Result<(), SystemException> {
        self.rebuild(number, |content, core, model| {
            if let Body::Value(body) = content {
                body.factories = core.factories(model, initializers)?;
            }
            Ok(())
        })
    }

    fn references<T: spandrel::types::Interface>(&self, numbers: &[Number]) -> Result<Vec<Option<T>>, SystemException> {
        self.read(|model| numbers.iter().map(|number| self.0.typed(model, *number)).collect())
    }
}

impl Core {
    pub(crate) fn members(&self, model: &Model, given: Vec<StructMember>) -> Result<Vec<Member>, SystemException> {
        check_distinct(given.iter().map(|it| &it.name))?;
        let members = given.into_iter().map(|StructMember { name, type_def, .. }| {
            Ok(Member { name, r#type: self.type_number(model, type_def.as_ref())? })
        });
        members.collect()
    }

    pub(crate) fn branches(&self, model: &Model, given: Vec<UnionMember>) -> Result<Vec<Branch>, SystemException> {
        // A branch of several labels is as many members of one name, one after the other.
        let mut names: Vec<&String> = given.iter().map(|it| &it.name).collect();
        names.dedup();
        check_distinct(names)?;
        let branches = given.into_iter().map(|UnionMember { name, label, type_def, .. }| {
            Ok(Branch { name, label, r#type: self.type_number(model, type_def.as_ref())? })
        });
        branches.collect()
    }

    fn parameters(&self, model: &Model, given: Vec<ParameterDescription>) -> Result<Vec<Parameter>, SystemException> {
        check_distinct(given.iter().map(|it| &it.name))?;
        let parameters = given.into_iter().map(|ParameterDescription { name, type_def, mode, .. }| {
            let mode = match mode {
                ParameterMode::ParamIn => Direction::DirectionIn,
                ParameterMode::ParamOut => Direction::DirectionOut,
                ParameterMode::ParamInout => Direction::DirectionInout,
            };
            Ok(Parameter { name, r#type: self.type_number(model, type_def.as_ref())?, mode })
        });
        parameters.collect()
    }

    pub(crate) fn factories(&self, model: &Model, given: Vec<ExtInitializer>) -> Result<Vec<Factory>, SystemException> {
        check_distinct(given.iter().map(|it| &it.name))?;
        let factories = given.into_iter().map(|ExtInitializer { members, exceptions, name }| {
            let members = self.members(model, members)?;
            Ok(Factory { name, members, exceptions: described_exceptions(model, &exceptions)? })
        });
        factories.collect()
    }
}

pub(super) fn extended(initializers: Vec<Initializer>) -> Vec<ExtInitializer> {
    let extended = |Initializer { members, name }| ExtInitializer { members, exceptions: Vec::new(), name };
    initializers.into_iter().map(extended).collect()
}

fn is_exception(content: &Body) -> bool {
    matches!(content, Body::AnException(_))
}

/// Exceptions by their repository ids.
fn described_exceptions(model: &Model, given: &[ExceptionDescription]) -> Result<Vec<Number>, SystemException> {
    let numbers = given.iter().map(|it| {
        let found = model.by_id(&it.id).filter(|number| model.get(*number).is_some_and(|it| is_exception(&it.content)));
        found.ok_or_else(|| bad_param(0, format!("the repository has no exception `{}`", it.id)))
    });
    numbers.collect()
}

/// Checks names that have to differ, also in more than case (IDL 4.2, 7.2.3).
pub(super) fn check_distinct<'n>(names: impl IntoIterator<Item = &'n String>) -> Result<(), SystemException> {
    let mut seen = HashSet::new();
    for name in names {
        check_name(name)?;
        if !seen.insert(name.to_ascii_lowercase()) {
            return Err(bad_param(minor::INVALID_MEMBER_NAME, format!("the name `{name}` occurs twice")));
        }
    }
    Ok(())
}

/// Checks the rules of one-way operations.
fn check_operation(body: &OperationBody) -> Result<(), SystemException> {
    let is_returned = |it: &Parameter| it.mode != Direction::DirectionIn;
    let is_void = body.result == crate::model::primitive(PrimitiveKind::PkVoid as u32);
    if body.is_oneway && (!is_void || body.parameters.iter().any(is_returned) || !body.exceptions.is_empty()) {
        return Err(bad_param(minor::INVALID_ONEWAY, "a one-way operation returns or raises something".to_owned()));
    }
    Ok(())
}

/// Checks that abstract interfaces inherit from such ones only.
pub(super) fn check_bases(model: &Model, flavor: InterfaceFlavor, bases: &[Number]) -> Result<(), SystemException> {
    let flavor_of = |number: &Number| match model.get(*number).map(|it| &it.content) {
        Some(Body::AnInterface(body)) => body.flavor,
        _ => InterfaceFlavor::FlavorRemote,
    };
    let is_permitted = |base: InterfaceFlavor| match flavor {
        InterfaceFlavor::FlavorAbstract => base == InterfaceFlavor::FlavorAbstract,
        InterfaceFlavor::FlavorRemote => base != InterfaceFlavor::FlavorLocal,
        InterfaceFlavor::FlavorLocal => true,
    };
    match bases.iter().all(|base| is_permitted(flavor_of(base))) {
        true => Ok(()),
        false => Err(bad_param(0, "an interface cannot inherit from such a base".to_owned())),
    }
}

fn check_acyclic(model: &Model, number: Number, bases: &[Number]) -> Result<(), SystemException> {
    match bases.iter().any(|base| derives(model, *base, number)) {
        true => Err(bad_param(0, "an interface or value would inherit from itself".to_owned())),
        false => Ok(()),
    }
}

fn check_access(access: i16) -> Result<(), SystemException> {
    match access {
        0 | 1 => Ok(()),
        other => Err(bad_param(0, format!("{other} is not a visibility"))),
    }
}
