//! Events in the queues of consumers.

use std::time::Instant;

use spandrel::net::sync::Arc;

use crate::memory::MemoryCharge;

/// An event with its size and time of receipt, shared by the queues of all consumers.
#[derive(Debug)]
pub struct Event<V> {
    /// The content: an `any`, a structured event, or the arguments of a typed one.
    pub value: V,
    /// The size by which queues bound their events.
    pub octets: usize,
    /// The time at which the channel received it.
    pub received: Instant,
    _charge: Arc<MemoryCharge>,
}

impl<V> Event<V> {
    /// An event that was received now. Its charge ends with it, and with others that share the charge.
    #[must_use]
    pub fn new(value: V, charge: impl Into<Arc<MemoryCharge>>) -> Self {
        let charge = charge.into();
        Self { value, octets: charge.octets(), received: Instant::now(), _charge: charge }
    }

    /// Replaces the time of receipt, for an event that was stored before.
    #[must_use]
    pub fn received_at(self, received: Instant) -> Self {
        Self { received, ..self }
    }
}
