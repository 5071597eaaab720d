//! Compiles IDL from a build script, as in:
//!
//! ```no_run
//! // build.rs
//! fn main() -> Result<(), spandrel_build::Error> {
//!     spandrel_build::compile("idl/bank.idl")
//! }
//! ```
//!
//! The script writes `bank.rs` to the build's `OUT_DIR`; one line in the program or library includes it:
//!
//! ```text
//! spandrel::include_idl!("bank"); // or: include!(concat!(env!("OUT_DIR"), "/bank.rs"));
//! ```
//!
//! Definitions in files that the IDL includes are part of the same output, which is therefore self-contained.
//!
//! Files that are compiled together share definitions: those of a file that several of them include are
//! generated once, in the output of that file if it is compiled, too, and otherwise in that of the first file
//! that includes it. A module that several files open is in the output of the first, whether they include each
//! other or not. The program includes all of these outputs in the same module:
//!
//! ```text
//! // build.rs: spandrel_build::configure().compile(&["idl/types.idl", "idl/bank.idl", "idl/teller.idl"])
//! mod idl {
//!     spandrel::include_idl!("types");
//!     spandrel::include_idl!("bank");
//!     spandrel::include_idl!("teller");
//! }
//! ```
//!
//! For a self-contained output of each file, which may go into a module of its own, compile each in a call of
//! its own.
//!
//! This crate reads and writes files and communicates with Cargo. The IDL front end and the Rust back end
//! belong to `spandrel-idl`.
#![forbid(unsafe_code)]

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::{env, fmt, fs};

use spandrel_idl::rust::{
    BadOption, Input, Options, SourceFile, generate, generate_files, generate_together, shares_definitions,
};
pub use spandrel_idl::rust::{Collocation, Sides};
use spandrel_idl::source::SourceMap;
use spandrel_idl::{Diagnostics, FileSystem, FrontEndOptions, Model, SameFile};

/// Compiles one IDL file with default settings; the path is relative to the package's root.
///
/// # Errors
/// As [`Builder::compile`].
pub fn compile(file: impl AsRef<Path>) -> Result<(), Error> {
    configure().compile(&[file])
}

/// Settings of [`compile`], to be changed by the methods of [`Builder`].
#[must_use]
pub fn configure() -> Builder {
    Builder::default()
}

/// The IDL files and options of one compilation, for build scripts.
#[derive(Clone, Debug, Default)]
pub struct Builder {
    front_end: FrontEndOptions,
    rust: Options,
    per_module: bool,
    /// Whether the IDL is for this compiler only.
    ignores_portability: bool,
    /// The error of an invalid setting; reported by `compile`, so that settings can be chained.
    refused: Option<BadOption>,
    out_dir: Option<PathBuf>,
}

impl Builder {
    /// Adds a folder to search for included files, after those added before.
    #[must_use]
    pub fn include(mut self, folder: impl Into<PathBuf>) -> Self {
        self.front_end.include_paths.push(folder.into());
        self
    }

    /// Defines a macro, as `NAME` (with the value `1`) or `NAME=TEXT`.
    #[must_use]
    pub fn define(mut self, definition: &str) -> Self {
        let (name, text) = match definition.split_once('=') {
            Some((name, text)) => (name, Some(text.to_owned())),
            None => (definition, None),
        };
        self.front_end.defines.push((name.to_owned(), text));
        self
    }

    /// Sets another path of the runtime than `::spandrel::generated`, for crates that re-export it.
    #[must_use]
    pub fn runtime(self, path: &str) -> Self {
        self.choose(|rust| rust.runtime(path))
    }

    /// Whether references have asynchronous methods; see [`Options::asynchronous_client`].
    #[must_use]
    pub fn asynchronous_client(self, wanted: bool) -> Self {
        self.choose(|rust| Ok(rust.asynchronous_client(wanted)))
    }

    /// Whether there are reply handlers and pollers; see [`Options::ami`].
    #[must_use]
    pub fn ami(self, wanted: bool) -> Self {
        self.choose(|rust| Ok(rust.ami(wanted)))
    }

    /// Whether there are asynchronous servants; see [`Options::asynchronous_server`].
    #[must_use]
    pub fn asynchronous_server(self, wanted: bool) -> Self {
        self.choose(|rust| Ok(rust.asynchronous_server(wanted)))
    }

