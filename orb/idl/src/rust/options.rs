//! What can be chosen about the generated code, and what is refused.

use std::collections::BTreeMap;

use super::asynchronous::Asynchronous;
use super::interpreted::{BadEngine, Engines};
use super::padded::Chosen;

/// What can be chosen about the generated code.
#[derive(Clone, Debug)]
pub struct Options {
    pub(super) runtime: String,
    pub(super) natives: BTreeMap<String, String>,
    pub(super) padded: Chosen,
    pub(super) engines: Engines,
    pub(super) asynchronous: Asynchronous,
}

impl Default for Options {
    /// For applications: the runtime is `::spandrel::generated`.
    fn default() -> Self {
        Self {
            runtime: "::spandrel::generated".to_owned(),
            natives: BTreeMap::new(),
            padded: Chosen::None,
            engines: Engines::default(),
            asynchronous: Asynchronous::default(),
        }
    }
}

impl Options {
    /// The defaults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Names the runtime module by another path than `::spandrel::generated`. It must hold wherever the code is included,
    /// so it begins with `::` or `crate::`.
    ///
    /// # Errors
    /// If `path` is not the path of a module.
    pub fn runtime(mut self, path: &str) -> Result<Self, BadRuntimePath> {
        syn::parse_str::<syn::Path>(path).map_err(|_| BadRuntimePath(path.to_owned()))?;
        self.runtime = path.to_owned();
        Ok(self)
    }

    /// Chooses the marshaling engine: `compiled` (without this), `interpretive` or `adaptive` for everything, or
    /// `Bank::Account=interpretive` for a module, interface or type, and for all that is declared inside. What is said of
    /// the inner one holds. Structs with explicit padding are always compiled: their memory is their encoding.
    ///
    /// # Errors
    /// If there is no such engine.
    pub fn marshal(mut self, choice: &str) -> Result<Self, BadEngine> {
        self.engines.choose(choice)?;
        Ok(self)
    }

    /// Says which Rust type a `native` type is, by its scoped name, such as `PortableServer::Cookie`. The type must hold
    /// wherever the code is included, and be `Clone`; without this it is `Arc<dyn Any + Send + Sync>`.
    ///
    /// # Errors
    /// If `ty` is not a Rust type.
    pub fn native(mut self, scoped_name: &str, ty: &str) -> Result<Self, BadNativeType> {
        syn::parse_str::<syn::Type>(ty).map_err(|_| BadNativeType(ty.to_owned()))?;
        self.natives.insert(scoped_name.trim_start_matches("::").to_owned(), ty.to_owned());
        Ok(self)
    }

    /// Makes the padding of these structs explicit, by their scoped names, such as `Radar::Plot`: gaps between members become fields
    /// of type `Pad`, and sequences of the struct are sent from where they lie and lent from where they were received. A
    /// struct whose memory cannot be its encoding is left as it is, and named in the first lines of the output.
    #[must_use]
    pub fn pad<'n>(mut self, scoped_names: impl IntoIterator<Item = &'n str>) -> Self {
        let more = scoped_names.into_iter().map(|name| name.trim_start_matches("::").to_owned());
        match &mut self.padded {
            Chosen::All => {}
            Chosen::Named(names) => names.extend(more),
            Chosen::None => self.padded = Chosen::Named(more.collect()),
        }
        self
    }

    /// Makes the padding of all structs explicit whose memory can be their encoding; see [`Options::pad`].
    #[must_use]
    pub fn pad_all(mut self) -> Self {
        self.padded = Chosen::All;
        self
    }
}

/// What was given as the runtime's path is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadRuntimePath(String);

impl std::fmt::Display for BadRuntimePath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}` is not the path of a Rust module, such as `::spandrel::generated`", self.0)
    }
}

impl std::error::Error for BadRuntimePath {}

/// What was given as a native type is no type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadNativeType(String);

impl std::fmt::Display for BadNativeType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}` is not a Rust type, such as `::std::sync::Arc<crate::Cookie>`", self.0)
    }
}

impl std::error::Error for BadNativeType {}
