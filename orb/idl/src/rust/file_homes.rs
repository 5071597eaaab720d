//! The Rust code to which each source file belongs: that being generated, or a module of the option `external`.
//!
//! The files that are compiled and those of an option are *roots*. Any other file belongs to a root that includes
//! it. Where several do, in different modules, it belongs to the module whose roots the others include: each of
//! the others is compiled with the same options, and finds the file's definitions there, too. So the order of
//! `#include` directives has no influence. A file that is not read again (by an include guard, for example) counts as
//! included there.

use std::collections::{HashMap, HashSet};
use std::mem::replace;
use std::path::Path;

use super::bad_option::BadOption;
use super::external_files::ExternalFiles;
use crate::model::{Definition, DefinitionKind, Model};
use crate::preprocess::FILES_OF_ONE_BUILD;
use crate::source::{FileId, SourceFile, SourceMap};

/// The Rust code to which a definition belongs: that being generated, or an external module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Home {
    /// An external module, by its index.
    External(usize),
    /// The code being generated.
    Own,
}

impl Home {
    /// Its index in tables of all homes.
    fn number(self) -> usize {
        match self {
            Self::Own => 0,
            Self::External(nth) => nth + 1,
        }
    }
}

/// The home of each source file.
#[derive(Debug)]
pub(super) struct FileHomes<'o> {
    /// The paths of the external modules, as given.
    pub(super) modules: Vec<&'o str>,
    homes: Vec<Home>,
    /// The external modules that are also those of a file being compiled: their files are compiled in the same call.
    own_modules: Vec<usize>,
    /// The homes of a file that would be generated in each of them.
    undecided: HashMap<FileId, Vec<Home>>,
    /// By home: the files that are read when it is generated, without those that have another root.
    read: Vec<Vec<bool>>,
    /// By home: itself, and the homes whose files its own include.
    included: Vec<Vec<bool>>,
    /// By home: one of its roots.
    roots: Vec<Option<FileId>>,
}

impl<'o> FileHomes<'o> {
    pub(super) fn new(sources: &SourceMap, externals: &'o ExternalFiles) -> Self {
        let mut modules: Vec<&str> = Vec::new();
        let mains = main_files(sources);
        let home_of_root = |file: &SourceFile| {
            if mains.contains(file.path.as_path()) {
                return Some(Home::Own);
            }
            let module = externals.module(&file.path)?;
            let nth = modules.iter().position(|it| *it == module).unwrap_or_else(|| {
                modules.push(module);
                modules.len() - 1
            });
            Some(Home::External(nth))
        };
        let root_homes: Vec<Option<Home>> = sources.files().iter().map(home_of_root).collect();
        let graph = Graph::new(sources, &root_homes);
        let all: Vec<Home> = [Home::Own].into_iter().chain((0..modules.len()).map(Home::External)).collect();
        let (read, neighbours): (Vec<_>, Vec<_>) = all.iter().map(|home| graph.walk(*home, all.len())).unzip();
        let included = (0..all.len()).map(|home| closure(home, &neighbours)).collect();
        // The first file of a build is not that of a user.
        let root = |home: &Home| root_homes.iter().rposition(|root| *root == Some(*home)).map(|nth| FileId(nth as u32));
        let roots = all.iter().map(root).collect();
        let own_modules = modules.iter().enumerate().filter(|(_, module)| {
            mains.iter().any(|main| externals.module(main).is_some_and(|own_module| own_module == **module))
        });
        let own_modules = own_modules.map(|(nth, _)| nth).collect();
        let homes = Vec::new();
        let mut file_homes = Self { modules, homes, own_modules, undecided: HashMap::new(), read, included, roots };
        for (nth, file) in sources.files().iter().enumerate() {
            let home = match root_homes[nth] {
                Some(home) => home,
                // Each output has the parts of the built-in file that its own files name.
                None if file.built_in => Home::Own,
                None => file_homes.decide(FileId(nth as u32), &all),
            };
            file_homes.homes.push(home);
        }
        file_homes
    }

    pub(super) fn home(&self, file: FileId) -> Home {
        self.homes[file.0 as usize]
    }

    /// Whether two homes are one Rust module.
    fn is_same(&self, home: Home, other: Home) -> bool {
        let is_own = |home: Home| match home {
            Home::Own => true,
            Home::External(nth) => self.own_modules.contains(&nth),
        };
        home == other || (is_own(home) && is_own(other))
    }

    fn decide(&mut self, file: FileId, all: &[Home]) -> Home {
        let readers: Vec<Home> = all.iter().copied().filter(|home| self.read[home.number()][file.0 as usize]).collect();
        let includes = |home: Home, other: Home| self.included[home.number()][other.number()];
        let is_behind = |home: Home| readers.iter().any(|other| includes(home, *other) && !includes(*other, home));
        let candidates: Vec<Home> = readers.iter().copied().filter(|home| !is_behind(*home)).collect();
        let home = candidates.first().copied().unwrap_or(Home::Own);
        if !candidates.iter().all(|candidate| self.is_same(*candidate, home)) {
            self.undecided.insert(file, candidates);
        }
        home
    }

