//! Scopes of distinct names, and the resolution of collisions.

use std::collections::{HashMap, HashSet};

use proc_macro2::{Ident, Span};
use syn::ext::IdentExt as _;

use super::prelude;
use super::words::{is_keyword, is_path_keyword};

/// Names in use at one place: a Rust module, a struct's fields, a method's parameters.
#[derive(Clone, Debug, Default)]
pub(super) struct Scope {
    used: HashSet<String>,
    /// The number of collisions of each name that collides often.
    collisions: HashMap<String, usize>,
}

/// The most underscores added to a name; after that it gets a number.
const MAX_UNDERSCORES: usize = 3;

impl Scope {
    /// A scope in which these names are taken from the start.
    pub(super) fn reserving(names: &[&str]) -> Self {
        Self { used: names.iter().map(|&name| name.to_owned()).collect(), collisions: HashMap::new() }
    }

    /// Takes `name` as it is. Where it is taken or not an identifier, `_` is appended as often as needed;
    /// where that would be often, a number and `_`.
    pub(super) fn take(&mut self, name: &str) -> Ident {
        let mut free = name.to_owned();
        let mut number = 0;
        while is_path_keyword(&free) || self.used.contains(&free) {
            number += 1;
            if number <= MAX_UNDERSCORES {
                free.push('_');
            } else {
                let suffix = self.collisions.entry(name.to_owned()).or_insert(MAX_UNDERSCORES);
                *suffix += 1;
                free = format!("{name}{suffix}_");
            }
        }
        self.used.insert(free.clone());
        identifier(&free)
    }

    /// Takes the name of an identifier from another scope, under the same rules.
    pub(super) fn take_ident(&mut self, ident: &Ident) -> Ident {
        self.take(&plain(ident))
    }

    /// Whether a name is taken.
    pub(super) fn has(&self, name: &str) -> bool {
        self.used.contains(name)
    }

    /// Reserves the name of an identifier from another scope.
    pub(super) fn reserve(&mut self, ident: &Ident) {
        self.used.insert(plain(ident));
    }

    /// The names in use, without those that were `reserved` at the start.
    pub(super) fn into_taken(mut self, reserved: &[&str]) -> HashSet<String> {
        reserved.iter().for_each(|name| _ = self.used.remove(*name));
        self.used
    }
}

/// The identifier of an IDL name.
fn identifier(name: &str) -> Ident {
    if is_keyword(name) {
        Ident::new_raw(name, Span::call_site())
    } else if prelude::is_used(name) {
        prelude::marked(name)
    } else {
        Ident::new(name, Span::call_site())
    }
}

/// The word of an identifier, without `r#` or mark.
pub(super) fn plain(ident: &Ident) -> String {
    prelude::plain(&ident.unraw().to_string()).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_later_of_two_equal_names_gains_an_underscore() {
        let mut scope = Scope::reserving(&["narrow"]);
        assert_eq!(scope.take("get_foo").to_string(), "get_foo");
        assert_eq!(scope.take("get_foo").to_string(), "get_foo_");
        assert_eq!(scope.take("get_foo").to_string(), "get_foo__");
        assert_eq!(scope.take("narrow").to_string(), "narrow_");
        assert_eq!(scope.take("get_foo").to_string(), "get_foo___");
        assert_eq!(scope.take("get_foo5_").to_string(), "get_foo5_");
        assert_eq!(scope.take("get_foo").to_string(), "get_foo4_");
        assert_eq!(scope.take("get_foo").to_string(), "get_foo6_");
    }

    #[test]
    fn keywords_become_raw_where_rust_allows_it() {
        let mut scope = Scope::default();
        assert_eq!(scope.take("type").to_string(), "r#type");
        assert_eq!(scope.take("type").to_string(), "type_");
        assert_eq!(scope.take("self").to_string(), "self_");
        assert_eq!(scope.take("Self").to_string(), "Self_");
        assert_eq!(scope.take("crate").to_string(), "crate_");
    }
}
