//! Which requests of a connection may be cancelled, and by what.
//!
//! Of those that will be answered later all are known here; of those whose upcalls run only those whose servants have asked for a token. A CancelRequest
//! that was read before its servant asks is kept until it does, for the last few of them.

use spandrel_connection::{CancelledRequests, ReaderWord, RequestKey};
use spandrel_orb::{CancelReason, cancellation::CancellationSource, orb::WeakOrb};
use spandrel_sync::{Arc, MutexGuard, atomic::Ordering, time::Instant};
use spandrel_transport::{MessageReader, Monitored};

use super::ServerConnection;

impl ServerConnection {
    /// What may cancel a request that runs; its servant wants to know.
    pub(crate) fn cancellation_source(
        &self,
        request_key: RequestKey,
        deadline: Option<Instant>,
    ) -> Arc<CancellationSource> {
        let mut requests = self.requests.lock();
        if let Some(known) = requests.watched(request_key.turn) {
            return Arc::clone(known);
        }
        let cancellation =
            CancellationSource::linked_to(self.link.shared_transport(), WeakOrb::of(&self.orb), deadline);
        let is_cancelled = requests.watch(request_key, Arc::clone(&cancellation));
        self.awaited_trips.fetch_add(1, Ordering::SeqCst);
        drop(requests);
        if !request_key.is_one_way {
            self.upcall_monitor.look_soon();
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
    pub(crate) fn awaits_cancellation(&self) -> bool {
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
        let left = self.requests.lock().end_upcall(turn);
        if let Some(cancellation) = left {
            self.awaited_trips.fetch_sub(1, Ordering::SeqCst);
            cancellation.mark_answered();
        }
    }

    /// Nobody waits any longer for these answers.
    pub(crate) fn cancel(&self, request_key: CancelledRequests, reason: CancelReason) {
        let mut requests = self.requests.lock();
        let word = self.word();
        // Upcalls that begin from now on are of other requests.
        let has_upcalls = word.is_in_upcall() || self.handed_over.load(Ordering::SeqCst) != 0;
        let cancelled = requests.cancel(request_key, has_upcalls.then(|| word.count() + 1));
        drop(requests);
        // To be told outside of the lock.
        cancelled.iter().for_each(|cancellation| cancellation.cancel(reason));
    }

    /// The upcall of `turn` lasts, and keeps its connection's reading to itself: looks whether it is cancelled or its client is gone.
    pub(crate) fn listen(&self, turn: u64) {
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
