//! One file for each IDL module, for projects that keep generated code under version control.
//!
//! `bank.rs` contains the top-level definitions and declares the modules; their files are in the folder
//! `bank`, and nested ones in subfolders. Each is found by a `#[path]`, so that `bank.rs` can be a module of
//! a program or be included in one.

use std::path::{Path, PathBuf};

use proc_macro2::Ident;
use syn::ext::IdentExt as _;

/// One file of the generated Rust code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// Its path, relative to the folder of the first file.
    pub path: PathBuf,
    /// The whole Rust source, formatted.
    pub text: String,
}

/// The location of a file of generated Rust.
#[derive(Clone, Debug)]
pub(super) struct Location {
    /// Its folder, relative to that of the first file.
    folder: PathBuf,
    /// The folder of the files of its modules, relative to `folder`.
    below: PathBuf,
}

impl Location {
    /// The location of `stem`.rs.
    pub(super) fn first(stem: &str) -> Self {
        Self { folder: PathBuf::new(), below: PathBuf::from(stem) }
    }

    /// Returns the `#[path]` of a module's file as written in this file, its path relative to the first
    /// file's folder, and its location.
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
