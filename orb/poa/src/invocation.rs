//! What one request uses of its adapter, and gives back when it has been answered.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
};

use spandrel_orb::{OperationDemux, Policy, PolicyType, Servant, Target};
use spandrel_sync::{Arc, Mutex};

use crate::{
    ObjectId, Poa, ServantLocator,
    adapter::Adapter,
    objects::{Active, Behind},
    servants::{Cookie, let_go},
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
    locator: Arc<dyn ServantLocator>,
    servant: Arc<dyn Servant>,
    operation: String,
    /// In a lock only because it may be no more than `Send`.
    cookie: Mutex<Cookie>,
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

    /// The same once more: each is ended by itself.
    fn share(&self, adapter: &Adapter) -> Self {
        match self {
            Self::Object(active) => Self::Object(Arc::clone(active)),
            Self::Default(servant) => {
                adapter.usage.start_another();
                Self::Default(Arc::clone(servant))
            }
            Self::Located(located) => {
                adapter.usage.start_another();
                Self::Located(Arc::clone(located))
            }
        }
    }

    /// The request has been answered. Whoever learns that nobody else uses the object ends what was to end with that.
    #[inline]
    pub(crate) fn end(self, adapter: &Arc<Adapter>, id: &[u8]) {
        match self {
            Self::Object(active) => {
                if let Some(active) = Arc::into_inner(active) {
                    adapter.object_ended(id, active, true);
                }
                adapter.usage.note_end();
            }
            Self::Default(servant) => {
                let_go(servant);
                adapter.end_counted();
            }
            Self::Located(located) => {
                if let Some(located) = Arc::into_inner(located) {
                    located.end(adapter, id);
                }
                adapter.end_counted();
            }
        }
    }
}

impl Located {
    pub(crate) fn servant(&self) -> &Arc<dyn Servant> {
        &self.servant
    }

    fn end(self, adapter: &Arc<Adapter>, id: &[u8]) {
        let Ok(poa) = Poa::of(adapter) else { return let_go(self) };
        let Self { locator, servant, operation, cookie } = self;
        spandrel_sync::held::assert_none("a servant locator");
        let told = catch_unwind(AssertUnwindSafe(|| {
            locator.postinvoke(&ObjectId::from(id), &poa, &operation, cookie.into_inner(), servant);
        }));
        if told.is_err() {
            tracing::error!(%operation, "a servant locator panicked in postinvoke");
        }
    }
}

/// An upcall, as the core sees it.
pub(crate) struct Invocation<'c> {
    pub(crate) adapter: &'c Arc<Adapter>,
    pub(crate) id: &'c [u8],
    pub(crate) in_use: &'c InUse,
}

impl Target for Invocation<'_> {
    fn object_id(&self) -> &[u8] {
        self.id
    }

    fn adapter_id(&self) -> &[u8] {
        &self.adapter.prefix
    }

    fn adapter_name(&self) -> Vec<String> {
        self.adapter.full_name()
    }

    fn policy(&self, policy_type: PolicyType) -> Option<Policy> {
        self.adapter.policy(policy_type)
    }

    fn operation_demux(&self) -> OperationDemux {
        self.adapter.operation_demux
    }

    fn detain(&self) -> Box<dyn Any + Send + Sync> {
        Box::new(Detained {
            adapter: Arc::clone(self.adapter),
            id: self.id.into(),
            in_use: Mutex::new(Some(self.in_use.share(self.adapter))),
        })
    }
}

/// Keeps in use what a request uses that is answered after its upcall.
struct Detained {
    adapter: Arc<Adapter>,
    id: ObjectId,
    in_use: Mutex<Option<InUse>>,
}

impl Drop for Detained {
    fn drop(&mut self) {
        let Some(in_use) = self.in_use.lock().take() else { return };
        let (adapter, id) = (Arc::clone(&self.adapter), self.id.clone());
        // Any thread may be here; a servant manager may be told in the adapter's own only.
        if adapter.servant_manager.read().is_none() {
            return in_use.end(&adapter, &id);
        }
        let own = Arc::clone(&adapter);
        own.run_apart(Box::new(move || in_use.end(&adapter, &id)));
    }
}
