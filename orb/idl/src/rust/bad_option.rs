//! The error of an invalid option value.

use std::borrow::Cow;

/// Parses the text, which is stored as text because it must be `Send`.
pub(super) fn parse<T: syn::parse::Parse>(text: &str, expected: &'static str) -> Result<T, BadOption> {
    syn::parse_str(text).map_err(|_| BadOption { given: text.to_owned(), expected: expected.into() })
}

/// The error of an invalid option value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is not {expected}")]
pub struct BadOption {
    pub(super) given: String,
    pub(super) expected: Cow<'static, str>,
}
