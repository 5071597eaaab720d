//! The OMG IDL compiler: front end, checked model and the Rust back end.
//!
//! [`compile`] turns a file and what it includes into a [`Model`], or into [`Diagnostics`] that say what is wrong and
//! where. Back ends read the model and never the text.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use source::{SourceFile, SourceMap};

pub mod diagnostic;
pub mod model;
pub mod rust;
pub mod source;

pub use diagnostic::{Diagnostic, Diagnostics, Severity};
pub use model::Model;
pub use source::{FileSystem, MemoryFiles, SourceProvider};

/// What the front end can be told besides the file to read.
#[derive(Clone, Debug, Default)]
pub struct FrontEndOptions {
    /// Folders searched for included files, in this order, after the folder of the including file (for `#include "…"`).
    pub include_paths: Vec<PathBuf>,
    /// Macros defined before the first line: name and text, as `-DNAME=TEXT`. Without a text it is `1`.
    pub defines: Vec<(String, Option<String>)>,
}

/// Compiles an IDL file from the file system.
///
/// # Errors
/// At least one error, together with the warnings, if the file or one that it includes cannot be read or is not correct IDL.
pub fn compile(options: &FrontEndOptions, file: &Path) -> Result<Model, Diagnostics> {
    compile_with(options, &FileSystem, file)
}

/// Compiles an IDL file from wherever `provider` has it.
///
/// # Errors
/// As [`compile`].
pub fn compile_with(
    _options: &FrontEndOptions,
    provider: &dyn SourceProvider,
    file: &Path,
) -> Result<Model, Diagnostics> {
    let mut diagnostics = Diagnostics::default();
    let mut sources = SourceMap::default();
    match provider.read(file) {
        Ok(octets) => {
            sources.add(SourceFile {
                path: file.to_owned(),
                text: String::from_utf8_lossy(&octets).into_owned(),
                included_from: None,
            });
            diagnostics
                .list
                .push(Diagnostic::error("the front end is not complete"));
        }
        Err(error) => {
            let message = format!("cannot read {}: {error}", file.display());
            diagnostics.list.push(Diagnostic::error(message));
        }
    }
    diagnostics.sources = Arc::new(sources);
    Err(diagnostics)
}
