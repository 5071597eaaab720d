//! Follows a path to the modules that define its items: through imports, re-exports and globs, also across
//! crates.
//!
//! A name can have several definitions: alternatives under different conditions, or a type and a function.
//! All are returned. Methods and variants belong to the item before them.

use std::collections::HashSet;

use super::tree::{Crate, ItemKind, Meaning, PathNames};

/// A module, by its crate and its place in it.
pub(crate) type ModuleId = (usize, usize);

/// The definition that a name leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Definition {
    Module(ModuleId),
    Item {
        /// The module that defines the item.
        module: ModuleId,
        name: String,
        kind: ItemKind,
    },
    /// An enum, whose variants a glob may import.
    Enum {
        module: ModuleId,
        name: String,
    },
}

impl Definition {
    /// The defining module and the name, unless this is a module.
    pub(crate) fn item(&self) -> Option<(ModuleId, &str)> {
        match self {
            Definition::Module(_) => None,
            Definition::Item { module, name, .. } | Definition::Enum { module, name } => Some((*module, name)),
        }
    }

    /// Whether a path can go on after this name.
    fn has_names(&self) -> bool {
        !matches!(self, Definition::Item { kind: ItemKind::Value | ItemKind::Macro, .. })
    }

    pub(crate) fn is_trait(&self) -> bool {
        matches!(self, Definition::Item { kind: ItemKind::Trait, .. })
    }
}

/// Resolves paths in these crates.
#[derive(Debug)]
pub(crate) struct Resolver<'c> {
    crates: &'c [Crate],
    /// Lookups in progress: a circle of imports ends at them.
    in_progress: HashSet<(ModuleId, String)>,
}

