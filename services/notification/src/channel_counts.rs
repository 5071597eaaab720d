//! The counts of a channel, and its state in numbers.

use std::sync::atomic::{AtomicU64, Ordering};

use spandrel::net::sync::Arc;
use spandrel_delivery::QueueCounts;

use crate::kind::Side;
use crate::proxy::Proxy;

/// Counts since the creation. Those of consumers are added when they leave.
#[derive(Debug, Default)]
pub(crate) struct ChannelCounts {
    pub(crate) received: AtomicU64,
    pub(crate) filtered: AtomicU64,
    pub(crate) refused: AtomicU64,
    delivered: AtomicU64,
    dropped: AtomicU64,
    expired: AtomicU64,
}

/// The state of a channel in numbers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ChannelNumbers {
    pub(crate) consumers: usize,
    pub(crate) suppliers: usize,
    pub(crate) received: u64,
    /// Events that did not pass the filters of their supplier.
    pub(crate) filtered: u64,
    /// Events that were refused: too large, rejected, or without memory.
    pub(crate) refused: u64,
    pub(crate) delivered: u64,
    pub(crate) dropped: u64,
    pub(crate) expired: u64,
    pub(crate) longest_queue: usize,
    pub(crate) lag_ms: u64,
}

impl ChannelCounts {
    /// Adds the counts of a consumer that leaves.
    pub(crate) fn add_departed(&self, queue: &QueueCounts) {
        self.delivered.fetch_add(queue.delivered, Ordering::Relaxed);
        self.dropped.fetch_add(queue.dropped, Ordering::Relaxed);
        self.expired.fetch_add(queue.expired, Ordering::Relaxed);
    }

    /// The state of a channel with these connected proxies.
    pub(crate) fn numbers(&self, connected: &[Arc<Proxy>]) -> ChannelNumbers {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let mut numbers = ChannelNumbers {
            received: load(&self.received),
            filtered: load(&self.filtered),
            refused: load(&self.refused),
            delivered: load(&self.delivered),
            dropped: load(&self.dropped),
            expired: load(&self.expired),
            ..ChannelNumbers::default()
        };
        for proxy in connected {
            if proxy.kind.side == Side::Suppliers {
                numbers.suppliers += 1;
                continue;
            }
            let counts = proxy.queue.counts();
            numbers.consumers += 1;
            numbers.delivered += counts.delivered;
            numbers.dropped += counts.dropped;
            numbers.expired += counts.expired;
            numbers.longest_queue = numbers.longest_queue.max(counts.queued);
            numbers.lag_ms = numbers.lag_ms.max(counts.lag_ms);
        }
        numbers
    }
}
