//! One file for each IDL module, for people who keep generated code and read it.
//!
//! `bank.rs` declares what stands at the top level and the modules; those are in the folder `bank`, and theirs in folders of
//! their own. Each is found by a `#[path]`, so that `bank.rs` can be a module of a program or be included in one.

use std::path::{Path, PathBuf};

use proc_macro2::Ident;
use syn::ext::IdentExt as _;

/// A file of generated Rust.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// Where it goes, from the folder of the first.
    pub path: PathBuf,
    /// What it says.
    pub text: String,
}

/// Where a file of generated Rust is.
#[derive(Clone, Debug)]
pub(super) struct Location {
    /// Its folder, from that of the first.
    folder: PathBuf,
    /// The folder of the files of its modules, from there.
    below: PathBuf,
}

impl Location {
    /// That of `stem`.rs.
    pub(super) fn first(stem: &str) -> Self {
        Self { folder: PathBuf::new(), below: PathBuf::from(stem) }
    }

    /// The path of the file of a module, as the file here is to name it; from the folder of the first; and where that is.
    pub(super) fn module(&self, ident: &Ident) -> (String, PathBuf, Self) {
        let name = ident.unraw().to_string();
        let file = self.below.join(&name).with_added_extension("rs");
        let text = file.to_string_lossy().replace('\\', "/");
        (
            text,
            self.folder.join(&file),
            Self { folder: self.folder.join(&self.below), below: Path::new(&name).to_owned() },
        )
    }
}
