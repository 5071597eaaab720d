//! The errors of dynamic invocations.

use std::fmt;

use spandrel_cdr::{Any, Decode, Typed};
use spandrel_giop::SystemException;

/// An exception that the operation raised, with its members in an `Any`: IDL `CORBA::UnknownUserException`.
#[derive(Clone, PartialEq)]
pub struct UnknownUserException {
    /// The value of the exception, with a type that the request lists.
    pub exception: Any,
}
spandrel_error::debug_as_report!(UnknownUserException);

impl UnknownUserException {
    /// The repository id of the exception; empty if its type has none.
    #[must_use]
    pub fn repository_id(&self) -> &str {
        self.exception.type_code().id().unwrap_or_default()
    }

    /// The exception as a Rust value, if it is this one.
    #[must_use]
    pub fn extract<X: Decode + Typed>(&self) -> Option<X> {
        self.exception.extract().ok()
    }
}

impl fmt::Display for UnknownUserException {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the operation raised `{}`", spandrel_error::excerpt(self.repository_id()))
    }
}

impl std::error::Error for UnknownUserException {}

/// The reason for which a dynamic invocation has no results.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The operation raised an exception that the request lists.
    #[error(transparent)]
    Raised(#[from] UnknownUserException),
    /// A system exception, of the ORB here or of the server.
    #[error(transparent)]
    System(#[from] SystemException),
}
spandrel_error::debug_as_report!(RequestError);

impl RequestError {
    /// The exception that the operation raised as a Rust value, if it is this one.
    #[must_use]
    pub fn extract<X: Decode + Typed>(&self) -> Option<X> {
        match self {
            Self::Raised(raised) => raised.extract(),
            Self::System(_) => None,
        }
    }
}

impl From<spandrel_cdr::CdrError> for RequestError {
    /// A value that cannot be encoded or decoded.
    fn from(error: spandrel_cdr::CdrError) -> Self {
        Self::System(error.into())
    }
}
