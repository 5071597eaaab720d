//! The interface between the server and object adapters, which are implemented in crates above it.

use std::{any::Any, fmt};

use spandrel_giop::SystemException;
use spandrel_orb::{BidirectionalPolicy, Located};
use spandrel_sync::Arc;

use crate::{Replied, Servant, ServerCall};

/// Finds the servant of an object key and runs requests on it. Called from many threads at once.
pub trait ObjectAdapter: Send + Sync + fmt::Debug {
    /// Runs one request, by [`ServerCall::run`]. No lock may be held while the servant runs.
    ///
    /// # Errors
    /// The exception to reply with if the servant did not reply itself: OBJECT_NOT_EXIST for an unknown key.
    fn dispatch(&self, object_key: &[u8], operation: &str, call: ServerCall<'_>) -> Result<Replied, SystemException>;

    /// Runs `upcall` with the object's servant, for a caller in this process that does not marshal. The
    /// object is in use meanwhile, and the servant has the same context as in the upcall of a request.
    /// Returns false without an effect if a request would have to wait, to be forwarded, or to be run by
    /// another thread: the caller then uses [`dispatch`](Self::dispatch).
    ///
    /// # Errors
    /// The exception that the call ends with, as from [`dispatch`](Self::dispatch).
    fn enter(
        &self,
        object_key: &[u8],
        operation: &str,
        upcall: &mut dyn FnMut(&Arc<dyn Servant>),
    ) -> Result<bool, SystemException> {
        _ = (object_key, operation, upcall);
        Ok(false)
    }

    /// Locates the object, without running an operation on it (LocateRequest).
    ///
    /// # Errors
    /// The exception that a request would be refused with at present, though the object may exist here.
    fn locate(&self, object_key: &[u8]) -> Result<Located, SystemException>;

    /// The adapter's bidirectional policy, if it has one: whether the object is called over connections that
    /// its own ORB has opened.
    fn bidirectional_policy(&self, object_key: &[u8]) -> Option<BidirectionalPolicy> {
        _ = object_key;
        None
    }

    /// The number of requests that the adapter's managers hold.
    fn held(&self) -> usize {
        0
    }

    /// Ends all waiting requests, when the ORB begins to shut down: they are to be answered now. Requests
    /// that run go on.
    fn begin_close(&self) {}

    /// Releases all servants, after the end of the ORB. Called without any lock held.
    fn close(&self);

    /// Returns the adapter as `Any`, for a downcast to its own type.
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}