    /// Sets the Rust type of a `native` type; see [`Options::native`].
    #[must_use]
    pub fn native(self, scoped_name: &str, ty: &str) -> Self {
        self.choose(|rust| rust.native(scoped_name, ty))
    }

    /// Makes the padding of these structs explicit, so that sequences of them are sent without a copy; see
    /// [`Options::pad`].
    #[must_use]
    pub fn pad<'n>(self, scoped_names: impl IntoIterator<Item = &'n str>) -> Self {
        self.choose(|rust| Ok(rust.pad(scoped_names)))
    }

    /// Makes the padding of all structs explicit where possible; see [`Options::pad_all`].
    #[must_use]
    pub fn pad_all(self) -> Self {
        self.choose(|rust| Ok(rust.pad_all()))
    }

    /// Generates one side of interfaces only; see [`Sides`].
    #[must_use]
    pub fn sides(self, sides: Sides) -> Self {
        self.choose(|rust| Ok(rust.sides(sides)))
    }

    /// Adds this derive macro to the type of this scoped name; see [`Options::derive`].
    #[must_use]
    pub fn derive(self, scoped_name: &str, path: &str) -> Self {
        self.choose(|rust| rust.derive(Some(scoped_name), path))
    }

    /// Adds this derive macro to all structs, unions, exceptions and enums; see [`Options::derive`].
    #[must_use]
    pub fn derive_all(self, path: &str) -> Self {
        self.choose(|rust| rust.derive(None, path))
    }

    /// Names the module with the Rust code of an included file; see [`Options::external`].
    #[must_use]
    pub fn external(self, file: impl AsRef<Path>, module: &str) -> Self {
        self.choose(|rust| rust.external(file, module))
    }

    /// Puts all output into modules; see [`Options::prefix`].
    #[must_use]
    pub fn prefix(self, modules: &str) -> Self {
        self.choose(|rust| rust.prefix(modules))
    }

    /// Sets the strategy of stubs for calls to objects of the same ORB; see [`Options::collocation`].
    #[must_use]
    pub fn collocation(self, strategy: Collocation) -> Self {
        self.choose(|rust| Ok(rust.collocation(strategy)))
    }

    /// Generates ties for interfaces with bases; see [`Options::ties`].
    #[must_use]
    pub fn ties(self) -> Self {
        self.choose(|rust| Ok(rust.ties()))
    }

    /// Gives the methods of servant traits a default that raises NO_IMPLEMENT; see
    /// [`Options::servant_defaults`].
    #[must_use]
    pub fn servant_defaults(self) -> Self {
        self.choose(|rust| Ok(rust.servant_defaults()))
    }

    /// Writes a file for each IDL module: `bank.rs`, and the modules in the folder `bank`.
    #[must_use]
    pub fn per_module(mut self) -> Self {
        self.per_module = true;
        self
    }

    fn choose(mut self, choice: impl FnOnce(Options) -> Result<Options, BadOption>) -> Self {
        match choice(self.rust.clone()) {
            Ok(rust) => self.rust = rust,
            // The first error is reported.
            Err(refused) => _ = self.refused.get_or_insert(refused),
        }
        self
    }

    /// Chooses the marshaling engine, as [`Options::marshal`] does: `"interpretive"`, or
    /// `"Bank::Account=adaptive"`.
    #[must_use]
    pub fn marshal(self, choice: &str) -> Self {
        self.choose(|rust| rust.marshal(choice))
    }

    /// Whether constructs that `omniidl` of omniORB 4.3 does not read are reported as warnings, once in each file (default:
    /// yes).
    #[must_use]
    pub fn portability_warnings(mut self, wanted: bool) -> Self {
        self.ignores_portability = !wanted;
        self
    }

    /// Writes to this folder, which must exist, instead of the build's `OUT_DIR`.
    #[must_use]
    pub fn out_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.out_dir = Some(folder.into());
        self
    }

    /// Compiles each file to Rust: `idl/bank.idl` to `bank.rs`. Files that include the same file share its
    /// definitions, and those that open the same IDL module share its Rust module; then the program includes all outputs in
    /// the same module. Makes Cargo run the build script again after a change of a file that was read, and forwards
    /// warnings.
    ///
    /// # Errors
    /// [`Error`] with a readable text: return it from the build script's `main`.
    pub fn compile(&self, files: &[impl AsRef<Path>]) -> Result<(), Error> {
        self.compile_telling(files, &mut io::stdout())
    }

    fn compile_telling(&self, files: &[impl AsRef<Path>], cargo: &mut dyn Write) -> Result<(), Error> {
        let out_dir = match &self.out_dir {
            Some(folder) => folder.clone(),
            None => env::var_os("OUT_DIR").map(PathBuf::from).ok_or(Error::NoOutDir)?,
        };
        if let Some(refused) = &self.refused {
            return Err(Error::Option(refused.clone()));
        }
        let sources = FileSystem::with_names(files).map_err(Error::SameFile)?;
        let mut inputs = Vec::new();
        if let Err(error) = self.read_all(files, &sources, &out_dir, &mut inputs, cargo) {
            // The warnings may tell more about it.
            inputs.iter().try_for_each(|(_, _, model)| report_warnings(cargo, model.warnings()))?;
            return Err(error);
        }
        for (_, _, model) in &inputs {
            report_warnings(cargo, &model.warnings_beside(inputs.iter().map(|(_, _, other)| other)))?;
        }
        let mut modules: BTreeMap<Option<&str>, Vec<Input<'_>>> = BTreeMap::new();
        for (file, stem, model) in &inputs {
            modules.entry(self.rust.external_module(file)).or_default().push(Input { file, stem, model });
        }
        let mut outputs = Vec::new();
        for inputs in modules.values() {
            outputs.extend(self.outputs(inputs, &sources, cargo)?);
        }
        outputs.iter().try_for_each(|file| write_if_changed(&out_dir.join(&file.path), &file.text))
    }

    /// The outputs of files for the same Rust module.
    fn outputs(
        &self,
        inputs: &[Input<'_>],
        sources: &FileSystem,
        cargo: &mut dyn Write,
    ) -> Result<Vec<SourceFile>, Error> {
        if shares_definitions(inputs, &self.rust) {
            match self.generate_together(inputs, sources)? {
                Ok(outputs) => return Ok(outputs),
                Err(reason) => writeln!(
                    cargo,
                    "cargo:warning=the files of this call have definitions in common and no common meaning, so that \
                     each output has all that its file includes; include each output in a module of its own: {reason}"
                )
                .map_err(Error::Cargo)?,
            }
        }
        let mut outputs = Vec::new();
        for Input { stem, model, .. } in inputs {
            if self.per_module {
                outputs.extend(generate_files(model, &self.rust, stem));
            } else {
                outputs.push(SourceFile { path: output_name(stem), text: generate(model, &self.rust) });
            }
        }
        Ok(outputs)
    }

    /// Compiles each file by itself, and adds it to `inputs` with the stem of its output.
    fn read_all<'f>(
        &self,
        files: &'f [impl AsRef<Path>],
        sources: &FileSystem,
        out_dir: &Path,
        inputs: &mut Vec<(&'f Path, Cow<'f, str>, Model)>,
        cargo: &mut dyn Write,
    ) -> Result<(), Error> {
        let mut by_output: BTreeMap<PathBuf, &Path> = BTreeMap::new();
        for file in files {
            let file = file.as_ref();
            let stem = file.file_stem().ok_or_else(|| Error::NotAFile(file.to_owned()))?.to_string_lossy();
            let output = out_dir.join(output_name(&stem));
            if let Some(first) = by_output.insert(output.clone(), file) {
                return Err(Error::SameOutput { files: [first, file].map(Path::to_owned), output });
            }
            let model = self.model(file, sources, cargo)?;
            self.rust.check_externals(&model).map_err(Error::Option)?;
            inputs.push((file, stem, model));
        }
        Ok(())
    }

    /// The outputs of files that share definitions, or the reason, in one line, why they have no common meaning.
    fn generate_together(
        &self,
        inputs: &[Input<'_>],
        sources: &FileSystem,
    ) -> Result<Result<Vec<SourceFile>, String>, Error> {
        let files: Vec<&Path> = inputs.iter().map(|input| input.file).collect();
        let model = match spandrel_idl::compile_together(&self.front_end, sources, &files) {
            Ok(model) => model,
            Err(errors) => return Ok(Err(errors.in_line())),
        };
        self.rust.check_externals(&model).map_err(Error::Option)?;
        let outputs = generate_together(inputs, &model, &self.rust, self.per_module);
        Ok(outputs.map_err(|error| error.to_string()))
    }

    fn model(&self, file: &Path, sources: &FileSystem, cargo: &mut dyn Write) -> Result<Model, Error> {
        let front_end = FrontEndOptions { portability_warnings: !self.ignores_portability, ..self.front_end.clone() };
        let result = spandrel_idl::compile_with(&front_end, sources, file);
        let sources = match &result {
            Ok(model) => model.sources(),
            Err(diagnostics) => diagnostics.sources(),
        };
        watch_sources(cargo, file, sources).map_err(Error::Cargo)?;
        result.map_err(Error::Idl)
    }
}