impl<'c> Resolver<'c> {
    pub(crate) fn new(crates: &'c [Crate]) -> Resolver<'c> {
        Resolver { crates, in_progress: HashSet::new() }
    }

    /// Returns the definitions behind a path that stands in a module. Paths to other crates than these have
    /// none.
    pub(crate) fn path(&mut self, module_id: ModuleId, path: &PathNames) -> Vec<Definition> {
        let Some((first, mut rest)) = path.names.split_first() else { return Vec::new() };
        let (krate, module) = module_id;
        let tree = &self.crates[krate];
        let module_alone = |module| vec![Definition::Module((krate, module))];
        let mut definitions = match first.as_str() {
            _ if path.is_absolute => self.external(krate, first),
            "crate" => module_alone(0),
            "Self" => return Vec::new(),
            "self" | "super" => {
                let mut at = tree.named(module);
                let mut name = first.as_str();
                loop {
                    if name == "super" {
                        let Some(parent) = tree.modules[at].parent else { return Vec::new() };
                        at = tree.named(parent);
                    }
                    match rest.split_first() {
                        Some((next, after)) if next == "super" => (name, rest) = (next, after),
                        _ => break module_alone(at),
                    }
                }
            }
            _ => self.lexical(module_id, first, rest.is_empty()),
        };
        for name in rest {
            keep_those_with_names(&mut definitions);
            definitions =
                definitions.into_iter().flat_map(|definition| self.member(module_id, definition, name)).collect();
            keep_known(&mut definitions);
        }
        definitions
    }

    /// Definitions of a macro that is called. A plain name is also looked up in the modules around the call,
    /// because macros are visible below the module that defines them.
    pub(crate) fn macro_call(&mut self, module_id: ModuleId, path: &PathNames) -> Vec<Definition> {
        let is_macro = |definition: &Definition| matches!(definition, Definition::Item { kind: ItemKind::Macro, .. });
        let mut definitions = self.path(module_id, path);
        definitions.retain(is_macro);
        let [name] = path.names.as_slice() else { return definitions };
        let (krate, mut module) = module_id;
        while definitions.is_empty() {
            let Some(parent) = self.crates[krate].modules[module].parent else { break };
            module = parent;
            definitions = self.lookup((krate, module), name, module_id);
            definitions.retain(is_macro);
        }
        definitions
    }

    /// The first name of a path: of the blocks around it, of its module, or a crate.
    fn lexical(&mut self, (krate, mut module): ModuleId, name: &str, is_last: bool) -> Vec<Definition> {
        let module_id = (krate, module);
        loop {
            let mut definitions = self.lookup((krate, module), name, module_id);
            if !is_last {
                keep_those_with_names(&mut definitions);
            }
            if !definitions.is_empty() {
                return definitions;
            }
            let at = &self.crates[krate].modules[module];
            match at.parent {
                Some(parent) if at.is_block => module = parent,
                _ => return self.external(krate, name),
            }
        }
    }

    fn external(&self, krate: usize, name: &str) -> Vec<Definition> {
        self.crates[krate].externs.get(name).map(|krate| Definition::Module((*krate, 0))).into_iter().collect()
    }

    /// The next name of a path.
    fn member(&mut self, from: ModuleId, definition: Definition, name: &str) -> Vec<Definition> {
        let Definition::Module(module_id) = definition else { return vec![definition] };
        let definitions = self.lookup(module_id, name, from);
        if !definitions.is_empty() {
            return definitions;
        }
        // A macro that this module calls defines the name, or the module re-exports an item of a foreign
        // crate.
        let bindings = self.crates[module_id.0].modules[module_id.1].bindings.get(name);
        if bindings.is_some_and(|bindings| bindings.iter().all(|binding| !binding.is_public)) {
            return Vec::new();
        }
        vec![Definition::Item { module: module_id, name: name.to_owned(), kind: ItemKind::Unknown }]
    }

    /// A name in a module, as code in another module sees it.
    fn lookup(&mut self, module_id: ModuleId, name: &str, from: ModuleId) -> Vec<Definition> {
        if !self.in_progress.insert((module_id, name.to_owned())) {
            return Vec::new();
        }
        let module = &self.crates[module_id.0].modules[module_id.1];
        let mut definitions = self.bound(module_id, name);
        if !module.bindings.contains_key(name) {
            definitions = self.through_globs(module_id, name, from);
            if definitions.is_empty() && module.macro_names.contains(name) {
                definitions.push(Definition::Item {
                    module: module_id,
                    name: name.to_owned(),
                    kind: ItemKind::Unknown,
                });
            }
        }
        self.in_progress.remove(&(module_id, name.to_owned()));
        definitions
    }

    /// A name that a module defines or imports one by one.
    fn bound(&mut self, module_id: ModuleId, name: &str) -> Vec<Definition> {
        let crates = self.crates;
        let mut all_definitions: Vec<Definition> = Vec::new();
        for binding in crates[module_id.0].modules[module_id.1].bindings.get(name).into_iter().flatten() {
            let definitions = match &binding.meaning {
                Meaning::Item(kind) => vec![Definition::Item { module: module_id, name: name.to_owned(), kind: *kind }],
                Meaning::Enum(_) => vec![Definition::Enum { module: module_id, name: name.to_owned() }],
                Meaning::Module(module) => vec![Definition::Module((module_id.0, *module))],
                Meaning::Import(path) => self.path(module_id, path),
            };
            all_definitions.extend(definitions);
        }
        all_definitions.dedup();
        all_definitions
    }

    fn through_globs(&mut self, module_id: ModuleId, name: &str, from: ModuleId) -> Vec<Definition> {
        let crates = self.crates;
        let mut all_definitions = Vec::new();
        for glob in &crates[module_id.0].modules[module_id.1].globs {
            if !glob.is_public && !self.sees_private(from, module_id) {
                continue;
            }
            for source in self.path(module_id, &glob.path) {
                let definitions = match &source {
                    Definition::Module(source) if self.offers(*source, name, module_id) => {
                        self.lookup(*source, name, module_id)
                    }
                    Definition::Enum { module, name: enum_name } if self.has_variant(*module, enum_name, name) => {
                        vec![source]
                    }
                    _ => Vec::new(),
                };
                all_definitions.extend(definitions);
            }
        }
        all_definitions.dedup();
        all_definitions
    }

    /// Whether a glob import takes a name from a module: private names are only visible inside it.
    fn offers(&self, module: ModuleId, name: &str, from: ModuleId) -> bool {
        let bindings = self.crates[module.0].modules[module.1].bindings.get(name);
        bindings.is_none_or(|bindings| {
            let is_public = bindings.iter().any(|binding| binding.is_public);
            is_public || self.sees_private(from, module)
        })
    }

    fn sees_private(&self, from: ModuleId, module: ModuleId) -> bool {
        from.0 == module.0 && self.crates[from.0].is_within(from.1, module.1)
    }

    fn has_variant(&self, (krate, module): ModuleId, name: &str, variant: &str) -> bool {
        let bindings = self.crates[krate].modules[module].bindings.get(name);
        let mut bindings = bindings.into_iter().flatten();
        bindings.any(|binding| matches!(&binding.meaning, Meaning::Enum(variants) if variants.contains(variant)))
    }
}

/// Keeps the definitions of alternatives that have the name; alternatives that lack it do not matter.
fn keep_known(definitions: &mut Vec<Definition>) {
    let is_known = |definition: &Definition| !matches!(definition, Definition::Item { kind: ItemKind::Unknown, .. });
    if definitions.iter().any(is_known) {
        definitions.retain(is_known);
    }
}

/// Removes functions from the meanings of a name that other names follow.
fn keep_those_with_names(definitions: &mut Vec<Definition>) {
    definitions.retain(Definition::has_names);
}
