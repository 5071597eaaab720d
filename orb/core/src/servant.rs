//! What an adapter calls: a servant behind its skeleton.

#[cfg(feature = "server")]
use std::any::Any;

#[cfg(feature = "server")]
use spandrel_demux::Operations;
#[cfg(feature = "server")]
use spandrel_giop::SystemException;
#[cfg(feature = "server")]
use spandrel_sync::Arc;

#[cfg(feature = "server")]
use crate::{ObjectRef, ServerCall};

/// Proof that a call was answered, or wanted no answer. Only a [`ServerCall`] makes one.
#[derive(Debug)]
#[must_use]
pub struct Replied(pub(crate) ());

/// An implementation of an interface that requests can be dispatched to; generated skeletons implement it.
#[cfg(feature = "server")]
pub trait Servant: Send + Sync {
    /// The repository id of the most derived interface.
    fn repository_id(&self) -> &str;

    /// True if the servant supports the interface with this repository id.
    fn is_a(&self, repository_id: &str) -> bool;

    /// True if there is no such object although there is a servant: default servants and dynamic ones may know (`_non_existent`).
    fn non_existent(&self) -> bool {
        false
    }

    /// The description of its interface in an interface repository, if there is one (`_interface`).
    fn interface(&self) -> Option<ObjectRef> {
        None
    }

    /// The component that its object is a facet of, if it is (`_component`).
    fn component(&self) -> Option<ObjectRef> {
        None
    }

    /// Puts itself into `place`, if that is for one of its interfaces: what stubs in the same process call without marshaling.
    /// Skeletons that are not called so leave it empty.
    fn direct(self: Arc<Self>, place: &mut dyn Any) {
        _ = place;
    }

    /// The operations that are known by their index; none for servants that look at names themselves.
    fn operations(&self) -> &'static Operations {
        Operations::NONE
    }

    /// Runs the operation with this index and answers the call. Adapters call it by [`ServerCall::run`] only.
    ///
    /// # Errors
    /// The system exception to answer with instead.
    fn upcall(&self, operation: usize, call: ServerCall<'_>) -> Result<Replied, SystemException> {
        _ = operation;
        call.refuse()
    }

    /// Runs one operation and answers the call, for servants without a table of [`operations`](Self::operations). Adapters call it by
    /// [`ServerCall::run`] only.
    ///
    /// # Errors
    /// The system exception to answer with instead.
    fn dispatch(&self, operation: &str, call: ServerCall<'_>) -> Result<Replied, SystemException> {
        _ = operation;
        call.refuse()
    }
}
