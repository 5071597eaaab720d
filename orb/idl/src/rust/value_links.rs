//! How value types hang together: who derives from whom, who needs no code of its user, and which types hold values.

use std::collections::HashSet;

use crate::model::{DefId, DefinitionKind, Model, Type, ValueType};

/// Everything that an interface or value type inherits methods from, each once, bases first: interfaces that it or a base
/// supports, then base values.
pub(super) fn lineage(model: &Model, id: DefId) -> Vec<DefId> {
    match &model[id].kind {
        DefinitionKind::Interface(body) => body.all_bases.clone(),
        DefinitionKind::ValueType(body) => {
            let mut lineage = supported(model, id);
            lineage.extend(&body.all_bases);
            lineage
        }
        _ => Vec::new(),
    }
}

/// The interfaces that a value type or one of its bases supports, with their bases; each once.
pub(super) fn supported(model: &Model, id: DefId) -> Vec<DefId> {
    let mut supported = Vec::new();
    let bases = model[id].as_value_type().map_or(&[][..], |body| &body.all_bases);
    for value in bases.iter().chain([&id]).filter_map(|&id| model[id].as_value_type()) {
        for &interface in &value.supports {
            let bases = model[interface].as_interface().map_or(&[][..], |body| &body.all_bases);
            for &id in bases.iter().chain([&interface]) {
                if !supported.contains(&id) {
                    supported.push(id);
                }
            }
        }
    }
    supported
}

/// The base with state, if there is one.
pub(super) fn concrete_base(model: &Model, body: &ValueType) -> Option<DefId> {
    let base = *body.bases.first()?;
    model[base].as_value_type().filter(|base| !base.is_abstract).map(|_| base)
}

/// Whether its values are their state: nothing that a user would have to write.
pub(super) fn is_plain(model: &Model, id: DefId) -> bool {
    let Some(body) = model[id].as_value_type() else { return matches!(model[id].kind, DefinitionKind::ValueBox(_)) };
    let has_methods = |id: &DefId| model.contents(*id).iter().any(|&id| super::is_method(&model[id]));
    !body.is_abstract
        && !body.is_custom
        && !body.forward_only
        && supported(model, id).is_empty()
        && !body.all_bases.iter().chain([&id]).any(has_methods)
        && !body.all_bases.iter().any(|&base| model[base].as_value_type().is_some_and(|base| base.is_custom))
}

/// The plain value types that a value of type `id` may be: itself, what derives from it, what supports it.
pub(super) fn plain_values(model: &Model, id: DefId) -> Vec<DefId> {
    let is_one = |candidate: DefId| candidate == id || lineage(model, candidate).contains(&id);
    model.definitions().map(|definition| definition.id).filter(|&one| is_plain(model, one) && is_one(one)).collect()
}

/// The ids that a value carries: its own, and those of the bases that it may be truncated to, nearest first.
pub(super) fn truncatable_ids(model: &Model, id: DefId) -> Vec<&str> {
    let mut ids = vec![model[id].repository_id.as_str()];
    let mut here = id;
    while let Some(body) = model[here].as_value_type().filter(|body| body.is_truncatable) {
        let Some(base) = concrete_base(model, body) else { break };
        ids.push(&model[base].repository_id);
        here = base;
    }
    ids
}

/// The interfaces that some value type supports.
pub(super) fn all_supported(model: &Model) -> HashSet<DefId> {
    let values = model.definitions().filter(|definition| definition.as_value_type().is_some());
    values.flat_map(|value| supported(model, value.id)).collect()
}

/// Whether a type holds references to values: inside of a value these are links.
pub(super) fn holds_values(model: &Model, ty: &Type) -> bool {
    holds(model, ty, &mut HashSet::new())
}

fn holds(model: &Model, ty: &Type, seen: &mut HashSet<DefId>) -> bool {
    match model.resolve(ty) {
        Type::ValueBase | Type::AbstractBase => true,
        Type::Sequence { element, .. } | Type::Array { element, .. } => holds(model, element, seen),
        Type::Named(id) if seen.insert(*id) => match &model[*id].kind {
            DefinitionKind::ValueType(_) | DefinitionKind::ValueBox(_) => true,
            DefinitionKind::Interface(body) => body.is_abstract,
            DefinitionKind::Struct(body) => body.members.iter().any(|member| holds(model, &member.ty, seen)),
            DefinitionKind::Union(body) => body.branches.iter().any(|branch| holds(model, &branch.member.ty, seen)),
            _ => false,
        },
        _ => false,
    }
}
