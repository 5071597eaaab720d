//! Options of the back end, and their errors.

use std::collections::BTreeMap;
use std::path::Path;

use super::bad_option::{BadOption, parse};
use super::engines::Engines;
use super::external_files::ExternalFiles;
use super::file_homes::FileHomes;
use super::padding::PaddingSelection;
use crate::model::Model;

/// The choices of the Rust back end: parts to generate, engines, names of modules.
#[derive(Clone, Debug)]
pub struct Options {
    pub(super) runtime: String,
    pub(super) natives: BTreeMap<String, String>,
    pub(super) padded: PaddingSelection,
    pub(super) engines: Engines,
    pub(super) asynchronous: Asynchronous,
    pub(super) sides: Sides,
    /// Derive macros, for a definition of this scoped name or for all.
    pub(super) derives: Vec<(Option<String>, String)>,
    pub(super) externals: ExternalFiles,
    /// Modules around everything, outermost first.
    pub(super) prefix: Vec<String>,
    pub(super) ties: bool,
    /// Whether the methods of servant traits have a default.
    pub(super) servant_defaults: bool,
    pub(super) collocation: Collocation,
}

/// The asynchronous forms to write.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asynchronous {
    pub(super) client: bool,
    pub(super) server: bool,
    pub(super) ami: bool,
}

impl Default for Asynchronous {
    fn default() -> Self {
        Self { client: true, server: false, ami: false }
    }
}

/// The sides of interfaces for which code is generated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sides {
    /// References that invoke, servant traits and skeletons.
    #[default]
    Both,
    /// No servant traits and no skeletons.
    Client,
    /// References without operations, which can be passed on.
    Server,
    /// References without operations, and no servant traits and no skeletons: the types.
    Types,
}

/// The way in which stubs call objects of the same ORB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Collocation {
    /// By requests, which the object adapter dispatches in the calling thread; this needs no extra code.
    #[default]
    ThroughPoa,
    /// By the servant's method where the effect is the same, if the ORB is also set to direct collocation.
    Direct,
}

impl Default for Options {
    /// For applications: the runtime is `::spandrel::generated`.
    fn default() -> Self {
        Self {
            runtime: "::spandrel::generated".to_owned(),
            natives: BTreeMap::new(),
            padded: PaddingSelection::None,
            engines: Engines::default(),
            asynchronous: Asynchronous::default(),
            sides: Sides::Both,
            derives: Vec::new(),
            externals: ExternalFiles::default(),
            prefix: Vec::new(),
            ties: false,
            servant_defaults: false,
            collocation: Collocation::ThroughPoa,
        }
    }
}

impl Options {
    /// The defaults: compiled marshaling, both sides of interfaces, and the runtime `::spandrel::generated`.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets another path of the runtime module than `::spandrel::generated`. It must be valid wherever the
    /// code is included, so it begins with `::` or `crate::`.
    ///
    /// # Errors
    /// If `path` is not the path of a module.
    pub fn runtime(mut self, path: &str) -> Result<Self, BadOption> {
        parse::<syn::Path>(path, "the path of a Rust module, such as `::spandrel::generated`")?;
        self.runtime = path.to_owned();
        Ok(self)
    }

    /// Selects the marshaling engine: `compiled` (default), `interpretive` or `adaptive` for everything, or
    /// `Bank::Account=interpretive` for a module, interface or type with its nested definitions. The
    /// innermost selection applies. Structs with explicit padding are always compiled: their memory is their
    /// encoding.
    ///
    /// # Errors
    /// If no engine has this name.
    pub fn marshal(mut self, choice: &str) -> Result<Self, BadOption> {
        self.engines.choose(choice)?;
        Ok(self)
    }

    /// Sets the Rust type of a `native` type, by its scoped name, such as `PortableServer::Cookie`. The type
    /// must be valid wherever the code is included, and be `Clone`. The default is `Arc<dyn Any + Send +
    /// Sync>`.
    ///
    /// # Errors
    /// If `ty` is not a Rust type.
    pub fn native(mut self, scoped_name: &str, ty: &str) -> Result<Self, BadOption> {
        parse::<syn::Type>(ty, "a Rust type, such as `::std::sync::Arc<crate::Cookie>`")?;
        self.natives.insert(scoped_name.trim_start_matches("::").to_owned(), ty.to_owned());
        Ok(self)
    }

