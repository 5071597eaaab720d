//! Errors of descriptions read from IDL.

use spandrel_cdr::TypeCodeError;
use spandrel_idl::{Diagnostics, model::Definition};

/// The reason why IDL does not describe an interface or a type.
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum DescribeError {
    /// The text is not valid IDL; the diagnostics name the lines.
    #[error("{0}")]
    Idl(Diagnostics),
    /// No definition has this name or id.
    #[error("the IDL declares no {what} `{name}`")]
    Unknown {
        /// The kind of definition that was looked up.
        what: &'static str,
        /// The name or id.
        name: String,
    },
    /// The definition has no dynamic values.
    #[error("`{name}` has no dynamic form: {reason}")]
    Unsupported {
        /// The name with its modules, separated by `::`.
        name: String,
        /// The reason, e.g. a member without a dynamic form.
        reason: String,
    },
}
spandrel_error::debug_as_report!(DescribeError);

impl DescribeError {
    /// The error in one line: of invalid IDL, the first error with its place ([`Diagnostics::in_line`]).
    #[must_use]
    pub fn in_line(&self) -> String {
        match self {
            Self::Idl(diagnostics) => diagnostics.in_line(),
            other => other.to_string(),
        }
    }
}

pub(super) fn unsupported(definition: &Definition, reason: &str) -> DescribeError {
    DescribeError::Unsupported { name: definition.scoped_name.clone(), reason: reason.to_owned() }
}

pub(super) fn impossible(name: &str, error: &TypeCodeError) -> DescribeError {
    DescribeError::Unsupported { name: name.to_owned(), reason: error.to_string() }
}
