//! Properties that propagate from definitions to their users: being local, having no Rust form, containing
//! values.
//!
//! Each use is examined once, however long the chains of uses are.

use std::collections::HashSet;

use crate::model::{DefId, Definition, DefinitionKind, Model, Type};

/// The definitions that have a property: those selected by `begins`, and all users of these. `uses` calls its
/// argument with each definition from which the property propagates to this one.
pub(super) fn propagate(
    model: &Model,
    begins: impl Fn(&Definition) -> bool,
    uses: impl Fn(&Definition, &mut dyn FnMut(DefId)),
) -> HashSet<DefId> {
    let mut users = vec![Vec::new(); model.definitions().len()];
    let mut open = Vec::new();
    for definition in model.definitions() {
        uses(definition, &mut |used| users[used.index()].push(definition.id));
        if begins(definition) {
            open.push(definition.id);
        }
    }
    let mut reached: HashSet<DefId> = open.iter().copied().collect();
    while let Some(id) = open.pop() {
        open.extend(users[id.index()].drain(..).filter(|&user| reached.insert(user)));
    }
    reached
}

/// Calls `each` with the definition that a type names, if any.
pub(super) fn named(ty: &Type, each: &mut dyn FnMut(DefId)) {
    match ty {
        Type::Named(id) => each(*id),
        Type::Sequence { element, .. } | Type::Array { element, .. } => named(element, each),
        _ => {}
    }
}

/// Calls `each` with the definitions named by the signature of an operation or attribute, by the members of a
/// struct, union or exception, or by the type of a typedef or constant.
pub(super) fn for_each_used(definition: &Definition, each: &mut dyn FnMut(DefId)) {
    match &definition.kind {
        DefinitionKind::Operation(body) => {
            body.result.iter().for_each(|ty| named(ty, each));
            body.parameters.iter().for_each(|parameter| named(&parameter.ty, each));
            body.raises.iter().for_each(|&id| each(id));
        }
        DefinitionKind::Attribute(body) => {
            named(&body.ty, each);
            body.get_raises.iter().chain(&body.set_raises).for_each(|&id| each(id));
        }
        DefinitionKind::Struct(body) | DefinitionKind::Exception(body) => {
            body.members.iter().for_each(|member| named(&member.ty, each));
        }
        DefinitionKind::Union(body) => body.branches.iter().for_each(|branch| named(&branch.member.ty, each)),
        DefinitionKind::Typedef(body) => named(&body.ty, each),
        DefinitionKind::Const(body) => named(&body.ty, each),
        _ => {}
    }
}
