//! User exceptions as Rust errors.

use spandrel_cdr::{CdrError, Decode, Decoder, Encode};
use spandrel_giop::SystemException;

use crate::{Replied, ServerCall};

/// An exception declared in IDL.
pub trait UserException: Encode + Decode + std::error::Error {
    /// The repository id, which precedes the members on the wire.
    const REPOSITORY_ID: &'static str;
}

/// The error type of an operation: its user exceptions, and system exceptions.
///
/// Generated enums implement it, and so does [`SystemException`] for operations without user exceptions.
pub trait UserExceptions: From<SystemException> + Sized {
    /// Decodes the members of the exception with this repository id; `None` if the operation does not raise
    /// it.
    fn decode(repository_id: &str, input: &mut Decoder<'_>) -> Option<Result<Self, CdrError>>;

    /// Answers a call with this exception.
    ///
    /// # Errors
    /// The system exception to answer with, if this is one or if a member cannot be marshaled.
    fn raise(&self, call: ServerCall<'_>) -> Result<Replied, SystemException>;
}

impl UserExceptions for SystemException {
    fn decode(_repository_id: &str, _input: &mut Decoder<'_>) -> Option<Result<Self, CdrError>> {
        None
    }

    fn raise(&self, _call: ServerCall<'_>) -> Result<Replied, SystemException> {
        Err(self.clone())
    }
}
