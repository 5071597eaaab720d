//! The comments of an interface and of the types in it.

use std::collections::BTreeMap;

/// Documentation comments of IDL definitions: of an interface, its operations and attributes, and of types and their
/// members.
///
/// A text has the lines of the comment, without comment marks. IDL and Spandrel's interface repository have them;
/// other repositories and type codes do not.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Documentation {
    /// By repository id and the name of a part, which is empty for the definition itself.
    texts: BTreeMap<String, BTreeMap<String, String>>,
}

impl Documentation {
    /// Creates a store in which nothing is documented.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the text of a definition; an empty text adds nothing.
    pub fn insert(&mut self, id: impl Into<String>, text: impl Into<String>) {
        self.insert_part(id, "", text);
    }

    /// Adds the text of a part of a definition: a member, an enumerator, an operation or attribute of an interface.
    pub fn insert_part(&mut self, id: impl Into<String>, part: impl Into<String>, text: impl Into<String>) {
        let text = text.into();
        if !text.trim().is_empty() {
            self.texts.entry(id.into()).or_default().insert(part.into(), text);
        }
    }

    /// The comment of the definition with this repository id.
    #[must_use]
    pub fn of(&self, id: &str) -> Option<&str> {
        self.of_part(id, "")
    }

    /// The comment of an operation, parameter or member of a definition.
    #[must_use]
    pub fn of_part(&self, id: &str, part: &str) -> Option<&str> {
        self.texts.get(id)?.get(part).map(String::as_str)
    }

    /// Whether no definition has a comment.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// Adds the texts of `other`; those of the parts of the interface `base` also as parts of `id`, which inherits them.
    pub(super) fn inherit(&mut self, other: &Self, base: &str, id: &str) {
        for (type_code, parts) in &other.texts {
            for (part, text) in parts {
                self.insert_part(type_code, part, text.as_str());
                if type_code == base && !part.is_empty() && self.of_part(id, part).is_none() {
                    self.insert_part(id, part, text.as_str());
                }
            }
        }
    }
}
