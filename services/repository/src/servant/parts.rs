//! The parts of definitions in the form in which the store keeps them, and the rules for them.

use std::collections::HashSet;

use spandrel::minor;

use super::object::Outcome;
use crate::core::{Core, check_name};
use crate::errors::bad_param;
use crate::generated::corba::{
    ExceptionDescription, ExtInitializer, Initializer, ParameterDescription, ParameterMode, PrimitiveKind,
    StructMember, UnionMember, ValueDef,
};
use crate::model::{Model, NONE, Number};
use crate::records::records::{Body, Branch, Direction, Factory, InterfaceFlavor, Member, OperationBody, Parameter};
use crate::types::derives;

impl Core {
    pub(super) fn members(&self, model: &Model, descriptions: &[StructMember]) -> Outcome<Vec<Member>> {
        check_distinct(descriptions.iter().map(|it| &it.name))?;
        let members = descriptions.iter().map(|StructMember { name, type_def, .. }| {
            Ok(Member { name: name.clone(), r#type: self.type_number(model, type_def.as_ref())? })
        });
        members.collect()
    }

    pub(super) fn branches(&self, model: &Model, descriptions: &[UnionMember]) -> Outcome<Vec<Branch>> {
        // A branch of several labels is as many members of one name, one after the other.
        let mut names: Vec<&String> = descriptions.iter().map(|it| &it.name).collect();
        names.dedup();
        check_distinct(names)?;
        let branches = descriptions.iter().map(|UnionMember { name, label, type_def, .. }| {
            let r#type = self.type_number(model, type_def.as_ref())?;
            Ok(Branch { name: name.clone(), label: label.clone(), r#type })
        });
        branches.collect()
    }

    pub(super) fn parameters(&self, model: &Model, descriptions: &[ParameterDescription]) -> Outcome<Vec<Parameter>> {
        check_distinct(descriptions.iter().map(|it| &it.name))?;
        let parameters = descriptions.iter().map(|ParameterDescription { name, type_def, mode, .. }| {
            let mode = match mode {
                ParameterMode::ParamIn => Direction::DirectionIn,
                ParameterMode::ParamOut => Direction::DirectionOut,
                ParameterMode::ParamInout => Direction::DirectionInout,
            };
            Ok(Parameter { name: name.clone(), r#type: self.type_number(model, type_def.as_ref())?, mode })
        });
        parameters.collect()
    }

    pub(super) fn factories(&self, model: &Model, descriptions: &[ExtInitializer]) -> Outcome<Vec<Factory>> {
        check_distinct(descriptions.iter().map(|it| &it.name))?;
        let factories = descriptions.iter().map(|ExtInitializer { members, exceptions, name }| {
            let members = self.members(model, members)?;
            Ok(Factory { name: name.clone(), members, exceptions: described_exceptions(model, exceptions)? })
        });
        factories.collect()
    }

    /// The number of the base of a value; none for nil.
    pub(super) fn base_value(&self, model: &Model, base: Option<&ValueDef>) -> Outcome<Number> {
        match base {
            Some(base) => Ok(self.numbers(model, &[Some(base.clone())], is_value)?.pop().unwrap_or(NONE)),
            None => Ok(NONE),
        }
    }
}

pub(super) fn extended(initializers: &[Initializer]) -> Vec<ExtInitializer> {
    let extended = |Initializer { members, name }| ExtInitializer { members, exceptions: Vec::new(), name };
    initializers.iter().cloned().map(extended).collect()
}

pub(super) fn is_interface(content: &Body) -> bool {
    matches!(content, Body::AnInterface(_))
}

pub(super) fn is_value(content: &Body) -> bool {
    matches!(content, Body::Value(_))
}

pub(super) fn is_exception(content: &Body) -> bool {
    matches!(content, Body::AnException(_))
}

/// Exceptions by their repository ids.
pub(super) fn described_exceptions(model: &Model, descriptions: &[ExceptionDescription]) -> Outcome<Vec<Number>> {
    let numbers = descriptions.iter().map(|it| {
        let found = model.by_id(&it.id).filter(|number| model.get(*number).is_some_and(|it| is_exception(&it.content)));
        found.ok_or_else(|| bad_param(0, format!("the repository has no exception `{}`", it.id)))
    });
    numbers.collect()
}

/// Checks names that have to differ, also in more than case (IDL 4.2, 7.2.3).
pub(super) fn check_distinct<'n>(names: impl IntoIterator<Item = &'n String>) -> Outcome<()> {
    let mut names_before = HashSet::new();
    for name in names {
        check_name(name)?;
        if !names_before.insert(name.to_ascii_lowercase()) {
            return Err(bad_param(minor::INVALID_MEMBER_NAME, format!("the name `{name}` occurs twice")));
        }
    }
    Ok(())
}

/// Checks the rules of one-way operations.
pub(super) fn check_operation(body: &OperationBody) -> Outcome<()> {
    let is_returned = |it: &Parameter| it.mode != Direction::DirectionIn;
    let is_void = body.result == crate::model::primitive(PrimitiveKind::PkVoid as u32);
    if body.is_oneway && (!is_void || body.parameters.iter().any(is_returned) || !body.exceptions.is_empty()) {
        return Err(bad_param(minor::INVALID_ONEWAY, "a one-way operation returns or raises something".to_owned()));
    }
    Ok(())
}

/// Checks that abstract interfaces inherit from such ones only.
pub(super) fn check_bases(model: &Model, flavor: InterfaceFlavor, bases: &[Number]) -> Outcome<()> {
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

pub(super) fn check_acyclic(model: &Model, number: Number, bases: &[Number]) -> Outcome<()> {
    match bases.iter().any(|base| derives(model, *base, number)) {
        true => Err(bad_param(0, "an interface or value would inherit from itself".to_owned())),
        false => Ok(()),
    }
}

pub(super) fn check_access(access: i16) -> Outcome<()> {
    match access {
        0 | 1 => Ok(()),
        other => Err(bad_param(0, format!("{other} is not a visibility"))),
    }
}
