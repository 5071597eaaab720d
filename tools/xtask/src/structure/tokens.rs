//! Paths among the arguments of macros, where only tokens are available.

use std::collections::HashSet;

use proc_macro2::{Ident, Spacing, TokenStream, TokenTree};

use super::tree::PathNames;

/// Returns paths of two and more names, and single names that begin like a type's.
pub(crate) fn paths(tokens: TokenStream) -> Vec<PathNames> {
    let mut scan = Scan::default();
    scan.stream(tokens);
    scan.paths
}

/// Adds all identifiers of the tokens.
pub(crate) fn names(tokens: TokenStream, names: &mut HashSet<String>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => self::names(group.stream(), names),
            TokenTree::Ident(name) => {
                names.insert(plain(&name));
            }
            _ => {}
        }
    }
}

#[derive(Default)]
struct Scan {
    paths: Vec<PathNames>,
    path: PathNames,
    /// Whether the next name goes on with the path.
    is_open: bool,
}

impl Scan {
    fn stream(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut sign = ' '; // the previous one
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            at += 1;
            match token {
                TokenTree::Group(group) => {
                    self.end();
                    self.stream(group.stream());
                    sign = ' ';
                }
                TokenTree::Punct(first) if is_separator(&tokens, at - 1) => {
                    at += 1;
                    sign = first.as_char();
                    if self.path.names.is_empty() {
                        self.path.is_absolute = true;
                    }
                    self.is_open = true;
                }
                TokenTree::Punct(other) => {
                    self.end();
                    sign = other.as_char();
                }
                // Methods and fields, lifetimes, and variables of a macro.
                TokenTree::Ident(name) if sign == '.' || sign == '\'' || sign == '$' && name != "crate" => {
                    self.end();
                    sign = ' ';
                }
                TokenTree::Ident(name) => {
                    if !self.is_open {
                        self.end();
                    }
                    self.path.names.push(plain(name));
                    self.is_open = false;
                    sign = ' ';
                }
                TokenTree::Literal(_) => {
                    self.end();
                    sign = ' ';
                }
            }
        }
        self.end();
    }

    fn end(&mut self) {
        let path = std::mem::take(&mut self.path);
        self.is_open = false;
        let is_type = |name: &String| name.starts_with(char::is_uppercase);
        if path.names.len() > 1 || path.names.first().is_some_and(is_type) {
            self.paths.push(path);
        }
    }
}

/// Whether `::` stands here.
fn is_separator(tokens: &[TokenTree], at: usize) -> bool {
    let colon = |at: usize| match tokens.get(at) {
        Some(TokenTree::Punct(sign)) if sign.as_char() == ':' => Some(sign.spacing()),
        _ => None,
    };
    colon(at) == Some(Spacing::Joint) && colon(at + 1).is_some()
}

/// An identifier without `r#`.
fn plain(name: &Ident) -> String {
    let text = name.to_string();
    text.strip_prefix("r#").map_or(text.clone(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_distinguished_from_methods_lifetimes_and_types_after_a_colon() {
        let tokens =
            "x.y::<A>(crate::a::B, &'c ::std::d), $crate::e!{ f: super::G } $h::I [J; k] l: M".parse().unwrap();
        let names: Vec<String> = paths(tokens)
            .iter()
            .map(|path| format!("{}{}", if path.is_absolute { "::" } else { "" }, path.names.join("::")))
            .collect();
        assert_eq!(names, ["A", "crate::a::B", "::std::d", "crate::e", "super::G", "::I", "J", "M"]);
    }
}
