//! The servant that a request uses while it runs.
//!
//! The end of its use, with `postinvoke`, is in `servant_release`.

use spandrel_orb::SystemException;
use spandrel_server::Servant;
use spandrel_sync::{Arc, Mutex, Weak};

use crate::{
    ServantLocator,
    adapter::servants::Cookie,
    objects::{ActiveObject, Binding},
};

/// The servant of a request, in use until it is released.
pub(crate) enum ServantInUse {
    /// An object of the active object map.
    Object(Arc<ActiveObject>),
    /// The servant for all objects without one of their own.
    Default(Arc<dyn Servant>),
    /// The servant from a servant locator.
    Located(Arc<LocatedServant>),
    /// The servant of a future that this thread polls. The request itself keeps it in use.
    Polled(Weak<dyn Servant>),
}

/// The servant from a servant locator, for one request.
pub(crate) struct LocatedServant {
    pub(crate) locator: Arc<dyn ServantLocator>,
    pub(crate) servant: Arc<dyn Servant>,
    pub(crate) operation: String,
    /// In a lock only because it may not be `Sync`.
    pub(crate) cookie: Mutex<Cookie>,
    /// The end of a deferred request, if the request is answered before its upcall has returned.
    pub(crate) then: Mutex<Option<UseEnd>>,
}

/// A function that gets the result of `postinvoke`.
pub(crate) type UseEnd = Box<dyn FnOnce(Result<(), SystemException>) + Send>;

impl LocatedServant {
    pub(crate) fn new(
        locator: Arc<dyn ServantLocator>,
        operation: &str,
        (servant, cookie): (Arc<dyn Servant>, Cookie),
    ) -> Self {
        Self { locator, servant, operation: operation.to_owned(), cookie: Mutex::new(cookie), then: Mutex::default() }
    }
}

impl ServantInUse {
    /// `None` for an object that is forwarded, and for the servant of a future.
    #[inline]
    pub(crate) fn servant(&self) -> Option<&Arc<dyn Servant>> {
        match self {
            Self::Object(active) => match &active.binding {
                Binding::Servant(servant) => Some(servant),
                Binding::Forward(_) => None,
            },
            Self::Default(servant) => Some(servant),
            Self::Located(located) => Some(&located.servant),
            Self::Polled(_) => None,
        }
    }
}
