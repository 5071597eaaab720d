//! Iterators over the rest of a result. Their number is limited, and one that no client calls for some time expires.

use spandrel::net::sync::{Arc, Mutex, Weak};
use spandrel::poa::PoaError;
use spandrel::services::cos_trading::{
    Offer, OfferIdIterator, OfferIdIteratorServant, OfferIdIteratorSkeleton, OfferIterator, OfferIteratorServant,
    OfferIteratorSkeleton, offer_id_iterator, offer_iterator,
};
use spandrel::{Poa, SystemException};
use spandrel_daemon::{ActiveIterators, IteratorOptions};

/// The iterators of a trader.
#[derive(Debug)]
pub(crate) struct Iterators(ActiveIterators);

impl Iterators {
    pub(crate) fn new(parent: &Poa, options: IteratorOptions) -> Result<Arc<Self>, PoaError> {
        let poa = parent.create_poa("TradingIterators", Some(&parent.the_poa_manager()), [])?;
        Ok(Arc::new(Self(ActiveIterators::new(poa, options))))
    }

    /// Splits a result: the first `how_many` elements, and an iterator over the others if there are some.
    pub(crate) fn offers(
        self: &Arc<Self>,
        result: Vec<Offer>,
        how_many: usize,
        max_list: usize,
    ) -> Result<(Vec<Offer>, Option<OfferIterator>), SystemException> {
        let (first, rest) = self.split(result, how_many, max_list);
        let iterator = rest.map(|rest| self.0.activate(Arc::new(OfferIteratorSkeleton::new(rest)))).transpose()?;
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
        let iterator = rest.map(|rest| self.0.activate(Arc::new(OfferIdIteratorSkeleton::new(rest)))).transpose()?;
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
        self.record_call()?;
        Ok(u32::try_from(self.rest.lock().len()).unwrap_or(u32::MAX))
    }

    /// The next elements, and whether there are more behind them.
    fn next(&self, n: u32) -> Result<(bool, Vec<T>), SystemException> {
        self.record_call()?;
        let mut rest = self.rest.lock();
        let n = usize::try_from(n).unwrap_or(usize::MAX).min(self.max_list);
        let next = rest.by_ref().take(n).collect();
        Ok((rest.len() > 0, next))
    }

    fn record_call(&self) -> Result<(), SystemException> {
        self.iterators.upgrade().map_or(Ok(()), |iterators| iterators.0.record_call())
    }

    fn end(&self) -> Result<(), SystemException> {
        self.iterators.upgrade().map_or(Ok(()), |iterators| iterators.0.destroy_current())
    }
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
