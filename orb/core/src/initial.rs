//! Initial references: objects that a program knows by name before it knows anything else
//! (CORBA 3.3 Part 1, 8.5.2 and 8.5.3).

use std::collections::BTreeMap;

/// Names and where they lead, as text: nothing is contacted before somebody asks.
#[derive(Clone, Debug, Default)]
pub(crate) struct InitialReferences {
    by_name: BTreeMap<String, String>,
    default: Option<String>,
}

impl InitialReferences {
    pub(crate) fn set(&mut self, name: String, url: String) {
        self.by_name.insert(name, url);
    }

    pub(crate) fn set_default(&mut self, url: String) {
        self.default = Some(url);
    }

    /// The URL of a name. One that nobody set is looked for below the default, as its object key (8.5.3.3).
    pub(crate) fn url(&self, name: &str) -> Option<String> {
        let known = self.by_name.get(name).cloned();
        known.or_else(|| self.default.as_ref().map(|default| format!("{default}/{name}")))
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.by_name.keys().cloned().collect()
    }
}