/// Makes Cargo watch the files that were read.
fn watch_sources(cargo: &mut dyn Write, file: &Path, sources: &SourceMap) -> io::Result<()> {
    // For a path that does not exist Cargo would run the script each time.
    let read = sources.files().iter().filter(|source| !source.built_in).map(|source| source.path.as_path());
    let watched: BTreeSet<&Path> = read.chain([file]).collect();
    watched.iter().try_for_each(|path| writeln!(cargo, "cargo:rerun-if-changed={}", path.display()))
}

fn report_warnings(cargo: &mut dyn Write, warnings: &Diagnostics) -> Result<(), Error> {
    let text = warnings.to_string();
    text.lines().try_for_each(|line| writeln!(cargo, "cargo:warning={line}")).map_err(Error::Cargo)
}

/// The file name of the output for an IDL file without its extension.
fn output_name(stem: &str) -> PathBuf {
    Path::new(stem).with_added_extension("rs")
}

/// Leaves an unchanged file untouched, so that Cargo need not compile it again.
fn write_if_changed(target: &Path, text: &str) -> Result<(), Error> {
    if fs::read(target).is_ok_and(|old| old == text.as_bytes()) {
        return Ok(());
    }
    let folder = target.parent().map_or(Ok(()), fs::create_dir_all);
    folder.and_then(|()| fs::write(target, text)).map_err(|source| Error::Write { path: target.to_owned(), source })
}

