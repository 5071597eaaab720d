//! What the core asks of an object adapter; the adapters themselves stand above it.

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
    /// The exception to answer with when the servant did not reply itself: OBJECT_NOT_EXIST for a key that nobody has.
    fn dispatch(&self, object_key: &[u8], operation: &str, call: ServerCall<'_>) -> Result<Replied, SystemException>;

    /// Runs `upcall` with the object's servant, for a caller in this process that does not marshal: the object is in use meanwhile, and
    /// all that is known to the servant of a request's upcall is known to it. False, and nothing happened, if a request would
    /// have to wait, to be forwarded, or to be run by another thread: then it comes by [`dispatch`](Self::dispatch).
    ///
    /// # Errors
    /// The exception to end the call with, as from [`dispatch`](Self::dispatch).
    fn enter(
        &self,
        object_key: &[u8],
        operation: &str,
        upcall: &mut dyn FnMut(&Arc<dyn Servant>),
    ) -> Result<bool, SystemException> {
        _ = (object_key, operation, upcall);
        Ok(false)
    }

    /// Says where the object is, without running anything on it (LocateRequest).
    ///
    /// # Errors
    /// The exception by which a request would be refused at present, though the object may be here.
    fn locate(&self, object_key: &[u8]) -> Result<Located, SystemException>;

    /// Whether the object is called over connections that its own ORB has opened, if its adapter says so itself.
    fn bidirectional_policy(&self, object_key: &[u8]) -> Option<BidirectionalPolicy> {
        _ = object_key;
        None
    }

    /// How many requests are held until something changes here.
    fn held(&self) -> usize {
        0
    }

    /// The ORB begins to end: what waits for its turn here never has one, and is to be answered now. Requests that run go on.
    fn begin_close(&self) {}

    /// Lets all servants go: the ORB has ended. Called without any lock held.
    fn close(&self);

    /// Itself, for whoever installed it and wants its own type back.
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

/// What an adapter says of the object that an upcall is for.
///
/// It lives as long as the upcall; what outlives that is [kept in use](Self::keep_in_use).
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

    /// How the operations of the adapter's servants are found.
    fn operation_demux(&self) -> OperationDemux {
        OperationDemux::default()
    }

    /// Keeps the object in use until what is returned is dropped: its request will be answered after the upcall.
    fn keep_in_use(&self) -> Box<dyn Any + Send + Sync>;
}

/// Where an object is.
#[derive(Clone, Debug, PartialEq)]
pub enum Located {
    /// Here.
    Here,
    /// Nowhere that this server knows of.
    Unknown,
    /// At another reference, for now.
    Forward(Ior),
    /// At another reference, and this one is worthless from now on. Of GIOP 1.0 and 1.1 servers cannot be told, nor clients.
    ForwardPermanently(Ior),
}

/// What an adapter does with requests (`PortableInterceptor::AdapterState`, 16.5.5).
#[cfg(feature = "server")]
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[repr(i16)]
pub enum AdapterState {
    /// They wait.
    Holding = 0,
    /// They are run.
    Active = 1,
    /// They are refused for now.
    Discarding = 2,
    /// They are refused for ever.
    Inactive = 3,
    /// There is no adapter any more.
    NonExistent = 4,
}

/// What an adapter that is being made says of itself.
#[cfg(feature = "server")]
pub trait AdapterDescription {
    /// The names of the adapters from the root to itself.
    fn adapter_name(&self) -> Vec<String>;

    /// What its manager is called.
    fn manager_id(&self) -> &str;

    /// What it does with requests now.
    fn state(&self) -> AdapterState;

    /// Its policy of this type, if it has one.
    fn policy(&self, policy_type: PolicyType) -> Option<Policy>;
}
