//! The spread of `impl` blocks: in how many files those of one type stand.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::resolve::{Definition, ModuleId, Resolver};
use super::tree::{Crate, ItemKind};

/// The files that hold `impl` blocks of a type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spread {
    pub(crate) name: String,
    /// An index into the list of crates.
    pub(crate) krate: usize,
    /// The number of files with `impl Type`.
    pub(crate) inherent: usize,
    /// The number of files with `impl Trait for Type`, also for references to the type.
    pub(crate) traits: usize,
}

/// Returns the types of all crates, those with the widest spread first.
///
/// Types of the same name in one module are one type: alternatives under different conditions.
pub(crate) fn spreads(crates: &[Crate]) -> Vec<Spread> {
    type Files = BTreeSet<(usize, usize)>;
    let mut files: BTreeMap<(ModuleId, String), [Files; 2]> = BTreeMap::new();
    let mut resolver = Resolver::new(crates);
    for (krate, tree) in crates.iter().enumerate() {
        for block in &tree.impls {
            for definition in resolver.path((krate, block.module), &block.path) {
                let is_type =
                    matches!(definition, Definition::Enum { .. } | Definition::Item { kind: ItemKind::Type, .. });
                if let (true, Some((module, name))) = (is_type, definition.item()) {
                    let of_type = files.entry((module, name.to_owned())).or_default();
                    of_type[usize::from(block.is_of_trait)].insert((krate, tree.modules[block.module].file));
                }
            }
        }
    }
    let spread = |((module, name), [inherent, traits]): ((ModuleId, String), [Files; 2])| Spread {
        name,
        krate: module.0,
        inherent: inherent.len(),
        traits: traits.len(),
    };
    let mut spreads: Vec<Spread> = files.into_iter().map(spread).collect();
    spreads.sort_by_key(|spread| Reverse((spread.inherent, spread.traits)));
    spreads
}

/// The first ten types as text. `folders` are those of the crates.
pub(crate) fn table(spreads: &[Spread], folders: &[String]) -> String {
    let mut text =
        format!("{:<18}  {:<28} {:>13} {:>24}\n", "crate", "type", "files of impl", "files of impl Trait for");
    for Spread { name, krate, inherent, traits } in spreads.iter().take(10) {
        let _ = writeln!(text, "{:<18}  {name:<28} {inherent:>13} {traits:>24}", folders[*krate]);
    }
    text
}
