//! Iterators over the rest of a listing.
//!
//! An iterator is a position behind a name, and no copy of the set. Their number is limited, and one that no client
//! calls for some time expires.

use std::fmt;

use spandrel::net::sync::{Arc, Mutex, Weak};
use spandrel::poa::PoaError;
use spandrel::services::cos_property_service::{
    PropertiesIterator, PropertiesIteratorServant, PropertiesIteratorSkeleton, Property, PropertyNamesIterator,
    PropertyNamesIteratorServant, PropertyNamesIteratorSkeleton,
};
use spandrel::types::Any;
use spandrel::{Poa, SystemException};
use spandrel_daemon::{ActiveIterators, IteratorOptions};

use crate::table::{property, void};

/// The most properties in one reply.
const MAX_LISTED: usize = 10_000;

/// A set that iterators run over.
pub(crate) trait Source: fmt::Debug + Send + Sync {
    /// The properties behind this name, in the order of their names, at most this many.
    fn after(&self, name: Option<&str>, how_many: usize) -> Vec<(String, Any)>;
}

/// The iterators over the property sets of an adapter that clients have not destroyed.
#[derive(Debug)]
pub struct PropertyIterators(ActiveIterators);

impl PropertyIterators {
    /// Serves iterators by a new adapter below this one, with its manager.
    ///
    /// # Errors
    /// Those of the adapter's creation: one adapter has one value of this type.
    pub fn new(parent: &Poa, options: IteratorOptions) -> Result<Arc<Self>, PoaError> {
        let poa = parent.create_poa("PropertyIterators", Some(&parent.the_poa_manager()), [])?;
        Ok(Arc::new(Self(ActiveIterators::new(poa, options))))
    }

    /// The number of iterators that are not destroyed.
    #[must_use]
    pub fn active(&self) -> usize {
        self.0.count()
    }

    pub(crate) fn over_names(
        self: &Arc<Self>,
        source: Arc<dyn Source>,
        after: Option<&String>,
    ) -> Result<PropertyNamesIterator, SystemException> {
        let iterator = self.iterator(source, after);
        Ok(self.0.activate(Arc::new(PropertyNamesIteratorSkeleton::new(iterator)))?.unchecked_narrow())
    }

    pub(crate) fn over_properties(
        self: &Arc<Self>,
        source: Arc<dyn Source>,
        after: Option<&String>,
    ) -> Result<PropertiesIterator, SystemException> {
        let iterator = self.iterator(source, after);
        Ok(self.0.activate(Arc::new(PropertiesIteratorSkeleton::new(iterator)))?.unchecked_narrow())
    }

    fn iterator(self: &Arc<Self>, source: Arc<dyn Source>, after: Option<&String>) -> Iterator {
        Iterator { source, after: Mutex::new(after.cloned()), iterators: Arc::downgrade(self) }
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
        self.record_call()?;
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
        self.record_call()?;
        *self.after.lock() = None;
        Ok(())
    }

    fn record_call(&self) -> Result<(), SystemException> {
        self.iterators.upgrade().map_or(Ok(()), |iterators| iterators.0.record_call())
    }

    fn destroy(&self) -> Result<(), SystemException> {
        self.iterators.upgrade().map_or(Ok(()), |iterators| iterators.0.destroy_current())
    }
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
