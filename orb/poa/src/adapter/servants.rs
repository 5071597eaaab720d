//! Callback traits by which applications supply servants and adapters on demand (CORBA 3.3 Part 1, 15.3.4 to
//! 15.3.7).

use std::{
    any::Any,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
};

use spandrel_orb::{ObjectRef, SystemException};
use spandrel_server::Servant;
use spandrel_sync::Arc;

use super::Poa;
use crate::ObjectId;

/// Drops an object of the application's. A panic in its destructor is logged, so that waiting threads are not
/// affected.
pub(crate) fn drop_logged<T>(value: T) {
    if catch_unwind(AssertUnwindSafe(|| drop(value))).is_err() {
        tracing::error!("a servant panicked when it was dropped");
    }
}

/// Creates adapters on demand (15.3.4).
pub trait AdapterActivator: Send + Sync {
    /// Creates the child of `parent` with this name, and sets it up. Requests for it wait meanwhile.
    ///
    /// Returns true if it was created. A panic counts as a system exception: OBJ_ADAPTER for the request that
    /// needs the adapter.
    fn unknown_adapter(&self, parent: &Poa, name: &str) -> bool;
}

/// The reason for which a servant manager supplies no servant.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Incarnation {
    /// The request goes to another object (LOCATION_FORWARD).
    ForwardRequest(ObjectRef),
    /// As `ForwardRequest`, permanently: the original reference is invalid from now on
    /// (LOCATION_FORWARD_PERM). Clients of GIOP 1.0 and 1.1 receive LOCATION_FORWARD.
    ForwardPermanently(ObjectRef),
    /// The request is answered with this exception.
    System(SystemException),
}

impl From<SystemException> for Incarnation {
    fn from(exception: SystemException) -> Self {
        Self::System(exception)
    }
}

/// Supplies servants that the adapter then retains: for adapters with RETAIN and USE_SERVANT_MANAGER
/// (15.3.6).
pub trait ServantActivator: Send + Sync {
    /// Finds or creates the servant of an inactive object. The calls for one object do not overlap, nor do
    /// they overlap its etherealization.
    ///
    /// # Errors
    /// The forwarding or exception with which to answer the request.
    fn incarnate(&self, oid: &ObjectId, adapter: &Poa) -> Result<Arc<dyn Servant>, Incarnation>;

    /// Releases the servant of an object that is no longer active and not in use.
    ///
    /// `cleanup_in_progress`: the adapter is being destroyed or its manager deactivated.
    /// `remaining_activations`: the servant serves other objects too.
    fn etherealize(
        &self,
        oid: &ObjectId,
        adapter: &Poa,
        servant: Arc<dyn Servant>,
        cleanup_in_progress: bool,
        remaining_activations: bool,
    );
}

/// The data that a servant locator attaches to a request, from its beginning to its end.
pub type Cookie = Box<dyn Any + Send>;

/// Supplies a servant for each request: for adapters with NON_RETAIN and USE_SERVANT_MANAGER (15.3.7).
pub trait ServantLocator: Send + Sync {
    /// Finds or creates a servant for one request.
    ///
    /// # Errors
    /// The forwarding or exception with which to answer the request.
    fn preinvoke(
        &self,
        oid: &ObjectId,
        adapter: &Poa,
        operation: &str,
    ) -> Result<(Arc<dyn Servant>, Cookie), Incarnation>;

    /// Called when the servant has completed the request, before the reply is sent (15.3.7.2).
    ///
    /// # Errors
    /// A system exception, which the client receives instead of results; exceptions of the servant stay. A
    /// panic counts as UNKNOWN.
    fn postinvoke(
        &self,
        oid: &ObjectId,
        adapter: &Poa,
        operation: &str,
        cookie: Cookie,
        servant: Arc<dyn Servant>,
    ) -> Result<(), SystemException>;
}

/// A servant manager of one of the two kinds (15.3.5).
#[derive(Clone)]
pub enum ServantManager {
    /// For adapters that retain servants.
    Activator(Arc<dyn ServantActivator>),
    /// For adapters that do not.
    Locator(Arc<dyn ServantLocator>),
}

impl fmt::Debug for ServantManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Activator(_) => "Activator(..)",
            Self::Locator(_) => "Locator(..)",
        })
    }
}
