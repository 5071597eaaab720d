//! Definitions without a Rust form: components and similar constructs, and the definitions that use them.
//!
//! They are left out entirely, so that the rest of a file is usable; the first lines of the generated file
//! name them.

use std::collections::HashSet;

use super::propagate::{for_each_used, named, propagate};
use crate::model::{DefId, Definition, DefinitionKind, Model};

/// The definitions to leave out.
pub(super) fn left_out(model: &Model) -> HashSet<DefId> {
    let is_unmapped = |definition: &Definition| matches!(definition.kind, DefinitionKind::Unmapped(_));
    propagate(model, is_unmapped, |definition, uses| {
        definition.parent.iter().filter(|&&parent| is_unmapped(&model[parent])).for_each(|&parent| uses(parent));
        let methods =
            || model.contents(definition.id).iter().copied().filter(|&id| super::contents::is_method(&model[id]));
        match &definition.kind {
            DefinitionKind::Interface(body) => body.bases.iter().copied().chain(methods()).for_each(uses),
            DefinitionKind::ValueType(body) => {
                body.bases.iter().chain(&body.supports).copied().chain(methods()).for_each(&mut *uses);
                body.members.iter().for_each(|state| named(&state.member.ty, uses));
                for factory in &body.factories {
                    factory.parameters.iter().for_each(|parameter| named(&parameter.ty, uses));
                    factory.raises.iter().for_each(|&id| uses(id));
                }
            }
            DefinitionKind::ValueBox(body) => named(&body.ty, uses),
            _ => for_each_used(definition, uses),
        }
    })
}
