//! The clients with requests in the queue of a lane: their turns, and their shares of the buffer.
//!
//! Turns are start-time fair queuing with requests of equal cost: the first request of a client has the turn after that of
//! the last request of the priority which left the queue, and each further one the turn after the one before it. So each
//! client has one request in each turn, and none saves turns while it has no requests.

use std::collections::HashMap;

use crate::Priority;

/// The number of a client; `None` is the program itself.
type Client = Option<usize>;

/// The part of a buffer that a client has.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ClientShare {
    pub(super) requests: usize,
    pub(super) octets: usize,
}

/// Requests that wait, and a turn: the latest that left the queue, or the latest of a client.
#[derive(Default)]
struct Turn {
    waiting: usize,
    turn: u64,
}

pub(super) struct WaitingClients {
    by_priority: HashMap<Priority, Turn>,
    by_client: HashMap<(Priority, Client), Turn>,
    shares: HashMap<Client, ClientShare>,
}

impl WaitingClients {
    /// Without requests; allocates nothing for as long as there are no more than this number at a time.
    pub(super) fn with_capacity(requests: usize) -> Self {
        // Twice the number: entries that were removed count until the table is cleaned, which allocates beyond a half.
        let entries = 2 * requests;
        Self {
            by_priority: HashMap::with_capacity(entries),
            by_client: HashMap::with_capacity(entries),
            shares: HashMap::with_capacity(entries),
        }
    }

    /// Adds a request that begins to wait. Returns its turn.
    pub(super) fn enter(&mut self, priority: Priority, client: Client, octets: usize) -> u64 {
        let level = self.by_priority.entry(priority).or_default();
        level.waiting += 1;
        let own = self.by_client.entry((priority, client)).or_default();
        own.waiting += 1;
        own.turn = own.turn.max(level.turn) + 1;
        let share = self.shares.entry(client).or_default();
        share.requests += 1;
        share.octets += octets;
        own.turn
    }

    /// Removes a request that does not wait any more.
    pub(super) fn leave(&mut self, priority: Priority, client: Client, octets: usize, turn: u64) {
        if let Some(level) = self.by_priority.get_mut(&priority) {
            level.waiting -= 1;
            level.turn = level.turn.max(turn);
            if level.waiting == 0 {
                self.by_priority.remove(&priority);
            }
        }
        if let Some(own) = self.by_client.get_mut(&(priority, client)) {
            own.waiting -= 1;
            if own.waiting == 0 {
                self.by_client.remove(&(priority, client));
            }
        }
        if let Some(share) = self.shares.get_mut(&client) {
            share.requests -= 1;
            share.octets -= octets;
            if share.requests == 0 {
                self.shares.remove(&client);
            }
        }
    }

    /// The part of a client with requests that wait.
    pub(super) fn share(&self, client: Client) -> Option<ClientShare> {
        self.shares.get(&client).copied()
    }

    /// The number of clients with requests that wait.
    pub(super) fn len(&self) -> usize {
        self.shares.len()
    }

    pub(super) fn clear(&mut self) {
        self.by_priority.clear();
        self.by_client.clear();
        self.shares.clear();
    }
}
