//! What was given for an option, and is not what it takes.

/// The text as what it is to be: kept as text, which every thread may have.
pub(super) fn parse<T: syn::parse::Parse>(text: &str, expected: &'static str) -> Result<T, BadOption> {
    syn::parse_str(text).map_err(|_| BadOption { given: text.to_owned(), expected })
}

/// What was given for an option is not what it takes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is not {expected}")]
pub struct BadOption {
    pub(super) given: String,
    pub(super) expected: &'static str,
}
