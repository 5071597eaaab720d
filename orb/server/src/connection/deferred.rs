//! The requests of a connection that are answered after their upcall has returned: how many there are.

use spandrel_giop::{CompletionStatus, SystemException, minor};
use spandrel_sync::Arc;

use super::{ServerConnection, cancellation::RunningRequest, rejection::no_memory};
use crate::origin::RequestKey;
use spandrel_orb::cancellation::CancellationSource;

impl ServerConnection {
    /// How many requests will be answered later.
    pub(crate) fn deferred(&self) -> usize {
        self.requests.lock().deferred.len()
    }

    pub(crate) fn enter_deferred(
        &self,
        request_key: RequestKey,
        octets: usize,
        cancellation: &Arc<CancellationSource>,
    ) -> Result<u64, SystemException> {
        let mut requests = self.requests.lock();
        let count = requests.deferred.len();
        let limit = self.settings.max_deferred;
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
        let key = requests.next;
        requests.next += 1;
        requests.deferred.insert(key, RunningRequest { request_key, octets, cancellation: Arc::clone(cancellation) });
        // It is one of these from now on, also when its upcall ends.
        self.forget_running(&mut requests, request_key.turn);
        drop(requests);
        // Looked at afterwards: who reads to the end cancels what it finds there after that.
        if !request_key.is_one_way && self.is_reading_finished() {
            cancellation.cancel(self.end_reason());
        }
        Ok(key)
    }

    /// A deferred call is being answered: its request counts no longer.
    pub(crate) fn uncharge_deferred(&self, key: u64) {
        let octets = self.requests.lock().deferred.get_mut(&key).map_or(0, |entry| std::mem::take(&mut entry.octets));
        self.intake.release(octets);
    }

    /// A deferred call has ended: what waited for it goes on.
    pub(crate) fn leave_deferred(&self, key: u64) {
        let mut requests = self.requests.lock();
        let left = requests.deferred.remove(&key);
        drop(requests);
        self.intake.release(left.as_ref().map_or(0, |entry| entry.octets));
        drop(left);
        self.after_deferred();
    }
}