/// The reason for which IDL was not compiled to Rust.
///
/// The debug form is the same as the display form, because it is what a build script's `main` prints.
#[non_exhaustive]
pub enum Error {
    /// The IDL cannot be read or is incorrect; the text shows the lines with the errors.
    Idl(Diagnostics),
    /// The output cannot be written.
    Write {
        /// The output that was to be written.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// `OUT_DIR` is not set, so this is not a build script, and no other folder was given.
    NoOutDir,
    /// A file is given twice, perhaps by different paths.
    SameFile(SameFile),
    /// Two files have the same name in different folders, and so the same output.
    SameOutput {
        /// The files, in the order in which they were given.
        files: [PathBuf; 2],
        /// The output of both.
        output: PathBuf,
    },
    /// The path of an IDL file has no file name.
    NotAFile(PathBuf),
    /// A setting of [`Builder`] with an invalid value, or one that does not fit the files.
    Option(BadOption),
    /// Standard output, which Cargo reads, cannot be written.
    Cargo(io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Idl(diagnostics) => write!(f, "{diagnostics}"),
            Self::Write { path, .. } => write!(f, "cannot write {}", path.display()),
            Self::NoOutDir => {
                f.write_str("OUT_DIR is not set: call this from a build script, or set a folder with `out_dir`")
            }
            Self::SameFile(same) => same.fmt(f),
            Self::SameOutput { files: [first, second], output } => write!(
                f,
                "{} and {} have the same output, {}: compile one of them in a call of its own with another folder \
                 (`out_dir`), or rename one",
                first.display(),
                second.display(),
                output.display()
            ),
            Self::NotAFile(path) => write!(f, "`{}` does not name a file", path.display()),
            Self::Option(error) => write!(f, "{error}"),
            Self::Cargo(_) => f.write_str("cannot write to standard output"),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Cargo prints `Error: ` before it; the diagnostics of a file begin on a line of their own.
        write!(f, "\n{}", spandrel_error::report(self))
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Write { source: cause, .. } | Self::Cargo(cause) => Some(cause),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
