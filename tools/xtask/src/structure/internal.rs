//! The hidden module `internal` of a crate: items for other crates of this repository, and nothing else.
//!
//! An item belongs there if another crate names it by a path through the module. Code of tests alone does not
//! count. Globs hide which items are named, so the module takes no items from elsewhere by a glob, and a glob that
//! imports from it names nothing.

use std::collections::BTreeSet;

use super::resolve::{Definition, ModuleId, Resolver};
use super::tree::{Crate, Meaning, PathNames};

const MODULE: &str = "internal";

/// Returns a complaint for each item that no other crate names, and for each glob. `packages` has the name of each
/// crate's package.
pub(crate) fn complaints(crates: &[Crate], packages: &[&str]) -> Vec<String> {
    let mut resolver = Resolver::new(crates);
    let named = named_items(crates, &mut resolver);
    let mut complaints = Vec::new();
    for (krate, tree) in crates.iter().enumerate() {
        let modules = (0..tree.modules.len()).filter(|module| tree.top(*module) == MODULE);
        for module in modules.filter(|module| !tree.modules[*module].is_block) {
            let (own, package) = (&tree.modules[module], packages[krate]);
            let path = own.path.join("::");
            for glob in &own.globs {
                let sources = resolver.path((krate, module), &glob.path);
                if !sources.iter().all(|source| is_internal(crates, source)) {
                    let source = glob.path.names.join("::");
                    complaints.push(format!("{path} of {package} has a glob: name the items of {source}"));
                }
            }
            for (name, bindings) in &own.bindings {
                let is_item = |meaning: &Meaning| !matches!(meaning, Meaning::Module(_));
                if !bindings.iter().any(|binding| binding.is_public && is_item(&binding.meaning)) {
                    continue;
                }
                let below = own.path.iter().chain([name]).cloned();
                let names = ["crate".to_owned()].into_iter().chain(below).collect();
                let definitions = resolver.path((krate, 0), &PathNames { is_absolute: false, names });
                if !definitions.iter().filter_map(owned).any(|item| named.contains(&item)) {
                    complaints.push(format!("{path}::{name} of {package} is named by no other crate"));
                }
            }
        }
    }
    complaints.sort();
    complaints
}

/// Items that other crates name by paths through a module `internal`.
fn named_items(crates: &[Crate], resolver: &mut Resolver<'_>) -> BTreeSet<(ModuleId, String)> {
    let mut named = BTreeSet::new();
    for (krate, tree) in crates.iter().enumerate() {
        for reference in &tree.references {
            let module_id = (krate, reference.module);
            let mut prefix = |length: usize| {
                let names = reference.path.names[..length].to_vec();
                resolver.path(module_id, &PathNames { is_absolute: reference.path.is_absolute, names })
            };
            for length in 1..reference.path.names.len() {
                let is_other = |module: &Definition| {
                    matches!(module, Definition::Module(module_id) if module_id.0 != krate)
                        && is_internal(crates, module)
                };
                if prefix(length).iter().any(is_other) {
                    named.extend(prefix(length + 1).iter().filter_map(owned));
                }
            }
        }
    }
    named
}

fn owned(definition: &Definition) -> Option<(ModuleId, String)> {
    definition.item().map(|(module, name)| (module, name.to_owned()))
}

/// Whether this is a module `internal` or one inside it.
fn is_internal(crates: &[Crate], definition: &Definition) -> bool {
    matches!(definition, Definition::Module((krate, module)) if crates[*krate].top(*module) == MODULE)
}
