//! Iterators that clients leave behind: the table of those that are active, with their bounds and expiry.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use spandrel::net::sync::{Arc, Mutex};
use spandrel::poa::{Current, ObjectId};
use spandrel::server::Servant;
use spandrel::{CompletionStatus, ObjectRef, Poa, SystemException};

use crate::caller;

/// The bounds on iterators that clients have not destroyed, and the time after which they are idle.
#[derive(Clone, Copy, Debug)]
pub struct IteratorOptions {
    /// The most iterators; a further one takes the place of the one called least recently (default 1,000).
    pub limit: usize,
    /// The most iterators of peers with one address (default 100). A further one takes the place of one of these.
    pub limit_of_client: usize,
    /// The time without a call after which an iterator may be destroyed (default 5 minutes).
    pub expiry: Duration,
}

impl Default for IteratorOptions {
    fn default() -> Self {
        Self { limit: 1_000, limit_of_client: 100, expiry: Duration::from_secs(300) }
    }
}

/// The iterators that clients of one adapter hold, bounded by their [`IteratorOptions`].
#[derive(Debug)]
pub struct ActiveIterators {
    poa: Poa,
    options: IteratorOptions,
    active: Mutex<HashMap<ObjectId, Activity>>,
}

/// The use of an iterator.
#[derive(Debug)]
struct Activity {
    last_call: Instant,
    client: Option<String>,
}

impl ActiveIterators {
    /// Activates iterators in this adapter, which assigns their ids.
    #[must_use]
    pub fn new(poa: Poa, options: IteratorOptions) -> Self {
        Self { poa, options, active: Mutex::default() }
    }

    /// The number of iterators that are not destroyed.
    #[must_use]
    pub fn count(&self) -> usize {
        self.active.lock().len()
    }

    /// Activates an iterator for the caller, after the removal of expired ones and of one too many.
    ///
    /// # Errors
    /// Those of the adapter.
    pub fn activate(&self, servant: Arc<dyn Servant>) -> Result<ObjectRef, SystemException> {
        let client = caller();
        for id in self.take_superfluous(client.as_deref()) {
            _ = self.poa.deactivate_object(&id); // it may have been destroyed meanwhile
        }
        let id = self.poa.activate_object(servant)?;
        self.active.lock().insert(id.clone(), Activity { last_call: Instant::now(), client });
        Ok(self.poa.id_to_reference(&id)?)
    }

    /// Postpones the expiry of the iterator whose operation runs.
    ///
    /// # Errors
    /// OBJECT_NOT_EXIST outside of requests.
    pub fn record_call(&self) -> Result<(), SystemException> {
        let id = current_id()?;
        if let Some(activity) = self.active.lock().get_mut(&id) {
            activity.last_call = Instant::now();
        }
        Ok(())
    }

    /// Destroys the iterator whose operation runs.
    ///
    /// # Errors
    /// OBJECT_NOT_EXIST outside of requests; those of the adapter.
    pub fn destroy_current(&self) -> Result<(), SystemException> {
        let id = current_id()?;
        self.active.lock().remove(&id);
        Ok(self.poa.deactivate_object(&id)?)
    }

    /// Removes expired iterators, and the least recently called one of the client or of all where there are too many.
    fn take_superfluous(&self, client: Option<&str>) -> Vec<ObjectId> {
        let mut active = self.active.lock();
        let mut removed: Vec<_> = Vec::new();
        active.retain(|id, activity| {
            let is_expired = activity.last_call.elapsed() > self.options.expiry;
            if is_expired {
                removed.push(id.clone());
            }
            !is_expired
        });
        let of_client = |activity: &Activity| activity.client.as_deref() == client;
        let is_client_full =
            active.values().filter(|activity| of_client(activity)).count() >= self.options.limit_of_client.max(1);
        if is_client_full || active.len() >= self.options.limit.max(1) {
            let candidates = active.iter().filter(|(_, activity)| !is_client_full || of_client(activity));
            let oldest = candidates.min_by_key(|(_, activity)| activity.last_call).map(|(id, _)| id.clone());
            removed.extend(oldest.inspect(|id| _ = active.remove(id)));
        }
        removed
    }
}

fn current_id() -> Result<ObjectId, SystemException> {
    Current::new().object_id().map_err(|_| SystemException::object_not_exist(0, CompletionStatus::No))
}
