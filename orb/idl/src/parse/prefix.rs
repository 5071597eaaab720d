//! The prefix of repository ids, set by `#pragma prefix` (CORBA 3.3 Part 1, 14.7.5.2).
//!
//! A prefix lasts to the end of its scope or file. Within a scope, the prefix is extended by the scope's
//! name; a pragma there replaces the whole. A file neither inherits a prefix nor exports one. Where the
//! standard is ambiguous (the pragma inside a scope), this follows omniidl, the reference of the
//! interoperability tests.

use std::rc::Rc;

/// Longer than any prefix of permitted names.
const LONGEST: usize = 4096;

#[derive(Debug)]
pub(super) struct Prefixes {
    /// One for each open scope and file, innermost last.
    open: Vec<(Kind, Rc<str>)>,
}

#[derive(Debug, PartialEq, Eq)]
enum Kind {
    File,
    Scope,
}

impl Prefixes {
    pub(super) fn new() -> Self {
        Prefixes { open: Vec::new() }
    }

    /// The prefix for names defined here.
    pub(super) fn current(&self) -> Rc<str> {
        self.open.last().map_or_else(|| "".into(), |(_, prefix)| prefix.clone())
    }

    pub(super) fn set(&mut self, prefix: &str) {
        if let Some((_, current)) = self.open.last_mut() {
            *current = prefix.into();
        }
    }

    pub(super) fn enter_file(&mut self) {
        self.open.push((Kind::File, "".into()));
    }

    pub(super) fn leave_file(&mut self) {
        self.leave(Kind::File);
    }

    pub(super) fn enter_scope(&mut self, name: &str) {
        let outer = self.current();
        // A longer prefix belongs to a name that the checker rejects; it must not cost memory for each nested
        // name.
        let prefix = match outer.len() + name.len() {
            0..LONGEST => join(&outer, name).into(),
            _ => outer,
        };
        self.open.push((Kind::Scope, prefix));
    }

    pub(super) fn leave_scope(&mut self) {
        self.leave(Kind::Scope);
    }

    /// Closes the innermost entry of this kind: files may end inside scopes that they open, and the reverse.
    fn leave(&mut self, kind: Kind) {
        if let Some(index) = self.open.iter().rposition(|(it, _)| *it == kind) {
            self.open.remove(index);
        }
    }
}

/// `prefix/name`, without the slash if there is no prefix.
pub(crate) fn join(prefix: &str, name: &str) -> String {
    if prefix.is_empty() { name.to_owned() } else { format!("{prefix}/{name}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_lasts_to_the_end_of_its_scope_or_file() {
        let mut prefixes = Prefixes::new();
        prefixes.enter_file();
        prefixes.set("omg.org");
        prefixes.enter_scope("A");
        assert_eq!(&*prefixes.current(), "omg.org/A");
        prefixes.set("other");
        prefixes.enter_file();
        assert_eq!(&*prefixes.current(), "");
        prefixes.set("lost");
        prefixes.leave_file();
        assert_eq!(&*prefixes.current(), "other");
        prefixes.leave_scope();
        assert_eq!(&*prefixes.current(), "omg.org");
    }
}
