//! Bounds of the service, and the octets that all events take.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use spandrel::net::sync::Arc;
use spandrel::{CompletionStatus, SystemException};

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

/// The treatment of peers that fail or are slow.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PeerOptions {
    /// The time limit of a call on a peer (default 10 seconds).
    pub timeout: Duration,
    /// The failures in a row after which a peer is disconnected (default 10).
    pub max_failures: u32,
    /// The pause after the first failure (default 50 ms). Each further failure doubles it, up to 100 times.
    pub retry_pause: Duration,
    /// Whether pull suppliers are called with `pull`, which waits for an event; else with `try_pull`, in the interval of
    /// the channel (default).
    pub blocking_pull: bool,
}

impl Default for PeerOptions {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(10),
            max_failures: 10,
            retry_pause: Duration::from_millis(50),
            blocking_pull: false,
        }
    }
}

impl PeerOptions {
    /// The pause after this many failures in a row.
    pub(crate) fn pause(&self, failures: u32) -> Duration {
        let factor = 1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(100).min(100);
        self.retry_pause.saturating_mul(factor)
    }
}

/// IMP_LIMIT if a count exceeds its bound.
pub(crate) fn require_at_most(count: usize, bound: usize, counted: &'static str) -> Result<(), SystemException> {
    if count <= bound {
        return Ok(());
    }
    let detail = move || format!("more than {bound} {counted}");
    Err(SystemException::imp_limit(0, CompletionStatus::No).with_detail(detail))
}

/// The octets of all events in memory.
#[derive(Debug)]
pub(crate) struct EventMemory {
    limit: usize,
    used: AtomicUsize,
}

impl EventMemory {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, used: AtomicUsize::new(0) })
    }

    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Counts the octets of an event until the charge is dropped. `None` if they exceed the limit.
    pub(crate) fn charge(self: &Arc<Self>, octets: usize) -> Option<MemoryCharge> {
        let add = |used: usize| used.checked_add(octets).filter(|sum| *sum <= self.limit);
        let counted = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok();
        counted.then(|| MemoryCharge { memory: Arc::clone(self), octets })
    }
}

/// Octets that an event takes of the memory for events.
#[derive(Debug)]
pub(crate) struct MemoryCharge {
    memory: Arc<EventMemory>,
    octets: usize,
}

impl Drop for MemoryCharge {
    fn drop(&mut self) {
        self.memory.used.fetch_sub(self.octets, Ordering::Relaxed);
    }
}
