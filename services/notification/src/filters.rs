//! The filters of a service by their numbers, and the sets of filters that objects use.

use std::collections::BTreeMap;

use spandrel::net::sync::{Arc, RwLock};
use spandrel::poa::ObjectId;
use spandrel::services::cos_notify_filter::{self, FilterNotFound};
use spandrel::types::Interface as _;
use spandrel::{CompletionStatus, ObjectRef, Poa, SystemException};
use spandrel_daemon::require_at_most;

use crate::constraints::FilteredEvent;
use crate::durable::DurableStore;
use crate::edit::Edit;
use crate::filter::Filter;
use crate::filter_bounds::FilterBounds;
use crate::filter_record::{RecordCell, encoded_record};
use crate::mapping_filter::MappingFilter;

/// The numbers that the store takes as used with one write.
pub(crate) const RESERVED_IDS: u64 = 1_000;

/// A filter of either kind.
#[derive(Clone, Debug)]
pub(crate) enum AnyFilter {
    Plain(Arc<Filter>),
    Mapping(Arc<MappingFilter>),
}

impl AnyFilter {
    pub(crate) fn number(&self) -> u64 {
        self.record().number
    }

    fn record(&self) -> &RecordCell {
        match self {
            Self::Plain(filter) => &filter.record,
            Self::Mapping(filter) => &filter.record,
        }
    }

    fn edit(&self, is_destroyed: bool) -> Result<Edit, SystemException> {
        let octets = match self {
            Self::Plain(filter) => encoded_record(None, &filter.constraints.read(), is_destroyed)?,
            Self::Mapping(filter) => encoded_record(Some(&filter.default), &filter.constraints.read(), is_destroyed)?,
        };
        Ok(Edit::Filter(self.number(), Some(octets)))
    }

    /// Stores that the filter has no object any more.
    pub(crate) fn mark_destroyed(&self) -> Result<(), SystemException> {
        self.record().mark_destroyed(|is_destroyed| self.edit(is_destroyed))
    }
}

/// Writes edits of objects, and the records of the filters that they use if the store has them not yet.
pub(crate) fn write_with_filters(
    store: &DurableStore,
    filters: &BTreeMap<u64, AnyFilter>,
    mut edits: Vec<Edit>,
) -> Result<(), SystemException> {
    let mut states = Vec::new();
    // In the order of their numbers, so that no two threads wait for each other.
    for filter in filters.values() {
        let state = filter.record().lock();
        if !state.is_stored {
            edits.push(filter.edit(state.is_destroyed)?);
            states.push(state);
        }
    }
    store.write(edits)?;
    for mut state in states {
        state.is_stored = true;
    }
    Ok(())
}

/// The filters of a service by their numbers.
#[derive(Debug)]
pub(crate) struct Filters {
    table: RwLock<Table>,
    store: Option<Arc<DurableStore>>,
}

#[derive(Debug)]
struct Table {
    by_number: BTreeMap<u64, AnyFilter>,
    last: u64,
    /// The number up to which the store takes numbers as used.
    reserved: u64,
}

pub(crate) fn object_id(number: u64) -> ObjectId {
    ObjectId::from(format!("filter/{number}").as_str())
}

impl Filters {
    /// No filters; `last` is the last number that may be in use.
    pub(crate) fn new(store: Option<Arc<DurableStore>>, last: u64) -> Self {
        Self { table: RwLock::new(Table { by_number: BTreeMap::new(), last, reserved: last }), store }
    }

    /// Adds a filter, which `new` makes with its number and record.
    ///
    /// # Errors
    /// IMP_LIMIT if there are too many; PERSIST_STORE if the store cannot be written.
    pub(crate) fn add(
        &self,
        bounds: &FilterBounds,
        new: impl FnOnce(u64, RecordCell) -> AnyFilter,
    ) -> Result<(u64, AnyFilter), SystemException> {
        let mut table = self.table.write();
        require_at_most(table.by_number.len() + 1, bounds.limits.filters, "filters")?;
        let number = table.last + 1;
        if let Some(store) = self.store.as_ref().filter(|_| number > table.reserved) {
            // Numbers are not used again, also those of filters that are not in the store.
            let reserved = number + RESERVED_IDS;
            store.write(vec![Edit::Setting("filters", reserved)])?;
            table.reserved = reserved;
        }
        table.last = number;
        let filter = new(number, RecordCell::new(number, self.store.clone()));
        table.by_number.insert(number, filter.clone());
        Ok((number, filter))
    }

    /// Adds a filter of the store.
    pub(crate) fn restore(&self, filter: &AnyFilter) {
        self.table.write().by_number.insert(filter.number(), filter.clone());
    }

