//! The filters of a service by their numbers, and the sets of filters that objects use.

use std::collections::BTreeMap;

use spandrel::net::sync::{Arc, RwLock};
use spandrel::poa::ObjectId;
use spandrel::services::cos_notify_filter::{self, FilterNotFound};
use spandrel::types::Interface as _;
use spandrel::{CompletionStatus, ObjectRef, Poa, SystemException};
use spandrel_daemon::require_at_most;

use crate::filter::{Filter, FilteredEvent};
use crate::filter_bounds::FilterBounds;
use crate::mapping_filter::MappingFilter;

/// A filter of either kind.
#[derive(Clone, Debug)]
pub(crate) enum AnyFilter {
    Plain(Arc<Filter>),
    Mapping(Arc<MappingFilter>),
}

/// The filters of a service by their numbers.
#[derive(Debug, Default)]
pub(crate) struct Filters(RwLock<Table>);

#[derive(Debug, Default)]
struct Table {
    by_number: BTreeMap<u64, AnyFilter>,
    last: u64,
}

pub(crate) fn object_id(number: u64) -> ObjectId {
    ObjectId::from(format!("filter/{number}").as_str())
}

impl Filters {
    /// Adds a filter, which `new` makes with its number.
    ///
    /// # Errors
    /// IMP_LIMIT if there are too many.
    pub(crate) fn add(
        &self,
        bounds: &FilterBounds,
        new: impl FnOnce(u64) -> AnyFilter,
    ) -> Result<(u64, AnyFilter), SystemException> {
        let mut table = self.0.write();
        require_at_most(table.by_number.len() + 1, bounds.limits.filters, "filters")?;
        table.last += 1;
        let (number, filter) = (table.last, new(table.last));
        table.by_number.insert(number, filter.clone());
        Ok((number, filter))
    }

    /// Ends a filter. Objects that use it go on to use it.
    pub(crate) fn destroy(&self, adapter: &Poa, number: u64) {
        self.0.write().by_number.remove(&number);
        _ = adapter.deactivate_object(&object_id(number)); // after this call
    }

    fn get(&self, adapter: &Poa, object: &ObjectRef) -> Option<AnyFilter> {
        let id = adapter.reference_to_id(object).ok()?;
        let text = String::from_utf8(id.as_bytes().to_vec()).ok()?;
        let number: u64 = text.strip_prefix("filter/")?.parse().ok()?;
        self.0.read().by_number.get(&number).cloned()
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
#[derive(Debug, Default)]
pub(crate) struct FilterSet(RwLock<SetState>);

#[derive(Debug, Default)]
struct SetState {
    by_id: BTreeMap<i32, Arc<Filter>>,
    last: i32,
}

impl FilterSet {
    /// Whether one of the filters matches, or there is none.
    pub(crate) fn is_match(&self, event: &FilteredEvent<'_>, steps: &mut u64) -> bool {
        let state = self.0.read();
        state.by_id.is_empty() || state.by_id.values().any(|filter| filter.is_match(event, steps))
    }

    pub(crate) fn add(
        &self,
        filters: &Filters,
        adapter: &Poa,
        bounds: &FilterBounds,
        filter: Option<&cos_notify_filter::Filter>,
    ) -> Result<i32, SystemException> {
        let filter = filter.and_then(|filter| filters.get(adapter, filter.as_object()));
        let Some(AnyFilter::Plain(filter)) = filter else { return Err(foreign()) };
        let mut state = self.0.write();
        require_at_most(state.by_id.len() + 1, bounds.limits.filters_of_object, "filters of an object")?;
        state.last = state.last.wrapping_add(1);
        let id = state.last;
        state.by_id.insert(id, filter);
        Ok(id)
    }

    pub(crate) fn remove(&self, id: i32) -> Result<(), FilterNotFound> {
        self.0.write().by_id.remove(&id).map(drop).ok_or(FilterNotFound {})
    }

    pub(crate) fn get(&self, adapter: &Poa, id: i32) -> Result<Option<ObjectRef>, FilterNotFound> {
        let number = self.0.read().by_id.get(&id).map(|filter| filter.id).ok_or(FilterNotFound {})?;
        // A filter that was destroyed has no object.
        Ok(adapter.id_to_reference(&object_id(number)).ok())
    }

    pub(crate) fn ids(&self) -> Vec<i32> {
        self.0.read().by_id.keys().copied().collect()
    }

    pub(crate) fn clear(&self) {
        self.0.write().by_id.clear();
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
