//! User exceptions as Rust errors.

use spandrel_cdr::{CdrError, Decode, Decoder, Encode, engine::Value};
use spandrel_giop::SystemException;

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

    /// The repository id and the members of the user exception, for a reply.
    ///
    /// # Errors
    /// The system exception, if this is one.
    fn members(&self) -> Result<(&'static str, Value<'_>), SystemException>;
}

impl UserExceptions for SystemException {
    fn decode(_repository_id: &str, _input: &mut Decoder<'_>) -> Option<Result<Self, CdrError>> {
        None
    }

    fn members(&self) -> Result<(&'static str, Value<'_>), SystemException> {
        Err(self.clone())
    }
}
