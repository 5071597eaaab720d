//! One file for each IDL module, for people who keep generated code and read it.
//!
//! `bank.rs` declares what stands at the top level and the modules; those are in the folder `bank`, and theirs in folders of
//! their own. Each is found by a `#[path]`, so that `bank.rs` can be a module of a program or be included in one.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use proc_macro2::Ident;
use syn::ext::IdentExt as _;
use syn::{Item, parse_quote};

use super::types::Context;
use crate::model::DefinitionKind;

/// A file of generated Rust.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// Where it goes, from the folder of the first.
    pub path: PathBuf,
    /// What it says.
    pub text: String,
}

/// The modules that have a file: paths of names from the root, with the modules around everything.
pub(super) struct Modules(HashSet<Vec<String>>);

impl Modules {
    pub(super) fn of(cx: &Context<'_>) -> Self {
        let modules = cx.model.definitions().filter(|it| matches!(it.kind, DefinitionKind::Module(_)));
        let paths = modules.map(|module| {
            let place = cx.names.place(module.id);
            let own = place.module.iter().chain([&place.ident]).map(name);
            cx.prefix.iter().cloned().chain(own).collect()
        });
        let around = (1..=cx.prefix.len()).map(|depth| cx.prefix[..depth].to_vec());
        Self(paths.chain(around).collect())
    }
}

fn name(ident: &Ident) -> String {
    ident.unraw().to_string()
}

/// Takes the contents of modules out of a file, into files of their own: the path of each, from the folder of the first, and
/// its items.
pub(super) fn split(file: &mut syn::File, stem: &str, modules: &Modules) -> Vec<(PathBuf, syn::File)> {
    let mut taken = Vec::new();
    take(&mut file.items, &[], Path::new(""), Path::new(stem), modules, &mut taken);
    taken
}

/// `folder` is that of the file with these items, and `below` the one for its modules, from there.
fn take(
    items: &mut [Item],
    around: &[String],
    folder: &Path,
    below: &Path,
    modules: &Modules,
    taken: &mut Vec<(PathBuf, syn::File)>,
) {
    for item in items {
        let Item::Mod(module) = item else { continue };
        let ident = name(&module.ident);
        let path: Vec<String> = around.iter().cloned().chain([ident.clone()]).collect();
        if !modules.0.contains(&path) {
            continue;
        }
        let Some((_, mut inner)) = module.content.take() else { continue };
        let file = below.join(&ident).with_added_extension("rs");
        let text = file.to_string_lossy().replace('\\', "/");
        module.attrs.push(parse_quote! { #[path = #text] });
        module.semi = Some(Default::default());
        let at = folder.join(below);
        take(&mut inner, &path, &at, Path::new(&ident), modules, taken);
        taken.push((
            folder.join(&file),
            syn::File { shebang: None, frontmatter: None, attrs: Vec::new(), items: inner },
        ));
    }
}
