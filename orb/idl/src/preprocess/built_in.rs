//! The compiler's own `orb.idl`: the types of the module CORBA (IDL 4.2, 7.4.6.4.7).
//!
//! One text is always read, and further parts only by runs that use a name in them: back ends generate code
//! for all declarations, and the interface repository alone is 35,000 lines of Rust.

use std::collections::HashSet;

use crate::source::SourceMap;

/// The path under which the file is listed among the sources.
pub(super) const PATH: &str = "<built in>/orb.idl";

/// The text that is always read.
pub(super) const TEXT: &str = include_str!("orb.idl");

/// The other parts. None uses a name of another.
const PARTS: [&str; 6] = [
    include_str!("corba/services.idl"),
    include_str!("corba/transaction.idl"),
    include_str!("corba/type_code.idl"),
    include_str!("corba/pollable.idl"),
    include_str!("corba/streams.idl"),
    include_str!("corba/repository.idl"),
];

/// The parts that a run reads.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parts {
    is_read: [bool; PARTS.len()],
    /// Whether the file is read before the main file, for `import ::CORBA;`.
    pub(super) is_imported: bool,
}

impl Parts {
    pub(super) fn texts(&self) -> impl Iterator<Item = &'static str> {
        PARTS.into_iter().zip(self.is_read).filter_map(|(text, is_read)| is_read.then_some(text))
    }

    /// Makes the file available to `import`, if that is `wanted`. Returns whether it was not before.
    pub(crate) fn import(&mut self, is_needed: bool) -> bool {
        let is_new = is_needed && !self.is_imported;
        self.is_imported |= is_needed;
        is_new
    }

    /// Adds the parts with one of these names, which a run did not find in the module CORBA. Returns whether
    /// there are any, so that another run may find the names.
    pub(crate) fn add(&mut self, missing: &HashSet<String>, sources: &SourceMap) -> bool {
        let mut files = sources.files().iter();
        if missing.is_empty() || !files.any(|file| file.built_in && !file.text.is_empty()) {
            return false;
        }
        let mut has_new = false;
        for (text, is_read) in PARTS.into_iter().zip(&mut self.is_read) {
            let mut words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
            if !*is_read && words.any(|word| missing.contains(word)) {
                *is_read = true;
                has_new = true;
            }
        }
        has_new
    }
}
