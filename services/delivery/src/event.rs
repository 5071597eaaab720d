//! Events in the queues of consumers.

use std::time::Instant;

use crate::memory::MemoryCharge;

/// An event in the queues of consumers.
#[derive(Debug)]
pub struct Event<V> {
    /// The event as its service has it.
    pub value: V,
    /// The size by which queues bound their events.
    pub octets: usize,
    /// The time at which the channel received it.
    pub received: Instant,
    _charge: MemoryCharge,
}

impl<V> Event<V> {
    /// An event that was received now. Its charge ends with it.
    #[must_use]
    pub fn new(value: V, charge: MemoryCharge) -> Self {
        Self { value, octets: charge.octets(), received: Instant::now(), _charge: charge }
    }
}
