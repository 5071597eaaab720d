//! The interface between the server and object adapters, which are implemented in crates above it.

use std::{any::Any, fmt};

use spandrel_giop::SystemException;
use spandrel_orb::{BidirectionalPolicy, Located};
use spandrel_sync::Arc;

use crate::{Entry, Resolution};

/// Finds the servants of object keys. Called from many threads at once.
pub trait ObjectAdapter: Send + Sync + fmt::Debug {
    /// Finds the servant for one call on an object, and takes it into use. No lock is held when this returns.
    ///
    /// # Errors
    /// The exception that the call ends with: OBJECT_NOT_EXIST for an unknown key.
    fn resolve(&self, object_key: &[u8], operation: &str, entry: Entry<'_>) -> Result<Resolution, SystemException>;

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
