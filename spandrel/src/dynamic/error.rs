//! Why there is no description of something.

use spandrel_cdr::TypeCodeError;
use spandrel_idl::{Diagnostics, model::Definition};

/// Why there is no description of something.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DescribeError {
    /// The text is no IDL; the explanation shows where.
    #[error("{0}")]
    Idl(Diagnostics),
    /// Nothing has this name or id.
    #[error("the IDL declares no {what} `{name}`")]
    Unknown {
        /// What was looked for.
        what: &'static str,
        /// The name or id.
        name: String,
    },
    /// There are no dynamic values of it.
    #[error("`{name}` has no dynamic form: {why}")]
    Unsupported {
        /// Its full name.
        name: String,
        /// The reason.
        why: String,
    },
}

pub(super) fn unsupported(definition: &Definition, why: &str) -> DescribeError {
    DescribeError::Unsupported { name: definition.scoped_name.clone(), why: why.to_owned() }
}

pub(super) fn impossible(name: &str, error: &TypeCodeError) -> DescribeError {
    DescribeError::Unsupported { name: name.to_owned(), why: error.to_string() }
}
