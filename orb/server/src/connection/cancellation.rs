//! The cancellation of a connection's requests.
//!
//! This module knows all deferred requests, and the running ones whose servants have taken a cancellation
//! token. A CancelRequest may be read before its servant takes a token. The last few of these are kept until
//! then.

use spandrel_connection::{CancelledRequests, ReaderWord, RequestKey};
use spandrel_orb::{CancelReason, cancellation::CancellationSource, orb::WeakOrb};
use spandrel_sync::{Arc, MutexGuard, atomic::Ordering, time::Instant};
use spandrel_transport::{MessageReader, Monitored};

use super::ServerConnection;

impl ServerConnection {
    /// Returns the cancellation source of a running request, for the token of its servant.
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
        self.awaited_cancellations.fetch_add(1, Ordering::SeqCst);
        drop(requests);
        if !request_key.is_one_way {
            self.resources.upcall_monitor.look_soon();
        }
        if is_cancelled {
            cancellation.cancel(CancelReason::ClientCancelled);
        } else if !request_key.is_one_way && self.is_reading_finished() {
            // Checked afterwards: a thread that ends the reading first changes the phase and then cancels the
            // entries.
            cancellation.cancel(self.end_reason());
        }
        cancellation
    }

    /// Whether servants of running upcalls have taken cancellation tokens.
    pub(crate) fn awaits_cancellation(&self) -> bool {
        self.awaited_cancellations.load(Ordering::SeqCst) != 0
    }

    /// Removes the entry of an upcall that has ended, if its servant has taken a cancellation token.
    #[inline]
    pub(super) fn settle(&self, upcall: ReaderWord) {
        // Relaxed: only the thread of the upcall makes its entry.
        if self.awaited_cancellations.load(Ordering::Relaxed) != 0 {
            self.settle_requested(upcall.count());
        }
    }

    #[cold]
    fn settle_requested(&self, turn: u64) {
        let left = self.requests.lock().end_upcall(turn);
        if let Some(cancellation) = left {
            self.awaited_cancellations.fetch_sub(1, Ordering::SeqCst);
            cancellation.mark_answered();
        }
    }

    /// Cancels these requests.
    pub(crate) fn cancel(&self, request_key: CancelledRequests, reason: CancelReason) {
        let mut requests = self.requests.lock();
        let word = self.word();
        // A CancelRequest does not apply to upcalls that begin from now on.
        let has_upcalls = word.is_in_upcall() || self.handed_over.load(Ordering::SeqCst) != 0;
        let cancelled = requests.cancel(request_key, has_upcalls.then(|| word.count() + 1));
        drop(requests);
        // Outside of the lock.
        cancelled.iter().for_each(|cancellation| cancellation.cancel(reason));
    }

    /// Looks for CancelRequests and for the end of the client, while the long upcall of `turn` keeps the
    /// reader role.
    pub(crate) fn listen(&self, turn: u64) {
        if !self.awaits_cancellation() {
            return;
        }
        let Some(mut reader) = self.reader.try_lock() else { return };
        // Checked with the reader locked: a thread that reads on waits for the lock.
        if self.word().count() == ReaderWord::from_bits(turn).count() {
            self.look_ahead(&mut reader);
        }
    }

    fn look_ahead(&self, reader: &mut MutexGuard<'_, MessageReader<Monitored>>) {
        while let Some(message) = reader.look_ahead(self.link.transport()) {
            // A CancelRequest that cannot be decoded cancels no request.
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
