//! Iterators over the rest of a listing.
//!
//! An iterator is a position behind a name, and no copy of the set. Their number is limited, and one that no client
//! calls for some time expires.

use std::collections::HashMap;
use std::fmt;
use std::time::{Duration, Instant};

use spandrel::net::sync::{Arc, Mutex, Weak};
use spandrel::poa::{Current, ObjectId, PoaError};
use spandrel::server::Servant;
use spandrel::services::cos_property_service::{
    PropertiesIterator, PropertiesIteratorServant, PropertiesIteratorSkeleton, Property, PropertyNamesIterator,
    PropertyNamesIteratorServant, PropertyNamesIteratorSkeleton,
};
use spandrel::types::Any;
use spandrel::{CompletionStatus, ObjectRef, Poa, SystemException};
use spandrel_daemon::caller;

use crate::table::{property, void};

/// The most properties in one reply.
const MAX_LISTED: usize = 10_000;

/// A set that iterators run over.
pub(crate) trait Source: fmt::Debug + Send + Sync {
    /// The properties behind this name, in the order of their names, at most this many.
    fn after(&self, name: Option<&str>, how_many: usize) -> Vec<(String, Any)>;
}

/// The number of iterators, and their expiry.
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

/// The iterators over the property sets of an adapter.
#[derive(Debug)]
pub struct PropertyIterators {
    poa: Poa,
    options: IteratorOptions,
    active: Mutex<HashMap<ObjectId, Activity>>,
}

/// The use of an iterator.
#[derive(Debug)]
struct Activity {
    /// The time of the last call.
    called: Instant,
    client: Option<String>,
}

impl PropertyIterators {
    /// Serves iterators by a new adapter below this one, with its manager.
    ///
    /// # Errors
    /// Those of the adapter's creation: one adapter has one value of this type.
    pub fn new(parent: &Poa, options: IteratorOptions) -> Result<Arc<Self>, PoaError> {
        let poa = parent.create_poa("PropertyIterators", Some(&parent.the_poa_manager()), [])?;
        Ok(Arc::new(Self { poa, options, active: Mutex::default() }))
    }

    /// The number of iterators that are not destroyed.
    #[must_use]
    pub fn active(&self) -> usize {
        self.active.lock().len()
    }

    pub(crate) fn over_names(
        self: &Arc<Self>,
        source: Arc<dyn Source>,
        after: Option<&String>,
    ) -> Result<PropertyNamesIterator, SystemException> {
        let iterator = self.iterator(source, after);
        Ok(self.add(Arc::new(PropertyNamesIteratorSkeleton::new(iterator)))?.unchecked_narrow())
    }

    pub(crate) fn over_properties(
        self: &Arc<Self>,
        source: Arc<dyn Source>,
        after: Option<&String>,
    ) -> Result<PropertiesIterator, SystemException> {
        let iterator = self.iterator(source, after);
        Ok(self.add(Arc::new(PropertiesIteratorSkeleton::new(iterator)))?.unchecked_narrow())
    }

    fn iterator(self: &Arc<Self>, source: Arc<dyn Source>, after: Option<&String>) -> Iterator {
        Iterator { source, after: Mutex::new(after.cloned()), iterators: Arc::downgrade(self) }
    }

    /// Activates an iterator, after the removal of expired ones and of one too many.
    fn add(&self, servant: Arc<dyn Servant>) -> Result<ObjectRef, SystemException> {
        let client = caller();
        for id in self.superfluous(client.as_deref()) {
            _ = self.poa.deactivate_object(&id); // it may have been destroyed meanwhile
        }
        let id = self.poa.activate_object(servant)?;
        self.active.lock().insert(id.clone(), Activity { called: Instant::now(), client });
        Ok(self.poa.id_to_reference(&id)?)
    }

