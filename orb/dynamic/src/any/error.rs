//! Why an operation on a value of unknown type was not possible.

use spandrel_cdr::{CdrError, TcKind, TypeCodeError};

/// The exceptions of `DynAny` and `DynAnyFactory`.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DynAnyError {
    /// The value is not of the type that the operation is for: IDL `DynAny::TypeMismatch`.
    #[error("the value, or the component at the current position, is not of a type that this operation is for")]
    TypeMismatch,
    /// There is no current component, or what was given is no value of the type: IDL `DynAny::InvalidValue`.
    #[error("{0}")]
    InvalidValue(&'static str),
    /// There is no `DynAny` of such types: IDL `DynAnyFactory::InconsistentTypeCode`.
    #[error("there are no dynamic values of kind {0}")]
    InconsistentTypeCode(TcKind),
    /// The value is of a type that derives from what its type code says: IDL `DynAnyFactory::MustTruncate`.
    #[error("the value is of a derived type, and would have to be cut to its base")]
    MustTruncate,
    /// The value has more components than are allowed for.
    #[error("the value has more than {limit} components, or nests too deep")]
    TooLarge {
        /// How many are allowed for.
        limit: usize,
    },
    /// The value cannot be written, or octets are no value of the type.
    #[error(transparent)]
    Octets(#[from] CdrError),
}

impl From<TypeCodeError> for DynAnyError {
    /// A type code that does not have what its kind has.
    fn from(_: TypeCodeError) -> Self {
        Self::TypeMismatch
    }
}

pub(crate) const NO_CURRENT: DynAnyError = DynAnyError::InvalidValue("there is no current component");
