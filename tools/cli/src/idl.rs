//! `spandrel idl`: the IDL compiler.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use spandrel_idl::rust::{Collocation, Options, Sides, generate, generate_files};
use spandrel_idl::{Diagnostics, FileSystem, FrontEndOptions, Model, json};

use crate::client_args::CallArgs;
use crate::common;

mod depfile;
pub(crate) mod repository;

use depfile::Depfile;

const EXAMPLES: &str = "\
Examples:
  spandrel idl bank.idl -o src/generated
  spandrel idl -I /usr/share/idl -D DEBUG -D LIMIT=10 bank.idl teller.idl -o out
  spandrel idl bank.idl --stdout | less
  spandrel idl bank.idl --marshal interpretive --marshal Bank::Account=compiled
  spandrel idl --check *.idl
  spandrel idl --to-repository=corbaloc::ir.example:2809/InterfaceRepository bank.idl
  spandrel idl --from-repository Bank > bank.idl
  spandrel idl bank.idl --dump json | jq '.definitions[].name'

Programs built by Cargo need none of this: let their build script call spandrel-build.";

/// Compile IDL to Rust.
///
/// FILE.idl becomes FILE.rs. Errors are shown with their lines. Definitions of included files become part of
/// the same output.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The IDL files; with --from-repository a scope, such as Bank::Account
    #[arg(required_unless_present = "from_repository", value_name = "FILE.idl")]
    files: Vec<PathBuf>,
    /// The folder for the Rust files; created if missing
    #[arg(short, long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
    /// Print the Rust code instead of writing files
    #[arg(long, conflicts_with = "out")]
    stdout: bool,
    /// Only check for errors: generate nothing
    #[arg(long, conflicts_with_all = ["out", "stdout", "dump", "depfile"])]
    check: bool,
    /// Print what the files define instead of generating code
    #[arg(long, value_name = "FORM", conflicts_with_all = ["out", "stdout", "depfile"])]
    dump: Option<Form>,
    /// Enter what the files define into an interface repository instead of generating code
    #[arg(
        long, value_name = "URL", num_args = 0..=1, require_equals = true,
        default_missing_value = repository::DEFAULT, conflicts_with_all = ["out", "stdout", "check", "dump", "depfile"]
    )]
    to_repository: Option<String>,
    /// Print what an interface repository contains, as IDL
    #[arg(
        long, value_name = "URL", num_args = 0..=1, require_equals = true,
        default_missing_value = repository::DEFAULT,
        conflicts_with_all = ["out", "stdout", "check", "dump", "depfile", "to_repository"]
    )]
    from_repository: Option<String>,
    #[command(flatten)]
    call: CallArgs,
    /// Write the source files of each Rust file to this file, as a rule of make
    #[arg(long, value_name = "FILE", conflicts_with = "stdout")]
    depfile: Option<PathBuf>,
    /// A folder with included files
    #[arg(short = 'I', long = "include", value_name = "DIR")]
    include: Vec<PathBuf>,
    /// Accept constructs that omniORB's IDL compiler does not read, without a warning
    #[arg(long)]
    no_portability: bool,
    /// Define a macro
    #[arg(short = 'D', long = "define", value_name = "NAME[=TEXT]")]
    define: Vec<String>,
    /// The Rust path of the module that generated code uses
    #[arg(long, value_name = "PATH", default_value = "::spandrel::generated")]
    runtime: String,
    /// Make the padding of these structs explicit, so that sequences of them are sent without copying; `all`
    /// for every struct that allows it
    #[arg(long, value_name = "STRUCT,..", value_delimiter = ',')]
    pad: Vec<String>,
    /// Omit the asynchronous methods of references
    #[arg(long)]
    no_async_client: bool,
    /// Add the standard callback and polling operations (sendc_, sendp_), reply handlers and pollers
    #[arg(long)]
    ami: bool,
    /// Add servants whose methods return futures
    #[arg(long)]
    async_server: bool,
    /// The marshaling engine: compiled, interpretive or adaptive, for everything or for named definitions
    #[arg(long, value_name = "[NAME=]ENGINE")]
    marshal: Vec<String>,
    /// Write a file for each IDL module, in a folder beside FILE.rs
    #[arg(long, conflicts_with_all = ["stdout", "depfile"])]
    per_module: bool,
    /// Write references only: no servant traits, no skeletons
    #[arg(long, conflicts_with = "server_only")]
    client_only: bool,
    /// Write servant traits and skeletons, and references without operations
    #[arg(long)]
    server_only: bool,
    /// Derive a macro too, for a type or for all
    #[arg(long, value_name = "[NAME=]MACRO")]
    derive: Vec<String>,
    /// The Rust module with the definitions of an included file: they are named there and not generated again
    #[arg(long, value_name = "FILE.idl=PATH")]
    external: Vec<String>,
    /// Put everything into these modules, such as control::generated
    #[arg(long, value_name = "MODULES")]
    prefix: Option<String>,
    /// Write ties: servants made of several objects, for interfaces with bases
    #[arg(long)]
    ties: bool,
    /// Give the methods of servant traits a default that raises NO_IMPLEMENT
    #[arg(long)]
    servant_defaults: bool,
    /// How stubs call objects of the same ORB: through-poa, or direct where that is equivalent
    #[arg(long, value_name = "STRATEGY", value_parser = ["direct", "through-poa"], default_value = "through-poa")]
    collocation: String,
    /// The Rust type for a native type
    #[arg(long, value_name = "NAME=TYPE")]
    native: Vec<String>,
}

