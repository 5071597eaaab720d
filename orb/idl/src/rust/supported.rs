//! What has no Rust form: components and their like, and whatever is made of those.
//!
//! They are left out whole, so that the rest of a file is usable; the first lines of the generated file name them.

use std::collections::HashSet;

use super::value_links;
use crate::model::{DefId, Definition, DefinitionKind, Model, Type};

/// The definitions to leave out.
pub(super) fn left_out(model: &Model) -> HashSet<DefId> {
    let mut left_out = HashSet::new();
    loop {
        let before = left_out.len();
        for definition in model.definitions() {
            if !left_out.contains(&definition.id) && is_unsupported(model, definition, &left_out) {
                left_out.insert(definition.id);
            }
        }
        if left_out.len() == before {
            return left_out;
        }
    }
}

fn is_unsupported(model: &Model, definition: &Definition, left_out: &HashSet<DefId>) -> bool {
    let bad = |ty: &Type| is_unsupported_type(ty, left_out);
    let gone = |id: &DefId| left_out.contains(id);
    let is_unmapped = |id: &DefId| matches!(model[*id].kind, DefinitionKind::Unmapped(_));
    if definition.parent.as_ref().is_some_and(|parent| is_unmapped(parent) && gone(parent)) {
        return true;
    }
    match &definition.kind {
        DefinitionKind::Unmapped(_) => true,
        DefinitionKind::ValueType(body) => {
            value_links::lineage(model, definition.id).iter().any(gone)
                || body.members.iter().any(|state| bad(&state.member.ty))
                || model.contents(definition.id).iter().any(|id| super::is_method(&model[*id]) && gone(id))
        }
        DefinitionKind::ValueBox(body) => bad(&body.ty),
        DefinitionKind::Interface(interface) => {
            interface.all_bases.iter().any(gone) || model.flattened(definition.id).iter().any(gone)
        }
        DefinitionKind::Union(body) => body.branches.iter().any(|branch| bad(&branch.member.ty)),
        DefinitionKind::Struct(body) | DefinitionKind::Exception(body) => {
            body.members.iter().any(|member| bad(&member.ty))
        }
        DefinitionKind::Typedef(typedef) => bad(&typedef.ty),
        DefinitionKind::Const(constant) => bad(&constant.ty),
        DefinitionKind::Operation(operation) => {
            operation.result.as_ref().is_some_and(bad)
                || operation.parameters.iter().any(|parameter| bad(&parameter.ty))
                || operation.raises.iter().any(gone)
        }
        DefinitionKind::Attribute(attribute) => {
            bad(&attribute.ty) || attribute.get_raises.iter().chain(&attribute.set_raises).any(gone)
        }
        DefinitionKind::Module(_)
        | DefinitionKind::Enum(_)
        | DefinitionKind::Enumerator(_)
        | DefinitionKind::Native => false,
    }
}

fn is_unsupported_type(ty: &Type, left_out: &HashSet<DefId>) -> bool {
    match ty {
        Type::Named(id) => left_out.contains(id),
        Type::Sequence { element, .. } | Type::Array { element, .. } => is_unsupported_type(element, left_out),
        _ => false,
    }
}
