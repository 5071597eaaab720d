//! The octets that the events of all channels take.

use std::sync::atomic::{AtomicUsize, Ordering};

use spandrel::net::sync::Arc;

/// Counts the octets of the events in all queues of a service against its bound.
#[derive(Debug)]
pub struct EventMemory {
    limit: usize,
    used: AtomicUsize,
}

impl EventMemory {
    /// An account of at most `limit` octets, with none charged.
    #[must_use]
    pub fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, used: AtomicUsize::new(0) })
    }

    /// The octets of the charges that are not dropped.
    #[must_use]
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Counts the octets of an event until the charge is dropped. `None` if they exceed the limit.
    #[must_use]
    pub fn charge(self: &Arc<Self>, octets: usize) -> Option<MemoryCharge> {
        let add = |used: usize| used.checked_add(octets).filter(|sum| *sum <= self.limit);
        let counted = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok();
        counted.then(|| MemoryCharge { memory: Arc::clone(self), octets })
    }

    /// Counts the octets of an event also beyond the limit: one that was accepted before.
    #[must_use]
    pub fn charge_accepted(self: &Arc<Self>, octets: usize) -> MemoryCharge {
        self.used.fetch_add(octets, Ordering::Relaxed);
        MemoryCharge { memory: Arc::clone(self), octets }
    }
}

/// The octets of one event, counted in its [`EventMemory`] until this is dropped.
#[derive(Debug)]
pub struct MemoryCharge {
    memory: Arc<EventMemory>,
    octets: usize,
}

impl MemoryCharge {
    /// The octets that dropping the charge gives back.
    #[must_use]
    pub fn octets(&self) -> usize {
        self.octets
    }
}

impl Drop for MemoryCharge {
    fn drop(&mut self) {
        self.memory.used.fetch_sub(self.octets, Ordering::Relaxed);
    }
}
