//! Bounds of the service.

/// The most that an event service holds. More is IMP_LIMIT, except for events: queues drop their oldest ones.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// The number of channels (default 1,000).
    pub channels: usize,
    /// The proxies of a channel, connected or not (default 2,000).
    pub proxies: usize,
    /// The events in the queue of a consumer, unless its channel has another number (default 1,023, as in omniEvents).
    pub queue_events: usize,
    /// The octets of the events in the queue of a consumer (default 16 MiB).
    pub queue_octets: usize,
    /// The octets of an event, with its type (default 1 MiB).
    pub event_octets: usize,
    /// The octets of all events in all queues (default 256 MiB). An event in several queues counts once.
    pub octets: usize,
    /// The consumers that wait for an event in `pull` at one proxy (default 16).
    pub waiting_pulls: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            channels: 1_000,
            proxies: 2_000,
            queue_events: 1_023,
            queue_octets: 16 << 20,
            event_octets: 1 << 20,
            octets: 256 << 20,
            waiting_pulls: 16,
        }
    }
}
