//! Exceptions that operations raise, as text.

use std::fmt;

use anyhow::anyhow;
use spandrel::dynamic::{DynAny, RequestError};

/// An exception of the operation, with its members.
#[derive(Debug)]
pub(super) struct OperationException(pub(super) RequestError);

impl fmt::Display for OperationException {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let members = match &self.0 {
            RequestError::Raised(raised) => DynAny::new(&raised.exception).ok(),
            _ => None,
        };
        match members {
            Some(members) => write!(f, "{} {members}", self.0),
            None => self.0.fmt(f),
        }
    }
}

impl std::error::Error for OperationException {}

/// The error of a call for people and programs.
pub(crate) fn explain(error: RequestError) -> anyhow::Error {
    match error {
        RequestError::System(exception) => anyhow!(exception),
        raised => anyhow!(OperationException(raised)),
    }
}
