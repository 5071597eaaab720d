//! The OMG IDL compiler: front end, checked model and the Rust back end.
//!
//! [`compile`] converts a file and its includes into a [`Model`], or into [`Diagnostics`] with errors and
//! their positions. Back ends read the model, never the text.
//!
//! ```
//! use spandrel_idl::{FrontEndOptions, MemoryFiles, compile_with};
//!
//! let files = MemoryFiles::new().with("bank.idl", "module Bank { interface Account { void close(); }; };");
//! let model = compile_with(&FrontEndOptions::default(), &files, "bank.idl".as_ref())?;
//! assert_eq!(model.lookup("Bank::Account").unwrap().repository_id, "IDL:Bank/Account:1.0");
//!
//! let files = MemoryFiles::new().with("bank.idl", "typedef lnog Amount;");
//! let diagnostics = compile_with(&FrontEndOptions::default(), &files, "bank.idl".as_ref()).unwrap_err();
//! assert!(diagnostics.to_string().contains("`lnog` is not defined"));
//! # Ok::<(), spandrel_idl::Diagnostics>(())
//! ```
//!
//! # Limits
//! One run reads regular files of at most 16 MiB in total ([`source::MAX_OCTETS`]) and 2,097,152 tokens, in
//! at most 4,096 inclusions with a depth of 200. Macros may expand to 1,048,576 tokens; modules, types and
//! parentheses may nest 64 deep; scoped names and repository ids may take 256 MiB. The first error of these
//! ends a run, and later text is not reported.
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate self as spandrel_idl;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use check::Checked;
use diagnostic::Reporter;
use intern::Interner;
use portability::Portability;
use preprocess::{Context, Parts};
use source::SourceMap;

mod ast;
mod check;
pub mod diagnostic;
mod intern;
pub mod json;
mod lexer;
mod literal;
pub mod model;
mod parse;
mod portability;
mod preprocess;
pub mod rust;
pub mod source;
#[cfg(test)]
mod tests;
mod token;

pub use diagnostic::{Diagnostic, Diagnostics, Severity};
pub use model::Model;
pub use preprocess::FrontEndOptions;
pub use source::{FileSystem, MemoryFiles, SameFile, SourceProvider};

/// Compiles an IDL file from the file system.
///
/// # Errors
/// At least one error, together with the warnings, if the file or one that it includes cannot be read or is not correct IDL.
pub fn compile(options: &FrontEndOptions, file: &Path) -> Result<Model, Diagnostics> {
    compile_with(options, &FileSystem::default(), file)
}

/// Compiles an IDL file that `provider` reads, as it does the included files.
///
/// # Errors
/// As [`compile`].
pub fn compile_with(
    options: &FrontEndOptions,
    provider: &dyn SourceProvider,
    file: &Path,
) -> Result<Model, Diagnostics> {
    let octets = provider.read(file).map_err(|error| {
        let mut reporter = Reporter::default();
        reporter.report(Diagnostic::error(format!("cannot read {}: {error}", file.display())));
        reporter.finish(Arc::default())
    })?;
    let file = &*provider.name(file);
    let mut parts = Parts::default();
    loop {
        let mut front_end = FrontEnd::default();
        let checked = front_end.run(options, provider, &parts, (file, octets.clone()));
        if parts.add(&checked.missing_in_corba, &front_end.sources) || parts.import(checked.imports_corba) {
            continue;
        }
        return front_end.finish(checked);
    }
}

/// Compiles several IDL files into one model, in this order. Each is read as if it were alone, and the
/// definitions of a file that several of them include exist once.
///
/// # Errors
/// As [`compile`]; also if a file means something else for one than for another, such as by macros that they
/// define before it. Each file may still be correct by itself.
pub fn compile_together(
    options: &FrontEndOptions,
    provider: &dyn SourceProvider,
    files: &[&Path],
) -> Result<Model, Diagnostics> {
    let provider = WithMain { provider, main: preprocess::main_text(files) };
    compile_with(options, &provider, preprocess::FILES_OF_ONE_BUILD.as_ref())
}

/// Files, and a main file that includes them.
struct WithMain<'p> {
    provider: &'p dyn SourceProvider,
    main: String,
}

impl SourceProvider for WithMain<'_> {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        if path == Path::new(preprocess::FILES_OF_ONE_BUILD) {
            return Ok(self.main.clone().into_bytes());
        }
        self.provider.read(path)
    }

    fn name(&self, path: &Path) -> PathBuf {
        self.provider.name(path)
    }
}

/// The state shared by the phases.
#[derive(Default)]
struct FrontEnd {
    sources: SourceMap,
    interner: Interner,
    reporter: Reporter,
    portability: Portability,
}

impl FrontEnd {
    fn run(
        &mut self,
        options: &FrontEndOptions,
        provider: &dyn SourceProvider,
        parts: &Parts,
        main: (&Path, Vec<u8>),
    ) -> Checked {
        let input = preprocess::preprocess(options, provider, parts, main, self.context());
        if self.reporter.has_given_up() {
            return Checked::default();
        }
        self.portability.is_wanted = options.portability_warnings;
        let items = parse::parse(input, self.context());
        if self.reporter.has_given_up() {
            return Checked::default();
        }
        check::check(&items, self.context())
    }

    fn finish(self, checked: Checked) -> Result<Model, Diagnostics> {
        let has_errors = self.reporter.has_errors();
        let sources = Arc::new(self.sources);
        let diagnostics = self.reporter.finish(sources.clone());
        if has_errors {
            return Err(diagnostics);
        }
        Ok(Model {
            sources,
            definitions: checked.definitions,
            roots: checked.roots,
            by_name: checked.by_name,
            fixed: checked.fixed,
            forward_declarations: checked.forward_declarations,
            warnings: diagnostics,
        })
    }

    fn context(&mut self) -> Context<'_> {
        Context {
            sources: &mut self.sources,
            interner: &mut self.interner,
            reporter: &mut self.reporter,
            portability: &mut self.portability,
        }
    }
}
