//! Modules of a crate: names that they define or import, and paths that stand in their code.
//!
//! This module is plain data. [`super::parse`] fills it from source files, [`super::resolve`] follows its
//! names.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::PathBuf;

/// A library or binary with all its modules. The root is module 0.
#[derive(Debug, Default)]
pub(crate) struct Crate {
    /// The name in paths of other crates.
    pub(crate) name: String,
    /// The nearest folder that holds all files, for labels.
    pub(crate) folder: PathBuf,
    pub(crate) modules: Vec<Module>,
    pub(crate) files: Vec<PathBuf>,
    /// Crates that this one may name, as indices into the list of all crates.
    pub(crate) externs: BTreeMap<String, usize>,
    pub(crate) references: Vec<Reference>,
    pub(crate) impls: Vec<Impl>,
}

/// A module, or a block of code that has items or imports of its own.
#[derive(Debug, Default)]
pub(crate) struct Module {
    /// Below the root; empty for the root. A block has the path of the module around it.
    pub(crate) path: Vec<String>,
    pub(crate) parent: Option<usize>,
    /// Whether this is a block: names that it lacks are looked up in its parent.
    pub(crate) is_block: bool,
    /// An index into the crate's files.
    pub(crate) file: usize,
    pub(crate) bindings: HashMap<String, Vec<Binding>>,
    pub(crate) globs: Vec<Glob>,
    /// Names among the arguments of macros that expand to items: perhaps such an item's name.
    pub(crate) macro_names: HashSet<String>,
}

/// A name in a module.
#[derive(Clone, Debug)]
pub(crate) struct Binding {
    pub(crate) meaning: Meaning,
    /// Whether the item has `pub`, in any form.
    pub(crate) is_public: bool,
}

/// The thing behind a name.
#[derive(Clone, Debug)]
pub(crate) enum Meaning {
    Item(ItemKind),
    /// An enum with the names of its variants, for `use Enum::*`.
    Enum(BTreeSet<String>),
    Module(usize),
    Import(PathNames),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ItemKind {
    Type,
    Trait,
    /// A function, constant or static.
    Value,
    Macro,
    /// A name that only a macro's expansion defines.
    Unknown,
}

/// An import of all names of a module or of all variants of an enum.
#[derive(Clone, Debug)]
pub(crate) struct Glob {
    pub(crate) path: PathNames,
    pub(crate) is_public: bool,
}

/// A path as it stands in the source, without generic arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PathNames {
    /// Whether it begins with `::`.
    pub(crate) is_absolute: bool,
    pub(crate) names: Vec<String>,
}

/// A path in the code of a module.
#[derive(Debug)]
pub(crate) struct Reference {
    pub(crate) module: usize,
    pub(crate) path: PathNames,
    pub(crate) role: Role,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// A `use` without `pub`.
    Import,
    /// A `use` with `pub` in any form.
    ReExport,
    /// A path in code or among the arguments of a macro.
    Path,
    /// The name of a macro that is called.
    MacroCall,
}

/// An `impl` block for a type that a path names.
#[derive(Debug)]
pub(crate) struct Impl {
    pub(crate) module: usize,
    pub(crate) path: PathNames,
    pub(crate) is_of_trait: bool,
}

impl Crate {
    /// The nearest module that is not a block.
    pub(crate) fn named(&self, mut module: usize) -> usize {
        while self.modules[module].is_block {
            module = self.modules[module].parent.expect("a block stands in a module");
        }
        module
    }

    /// Whether a module is another one or lies inside it.
    pub(crate) fn is_within(&self, module: usize, outer: usize) -> bool {
        let mut at = Some(module);
        while let Some(module) = at {
            if module == outer {
                return true;
            }
            at = self.modules[module].parent;
        }
        false
    }

    /// The name of the top-level module that a module belongs to; `crate` for the root itself.
    pub(crate) fn top(&self, module: usize) -> &str {
        self.modules[module].path.first().map_or("crate", String::as_str)
    }

    /// The label of a file: its path below the crate's folder.
    pub(crate) fn file_label(&self, file: usize) -> String {
        let file = &self.files[file];
        file.strip_prefix(&self.folder).unwrap_or(file).display().to_string().replace('\\', "/")
    }
}
