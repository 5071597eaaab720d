//! Iterators over the rest of a result. Their number is limited, and one that no client calls for some time expires.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use spandrel::net::sync::{Arc, Mutex, Weak};
use spandrel::poa::{Current, ObjectId, PoaError};
use spandrel::server::Servant;
use spandrel::services::cos_trading::{
    Offer, OfferIdIterator, OfferIdIteratorServant, OfferIdIteratorSkeleton, OfferIterator, OfferIteratorServant,
    OfferIteratorSkeleton, offer_id_iterator, offer_iterator,
};
use spandrel::{CompletionStatus, ObjectRef, Poa, SystemException};
use spandrel_daemon::caller;

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

/// The iterators of a trader.
#[derive(Debug)]
pub(crate) struct Iterators {
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

impl Iterators {
    pub(crate) fn new(parent: &Poa, options: IteratorOptions) -> Result<Arc<Self>, PoaError> {
        let poa = parent.create_poa("TradingIterators", Some(&parent.the_poa_manager()), [])?;
        Ok(Arc::new(Self { poa, options, active: Mutex::default() }))
    }

    /// Splits a result: the first `how_many` elements, and an iterator over the others if there are some.
    pub(crate) fn offers(
        self: &Arc<Self>,
        result: Vec<Offer>,
        how_many: usize,
        max_list: usize,
    ) -> Result<(Vec<Offer>, Option<OfferIterator>), SystemException> {
        let (first, rest) = self.split(result, how_many, max_list);
        let iterator = rest.map(|rest| self.add(Arc::new(OfferIteratorSkeleton::new(rest)))).transpose()?;
        Ok((first, iterator.map(|iterator| iterator.unchecked_narrow())))
    }

    /// As [`offers`](Self::offers), for ids.
    pub(crate) fn ids(
        self: &Arc<Self>,
        result: Vec<String>,
        how_many: usize,
        max_list: usize,
    ) -> Result<(Vec<String>, Option<OfferIdIterator>), SystemException> {
        let (first, rest) = self.split(result, how_many, max_list);
        let iterator = rest.map(|rest| self.add(Arc::new(OfferIdIteratorSkeleton::new(rest)))).transpose()?;
        Ok((first, iterator.map(|iterator| iterator.unchecked_narrow())))
    }

    fn split<T>(
        self: &Arc<Self>,
        mut result: Vec<T>,
        how_many: usize,
        max_list: usize,
    ) -> (Vec<T>, Option<Remaining<T>>) {
        let rest = result.split_off(how_many.min(max_list).min(result.len()));
        let iterator = (!rest.is_empty()).then(|| Remaining {
            rest: Mutex::new(rest.into_iter()),
            max_list,
            iterators: Arc::downgrade(self),
        });
        (result, iterator)
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
        let mut removed: Vec<_> = Vec::new();
        active.retain(|id, activity| {
            let is_expired = activity.called.elapsed() > self.options.expiry;
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
            let oldest = candidates.min_by_key(|(_, activity)| activity.called).map(|(id, _)| id.clone());
            removed.extend(oldest.inspect(|id| _ = active.remove(id)));
        }
        removed
    }
}

/// The elements that no reply has had yet.
#[derive(Debug)]
struct Remaining<T> {
    rest: Mutex<std::vec::IntoIter<T>>,
    max_list: usize,
    iterators: Weak<Iterators>,
}

impl<T> Remaining<T> {
    fn count(&self) -> Result<u32, SystemException> {
        self.note_call()?;
        Ok(u32::try_from(self.rest.lock().len()).unwrap_or(u32::MAX))
    }

    /// The next elements, and whether there are more behind them.
    fn next(&self, n: u32) -> Result<(bool, Vec<T>), SystemException> {
        self.note_call()?;
        let mut rest = self.rest.lock();
        let n = usize::try_from(n).unwrap_or(usize::MAX).min(self.max_list);
        let next = rest.by_ref().take(n).collect();
        Ok((rest.len() > 0, next))
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

    fn end(&self) -> Result<(), SystemException> {
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

impl OfferIteratorServant for Remaining<Offer> {
    fn max_left(&self) -> Result<u32, offer_iterator::MaxLeftError> {
        Ok(self.count()?)
    }

    fn next_n(&self, n: u32) -> Result<(bool, Vec<Offer>), SystemException> {
        self.next(n)
    }

    fn destroy(&self) -> Result<(), SystemException> {
        self.end()
    }
}

impl OfferIdIteratorServant for Remaining<String> {
    fn max_left(&self) -> Result<u32, offer_id_iterator::MaxLeftError> {
        Ok(self.count()?)
    }

    fn next_n(&self, n: u32) -> Result<(bool, Vec<String>), SystemException> {
        self.next(n)
    }

    fn destroy(&self) -> Result<(), SystemException> {
        self.end()
    }
}
