//! The interface between the core and object adapters, which are implemented in crates above it.

#[cfg(feature = "server")]
mod resolution;

#[cfg(feature = "server")]
use std::{any::Any, fmt};

use spandrel_cdr::Ior;
#[cfg(feature = "server")]
use spandrel_giop::SystemException;
#[cfg(feature = "server")]
use spandrel_sync::Arc;

#[cfg(feature = "server")]
use crate::{BidirectionalPolicy, Policy, PolicyType};
#[cfg(feature = "server")]
pub use resolution::{AdapterWait, Entry, KeptUse, LastTarget, Reservation, Resolution, ServantUse, Target, Upcall};

/// Finds the servants of object keys. Called from many threads at once.
#[cfg(feature = "server")]
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

/// The location of an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Located {
    /// In this server.
    Here,
    /// Unknown to this server.
    Unknown,
    /// Behind another reference, for now.
    Forward(Ior),
    /// Behind another reference; this one is invalid from now on. GIOP 1.0 and 1.1 cannot express this.
    ForwardPermanently(Ior),
}

/// An adapter's treatment of requests (`PortableInterceptor::AdapterState`, 16.5.5).
#[cfg(feature = "server")]
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[repr(i16)]
pub enum AdapterState {
    /// Requests wait.
    Holding = 0,
    /// Requests are run.
    Active = 1,
    /// Requests are refused for now.
    Discarding = 2,
    /// Requests are refused for ever.
    Inactive = 3,
    /// The adapter does not exist any more.
    NonExistent = 4,
}

/// The description of an adapter that is being made.
#[cfg(feature = "server")]
pub trait AdapterDescription {
    /// The names of the adapters from the root to itself.
    fn adapter_name(&self) -> Vec<String>;

    /// The id of its manager.
    fn manager_id(&self) -> &str;

    /// Its present state.
    fn state(&self) -> AdapterState;

    /// Its policy of this type, if it has one.
    fn policy(&self, policy_type: PolicyType) -> Option<Policy>;
}
