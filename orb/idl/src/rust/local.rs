//! What never leaves the process: local interfaces, native types, and whatever is made of those.
//!
//! Such types have no form on the wire and are given no codec. An interface with an operation that takes or returns one can
//! only be used where its implementation is, so it is treated as if it were declared `local` (older IDL does not say so).

use std::collections::HashSet;

use crate::model::{DefId, Definition, DefinitionKind, Model, Type};

/// The definitions without a form on the wire.
pub(super) fn local(model: &Model) -> HashSet<DefId> {
    let mut local = HashSet::new();
    loop {
        let before = local.len();
        for definition in model.definitions() {
            if !local.contains(&definition.id) && is_local(model, definition, &local) {
                local.insert(definition.id);
            }
        }
        if local.len() == before {
            return local;
        }
    }
}

fn is_local(model: &Model, definition: &Definition, local: &HashSet<DefId>) -> bool {
    let mentions = |ty: &Type| mentions(ty, local);
    let known = |id: &DefId| local.contains(id);
    match &definition.kind {
        DefinitionKind::Native => true,
        DefinitionKind::Interface(body) => {
            body.is_local
                || body.all_bases.iter().any(known)
                || model.contents(definition.id).iter().any(|id| super::is_method(&model[*id]) && known(id))
        }
        DefinitionKind::Operation(body) => {
            body.result.as_ref().is_some_and(mentions)
                || body.parameters.iter().any(|parameter| mentions(&parameter.ty))
                || body.raises.iter().any(known)
        }
        DefinitionKind::Attribute(body) => {
            mentions(&body.ty) || body.get_raises.iter().chain(&body.set_raises).any(known)
        }
        DefinitionKind::Struct(body) | DefinitionKind::Exception(body) => {
            body.members.iter().any(|member| mentions(&member.ty))
        }
        DefinitionKind::Union(body) => body.branches.iter().any(|branch| mentions(&branch.member.ty)),
        DefinitionKind::Typedef(body) => mentions(&body.ty),
        _ => false,
    }
}

fn mentions(ty: &Type, local: &HashSet<DefId>) -> bool {
    match ty {
        Type::Named(id) => local.contains(id),
        Type::Sequence { element, .. } | Type::Array { element, .. } => mentions(element, local),
        _ => false,
    }
}