    /// Makes the padding of these structs explicit, by their scoped names, such as `Radar::Plot`. Gaps
    /// between members become fields of type `Pad`; sequences of the struct are sent without a copy and lent
    /// from received messages. A struct whose memory cannot be its encoding stays unchanged, and the first
    /// lines of the output name it.
    #[must_use]
    pub fn pad<'n>(mut self, scoped_names: impl IntoIterator<Item = &'n str>) -> Self {
        let more = scoped_names.into_iter().map(|name| name.trim_start_matches("::").to_owned());
        match &mut self.padded {
            PaddingSelection::All => {}
            PaddingSelection::Named(names) => names.extend(more),
            PaddingSelection::None => self.padded = PaddingSelection::Named(more.collect()),
        }
        self
    }

    /// Makes the padding explicit of all structs whose memory can be their encoding; see [`Options::pad`].
    #[must_use]
    pub fn pad_all(mut self) -> Self {
        self.padded = PaddingSelection::All;
        self
    }

    /// Generates one side of interfaces only.
    #[must_use]
    pub fn sides(mut self, sides: Sides) -> Self {
        self.sides = sides;
        self
    }

    /// Adds a derive macro, such as `serde::Serialize`: to the struct, union, exception or enum of this
    /// scoped name, or to all. The program provides the traits that members need for it.
    ///
    /// # Errors
    /// If `path` is not the path of a macro.
    pub fn derive(mut self, scoped_name: Option<&str>, path: &str) -> Result<Self, BadOption> {
        parse::<syn::Path>(path, "the path of a derive macro, such as `::serde::Serialize`")?;
        let name = scoped_name.map(|name| name.trim_start_matches("::").to_owned());
        self.derives.push((name, path.to_owned()));
        Ok(self)
    }

    /// Sets the Rust module of an included file, by its name or the last components of its path. Its
    /// definitions are named in that module and not written again. The module has to be generated from the
    /// file with the same options.
    ///
    /// # Errors
    /// If `module` is not the path of a module; it should begin with `::` or `crate::`.
    pub fn external(mut self, file: impl AsRef<Path>, module: &str) -> Result<Self, BadOption> {
        parse::<syn::Path>(module, "the path of a Rust module, such as `::shared_types::idl`")?;
        self.externals.add(file.as_ref(), module);
        Ok(self)
    }

    /// The Rust module that the options `external` give for a file, if they name it.
    #[must_use]
    pub fn external_module(&self, file: &Path) -> Option<&str> {
        self.externals.module(file)
    }

    /// Checks the options `external` for the files that were read for `model`: each names one file or none, and each
    /// definition has one Rust type.
    ///
    /// # Errors
    /// - If an option names different files, such as `types.idl` both `a/types.idl` and `b/types.idl`.
    /// - If a file that several modules include would be generated in each of them, and has no option.
    /// - If a file with an option declares an interface or value type forward that another file defines, and does not
    ///   include that file: the type in its module would be another.
    pub fn check_externals(&self, model: &Model) -> Result<(), BadOption> {
        self.externals.check(model)?;
        FileHomes::new(model.sources(), &self.externals).check(model, &self.externals)
    }

    /// Puts all code into modules of these names, such as `control::generated`.
    ///
    /// # Errors
    /// If `modules` are not module names separated by `::`.
    pub fn prefix(mut self, modules: &str) -> Result<Self, BadOption> {
        let expected = "names of modules, such as `control::generated`";
        modules.split("::").try_for_each(|name| parse::<syn::Ident>(name, expected).map(drop))?;
        self.prefix = modules.split("::").map(str::to_owned).collect();
        Ok(self)
    }

    /// Sets the way in which stubs call objects of the same ORB. Direct calls need both sides of interfaces.
    #[must_use]
    pub fn collocation(mut self, strategy: Collocation) -> Self {
        self.collocation = strategy;
        self
    }

    /// Writes a tie for each interface with bases: a servant composed of several objects, each of which
    /// serves a base.
    #[must_use]
    pub fn ties(mut self) -> Self {
        self.ties = true;
        self
    }

    /// Gives each method of the servant traits a default, which raises NO_IMPLEMENT. A server then implements
    /// the operations that it supports. Without defaults a missing method is a compile error. The traits of
    /// local interfaces and of asynchronous servants have the defaults, too.
    #[must_use]
    pub fn servant_defaults(mut self) -> Self {
        self.servant_defaults = true;
        self
    }
}

impl Options {
    /// Whether references have a method `…_async` for each operation, which returns a future (default: yes).
    /// The methods are inlined, so that a program contains only those that it calls.
    #[must_use]
    pub fn asynchronous_client(mut self, is_enabled: bool) -> Self {
        self.asynchronous.client = is_enabled;
        self
    }

    /// Whether each interface has an asynchronous servant trait, whose methods return futures, and a skeleton for it
    /// (default: no).
    #[must_use]
    pub fn asynchronous_server(mut self, is_enabled: bool) -> Self {
        self.asynchronous.server = is_enabled;
        self
    }

    /// Whether references have `sendc_` and `sendp_` operations, and interfaces reply handlers and pollers (default: no).
    #[must_use]
    pub fn ami(mut self, is_enabled: bool) -> Self {
        self.asynchronous.ami = is_enabled;
        self
    }
}
