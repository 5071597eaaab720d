//! Which requests of a connection may be cancelled, and by what.
//!
//! Of those that will be answered later all are known here; of those whose upcalls run only those whose servants have asked for a token. A CancelRequest
//! that was read before its servant asks is kept until it does, for the last few of them.

use std::collections::{HashMap, VecDeque};

use spandrel_connection::ReaderWord;
use spandrel_sync::{Arc, MutexGuard, atomic::Ordering, time::Instant};
use spandrel_transport::{MessageReader, Monitored};

use super::ServerConnection;
use crate::{CancelReason, cancellation::CancellationSource, orb::WeakOrb, server::origin::RequestKey};

/// CancelRequests that are kept for servants that have not asked yet; as many requests as run at once by default.
const MAX_KEPT: usize = 64;

/// The requests of one connection, as far as they are known one by one.
#[derive(Debug, Default)]
pub(super) struct RequestTable {
    /// Those whose upcalls have ended, and that will be answered later.
    pub(super) deferred: HashMap<u64, RunningRequest>,
    pub(super) next: u64,
    /// Those that run and whose servants want to know.
    running: Vec<RunningRequest>,
    /// CancelRequests that were read while upcalls ran: for which request, and the first turn that they were not meant for.
    kept: VecDeque<(u32, u64)>,
}

#[derive(Debug)]
pub(super) struct RunningRequest {
    pub(super) request_key: RequestKey,
    pub(super) octets: usize,
    pub(super) cancellation: Arc<CancellationSource>,
}

/// Which requests are given up.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::server) enum CancelledRequests {
    Request(u32),
    /// Whoever waits for answers is gone.
    Awaited,
    All,
}

impl CancelledRequests {
    /// Nobody ever waits for the answer to a one-way: that its client left says nothing.
    fn means(self, request_key: RequestKey) -> bool {
        match self {
            Self::Request(request_id) => !request_key.is_one_way && request_key.request_id == request_id,
            Self::Awaited => !request_key.is_one_way,
            Self::All => true,
        }
    }
}

impl RequestTable {
    pub(in crate::server) fn has_deferred(&self) -> bool {
        !self.deferred.is_empty()
    }

    fn is_cancelled(&self, request_key: RequestKey) -> bool {
        !request_key.is_one_way
            && self.kept.iter().any(|(id, before)| *id == request_key.request_id && request_key.turn < *before)
    }

    fn keep(&mut self, request_id: u32, before: u64) {
        if self.kept.len() >= MAX_KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back((request_id, before));
    }
}

impl ServerConnection {
    /// What may cancel a request that runs; its servant wants to know.
    pub(in crate::server) fn cancellation_source(
        &self,
        request_key: RequestKey,
        deadline: Option<Instant>,
    ) -> Arc<CancellationSource> {
        let mut requests = self.requests.lock();
        if let Some(known) = requests.running.iter().find(|entry| entry.request_key.turn == request_key.turn) {
            return Arc::clone(&known.cancellation);
        }
        let cancellation =
            CancellationSource::linked_to(self.link.shared_transport(), WeakOrb::of(&self.orb), deadline);
        requests.running.push(RunningRequest { request_key, octets: 0, cancellation: Arc::clone(&cancellation) });
        self.awaited_trips.fetch_add(1, Ordering::SeqCst);
        let is_cancelled = requests.is_cancelled(request_key);
        drop(requests);
        if !request_key.is_one_way {
            self.orb.upcall_monitor().look_soon();
        }
        if is_cancelled {
            cancellation.cancel(CancelReason::ClientCancelled);
        } else if !request_key.is_one_way && self.is_reading_finished() {
            // Looked at afterwards: who reads to the end cancels what it finds there after that.
            cancellation.cancel(self.end_reason());
        }
        cancellation
    }

    /// Whether servants of running upcalls want to know whether they are cancelled.
    pub(in crate::server) fn awaits_cancellation(&self) -> bool {
        self.awaited_trips.load(Ordering::SeqCst) != 0
    }

    /// The upcall of `turn` has ended, whose servant may have asked.
    #[inline]
    pub(super) fn settle(&self, upcall: ReaderWord) {
        // Only its own thread asks on its behalf.
        if self.awaited_trips.load(Ordering::Relaxed) != 0 {
            self.settle_requested(upcall.count());
        }
    }

    #[cold]
    fn settle_requested(&self, turn: u64) {
        let left = self.forget_running(&mut self.requests.lock(), turn);
        if let Some(entry) = left {
            entry.cancellation.mark_answered();
        }
    }

    pub(super) fn forget_running(
        &self,
        requests: &mut MutexGuard<'_, RequestTable>,
        turn: u64,
    ) -> Option<RunningRequest> {
        let at = requests.running.iter().position(|entry| entry.request_key.turn == turn)?;
        self.awaited_trips.fetch_sub(1, Ordering::SeqCst);
        Some(requests.running.swap_remove(at))
    }

    /// Nobody waits any longer for these answers.
    pub(in crate::server) fn cancel(&self, request_key: CancelledRequests, reason: CancelReason) {
        let mut requests = self.requests.lock();
        let known = requests.deferred.values().chain(&requests.running);
        let cancelled: Vec<Arc<CancellationSource>> = known
            .filter(|entry| request_key.means(entry.request_key))
            .map(|entry| Arc::clone(&entry.cancellation))
            .collect();
        let word = self.word();
        if let CancelledRequests::Request(request_id) = request_key
            && (word.is_in_upcall() || self.handed_over.load(Ordering::SeqCst) != 0)
        {
            // Upcalls that begin from now on are of other requests.
            requests.keep(request_id, word.count() + 1);
        }
        drop(requests);
        // To be told outside of the lock.
        cancelled.iter().for_each(|cancellation| cancellation.cancel(reason));
    }

    /// The upcall of `turn` lasts, and keeps its connection's reading to itself: looks whether it is cancelled or its client is gone.
    pub(in crate::server) fn listen(&self, turn: u64) {
        if !self.awaits_cancellation() {
            return;
        }
        let Some(mut reader) = self.reader.try_lock() else { return };
        // With the reader in hand: who goes back to reading waits for it.
        if self.word().count() == ReaderWord::from_bits(turn).count() {
            self.look_ahead(&mut reader);
        }
    }

    fn look_ahead(&self, reader: &mut MutexGuard<'_, MessageReader<Monitored>>) {
        while let Some(message) = reader.look_ahead(self.link.transport()) {
            // One that cannot be read means nobody.
            if let Ok(cancelled) = self.cancelled_by(&message) {
                reader.cancel(cancelled);
                self.cancel(CancelledRequests::Request(cancelled), CancelReason::ClientCancelled);
            }
        }
        if reader.has_ended() {
            self.cancel(CancelledRequests::Awaited, self.end_reason());
        }
    }
}
