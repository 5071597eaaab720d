//! Definitions with Rust code in another crate or module: they are referenced, and not generated again.
//!
//! All names in such a module were chosen when it was generated, from the definitions in it. So each module has
//! names of its own here, too: those of other files change nothing in them.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use proc_macro2::{Ident, TokenStream};
use quote::quote;

use super::external_files::ExternalFiles;
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
    pub(super) fn new(model: &Model, files: &ExternalFiles) -> Self {
        let mut externals = Self::default();
        let homes = externals.homes_of_files(model.sources(), files);
        for definition in model.definitions() {
            let of_file = homes[definition.span.file.0 as usize];
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
    fn homes_of_files(&mut self, sources: &SourceMap, files: &ExternalFiles) -> Vec<Home> {
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
            homes.push(match (files.module(&file.path), includer) {
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
