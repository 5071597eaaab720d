//! Bounds of the service.

/// The most that a notification service holds for its clients. More is IMP_LIMIT, or `AdminLimitExceeded` where an operation
/// has it, except for events: queues discard them by their policy.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// The number of channels (default 1,000).
    pub channels: usize,
    /// The administrators of a channel (default 1,000).
    pub admins: usize,
    /// The proxies of a channel, connected or not (default 2,000).
    pub proxies: usize,
    /// The events in the queue of a consumer, if `MaxEventsPerConsumer` is not set (default 1,023).
    pub queue_events: usize,
    /// The octets of the events in the queue of a consumer (default 16 MiB).
    pub queue_octets: usize,
    /// The octets of an event, with its types (default 1 MiB).
    pub event_octets: usize,
    /// The octets of all events in all queues (default 256 MiB). An event in several queues counts once.
    pub octets: usize,
    /// The consumers that wait for an event in a pull at one proxy (default 16).
    pub waiting_pulls: usize,
    /// The events of a channel that wait for their `StartTime` (default 10,000).
    pub delayed_events: usize,
    /// The filters of the service, mapping filters among them (default 10,000).
    pub filters: usize,
    /// The filters of one proxy or administrator (default 100).
    pub filters_of_object: usize,
    /// The constraints of a filter (default 1,000).
    pub constraints: usize,
    /// The octets of a constraint, without its event types (default 16,384).
    pub constraint_octets: usize,
    /// The octets of all constraints and event types of the service (default 2 MiB).
    pub filter_octets: usize,
    /// The steps of the evaluation of all filters of a consumer for one event (default 100,000). Beyond them the event does
    /// not match.
    pub filter_steps: u64,
    /// The octets that these filters read of one event with their component names (default 16 MiB).
    pub filter_reads: usize,
    /// The event types to which a proxy or administrator subscribes, or which it offers (default 100).
    pub event_types: usize,
    /// The octets of the references of all connected peers (default 64 MiB).
    pub peer_octets: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            channels: 1_000,
            admins: 1_000,
            proxies: 2_000,
            queue_events: 1_023,
            queue_octets: 16 << 20,
            event_octets: 1 << 20,
            octets: 256 << 20,
            waiting_pulls: 16,
            delayed_events: 10_000,
            filters: 10_000,
            filters_of_object: 100,
            constraints: 1_000,
            constraint_octets: 16_384,
            filter_octets: 2 << 20,
            filter_steps: 100_000,
            filter_reads: 16 << 20,
            event_types: 100,
            peer_octets: 64 << 20,
        }
    }
}
