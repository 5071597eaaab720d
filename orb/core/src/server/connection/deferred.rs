//! The requests of a connection that are answered after their upcall has returned: how many, and which of them are given up.

use std::collections::HashMap;

use spandrel_giop::{CompletionStatus, SystemException, minor};
use spandrel_sync::Arc;

use super::ServerConnection;
use crate::server::cancellation::Cancellation;

/// Deferred calls of one connection. A client that sends more has them refused.
const MAX_DEFERRED: usize = 1024;
/// The octets of their messages; one message is always taken.
const MAX_DEFERRED_OCTETS: usize = 64 << 20;

/// The deferred calls of one connection.
#[derive(Debug, Default)]
pub(super) struct Deferred {
    calls: HashMap<u64, Entry>,
    /// Of all their messages.
    octets: usize,
    next: u64,
}

#[derive(Debug)]
struct Entry {
    request_id: u32,
    octets: usize,
    /// Nobody ever waits for the answer to a one-way: that its client left says nothing.
    is_one_way: bool,
    cancellation: Arc<Cancellation>,
}

/// Which deferred calls are given up.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::server) enum Cancelled {
    Request(u32),
    /// Whoever waits for answers is gone.
    Awaited,
    All,
}

impl Deferred {
    pub(in crate::server) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// To be told outside of the lock.
    fn cancelled(&self, which: Cancelled) -> Vec<Arc<Cancellation>> {
        let calls = self.calls.values().filter(|entry| match which {
            Cancelled::Request(request_id) => !entry.is_one_way && entry.request_id == request_id,
            Cancelled::Awaited => !entry.is_one_way,
            Cancelled::All => true,
        });
        calls.map(|entry| Arc::clone(&entry.cancellation)).collect()
    }
}

impl ServerConnection {
    pub(in crate::server) fn enter_deferred(
        &self,
        request_id: u32,
        is_one_way: bool,
        octets: usize,
        cancellation: &Arc<Cancellation>,
    ) -> Result<u64, SystemException> {
        let mut deferred = self.deferred.lock();
        let count = deferred.calls.len();
        if count >= MAX_DEFERRED || count > 0 && octets > MAX_DEFERRED_OCTETS.saturating_sub(deferred.octets) {
            let octets = deferred.octets;
            drop(deferred);
            let detail = || format!("{count} requests of this connection, of {octets} octets, wait for their answers");
            return Err(SystemException::transient(minor::REQUEST_DISCARDED, CompletionStatus::No).with_detail(detail));
        }
        let key = deferred.next;
        deferred.next += 1;
        deferred.octets += octets;
        let cancellation = Arc::clone(cancellation);
        deferred.calls.insert(key, Entry { request_id, is_one_way, octets, cancellation: Arc::clone(&cancellation) });
        drop(deferred);
        // Looked at afterwards: who reads to the end cancels what it finds there after that.
        if !is_one_way && self.is_read_out() {
            cancellation.cancel();
        }
        Ok(key)
    }

    /// A deferred call has ended: what waited for it goes on.
    pub(in crate::server) fn leave_deferred(&self, key: u64) {
        let mut deferred = self.deferred.lock();
        let left = deferred.calls.remove(&key);
        deferred.octets -= left.as_ref().map_or(0, |entry| entry.octets);
        drop(deferred);
        drop(left);
        self.after_deferred();
    }

    /// Nobody waits any longer for these answers.
    pub(in crate::server) fn cancel_deferred(&self, which: Cancelled) {
        let cancelled = self.deferred.lock().cancelled(which);
        for cancellation in cancelled {
            cancellation.cancel();
        }
    }
}
