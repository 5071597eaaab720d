//! The counts of requests and octets for each open connection.

use std::sync::OnceLock;

use spandrel_sync::{
    Arc, Mutex, Weak,
    atomic::{AtomicU64, Ordering},
};

/// The most connections that are counted one by one; further ones are not counted.
const MAX_CONNECTIONS: usize = 1024;

/// The side of a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Side {
    Client,
    Server,
}

impl Side {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }
}

/// The counts of one connection; empty until a request is counted.
#[derive(Debug, Default)]
pub struct ConnectionMetrics(OnceLock<Option<Arc<ConnectionCounters>>>);

#[derive(Debug)]
struct ConnectionCounters {
    side: Side,
    peer: String,
    requests: AtomicU64,
    octets: AtomicU64,
}

/// The connections with counts.
#[derive(Debug, Default)]
pub(super) struct Connections(Mutex<Vec<Weak<ConnectionCounters>>>);

impl Connections {
    /// Counts one more request of so many octets.
    pub(super) fn count(
        &self,
        connection: &ConnectionMetrics,
        side: Side,
        peer: impl FnOnce() -> String,
        octets: usize,
    ) {
        let Some(numbers) = connection.0.get_or_init(|| self.insert(side, peer())) else { return };
        numbers.requests.fetch_add(1, Ordering::Relaxed);
        numbers.octets.fetch_add(octets as u64, Ordering::Relaxed);
    }

    fn insert(&self, side: Side, peer: String) -> Option<Arc<ConnectionCounters>> {
        let mut series = self.0.lock();
        series.retain(|numbers| numbers.strong_count() > 0);
        if series.len() >= MAX_CONNECTIONS {
            return None;
        }
        let numbers =
            Arc::new(ConnectionCounters { side, peer, requests: AtomicU64::new(0), octets: AtomicU64::new(0) });
        series.push(Arc::downgrade(&numbers));
        Some(numbers)
    }

    /// Returns side, peer, requests and octets of each open connection.
    pub(super) fn snapshot(&self) -> Vec<(Side, String, u64, u64)> {
        let snapshot = |numbers: Arc<ConnectionCounters>| {
            let (requests, octets) = (numbers.requests.load(Ordering::Relaxed), numbers.octets.load(Ordering::Relaxed));
            (numbers.side, numbers.peer.clone(), requests, octets)
        };
        let open: Vec<_> = self.0.lock().iter().filter_map(Weak::upgrade).map(snapshot).collect();
        // Several connections to one peer are one series.
        let mut joined: Vec<(Side, String, u64, u64)> = Vec::new();
        for (side, peer, requests, octets) in open {
            match joined.iter_mut().find(|entry| entry.0 == side && entry.1 == peer) {
                Some(entry) => (entry.2, entry.3) = (entry.2 + requests, entry.3 + octets),
                None => joined.push((side, peer, requests, octets)),
            }
        }
        joined
    }
}
