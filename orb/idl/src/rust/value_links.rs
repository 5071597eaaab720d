//! Relations of value types: derivation, values that need no code of the user, and types that contain values.

use std::collections::{HashMap, HashSet};

use super::propagate::{for_each_used, propagate};
use crate::model::{DefId, Definition, DefinitionKind, Model, Type, ValueType};

/// All interfaces and values from which an interface or value type inherits methods, each once, bases first:
/// interfaces supported by it or a base, then base values.
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
    let (mut supported, mut visited) = (Vec::new(), HashSet::new());
    let bases = model[id].as_value_type().map_or(&[][..], |body| &body.all_bases);
    for value in bases.iter().chain([&id]).filter_map(|&id| model[id].as_value_type()) {
        for &interface in &value.supports {
            let bases = model[interface].as_interface().map_or(&[][..], |body| &body.all_bases);
            supported.extend(bases.iter().chain([&interface]).copied().filter(|&id| visited.insert(id)));
        }
    }
    supported
}

/// The base with state, if any.
pub(super) fn concrete_base(model: &Model, body: &ValueType) -> Option<DefId> {
    let base = *body.bases.first()?;
    model[base].as_value_type().filter(|base| !base.is_abstract).map(|_| base)
}

/// Whether its values are just their state, so that users need not write code.
pub(super) fn is_plain(model: &Model, id: DefId) -> bool {
    let Some(body) = model[id].as_value_type() else { return matches!(model[id].kind, DefinitionKind::ValueBox(_)) };
    let has_methods = |id: &DefId| model.contents(*id).iter().any(|&id| super::contents::is_method(&model[id]));
    !body.is_abstract
        && !body.is_custom
        && !body.forward_only
        && supported(model, id).is_empty()
        && !body.all_bases.iter().chain([&id]).any(has_methods)
        && !body.all_bases.iter().any(|&base| model[base].as_value_type().is_some_and(|base| base.is_custom))
}

/// The repository ids of an encoded value: its own, and those of the bases that it may be truncated to,
/// nearest first.
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

/// Frequently used facts about values, computed once.
#[derive(Debug, Default)]
pub(super) struct ValueTable {
    /// For each value type and interface: the plain value types that a value of it may have.
    plain: HashMap<DefId, Vec<DefId>>,
    supported: HashSet<DefId>,
    holders: HashSet<DefId>,
}

impl ValueTable {
    pub(super) fn new(model: &Model) -> Self {
        let mut table = Self { holders: holders(model), ..Self::default() };
        for definition in model.definitions() {
            let id = definition.id;
            if definition.as_value_type().is_some() {
                table.supported.extend(supported(model, id));
            }
            if is_plain(model, id) {
                for form in lineage(model, id).into_iter().chain([id]) {
                    table.plain.entry(form).or_default().push(id);
                }
            }
        }
        table
    }

    /// The plain value types that a value of type `id` may have: itself, the types derived from it, those
    /// that support it.
    pub(super) fn plain(&self, id: DefId) -> &[DefId] {
        self.plain.get(&id).map_or(&[], Vec::as_slice)
    }

    /// Whether some value type supports the interface.
    pub(super) fn is_supported(&self, interface: DefId) -> bool {
        self.supported.contains(&interface)
    }

    /// Whether a struct, union or exception holds references to values.
    pub(super) fn holds(&self, id: DefId) -> bool {
        self.holders.contains(&id)
    }

    /// Whether a type contains references to values: inside a value these are links.
    pub(super) fn holds_values(&self, model: &Model, ty: &Type) -> bool {
        match model.resolve(ty) {
            Type::ValueBase | Type::AbstractBase => true,
            Type::Sequence { element, .. } | Type::Array { element, .. } => self.holds_values(model, element),
            Type::Named(id) => self.holders.contains(id),
            _ => false,
        }
    }
}

/// Value types, abstract interfaces, and definitions with a member of such a type.
fn holders(model: &Model) -> HashSet<DefId> {
    let begins = |definition: &Definition| match &definition.kind {
        DefinitionKind::ValueType(_) | DefinitionKind::ValueBox(_) => true,
        DefinitionKind::Interface(body) => body.is_abstract,
        DefinitionKind::Struct(body) | DefinitionKind::Exception(body) => {
            body.members.iter().any(|member| is_open(&member.ty))
        }
        DefinitionKind::Union(body) => body.branches.iter().any(|branch| is_open(&branch.member.ty)),
        DefinitionKind::Typedef(body) => is_open(&body.ty),
        _ => false,
    };
    propagate(model, begins, |definition, uses| {
        if let DefinitionKind::Struct(_)
        | DefinitionKind::Exception(_)
        | DefinitionKind::Union(_)
        | DefinitionKind::Typedef(_) = &definition.kind
        {
            for_each_used(definition, uses);
        }
    })
}

/// Whether a type is `ValueBase`, or a sequence or array of it, which names no value type.
fn is_open(ty: &Type) -> bool {
    match ty {
        Type::ValueBase | Type::AbstractBase => true,
        Type::Sequence { element, .. } | Type::Array { element, .. } => is_open(element),
        _ => false,
    }
}
