//! The interface between the core and object adapters, which are implemented in crates above it.

#[cfg(feature = "server")]
use std::{any::Any, fmt};

use spandrel_cdr::Ior;
#[cfg(feature = "server")]
use spandrel_demux::OperationDemux;
#[cfg(feature = "server")]
use spandrel_giop::SystemException;
#[cfg(feature = "server")]
use spandrel_sync::Arc;

#[cfg(feature = "server")]
use crate::{BidirectionalPolicy, Policy, PolicyType, Replied, Servant, ServerCall};

/// Finds the servant of an object key and runs requests on it. Called from many threads at once.
#[cfg(feature = "server")]
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

/// The adapter's information on the object of an upcall.
///
/// It lives as long as the upcall; [`keep_in_use`](Self::keep_in_use) is for use beyond it.
#[cfg(feature = "server")]
pub trait Target: Sync {
    /// The object's id within its adapter.
    fn object_id(&self) -> &[u8];

    /// The adapter's id, unique within its ORB (CORBA 3.3 Part 1, 16.3.13.3).
    fn adapter_id(&self) -> &[u8];

    /// The names of the adapters from the root to the object's own (16.3.13.5).
    fn adapter_name(&self) -> Vec<String>;

    /// The adapter's policy of this type, if it has one.
    fn policy(&self, policy_type: PolicyType) -> Option<Policy>;

    /// The strategy for finding operations of the adapter's servants.
    fn operation_demux(&self) -> OperationDemux {
        OperationDemux::default()
    }

    /// Keeps the object in use until the result is dropped, for a request that is answered after the upcall.
    fn keep_in_use(&self) -> Box<dyn Any + Send + Sync>;
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
