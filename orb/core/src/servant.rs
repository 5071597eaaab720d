//! What an adapter calls: a servant behind its skeleton.

#[cfg(feature = "server")]
use spandrel_giop::SystemException;

#[cfg(feature = "server")]
use crate::ServerCall;

/// Proof that a call was answered, or wanted no answer. Only a [`ServerCall`] makes one.
#[derive(Debug)]
#[must_use]
pub struct Replied(pub(crate) ());

/// An implementation of an interface that requests can be dispatched to; generated skeletons implement it.
#[cfg(feature = "server")]
pub trait Servant: Send + Sync {
    /// The repository id of the most derived interface.
    fn repository_id(&self) -> &'static str;

    /// True if the servant supports the interface with this repository id.
    fn is_a(&self, repository_id: &str) -> bool;

    /// Runs one operation and answers the call.
    ///
    /// # Errors
    /// The system exception to answer with instead.
    fn dispatch(&self, operation: &str, call: ServerCall<'_>) -> Result<Replied, SystemException>;
}