/// The format of `--dump`.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Form {
    /// The whole model; the documentation of spandrel-idl's module json describes it
    Json,
    /// A line for each definition: kind, name, repository id, and contents
    Text,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        if let Some(url) = &self.from_repository {
            return repository::print(&self.call, url, &self.files);
        }
        let options = self.options().map_err(common::as_usage)?;
        self.check_outputs()?;
        let repository = self.to_repository.as_ref().map(|url| repository::Filler::new(&self.call, url)).transpose()?;
        let mut failed = 0;
        let mut depfile = Depfile::default();
        for file in &self.files {
            match spandrel_idl::compile(&self.front_end(), file) {
                Ok(model) => {
                    show(model.warnings());
                    if let Some(repository) = &repository {
                        repository.fill(file, model)?;
                        continue;
                    }
                    options.check_externals(&model).context("cannot use --external")?;
                    self.output(file, &model, &options)?;
                    if self.depfile.is_some() {
                        depfile.rule(&self.path_for(file)?, model.sources());
                    }
                }
                Err(diagnostics) => {
                    show(&diagnostics);
                    failed += 1;
                }
            }
        }
        if let Some(path) = &self.depfile {
            fs::write(path, depfile.text()).with_context(|| format!("cannot write {}", path.display()))?;
        }
        match failed {
            0 => Ok(()),
            _ => bail!(
                "{failed} of {} could not be compiled",
                if self.files.len() == 1 { "1 file".to_owned() } else { format!("{} files", self.files.len()) }
            ),
        }
    }

    fn options(&self) -> anyhow::Result<Options> {
        let options = Options::new().runtime(&self.runtime).context("cannot use --runtime")?;
        let options = self.marshal.iter().try_fold(options, |options, choice| options.marshal(choice));
        let options = options.context("cannot use --marshal")?;
        let mut options =
            options.asynchronous_client(!self.no_async_client).asynchronous_server(self.async_server).ami(self.ami);
        options = if self.pad.iter().any(|name| name == "all") {
            options.pad_all()
        } else {
            options.pad(self.pad.iter().map(String::as_str))
        };
        for derive in &self.derive {
            let (name, path) =
                derive.split_once('=').map_or((None, derive.as_str()), |(name, path)| (Some(name), path));
            options = options.derive(name, path).context("cannot use --derive")?;
        }
        for external in &self.external {
            let (file, module) = external.split_once('=').with_context(|| {
                format!(
                    "invalid value `{external}` for --external: expected FILE.idl=PATH, such as base.idl=crate::base"
                )
            })?;
            options = options.external(file, module).context("cannot use --external")?;
        }
        for native in &self.native {
            let (name, ty) = native.split_once('=').with_context(|| {
                format!("invalid value `{native}` for --native: expected NAME=TYPE, such as Handle=crate::Handle")
            })?;
            options = options.native(name, ty).context("cannot use --native")?;
        }
        if let Some(prefix) = &self.prefix {
            options = options.prefix(prefix).context("cannot use --prefix")?;
        }
        if self.ties {
            options = options.ties();
        }
        if self.servant_defaults {
            options = options.servant_defaults();
        }
        if self.collocation == "direct" {
            options = options.collocation(Collocation::Direct);
        }
        Ok(match (self.client_only, self.server_only) {
            (true, _) => options.sides(Sides::Client),
            (_, true) => options.sides(Sides::Server),
            _ => options,
        })
    }

    fn front_end(&self) -> FrontEndOptions {
        let define = |text: &String| match text.split_once('=') {
            Some((name, text)) => (name.to_owned(), Some(text.to_owned())),
            None => (text.clone(), None),
        };
        let defines = self.define.iter().map(define).collect();
        FrontEndOptions { include_paths: self.include.clone(), defines, portability_warnings: !self.no_portability }
    }

    fn output(&self, file: &Path, model: &Model, options: &Options) -> anyhow::Result<()> {
        match self.dump {
            _ if self.check => Ok(()),
            Some(Form::Json) => common::print(&json::to_string(model)),
            Some(Form::Text) => common::print(&model.dump()),
            None if self.stdout => common::print(&generate(model, options)),
            None if self.per_module => {
                let stem = file.file_stem().unwrap_or_default().to_string_lossy();
                let files = generate_files(model, options, &stem);
                files.iter().try_for_each(|file| self.write(&self.out.join(&file.path), &file.text))
            }
            None => self.write(&self.path_for(file)?, &generate(model, options)),
        }
    }

    /// Checks that no file is written twice.
    fn check_outputs(&self) -> anyhow::Result<()> {
        if self.check || self.stdout || self.dump.is_some() || self.to_repository.is_some() {
            return Ok(());
        }
        FileSystem::with_names(&self.files).map_err(common::usage)?;
        let mut by_output: HashMap<PathBuf, &Path> = HashMap::new();
        for file in &self.files {
            let output = self.path_for(file)?;
            if let Some(first) = by_output.insert(output.clone(), file) {
                return Err(common::usage(format_args!(
                    "{} and {} have the same output, {}: compile one of them with another folder (--out), or rename one",
                    first.display(),
                    file.display(),
                    output.display()
                )));
            }
        }
        Ok(())
    }

    /// The path of the Rust file for an IDL file.
    fn path_for(&self, file: &Path) -> anyhow::Result<PathBuf> {
        let stem = file.file_stem().ok_or_else(|| anyhow!("{} names no file", file.display()))?;
        Ok(self.out.join(Path::new(stem).with_added_extension("rs")))
    }

    fn write(&self, path: &Path, rust: &str) -> anyhow::Result<()> {
        let write = || {
            fs::create_dir_all(path.parent().unwrap_or(&self.out))?;
            fs::write(path, rust)
        };
        write().with_context(|| format!("cannot write {}", path.display()))
    }
}

/// Shows diagnostics, in colour on a terminal.
fn show(diagnostics: &Diagnostics) {
    let text = diagnostics.render(common::is_coloured());
    _ = io::stderr().write_all(text.as_bytes());
}
