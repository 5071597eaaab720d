//! Types that never leave the process: local interfaces, native types, and the types that use these.
//!
//! They have no form on the wire and no codec. An interface with an operation that takes or returns such a
//! type can be used only in the process of its implementation, so it is treated as if it were declared
//! `local` (older IDL omits that). `definition` writes a local interface as the trait of its servants alone
//! (`servant`), and `types` writes its type as `Option<Arc<dyn …>>`.
//!
//! `consts` writes native types.

use std::collections::HashSet;

use super::propagate::{for_each_used, propagate};
use crate::model::{DefId, DefinitionKind, Model};

/// The definitions without a form on the wire.
pub(super) fn local(model: &Model) -> HashSet<DefId> {
    propagate(
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
            _ => for_each_used(definition, uses),
        },
    )
}

/// The direct and indirect bases of local interfaces: their servant traits are supertraits of the local ones.
pub(super) fn bases(model: &Model, local: &HashSet<DefId>) -> HashSet<DefId> {
    local.iter().filter_map(|&id| model[id].as_interface()).flat_map(|body| &body.all_bases).copied().collect()
}
