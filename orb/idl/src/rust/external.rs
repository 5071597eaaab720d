//! Definitions with Rust code in another crate or module: they are referenced, and not generated again.
//!
//! All names in such a module were chosen when it was generated, from the definitions in it. So each module has
//! names of its own here, too: those of other files change nothing in them.

use std::collections::{HashMap, HashSet};
use std::path::{Component, Path};

use proc_macro2::{Ident, TokenStream};
use quote::quote;

use super::bad_option::BadOption;
use super::options::Options;
use crate::model::{DefId, Definition, DefinitionKind, Model};
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

/// The Rust code of each definition.
#[derive(Debug, Default)]
pub(super) struct Externals {
    /// The paths of the external modules.
    modules: Vec<TokenStream>,
    /// The homes of definitions other than IDL modules.
    homes: HashMap<DefId, Home>,
    /// IDL modules, and the homes of their contents: a module may be open in several.
    openings: HashSet<(DefId, Home)>,
}

impl Externals {
    /// A file belongs to the Rust module that the options give for it, and otherwise to that of the file that
    /// includes it. The main file and those of one build are generated in any case.
    pub(super) fn new(model: &Model, options: &Options) -> Self {
        let mut externals = Self::default();
        let files = externals.homes_of_files(model.sources(), options);
        for definition in model.definitions() {
            let of_file = files[definition.span.file.0 as usize];
            let home = match definition.parent.and_then(|parent| externals.homes.get(&parent)) {
                // The contents of an interface are where it is, also those in a file that it includes.
                Some(home) => *home,
                None => of_file,
            };
            if !matches!(definition.kind, DefinitionKind::Module(_)) {
                externals.homes.insert(definition.id, home);
            }
            externals.open(model, definition, home);
        }
        externals
    }

    /// The homes of source files, by their index.
    fn homes_of_files(&mut self, sources: &SourceMap, options: &Options) -> Vec<Home> {
        let mut indexes: HashMap<&str, usize> = HashMap::new();
        let mut homes: Vec<Home> = Vec::new();
        let mains = main_files(sources);
        // A file is listed after the one that includes it.
        for file in sources.files() {
            if mains.contains(file.path.as_path()) {
                homes.push(Home::Own);
                continue;
            }
            let includer = file.included_from.map(|span| homes[span.file.0 as usize]);
            homes.push(match (options.external_of(&file.path), includer) {
                (Some(module), _) => Home::External(*indexes.entry(module).or_insert_with(|| {
                    self.modules.push(module.parse().expect("checked when it was set"));
                    self.modules.len() - 1
                })),
                // Each output has the parts of the built-in file that its own files name.
                (None, Some(home)) if !file.built_in => home,
                (None, _) => Home::Own,
            });
        }
        homes
    }

    /// Notes the home of a definition for the modules around it, and for itself if it is a module.
    fn open(&mut self, model: &Model, definition: &Definition, home: Home) {
        let mut around = Some(definition);
        while let Some(it) = around {
            if matches!(it.kind, DefinitionKind::Module(_)) && !self.openings.insert((it.id, home)) {
                break;
            }
            around = it.parent.map(|parent| &model[parent]);
        }
    }

    /// The external modules, then the code being generated.
    pub(super) fn homes(&self) -> impl Iterator<Item = Home> + use<> {
        (0..self.modules.len()).map(Home::External).chain([Home::Own])
    }

    /// The home of a definition that is no IDL module.
    pub(super) fn home(&self, id: DefId) -> Home {
        self.homes.get(&id).copied().unwrap_or(Home::Own)
    }

    /// Whether a definition is there; for an IDL module, whether it or a part of its contents is.
    pub(super) fn is_in(&self, home: Home, id: DefId) -> bool {
        self.homes.get(&id).map_or_else(|| self.openings.contains(&(id, home)), |it| *it == home)
    }

    /// The path of `ident`, in `module` of the definition `id`, if that is external.
    pub(super) fn path(&self, id: DefId, module: &[Ident], ident: &Ident) -> Option<TokenStream> {
        match self.home(id) {
            Home::External(nth) => {
                let root = &self.modules[nth];
                Some(quote! { #root :: #( #module:: )* #ident })
            }
            Home::Own => None,
        }
    }
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

impl Options {
    /// The Rust module given for a file. Of several fitting names the longest applies.
    pub(super) fn external_of(&self, file: &Path) -> Option<&str> {
        self.external_index(file).map(|nth| self.externals[nth].1.as_str())
    }

    fn external_index(&self, file: &Path) -> Option<usize> {
        let fitting = self.externals.iter().enumerate().filter(|(_, (name, _))| names(name, file));
        fitting.max_by_key(|(nth, (name, _))| (name.components().count(), usize::MAX - nth)).map(|(nth, _)| nth)
    }

    /// Checks that each option `external` names one file of those that were read for `model`, or none.
    ///
    /// # Errors
    /// If one of them names different files, such as `types.idl` both `a/types.idl` and `b/types.idl`.
    pub fn check_externals(&self, model: &Model) -> Result<(), BadOption> {
        let mut claimed: HashMap<usize, &SourceFile> = HashMap::new();
        for file in model.sources().files() {
            let Some(nth) = self.external_index(&file.path) else { continue };
            let first = *claimed.entry(nth).or_insert(file);
            // One file has several paths where it is included from several folders.
            if first.text != file.text {
                let (one, other) = (first.path.display(), file.path.display());
                let given = format!("{}={}", self.externals[nth].0.display(), self.externals[nth].1);
                return Err(BadOption {
                    given,
                    expected: format!("the name of one file: it names {one} and {other}, so give more of the path")
                        .into(),
                });
            }
        }
        Ok(())
    }
}

/// Whether a name of an option is that of a file: the last components of its path, or all of them after `./`.
fn names(name: &Path, file: &Path) -> bool {
    match name.strip_prefix(Component::CurDir) {
        Ok(name) => name == file.strip_prefix(Component::CurDir).unwrap_or(file),
        Err(_) => file.ends_with(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_fitting_name_applies() {
        let mut options = ["types.idl=all", "a/types.idl=a", "./types.idl=top", "types.idl=late"].iter();
        let options = options.try_fold(Options::new(), |options, text| {
            let (file, module) = text.split_once('=').expect("two parts");
            options.external(file, module)
        });
        let options = options.expect("modules");
        for (file, module) in [
            ("b/types.idl", Some("all")),
            ("b/a/types.idl", Some("a")),
            ("types.idl", Some("top")),
            ("./types.idl", Some("top")),
            ("mytypes.idl", None),
        ] {
            assert_eq!(options.external_of(Path::new(file)), module, "{file}");
        }
    }
}
