//! The way from an object key to its servant, as a request takes it but without the request: what `spandrel bench demux` times.
//!
//! Not for applications, and without any promise to them: these are the steps that dispatching makes, for measurements.

use std::{cell::Cell, fmt};

use spandrel_orb::Servant;
use spandrel_sync::Arc;

use crate::{Poa, adapter::Root, entering::Entrance, frames::Entered, in_use::InUse, objects::LastTarget};

/// Finds servants in a thread that is inside of one upcall as long as this lives, as between two requests of one connection: what the
/// thread and the connection remember of the last request is remembered. Only one lives in a thread.
pub struct Lookup {
    root: Arc<Root>,
    entered: Entered,
    last: Last,
}

/// A servant that is in use until it is [given back](Lookup::give_back).
#[must_use]
pub struct Found(InUse);

/// The state that a connection remembers.
struct Last {
    is_adaptive: bool,
    place: Cell<Option<u64>>,
}

impl LastTarget for Last {
    #[inline]
    fn predicted_target(&self) -> Option<u64> {
        self.place.get()
    }

    #[inline]
    fn note_target(&self, place: u64) {
        if self.is_adaptive {
            self.place.set(Some(place));
        }
    }
}

impl Lookup {
    /// Lookups in all adapters of this one's ORB. `is_adaptive`: the last object's place is remembered (adaptive demultiplexing).
    #[must_use]
    pub fn new(poa: &Poa, is_adaptive: bool) -> Self {
        let last = Last { is_adaptive, place: Cell::new(None) };
        Self { root: Arc::clone(&poa.root), entered: Entered::new(), last }
    }

    /// The servant of an object. None where a request would be refused, wait, or be forwarded.
    #[inline]
    pub fn find(&self, object_key: &[u8]) -> Option<Found> {
        let frame = self.entered.frame();
        let Ok(None) = self.root.find_adapter(frame, object_key) else { return None };
        let adapter = frame.adapter.borrow();
        let adapter = adapter.as_ref()?;
        match adapter.enter(&object_key[adapter.prefix.len()..], "", Some(&self.last)) {
            Ok(Entrance::Serve(in_use)) => Some(Found(in_use)),
            _ => None,
        }
    }

    /// Ends the use of what was found by this key.
    pub fn give_back(&self, object_key: &[u8], found: Found) {
        let frame = self.entered.frame();
        if let Ok(None) = self.root.find_adapter(frame, object_key)
            && let Some(adapter) = &*frame.adapter.borrow()
        {
            found.0.end(adapter, &object_key[adapter.prefix.len()..]);
        }
    }
}

impl fmt::Debug for Lookup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lookup").field("root", &self.root).field("last", &self.last.place).finish_non_exhaustive()
    }
}

impl fmt::Debug for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Found").finish_non_exhaustive()
    }
}

impl Found {
    /// The servant; none for an object that is elsewhere.
    #[inline]
    #[must_use]
    pub fn servant(&self) -> Option<&Arc<dyn Servant>> {
        self.0.servant()
    }
}
