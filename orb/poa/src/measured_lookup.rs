//! The lookup from an object key to its servant, as in a request but without the request: measured by
//! `spandrel bench demux`.
//!
//! Not for applications and not covered by compatibility: the steps of dispatch, for measurements.

use std::{cell::Cell, fmt};

use spandrel_server::{LastTarget, Servant};
use spandrel_sync::Arc;

use crate::{Poa, adapter::Root, frames::EnteredFrame, servant_in_use::ServantInUse, servant_lookup::ServantLookup};

/// Finds servants in one thread, with the state that thread and connection keep between two requests. The
/// thread stays inside of an upcall for the lifetime of this value. At most one exists in a thread.
pub struct Lookup {
    root: Arc<Root>,
    entered: EnteredFrame,
    last: Last,
}

/// A servant that is in use until it is [released](Lookup::release).
#[must_use]
pub struct FoundServant(ServantInUse);

/// The state that a connection keeps between requests.
struct Last {
    is_adaptive: bool,
    target: Cell<Option<u64>>,
}

impl LastTarget for Last {
    #[inline]
    fn predicted_target(&self) -> Option<u64> {
        self.target.get()
    }

    #[inline]
    fn record_target(&self, target: u64) {
        if self.is_adaptive {
            self.target.set(Some(target));
        }
    }
}

impl Lookup {
    /// Lookups in all adapters of this adapter's ORB. `is_adaptive`: the last object's position is remembered
    /// (adaptive demultiplexing).
    #[must_use]
    pub fn new(poa: &Poa, is_adaptive: bool) -> Self {
        let last = Last { is_adaptive, target: Cell::new(None) };
        Self { root: Arc::clone(&poa.root), entered: EnteredFrame::new(), last }
    }

    /// The servant of an object. `None` if a request would be rejected, wait, or be forwarded.
    #[inline]
    pub fn find(&self, object_key: &[u8]) -> Option<FoundServant> {
        let frame = self.entered.frame();
        let Ok(None) = self.root.find_adapter(frame, object_key) else { return None };
        let state = frame.state();
        let adapter = state.adapter.as_ref()?;
        match adapter.enter(&object_key[adapter.prefix.len()..], "", Some(&self.last)) {
            Ok(ServantLookup::Found(in_use)) => Some(FoundServant(in_use)),
            _ => None,
        }
    }

    /// Ends the use of a servant found by this key.
    pub fn release(&self, object_key: &[u8], servant: FoundServant) {
        let frame = self.entered.frame();
        if let Ok(None) = self.root.find_adapter(frame, object_key)
            && let Some(adapter) = &frame.state().adapter
        {
            let ended = servant.0.end(adapter, &object_key[adapter.prefix.len()..]);
            debug_assert!(ended.is_ok(), "measurements have no servant locator");
        }
    }
}

impl fmt::Debug for Lookup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lookup").field("root", &self.root).field("last", &self.last.target).finish_non_exhaustive()
    }
}

impl fmt::Debug for FoundServant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FoundServant").finish_non_exhaustive()
    }
}

impl FoundServant {
    /// The servant; `None` for an object that is forwarded.
    #[inline]
    #[must_use]
    pub fn servant(&self) -> Option<&Arc<dyn Servant>> {
        self.0.servant()
    }
}
