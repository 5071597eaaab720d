//! Collisions of IDL names with Rust's prelude: IDL may define `Result` or `Option`, which generated code
//! uses.
//!
//! The rest of the back end writes `Result` for Rust's own type. Identifiers from the IDL with such a name
//! are [`marked`]; a last pass over the tokens of each module ([`unmark`]) writes Rust's own names as full
//! paths in modules that contain a mark.

use std::collections::HashSet;

use proc_macro2::{Group, Ident, Punct, Spacing, Span, TokenStream, TokenTree};

/// The prelude names used in generated code, with their full paths. Names used in derives only are not
/// listed: derive macros have a namespace of their own.
const USED: &[(&str, &[&str])] = &[
    ("Default", &["std", "default", "Default"]),
    ("Err", &["std", "result", "Result", "Err"]),
    ("From", &["std", "convert", "From"]),
    ("None", &["std", "option", "Option", "None"]),
    ("Ok", &["std", "result", "Result", "Ok"]),
    ("Option", &["std", "option", "Option"]),
    ("Result", &["std", "result", "Result"]),
    ("Send", &["std", "marker", "Send"]),
    ("Some", &["std", "option", "Option", "Some"]),
    ("String", &["std", "string", "String"]),
    ("Sync", &["std", "marker", "Sync"]),
    ("TryFrom", &["std", "convert", "TryFrom"]),
    ("TryInto", &["std", "convert", "TryInto"]),
    ("Vec", &["std", "vec", "Vec"]),
];

const MARK: &str = "__idl_";

/// The names of the prelude that generated code uses.
pub(super) fn used() -> impl Iterator<Item = &'static str> {
    USED.iter().map(|(used, _)| *used)
}

/// Whether generated code uses this name of the prelude.
pub(super) fn is_used(name: &str) -> bool {
    USED.iter().any(|(used, _)| *used == name)
}

/// The identifier of an IDL definition with that name.
pub(super) fn marked(name: &str) -> Ident {
    Ident::new(&format!("{MARK}{name}"), Span::call_site())
}

/// The name without its mark, if it has one.
pub(super) fn plain(name: &str) -> &str {
    name.strip_prefix(MARK).unwrap_or(name)
}

/// Removes the marks from a piece of a Rust module, and writes hidden prelude names in full: `hidden` lists
/// the names defined by other pieces. Nested modules are not touched: names of the enclosing module are not
/// visible in them.
pub(super) fn unmark(tokens: TokenStream, hidden: &[&str]) -> TokenStream {
    let mut hidden: HashSet<String> = hidden.iter().map(|&name| name.to_owned()).collect();
    marks(tokens.clone(), &mut hidden);
    if hidden.is_empty() { tokens } else { rewrite(tokens, &hidden) }
}

fn marks(tokens: TokenStream, markers: &mut HashSet<String>) {
    let mut groups = OutsideModules::default();
    for token in tokens {
        match &token {
            TokenTree::Ident(ident) => markers.extend(ident.to_string().strip_prefix(MARK).map(str::to_owned)),
            TokenTree::Group(group) if groups.is_outside() => marks(group.stream(), markers),
            _ => {}
        }
        groups.pass(&token);
    }
}

fn rewrite(tokens: TokenStream, hidden: &HashSet<String>) -> TokenStream {
    let mut rewritten = TokenStream::new();
    let mut groups = OutsideModules::default();
    let mut in_path = false; // after `::`, where a name is not a prelude name
    let mut colon = false;
    for token in tokens {
        match &token {
            TokenTree::Ident(ident) => rewritten.extend(spell(ident, in_path, hidden)),
            TokenTree::Group(group) if groups.is_outside() => {
                let inner = Group::new(group.delimiter(), rewrite(group.stream(), hidden));
                rewritten.extend([TokenTree::Group(inner)]);
            }
            _ => rewritten.extend([token.clone()]),
        }
        let is_colon = matches!(&token, TokenTree::Punct(punct) if punct.as_char() == ':');
        in_path = colon && is_colon;
        colon = is_colon;
        groups.pass(&token);
    }
    rewritten
}

/// Distinguishes the braces of `mod name { … }` from all others, in a pass over tokens.
#[derive(Debug, Default)]
pub(super) struct OutsideModules {
    /// Tokens since `mod`: 1 after it, 2 after the name.
    since_mod: usize,
}

impl OutsideModules {
    /// Whether the next group is anything but a module's contents.
    pub(super) fn is_outside(&self) -> bool {
        self.since_mod != 2
    }

    pub(super) fn pass(&mut self, token: &TokenTree) {
        self.since_mod = match token {
            TokenTree::Ident(ident) if ident == "mod" => 1,
            TokenTree::Ident(_) if self.since_mod == 1 => 2,
            _ => 0,
        };
    }
}

fn spell(ident: &Ident, in_path: bool, hidden: &HashSet<String>) -> TokenStream {
    let name = ident.to_string();
    if let Some(name) = name.strip_prefix(MARK) {
        return TokenTree::Ident(Ident::new(name, ident.span())).into();
    }
    match USED.iter().find(|(used, _)| *used == name) {
        Some((_, path)) if !in_path && hidden.contains(&name) => path.iter().flat_map(|part| segment(part)).collect(),
        _ => TokenTree::Ident(ident.clone()).into(),
    }
}

/// The tokens of `::part` in a path.
fn segment(part: &str) -> [TokenTree; 3] {
    [
        Punct::new(':', Spacing::Joint).into(),
        Punct::new(':', Spacing::Alone).into(),
        Ident::new(part, Span::call_site()).into(),
    ]
}

#[cfg(test)]
mod tests {
    use quote::quote;

    use super::*;

    #[test]
    fn a_short_name_is_kept_where_it_is_not_hidden() {
        let tokens = quote! { fn f(s: String) -> Result<(), E> { Ok(()) } };
        assert_eq!(unmark(tokens.clone(), &[]).to_string(), tokens.to_string());
    }

    #[test]
    fn a_full_path_is_written_where_the_idl_defines_the_name() {
        let result = marked("Result");
        let tokens = quote! {
            struct #result;
            fn f(r: Result<(), ()>) -> Result<super::#result, E> { Ok(super::#result) }
            mod inner { fn f() -> Result<(), E> { Ok(()) } }
        };
        let expected = quote! {
            struct Result;
            fn f(r: ::std::result::Result<(), ()>) -> ::std::result::Result<super::Result, E> { Ok(super::Result) }
            mod inner { fn f() -> Result<(), E> { Ok(()) } }
        };
        assert_eq!(unmark(tokens, &[]).to_string(), expected.to_string());
    }
}
