//! Definitions with Rust code in another crate or module: they are referenced, and not generated again.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use proc_macro2::{Ident, TokenStream};
use quote::quote;

use crate::model::{DefId, DefinitionKind, Model};

/// The Rust path of each definition from a file with a module of its own.
#[derive(Debug, Default)]
pub(super) struct Externals {
    modules: HashMap<DefId, TokenStream>,
}

impl Externals {
    /// `files` are suffixes of paths of IDL files, with the Rust modules of their definitions. The main file
    /// is generated in any case.
    pub(super) fn new(model: &Model, files: &[(PathBuf, String)]) -> Self {
        let main = model.sources().files().first().map(|file| file.path.clone());
        let found = |path: &Path| {
            let (_, module) = files.iter().find(|(file, _)| path.ends_with(file))?;
            module.parse::<TokenStream>().ok()
        };
        let modules = model.definitions().filter_map(|definition| {
            // A module is at the path of its contents.
            if matches!(definition.kind, DefinitionKind::Module(_)) {
                return None;
            }
            let file = model.sources().file(definition.span.file);
            let is_main = main.as_ref() == Some(&file.path);
            let module = (!is_main).then(|| found(&file.path)).flatten()?;
            Some((definition.id, module))
        });
        Self { modules: modules.collect() }
    }

    pub(super) fn is_external(&self, id: DefId) -> bool {
        self.modules.contains_key(&id)
    }

    /// The path of `ident`, in `module` of the definition `id`, if that is external.
    pub(super) fn path(&self, id: DefId, module: &[Ident], ident: &Ident) -> Option<TokenStream> {
        let root = self.modules.get(&id)?;
        Some(quote! { #root :: #( #module:: )* #ident })
    }
}
