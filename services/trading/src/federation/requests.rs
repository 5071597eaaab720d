//! Ids of requests, by which a trader recognizes a query that returns to it over links.

use std::collections::{HashSet, VecDeque};

use spandrel::net::sync::Mutex;

/// The longest id of a request, in octets: a longer one is an invalid value of the policy.
pub const MAX_REQUEST_ID: usize = 2_048;

/// The ids of recent requests, by which a query that comes back over a circle of links is recognized.
#[derive(Debug)]
pub struct RecentRequests {
    capacity: usize,
    recent: Mutex<Recent>,
}

#[derive(Debug, Default)]
struct Recent {
    ids: HashSet<Vec<u8>>,
    /// The same ids, from the oldest on.
    order: VecDeque<Vec<u8>>,
    /// The number of the next request that begins at this trader.
    next: u64,
}

impl RecentRequests {
    /// An empty list with room for this many requests. A query that returns after that many others is not
    /// recognized, and ends by its hop count.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        // Other traders may remember the requests of this trader before its restart.
        let recent = Recent { next: fastrand::u64(..), ..Recent::default() };
        Self { capacity: capacity.max(1), recent: Mutex::new(recent) }
    }

    /// Records a request of another trader. Returns false if its id is known already.
    pub fn record(&self, id: &[u8]) -> bool {
        self.recent.lock().record(id, self.capacity)
    }

    /// Records a new request of this trader, and returns its id: the stem and a number.
    pub fn begin(&self, stem: &[u8]) -> Vec<u8> {
        let mut recent = self.recent.lock();
        let id = [stem, &recent.next.to_be_bytes()].concat();
        recent.next = recent.next.wrapping_add(1);
        recent.record(&id, self.capacity);
        id
    }
}

impl Recent {
    fn record(&mut self, id: &[u8], capacity: usize) -> bool {
        if self.ids.contains(id) {
            return false;
        }
        if self.order.len() >= capacity
            && let Some(oldest) = self.order.pop_front()
        {
            self.ids.remove(&oldest);
        }
        self.ids.insert(id.to_owned());
        self.order.push_back(id.to_owned());
        true
    }
}
