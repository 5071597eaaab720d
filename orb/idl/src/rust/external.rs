//! Definitions with Rust code in another crate or module: they are referenced, and not generated again.
//!
//! All names in such a module were chosen when it was generated, from the definitions in it. So each module has
//! names of its own here, too: those of other files change nothing in them.

use std::collections::{HashMap, HashSet};

use proc_macro2::{Ident, TokenStream};
use quote::quote;

use super::external_files::ExternalFiles;
use super::file_homes::{FileHomes, Home};
use crate::model::{DefId, Definition, DefinitionKind, Model};

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
    pub(super) fn new(model: &Model, files: &ExternalFiles) -> Self {
        let file_homes = FileHomes::new(model.sources(), files);
        let modules = file_homes.modules.iter().map(|module| module.parse().expect("checked when it was set"));
        let mut externals = Self { modules: modules.collect(), ..Self::default() };
        for definition in model.definitions() {
            let home = match definition.parent.and_then(|parent| externals.homes.get(&parent)) {
                // The contents of an interface are where it is, also those in a file that it includes.
                Some(home) => *home,
                None => file_homes.home(definition.span.file),
            };
            if !matches!(definition.kind, DefinitionKind::Module(_)) {
                externals.homes.insert(definition.id, home);
            }
            externals.open(model, definition, home);
        }
        externals
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

    /// Whether a definition that is no IDL module is part of the code being generated.
    pub(super) fn is_own(&self, id: DefId) -> bool {
        self.home(id) == Home::Own
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
