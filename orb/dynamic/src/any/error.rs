//! The error of an operation on a dynamic value.

use spandrel_cdr::{CdrError, TcKind, TypeCode, TypeCodeError};
use spandrel_error::excerpt;

/// The exceptions of `DynAny` and `DynAnyFactory`.
///
/// ```
/// # mod spandrel { pub use spandrel_orb::*; pub mod dynamic { pub use spandrel_dynamic::*; } pub mod types { pub use spandrel_cdr::{Any, TypeCode}; } }
/// use spandrel::dynamic::{DynAny, DynAnyError};
/// use spandrel::types::TypeCode;
///
/// let mut number = DynAny::of_type(&TypeCode::LONG)?;
/// let error = number.as_struct().unwrap_err();
/// assert!(matches!(error, DynAnyError::TypeMismatch { .. }));
/// assert_eq!(error.to_string(), "expected a struct or an exception, found a value of type `long`");
/// # Ok::<(), DynAnyError>(())
/// ```
#[derive(Clone, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DynAnyError {
    /// The value is not of the operation's type: IDL `DynAny::TypeMismatch`.
    #[error("expected {}, found {}", excerpt(expected), excerpt(found))]
    TypeMismatch {
        /// The type that the operation requires of the value, or of the component at the current position.
        expected: String,
        /// The type that it has, or the reason for which it is not the expected one.
        found: String,
    },
    /// There is no current component, or the given value is invalid for the type: IDL `DynAny::InvalidValue`.
    #[error("{0}")]
    InvalidValue(&'static str),
    /// Types without dynamic values: IDL `DynAnyFactory::InconsistentTypeCode`.
    #[error("there are no dynamic values of kind {0}")]
    InconsistentTypeCode(TcKind),
    /// The value's type derives from that of its type code: IDL `DynAnyFactory::MustTruncate`.
    #[error("the value is of a derived type, and would be truncated to its base")]
    MustTruncate,
    /// The value has more components than the limit.
    #[error("the value has more than {limit} components, or nests too deep")]
    TooLarge {
        /// The greatest number of components permitted.
        limit: usize,
    },
    /// The value cannot be encoded, or the octets are not a value of the type.
    #[error(transparent)]
    Octets(#[from] CdrError),
}
spandrel_error::debug_as_report!(DynAnyError);

impl From<TypeCodeError> for DynAnyError {
    /// A type code without a property of its kind.
    fn from(error: TypeCodeError) -> Self {
        Self::TypeMismatch { expected: "a value of another type".to_owned(), found: error.to_string() }
    }
}

/// The error of a value of this type.
pub(crate) fn mismatch(expected: impl Into<String>, found: &TypeCode) -> DynAnyError {
    DynAnyError::TypeMismatch { expected: expected.into(), found: format!("a value of type `{found}`") }
}

pub(crate) const NO_CURRENT: DynAnyError = DynAnyError::InvalidValue("there is no current component");