    /// Ends a filter. Objects that use it go on to use it.
    ///
    /// # Errors
    /// PERSIST_STORE if the store cannot be written; the filter goes on.
    pub(crate) fn destroy(&self, adapter: &Poa, number: u64) -> Result<(), SystemException> {
        let filter = self.table.read().by_number.get(&number).cloned();
        if let Some(filter) = filter {
            filter.mark_destroyed()?;
        }
        self.table.write().by_number.remove(&number);
        _ = adapter.deactivate_object(&object_id(number)); // after this call
        Ok(())
    }

    /// The filter of a reference.
    ///
    /// # Errors
    /// BAD_PARAM for one of another service.
    pub(crate) fn plain(
        &self,
        adapter: &Poa,
        filter: Option<&cos_notify_filter::Filter>,
    ) -> Result<Arc<Filter>, SystemException> {
        match filter.and_then(|filter| self.get(adapter, filter.as_object())) {
            Some(AnyFilter::Plain(filter)) => Ok(filter),
            _ => Err(foreign()),
        }
    }

    fn get(&self, adapter: &Poa, object: &ObjectRef) -> Option<AnyFilter> {
        let id = adapter.reference_to_id(object).ok()?;
        let text = String::from_utf8(id.as_bytes().to_vec()).ok()?;
        let number: u64 = text.strip_prefix("filter/")?.parse().ok()?;
        self.table.read().by_number.get(&number).cloned()
    }

    /// The mapping filter of a reference; nil is none.
    pub(crate) fn mapping(
        &self,
        adapter: &Poa,
        filter: Option<&cos_notify_filter::MappingFilter>,
    ) -> Result<Option<Arc<MappingFilter>>, SystemException> {
        let Some(filter) = filter else { return Ok(None) };
        match self.get(adapter, filter.as_object()) {
            Some(AnyFilter::Mapping(filter)) => Ok(Some(filter)),
            _ => Err(foreign()),
        }
    }
}

/// The exception for filters of other services: their evaluation would be a call for each event.
fn foreign() -> SystemException {
    let detail = "the filter is nil, or not one of this service: only filters of its own factories are used";
    SystemException::bad_param(0, CompletionStatus::No).with_detail(detail)
}

/// The filters of a proxy or administrator.
#[derive(Clone, Debug, Default)]
pub(crate) struct FilterSet {
    by_id: BTreeMap<i32, Arc<Filter>>,
    last: i32,
}

impl FilterSet {
    /// The filters of a record, and the last id.
    pub(crate) fn restored(by_id: BTreeMap<i32, Arc<Filter>>, last: i32) -> Self {
        Self { by_id, last }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// Whether one of the filters matches, or there is none.
    pub(crate) fn is_match(&self, event: &FilteredEvent<'_>, steps: &mut u64) -> bool {
        self.by_id.is_empty() || self.by_id.values().any(|filter| filter.is_match(event, steps))
    }

    pub(crate) fn add(&mut self, bounds: &FilterBounds, filter: Arc<Filter>) -> Result<i32, SystemException> {
        require_at_most(self.by_id.len() + 1, bounds.limits.filters_of_object, "filters of an object")?;
        self.last = self.last.wrapping_add(1);
        self.by_id.insert(self.last, filter);
        Ok(self.last)
    }

    pub(crate) fn remove(&mut self, id: i32) -> Result<(), FilterNotFound> {
        self.by_id.remove(&id).map(drop).ok_or(FilterNotFound {})
    }

    pub(crate) fn get(&self, adapter: &Poa, id: i32) -> Result<Option<ObjectRef>, FilterNotFound> {
        let number = self.by_id.get(&id).map(|filter| filter.id).ok_or(FilterNotFound {})?;
        // A filter that was destroyed has no object.
        Ok(adapter.id_to_reference(&object_id(number)).ok())
    }

    pub(crate) fn ids(&self) -> Vec<i32> {
        self.by_id.keys().copied().collect()
    }

    pub(crate) fn clear(&mut self) {
        self.by_id.clear();
    }

    /// The ids of the filters with their numbers, and the last id.
    pub(crate) fn numbers(&self) -> (Vec<(i32, u64)>, i32) {
        (self.by_id.iter().map(|(id, filter)| (*id, filter.id)).collect(), self.last)
    }

    /// The filters of the set.
    pub(crate) fn filters(&self) -> impl Iterator<Item = &Arc<Filter>> {
        self.by_id.values()
    }
}

/// The reference of a mapping filter that an object uses; `None` if it was destroyed.
pub(crate) fn mapping_reference(
    adapter: &Poa,
    filter: Option<&Arc<MappingFilter>>,
) -> Option<cos_notify_filter::MappingFilter> {
    let object = adapter.id_to_reference(&object_id(filter?.id)).ok()?;
    Some(object.unchecked_narrow())
}
