//! What applications implement so that an adapter finds servants and adapters that are not there yet (CORBA 3.3 Part 1, 15.3.4 to 15.3.7).

use std::{
    any::Any,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
};

use spandrel_orb::{ObjectRef, Servant, SystemException};
use spandrel_sync::Arc;

use super::Poa;
use crate::ObjectId;

/// Drops what is the application's. If that panics, those who wait for what ends with it wait no longer for that.
pub(crate) fn let_go<T>(theirs: T) {
    if catch_unwind(AssertUnwindSafe(|| drop(theirs))).is_err() {
        tracing::error!("a servant panicked when it was dropped");
    }
}

/// Makes adapters when they are needed (15.3.4).
pub trait AdapterActivator: Send + Sync {
    /// Makes the child of `parent` with this name, and sets it up. Requests for it wait meanwhile.
    ///
    /// True if it was made. A panic is taken for a system exception: OBJ_ADAPTER for whoever wanted the adapter.
    fn unknown_adapter(&self, parent: &Poa, name: &str) -> bool;
}

/// Why there is no servant for a request.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Incarnation {
    /// Another object is to be asked (LOCATION_FORWARD).
    ForwardRequest(ObjectRef),
    /// The same for good: the reference that led here is worthless from now on (LOCATION_FORWARD_PERM). Clients of GIOP 1.0 and 1.1
    /// are told the other.
    ForwardPermanently(ObjectRef),
    /// The request is answered with this.
    System(SystemException),
}

impl From<SystemException> for Incarnation {
    fn from(exception: SystemException) -> Self {
        Self::System(exception)
    }
}

/// Finds servants that the adapter then remembers: for adapters with RETAIN and USE_SERVANT_MANAGER (15.3.6).
pub trait ServantActivator: Send + Sync {
    /// Finds or makes the servant of an object that is not active. Never called twice at once for one object, nor while it is etherealized.
    ///
    /// # Errors
    /// That there is none, and why.
    fn incarnate(&self, oid: &ObjectId, adapter: &Poa) -> Result<Arc<dyn Servant>, Incarnation>;

    /// An object is no longer active, and no request uses it.
    ///
    /// `cleanup_in_progress`: because the adapter or its manager ends. `remaining_activations`: the servant stands behind others.
    fn etherealize(
        &self,
        oid: &ObjectId,
        adapter: &Poa,
        servant: Arc<dyn Servant>,
        cleanup_in_progress: bool,
        remaining_activations: bool,
    );
}

/// What a servant locator remembers of a request from its beginning to its end.
pub type Cookie = Box<dyn Any + Send>;

/// Finds a servant for each request: for adapters with NON_RETAIN and USE_SERVANT_MANAGER (15.3.7).
pub trait ServantLocator: Send + Sync {
    /// Finds or makes a servant for one request.
    ///
    /// # Errors
    /// That there is none, and why.
    fn preinvoke(
        &self,
        oid: &ObjectId,
        adapter: &Poa,
        operation: &str,
    ) -> Result<(Arc<dyn Servant>, Cookie), Incarnation>;

    /// The request has ended: its upcall has returned, or it has been answered if that came later. The answer is on its way by then.
    fn postinvoke(&self, oid: &ObjectId, adapter: &Poa, operation: &str, cookie: Cookie, servant: Arc<dyn Servant>);
}

/// One of the two kinds of servant manager (15.3.5).
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
