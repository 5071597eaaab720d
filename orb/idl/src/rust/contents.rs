//! The order of a definition's contents in the output.

use crate::model::{DefId, Definition, DefinitionKind, Model};

/// The definitions, each preceded by those nested in a struct or union: Rust has them side by side.
pub(super) fn flatten_structs(model: &Model, contents: &[DefId]) -> Vec<DefId> {
    let nested = |id: DefId| match &model[id].kind {
        DefinitionKind::Struct(body) | DefinitionKind::Exception(body) => flatten_structs(model, &body.contents),
        DefinitionKind::Union(body) => flatten_structs(model, &body.contents),
        _ => Vec::new(),
    };
    contents.iter().flat_map(|&id| nested(id).into_iter().chain([id])).collect()
}

/// Whether it becomes methods.
pub(super) fn is_method(definition: &Definition) -> bool {
    matches!(definition.kind, DefinitionKind::Operation(_) | DefinitionKind::Attribute(_))
}
