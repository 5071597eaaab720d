//! What a request uses of its adapter while it runs.

use spandrel_orb::Servant;
use spandrel_sync::{Arc, Mutex};

use crate::{
    ServantLocator,
    adapter::servants::Cookie,
    objects::{Active, Behind},
};

/// What a request uses.
pub(crate) enum InUse {
    /// An object of the active object map.
    Object(Arc<Active>),
    /// The default servant.
    Default(Arc<dyn Servant>),
    /// What a servant locator found.
    Located(Arc<Located>),
}

/// What a servant locator found for one request.
pub(crate) struct Located {
    pub(crate) locator: Arc<dyn ServantLocator>,
    pub(crate) servant: Arc<dyn Servant>,
    pub(crate) operation: String,
    /// In a lock only because it may be no more than `Send`.
    pub(crate) cookie: Mutex<Cookie>,
}

impl Located {
    pub(crate) fn new(
        locator: Arc<dyn ServantLocator>,
        operation: &str,
        (servant, cookie): (Arc<dyn Servant>, Cookie),
    ) -> Self {
        Self { locator, servant, operation: operation.to_owned(), cookie: Mutex::new(cookie) }
    }
}

impl InUse {
    /// Nothing for an object that is elsewhere.
    #[inline]
    pub(crate) fn servant(&self) -> Option<&Arc<dyn Servant>> {
        match self {
            Self::Object(active) => match &active.behind {
                Behind::Servant(servant) => Some(servant),
                Behind::Forward(_) => None,
            },
            Self::Default(servant) => Some(servant),
            Self::Located(located) => Some(&located.servant),
        }
    }
}
