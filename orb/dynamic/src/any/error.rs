//! The error of an operation on a dynamic value.

use spandrel_cdr::{CdrError, TcKind, TypeCodeError};

/// The exceptions of `DynAny` and `DynAnyFactory`.
///
/// ```
/// # mod spandrel { pub use spandrel_orb::*; pub mod dynamic { pub use spandrel_dynamic::*; } pub mod types { pub use spandrel_cdr::{Any, TypeCode}; } }
/// use spandrel::dynamic::{DynAny, DynAnyError};
/// use spandrel::types::TypeCode;
///
/// let mut number = DynAny::of_type(&TypeCode::LONG)?;
/// match number.as_struct() {
///     Err(DynAnyError::TypeMismatch) => {} // A `long` has no members.
///     other => panic!("{other:?}"),
/// }
/// # Ok::<(), DynAnyError>(())
/// ```
#[derive(Clone, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DynAnyError {
    /// The value is not of the operation's type: IDL `DynAny::TypeMismatch`.
    #[error("the value, or the component at the current position, is not of this operation's type")]
    TypeMismatch,
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
        /// The limit.
        limit: usize,
    },
    /// The value cannot be encoded, or the octets are not a value of the type.
    #[error(transparent)]
    Octets(#[from] CdrError),
}
spandrel_error::debug_as_report!(DynAnyError);

impl From<TypeCodeError> for DynAnyError {
    /// A type code without a property of its kind.
    fn from(_: TypeCodeError) -> Self {
        Self::TypeMismatch
    }
}

pub(crate) const NO_CURRENT: DynAnyError = DynAnyError::InvalidValue("there is no current component");
