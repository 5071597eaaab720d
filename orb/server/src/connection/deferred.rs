//! The deferred requests of a connection, which are answered after their upcalls have returned: their number
//! and their memory.

use spandrel_connection::RequestKey;
use spandrel_giop::{CompletionStatus, SystemException, minor};
use spandrel_orb::cancellation::CancellationSource;
use spandrel_sync::{Arc, atomic::Ordering};

use super::{ServerConnection, rejection::no_memory};

impl ServerConnection {
    /// The number of deferred requests.
    pub(crate) fn deferred(&self) -> usize {
        self.requests.lock().deferred()
    }

    /// Enters a running request as a deferred one that is charged for `octets`. Returns the key of the entry.
    ///
    /// # Errors
    /// TRANSIENT if too many requests are deferred, or if a memory limit would be exceeded.
    pub(crate) fn enter_deferred(
        &self,
        request_key: RequestKey,
        octets: usize,
        cancellation: &Arc<CancellationSource>,
    ) -> Result<u64, SystemException> {
        let mut requests = self.requests.lock();
        let count = requests.deferred();
        let limit = self.resources.settings.max_deferred;
        if count >= limit {
            drop(requests);
            self.orb.statistics().refused_deferred();
            let detail = || {
                format!(
                    "{count} requests of this connection wait for their answers, the limit is {limit} (-ORBMaxDeferredRequests)"
                )
            };
            return Err(SystemException::transient(minor::REQUEST_DISCARDED, CompletionStatus::No).with_detail(detail));
        }
        if let Err(no_room) = self.intake.charge(octets) {
            drop(requests);
            self.orb.statistics().refused_memory();
            return Err(no_memory(&no_room));
        }
        // From now on the request is a deferred one, also when its upcall ends.
        let (key, was_watched) = requests.defer(request_key, octets, Arc::clone(cancellation));
        if was_watched {
            self.awaited_cancellations.fetch_sub(1, Ordering::SeqCst);
        }
        drop(requests);
        // Checked afterwards: a thread that ends the reading first changes the phase and then cancels the
        // entries.
        if !request_key.is_one_way && self.is_reading_finished() {
            cancellation.cancel(self.end_reason());
        }
        Ok(key)
    }

    /// Releases the memory of a deferred request that is being answered.
    pub(crate) fn uncharge_deferred(&self, key: u64) {
        let octets = self.requests.lock().uncharge_deferred(key);
        self.intake.release(octets);
    }

    /// Removes a deferred request that has ended, and continues a closing that waited for it.
    pub(crate) fn leave_deferred(&self, key: u64) {
        let mut requests = self.requests.lock();
        let left = requests.end_deferred(key);
        drop(requests);
        self.intake.release(left.as_ref().map_or(0, |(octets, _)| *octets));
        drop(left);
        self.after_deferred();
    }
}
