//! Where the adapters of an ORB are, by their places and by how their keys begin.

use std::collections::HashMap;

use spandrel_sync::{Arc, RwLock};

use crate::{key::Place, slots::Slots};

/// The tables that lead from a key to an adapter, whatever that is.
pub(crate) struct Directory<A> {
    /// All of them, by their places; transient keys have those.
    all: RwLock<Slots<Arc<A>>>,
    /// Persistent ones, by how their keys begin.
    persistent: RwLock<HashMap<Vec<u8>, Arc<A>>>,
}

impl<A> Default for Directory<A> {
    fn default() -> Self {
        Self { all: RwLock::default(), persistent: RwLock::default() }
    }
}

impl<A> Directory<A> {
    /// Makes one that knows its place; `None` if there are too many.
    pub(crate) fn insert_with(&self, make: impl FnOnce(Place) -> Arc<A>) -> Option<Arc<A>> {
        self.all.write().insert_with(make).cloned()
    }

    pub(crate) fn at(&self, place: Place) -> Option<Arc<A>> {
        self.all.read().get(place).cloned()
    }

    pub(crate) fn remove(&self, place: Place) {
        let removed = self.all.write().remove(place);
        drop(removed);
    }

    /// From now on requests for these keys find it.
    pub(crate) fn publish(&self, prefix: &[u8], adapter: &Arc<A>) {
        let replaced = self.persistent.write().insert(prefix.to_vec(), Arc::clone(adapter));
        drop(replaced);
    }

    pub(crate) fn published(&self, prefix: &[u8]) -> Option<Arc<A>> {
        self.persistent.read().get(prefix).cloned()
    }

    /// Nobody finds it by these keys any more. Another of its name may have been made already, and stays.
    pub(crate) fn withdraw(&self, prefix: &[u8], adapter: &Arc<A>) {
        let mut persistent = self.persistent.write();
        if persistent.get(prefix).is_some_and(|known| Arc::ptr_eq(known, adapter)) {
            persistent.remove(prefix);
        }
    }
}
