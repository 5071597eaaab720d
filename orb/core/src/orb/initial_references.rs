//! Initial references: the objects from which a program obtains all others (CORBA 3.3 Part 1, 8.5.2 and
//! 8.5.3).

use spandrel_cdr::Ior;
use spandrel_sync::RwLock;

/// The configured initial references as URLs, which are resolved when they are used.
#[derive(Clone, Debug, Default)]
pub(crate) struct InitialReferences {
    by_name: Vec<(String, String)>,
    default: Option<String>,
}

/// The initial references registered at run time. They are IORs: an `ObjectRef` would keep its ORB alive.
#[derive(Debug, Default)]
pub(crate) struct RuntimeReferences(RwLock<Vec<(String, Ior)>>);

/// The reason why an object cannot be registered by a name.
///
/// ```
/// # mod spandrel { pub use spandrel_orb::*; pub mod types { pub use spandrel_orb::InvalidName; } }
/// use spandrel::Orb;
/// use spandrel::types::InvalidName;
///
/// let orb = Orb::builder().build()?;
/// let bank = orb.string_to_object("corbaloc::bank.example:2809/Bank")?;
/// orb.register_initial_reference("Bank", &bank)?;
/// assert_eq!(orb.register_initial_reference("Bank", &bank), Err(InvalidName::Registered("Bank".to_owned())));
/// assert_eq!(orb.resolve_initial_references("Bank")?, bank);
/// # orb.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidName {
    /// The name has no characters.
    #[error("the name of the initial reference is empty")]
    Empty,
    /// Another object is registered by this name.
    #[error("an initial reference named `{0}` is registered already")]
    Registered(String),
    /// The standard's name for a local object, which programs get by a method of the ORB.
    #[error("`{0}` is the standard's name for a local object, which is no initial reference in Rust: {1}")]
    Local(String, &'static str),
}
spandrel_error::debug_as_report!(InvalidName);

/// The standard's local objects, and their equivalents in Rust.
const LOCAL: [(&str, &str); 7] = [
    ("RootPOA", "see `Poa::root`"),
    ("POACurrent", "see the `Current` of the object adapter"),
    ("ORBPolicyManager", "see `Orb::policy_manager`"),
    ("PolicyCurrent", "see `Orb::policy_current`"),
    ("DynAnyFactory", "see the crate of dynamic values"),
    ("CodecFactory", "see the module of interceptors"),
    ("PICurrent", "see the module of interceptors"),
];

/// The error for the name of a standard local object.
pub(crate) fn local(name: &str) -> Option<InvalidName> {
    let entry = LOCAL.iter().find(|(entry_name, _)| *entry_name == name);
    entry.map(|(entry_name, equivalent)| InvalidName::Local((*entry_name).to_owned(), equivalent))
}

impl InitialReferences {
    pub(crate) fn set(&mut self, name: String, url: String) {
        self.by_name.retain(|(entry_name, _)| *entry_name != name);
        self.by_name.push((name, url));
    }

    pub(crate) fn set_default(&mut self, url: String) {
        self.default = Some(url);
    }

    /// The URL of a name. Without one of its own, it is looked up below the default (8.5.3.2).
    pub(crate) fn url(&self, name: &str) -> Option<String> {
        let own_url = self.by_name.iter().find(|(entry_name, _)| entry_name == name).map(|(_, url)| url.clone());
        own_url.or_else(|| self.below_default(name))
    }

    /// The URL of a name below the default.
    pub(crate) fn below_default(&self, name: &str) -> Option<String> {
        self.default.as_ref().map(|default| format!("{default}/{name}"))
    }

    /// The names with URLs of their own.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&str, &str)> {
        self.by_name.iter().map(|(name, url)| (&**name, &**url))
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &String> {
        self.by_name.iter().map(|(name, _)| name)
    }
}

impl RuntimeReferences {
    pub(crate) fn get(&self, name: &str) -> Option<Ior> {
        self.0.read().iter().find(|(entry_name, _)| entry_name == name).map(|(_, ior)| ior.clone())
    }

    pub(crate) fn insert(&self, name: &str, ior: Ior) -> Result<(), InvalidName> {
        if name.is_empty() {
            return Err(InvalidName::Empty);
        }
        if let Some(local) = local(name) {
            return Err(local);
        }
        let mut registered = self.0.write();
        if registered.iter().any(|(entry_name, _)| entry_name == name) {
            return Err(InvalidName::Registered(name.to_owned()));
        }
        registered.push((name.to_owned(), ior));
        Ok(())
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.0.read().iter().map(|(name, _)| name.clone()).collect()
    }
}
