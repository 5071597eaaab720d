//! The error of an invalid option value.

use std::borrow::Cow;

use proc_macro2::{TokenStream, TokenTree};

/// Parses the text, which is stored as text because it must be `Send`.
pub(super) fn parse<T: syn::parse::Parse>(text: &str, expected: &'static str) -> Result<T, BadOption> {
    let parsed = syn::parse_str(text).ok().filter(|_| !text.parse().is_ok_and(has_later_keyword));
    parsed.ok_or_else(|| BadOption { value: text.to_owned(), expected: expected.into() })
}

/// Whether there is `gen`, a keyword since edition 2024, which the parser takes for an identifier.
fn has_later_keyword(tokens: TokenStream) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(ident) => ident == "gen",
        TokenTree::Group(group) => has_later_keyword(group.stream()),
        TokenTree::Punct(_) | TokenTree::Literal(_) => false,
    })
}

/// A value that an option of the generator does not take, with the expected ones.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{value}` is not {expected}")]
pub struct BadOption {
    pub(super) value: String,
    pub(super) expected: Cow<'static, str>,
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn keywords_of_every_edition_are_refused_unless_they_are_raw() {
        for (text, is_path) in [
            ("crate::gen::x", false),
            ("gen", false),
            ("a<gen>", false),
            ("match", false),
            ("r#gen::x", true),
            ("gen_", true),
        ] {
            assert_eq!(parse::<syn::Path>(text, "a path").is_ok(), is_path, "{text}");
        }
    }
}