    /// Checks that each definition has one Rust type.
    ///
    /// # Errors
    /// If a definition would be generated in two modules, or is declared in an external file that does not include its
    /// definition.
    pub(super) fn check(&self, model: &Model, externals: &ExternalFiles) -> Result<(), BadOption> {
        let sources = model.sources();
        let path = |file: FileId| sources.file(file).path.display();
        for definition in model.definitions().filter(|definition| is_outermost(model, definition)) {
            let Some(homes) = self.undecided.get(&definition.span.file) else { continue };
            let outputs: Vec<String> = homes.iter().map(|home| self.output(*home)).collect();
            let roots: Vec<FileId> = homes.iter().filter_map(|home| self.roots[home.number()]).collect();
            let names: Vec<String> = roots.iter().map(|root| path(*root).to_string()).collect();
            let value = roots.iter().find_map(|root| externals.option_text(&sources.file(*root).path));
            let (name, outputs, names) = (&definition.scoped_name, outputs.join(" and "), names.join(" and "));
            let file = path(definition.span.file);
            return Err(BadOption {
                value: value.unwrap_or_default(),
                expected: format!(
                    "enough: `{name}` of {file} would be generated {outputs}, since {names} include it; name {file} \
                     by an `external` of its own"
                )
                .into(),
            });
        }
        for (id, file) in &model.forward_declarations {
            let (definition, home) = (&model[*id], self.home(*file));
            let Home::External(nth) = home else { continue };
            let defined_in = definition.span.file;
            if definition.is_forward_only() || self.is_same(self.home(defined_in), home) || self.reads(home, defined_in)
            {
                continue;
            }
            let (name, module) = (&definition.scoped_name, self.modules[nth]);
            let (declared_in, defined_in) = (path(*file), path(defined_in));
            let root = self.roots[home.number()].map(|root| &sources.file(root).path);
            return Err(BadOption {
                value: root.and_then(|path| externals.option_text(path)).unwrap_or_default(),
                expected: format!(
                    "possible: {declared_in} declares `{name}` and {defined_in} defines it, so that {module} has \
                     another type of this name; give both files the same module and compile them in one call of a \
                     build script, or include {defined_in} in {declared_in}"
                )
                .into(),
            });
        }
        Ok(())
    }

    /// Whether a file is read when this home is generated.
    fn reads(&self, home: Home, file: FileId) -> bool {
        let included = self.included[home.number()].iter().zip(&self.read);
        included.into_iter().any(|(is_included, read)| *is_included && read[file.0 as usize])
    }

    fn output(&self, home: Home) -> String {
        match home {
            Home::Own => "in this output".to_owned(),
            Home::External(nth) => format!("in {}", self.modules[nth]),
        }
    }
}

/// The inclusions of files.
struct Graph<'r> {
    root_homes: &'r [Option<Home>],
    /// By file: the files that it includes.
    includes: Vec<Vec<FileId>>,
}

impl<'r> Graph<'r> {
    fn new(sources: &SourceMap, root_homes: &'r [Option<Home>]) -> Self {
        let mut includes = vec![Vec::new(); root_homes.len()];
        for (includer, file) in sources.inclusions() {
            includes[includer.0 as usize].push(file);
        }
        Self { root_homes, includes }
    }

    /// The files that are read from the roots of a home, without those of other roots, and the homes of these.
    fn walk(&self, home: Home, homes: usize) -> (Vec<bool>, Vec<usize>) {
        let (mut read, mut is_neighbour) = (vec![false; self.includes.len()], vec![false; homes]);
        let mut next: Vec<usize> = (0..read.len()).filter(|file| self.root_homes[*file] == Some(home)).collect();
        while let Some(file) = next.pop() {
            if replace(&mut read[file], true) {
                continue;
            }
            for included in self.includes[file].iter().map(|file| file.0 as usize) {
                match self.root_homes[included] {
                    Some(other) => is_neighbour[other.number()] = true,
                    None => next.push(included),
                }
            }
        }
        (read, (0..homes).filter(|other| is_neighbour[*other]).collect())
    }
}

/// A home and all that can be reached from it.
fn closure(home: usize, neighbours: &[Vec<usize>]) -> Vec<bool> {
    let mut reached = vec![false; neighbours.len()];
    let mut next = vec![home];
    while let Some(home) = next.pop() {
        if !replace(&mut reached[home], true) {
            next.extend(&neighbours[home]);
        }
    }
    reached
}

/// Whether the file of a definition decides about its home: other definitions are where their parents are.
fn is_outermost(model: &Model, definition: &Definition) -> bool {
    let is_module = |definition: &Definition| matches!(definition.kind, DefinitionKind::Module(_));
    !is_module(definition) && definition.parent.is_none_or(|parent| is_module(&model[parent]))
}

/// The main file, or the files that are compiled together.
fn main_files(sources: &SourceMap) -> HashSet<&Path> {
    let is_build = sources.files().first().is_some_and(|main| main.path == Path::new(FILES_OF_ONE_BUILD));
    let is_main = |file: &&SourceFile| match file.included_from {
        None => true,
        Some(span) => is_build && span.file == FileId(0),
    };
    sources.files().iter().filter(is_main).map(|file| file.path.as_path()).collect()
}
