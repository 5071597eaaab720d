//! Initial references: objects that a program knows by name before it knows anything else
//! (CORBA 3.3 Part 1, 8.5.2 and 8.5.3).

use spandrel_cdr::Ior;
use spandrel_sync::RwLock;

/// Names and where they lead, as text: nothing is contacted before somebody asks.
#[derive(Clone, Debug, Default)]
pub(crate) struct InitialReferences {
    by_name: Vec<(String, String)>,
    default: Option<String>,
}

/// What each name was registered with while the ORB ran. Plain references: one that held its ORB would keep it for ever.
#[derive(Debug, Default)]
pub(crate) struct RuntimeReferences(RwLock<Vec<(String, Ior)>>);

/// A name that no object can be registered by.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidName {
    /// It is empty.
    #[error("an initial reference has no name")]
    Empty,
    /// Another object is registered by it.
    #[error("an initial reference is registered as `{0}` already")]
    Registered(String),
    /// It belongs to something that programs get from the ORB by methods.
    #[error("`{0}` is the standard's name for something that is no object here: {1}")]
    Local(String, &'static str),
}

/// Names of the standard's local objects, and what they are here.
const LOCAL: [(&str, &str); 7] = [
    ("RootPOA", "see `Poa::root`"),
    ("POACurrent", "see the `Current` of the object adapter"),
    ("ORBPolicyManager", "see `Orb::policy_manager`"),
    ("PolicyCurrent", "see `Orb::policy_current`"),
    ("DynAnyFactory", "see the crate of dynamic values"),
    ("CodecFactory", "see the module of interceptors"),
    ("PICurrent", "see the module of interceptors"),
];

/// What the standard's local object with this name is here.
pub(crate) fn local(name: &str) -> Option<InvalidName> {
    let found = LOCAL.iter().find(|(known, _)| *known == name);
    found.map(|(known, what)| InvalidName::Local((*known).to_owned(), what))
}

impl InitialReferences {
    pub(crate) fn set(&mut self, name: String, url: String) {
        self.by_name.retain(|(known, _)| *known != name);
        self.by_name.push((name, url));
    }

    pub(crate) fn set_default(&mut self, url: String) {
        self.default = Some(url);
    }

    /// The URL of a name. One that nobody set is looked for below the default (8.5.3.2).
    pub(crate) fn url(&self, name: &str) -> Option<String> {
        let known = self.by_name.iter().find(|(known, _)| known == name).map(|(_, url)| url.clone());
        known.or_else(|| self.default.as_ref().map(|default| format!("{default}/{name}")))
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &String> {
        self.by_name.iter().map(|(name, _)| name)
    }
}

impl RuntimeReferences {
    pub(crate) fn get(&self, name: &str) -> Option<Ior> {
        self.0.read().iter().find(|(known, _)| known == name).map(|(_, ior)| ior.clone())
    }

    pub(crate) fn insert(&self, name: &str, ior: Ior) -> Result<(), InvalidName> {
        if name.is_empty() {
            return Err(InvalidName::Empty);
        }
        if let Some(local) = local(name) {
            return Err(local);
        }
        let mut registered = self.0.write();
        if registered.iter().any(|(known, _)| known == name) {
            return Err(InvalidName::Registered(name.to_owned()));
        }
        registered.push((name.to_owned(), ior));
        Ok(())
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.0.read().iter().map(|(name, _)| name.clone()).collect()
    }
}
