//! What never leaves the process: local interfaces, native types, and whatever is made of those.
//!
//! Such types have no form on the wire and are given no codec. An interface with an operation that takes or returns one can
//! only be used where its implementation is, so it is treated as if it were declared `local` (older IDL does not say so).

use std::collections::HashSet;

use super::spread::{mentioned, spread};
use crate::model::{DefId, DefinitionKind, Model};

/// The definitions without a form on the wire.
pub(super) fn local(model: &Model) -> HashSet<DefId> {
    spread(
        model,
        |definition| match &definition.kind {
            DefinitionKind::Native => true,
            DefinitionKind::Interface(body) => body.is_local,
            _ => false,
        },
        |definition, uses| match &definition.kind {
            DefinitionKind::Interface(body) => {
                body.bases.iter().for_each(|&base| uses(base));
                let contents = model.contents(definition.id).iter();
                contents.filter(|&&id| super::contents::is_method(&model[id])).for_each(|&id| uses(id));
            }
            DefinitionKind::Const(_) => {}
            _ => mentioned(definition, uses),
        },
    )
}

/// The interfaces that local ones inherit from, directly or not: the traits of their implementations are part of those of the local
/// ones.
pub(super) fn bases(model: &Model, local: &HashSet<DefId>) -> HashSet<DefId> {
    local.iter().filter_map(|&id| model[id].as_interface()).flat_map(|body| &body.all_bases).copied().collect()
}