    /// Removes expired iterators, and the least recently called one of the client or of all where there are too many.
    fn superfluous(&self, client: Option<&str>) -> Vec<ObjectId> {
        let mut active = self.active.lock();
        let is_expired = |activity: &Activity| activity.called.elapsed() > self.options.expiry;
        let mut removed: Vec<_> =
            active.iter().filter(|(_, activity)| is_expired(activity)).map(|(id, _)| id.clone()).collect();
        removed.iter().for_each(|id| _ = active.remove(id));
        let of_client = |activity: &Activity| activity.client.as_deref() == client;
        let is_client_full =
            active.values().filter(|activity| of_client(activity)).count() >= self.options.limit_of_client.max(1);
        if is_client_full || active.len() >= self.options.limit.max(1) {
            let candidates = active.iter().filter(|(_, activity)| !is_client_full || of_client(activity));
            let oldest = candidates.min_by_key(|(_, activity)| activity.called).map(|(id, _)| id.clone());
            removed.extend(oldest.inspect(|id| _ = active.remove(id)));
        }
        removed
    }
}

pub(crate) fn bounded(how_many: u32) -> usize {
    usize::try_from(how_many).unwrap_or(usize::MAX).min(MAX_LISTED)
}

/// The servant of an iterator of either kind.
#[derive(Debug)]
struct Iterator {
    source: Arc<dyn Source>,
    /// The last name that was returned.
    after: Mutex<Option<String>>,
    iterators: Weak<PropertyIterators>,
}

impl Iterator {
    /// The next properties, and whether there was one at the position.
    fn next(&self, how_many: usize) -> Result<(bool, Vec<(String, Any)>), SystemException> {
        self.note_call()?;
        let mut after = self.after.lock();
        // Without a place for it, the next one is only looked at.
        let mut properties = self.source.after(after.as_deref(), how_many.max(1));
        let is_any = !properties.is_empty();
        properties.truncate(how_many);
        if let Some((name, _)) = properties.last() {
            *after = Some(name.clone());
        }
        Ok((is_any, properties))
    }

    fn reset(&self) -> Result<(), SystemException> {
        self.note_call()?;
        *self.after.lock() = None;
        Ok(())
    }

    fn note_call(&self) -> Result<(), SystemException> {
        let id = current_id()?;
        if let Some(iterators) = self.iterators.upgrade()
            && let Some(activity) = iterators.active.lock().get_mut(&id)
        {
            activity.called = Instant::now();
        }
        Ok(())
    }

    fn destroy(&self) -> Result<(), SystemException> {
        let id = current_id()?;
        if let Some(iterators) = self.iterators.upgrade() {
            iterators.active.lock().remove(&id);
            iterators.poa.deactivate_object(&id)?;
        }
        Ok(())
    }
}

fn current_id() -> Result<ObjectId, SystemException> {
    Current::new().object_id().map_err(|_| SystemException::object_not_exist(0, CompletionStatus::No))
}

impl PropertyNamesIteratorServant for Iterator {
    fn reset(&self) -> Result<(), SystemException> {
        self.reset()
    }

    fn next_one(&self) -> Result<(bool, String), SystemException> {
        let (is_any, mut properties) = self.next(1)?;
        Ok((is_any, properties.pop().map(|(name, _)| name).unwrap_or_default()))
    }

    fn next_n(&self, how_many: u32) -> Result<(bool, Vec<String>), SystemException> {
        let (is_any, properties) = self.next(bounded(how_many))?;
        Ok((is_any, properties.into_iter().map(|(name, _)| name).collect()))
    }

    fn destroy(&self) -> Result<(), SystemException> {
        self.destroy()
    }
}

impl PropertiesIteratorServant for Iterator {
    fn reset(&self) -> Result<(), SystemException> {
        self.reset()
    }

    fn next_one(&self) -> Result<(bool, Property), SystemException> {
        let (is_any, mut properties) = self.next(1)?;
        let last = match properties.pop() {
            Some(last) => last,
            None => (String::new(), void()?),
        };
        Ok((is_any, property(last)))
    }

    fn next_n(&self, how_many: u32) -> Result<(bool, Vec<Property>), SystemException> {
        let (is_any, properties) = self.next(bounded(how_many))?;
        Ok((is_any, properties.into_iter().map(property).collect()))
    }

    fn destroy(&self) -> Result<(), SystemException> {
        self.destroy()
    }
}
