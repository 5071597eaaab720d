//! The adapters of an ORB, by slot and by key prefix.

use std::collections::HashMap;

use spandrel_sync::{Arc, RwLock};

use crate::{key::SlotId, slots::Slots};

/// The tables that map keys to adapters.
pub(crate) struct Directory<A> {
    /// All adapters by slot; transient keys contain the slot.
    all: RwLock<Slots<Arc<A>>>,
    /// Persistent adapters, by key prefix.
    persistent: RwLock<HashMap<Vec<u8>, Arc<A>>>,
}

impl<A> Default for Directory<A> {
    fn default() -> Self {
        Self { all: RwLock::default(), persistent: RwLock::default() }
    }
}

impl<A> Directory<A> {
    /// Creates an adapter that knows its slot; `None` if there are too many.
    pub(crate) fn insert_with(&self, make: impl FnOnce(SlotId) -> Arc<A>) -> Option<Arc<A>> {
        self.all.write().insert_with(make).cloned()
    }

    pub(crate) fn at(&self, slot_id: SlotId) -> Option<Arc<A>> {
        self.all.read().get(slot_id).cloned()
    }

    pub(crate) fn remove(&self, slot_id: SlotId) {
        let removed = self.all.write().remove(slot_id);
        drop(removed);
    }

    /// Makes the adapter available to requests with this key prefix.
    pub(crate) fn publish(&self, prefix: &[u8], adapter: &Arc<A>) {
        let replaced = self.persistent.write().insert(prefix.to_vec(), Arc::clone(adapter));
        drop(replaced);
    }

    pub(crate) fn published(&self, prefix: &[u8]) -> Option<Arc<A>> {
        self.persistent.read().get(prefix).cloned()
    }

    /// Makes the adapter unavailable to requests. A new adapter of the same name may exist already, and
    /// stays.
    pub(crate) fn withdraw(&self, prefix: &[u8], adapter: &Arc<A>) {
        let mut persistent = self.persistent.write();
        if persistent.get(prefix).is_some_and(|known| Arc::ptr_eq(known, adapter)) {
            persistent.remove(prefix);
        }
    }
}
