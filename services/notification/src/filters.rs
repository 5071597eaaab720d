//! The filters of a service, their factory, and the sets of filters that objects use.

use std::collections::BTreeMap;

use spandrel::net::sync::{Arc, RwLock};
use spandrel::poa::ObjectId;
use spandrel::services::cos_notify_filter::filter_factory::{CreateFilterError, CreateMappingFilterError};
use spandrel::services::cos_notify_filter::{
    self, FilterFactoryServant, FilterNotFound, FilterSkeleton, InvalidGrammar, MappingFilterSkeleton,
};
use spandrel::types::{Any, Interface as _};
use spandrel::{CompletionStatus, ObjectRef, SystemException};
use spandrel_delivery::require_at_most;

use crate::filter::{Filter, FilteredEvent, GRAMMAR, charge};
use crate::mapping_filter::MappingFilter;
use crate::shared::{Shared, encoded_octets};

/// A filter of either kind.
#[derive(Clone, Debug)]
enum AnyFilter {
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

fn object_id(number: u64) -> ObjectId {
    ObjectId::from(format!("filter/{number}").as_str())
}

impl Filters {
    fn create(&self, shared: &Shared, new: impl FnOnce(u64) -> AnyFilter) -> Result<ObjectRef, SystemException> {
        let (number, filter) = {
            let mut table = self.0.write();
            require_at_most(table.by_number.len() + 1, shared.limits.filters, "filters")?;
            table.last += 1;
            let (number, filter) = (table.last, new(table.last));
            table.by_number.insert(number, filter.clone());
            (number, filter)
        };
        let id = object_id(number);
        match filter {
            AnyFilter::Plain(filter) => shared.serve(&id, Arc::new(FilterSkeleton::new(filter))),
            AnyFilter::Mapping(filter) => shared.serve(&id, Arc::new(MappingFilterSkeleton::new(filter))),
        }
    }

    /// Ends a filter. Objects that use it go on to use it.
    pub(crate) fn destroy(&self, shared: &Shared, number: u64) {
        self.0.write().by_number.remove(&number);
        _ = shared.adapter.deactivate_object(&object_id(number)); // after this call
    }

    fn get(&self, shared: &Shared, object: &ObjectRef) -> Option<AnyFilter> {
        let id = shared.adapter.reference_to_id(object).ok()?;
        let text = String::from_utf8(id.as_bytes().to_vec()).ok()?;
        let number: u64 = text.strip_prefix("filter/")?.parse().ok()?;
        self.0.read().by_number.get(&number).cloned()
    }

    /// The mapping filter of a reference; nil is none.
    pub(crate) fn mapping(
        &self,
        shared: &Shared,
        filter: Option<&cos_notify_filter::MappingFilter>,
    ) -> Result<Option<Arc<MappingFilter>>, SystemException> {
        let Some(filter) = filter else { return Ok(None) };
        match self.get(shared, filter.as_object()) {
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

/// The servant of the filter factory.
#[derive(Clone, Debug)]
pub(crate) struct FilterFactory(pub(crate) Arc<Shared>);

fn require_grammar<E: From<InvalidGrammar>>(grammar: &str) -> Result<(), E> {
    // The names that services in use accept for the same language.
    if [GRAMMAR, "ETCL", "TCL", ""].contains(&grammar) { Ok(()) } else { Err(InvalidGrammar {}.into()) }
}

impl FilterFactoryServant for FilterFactory {
    fn create_filter(&self, constraint_grammar: &str) -> Result<Option<cos_notify_filter::Filter>, CreateFilterError> {
        require_grammar::<CreateFilterError>(constraint_grammar)?;
        let shared = &self.0;
        let object = shared.filters.create(shared, |number| AnyFilter::Plain(Filter::new(number, shared)))?;
        Ok(Some(object.unchecked_narrow()))
    }

    fn create_mapping_filter(
        &self,
        constraint_grammar: &str,
        default_value: &Any,
    ) -> Result<Option<cos_notify_filter::MappingFilter>, CreateMappingFilterError> {
        require_grammar::<CreateMappingFilterError>(constraint_grammar)?;
        let shared = &self.0;
        let charge = charge(shared, encoded_octets(default_value)?)?;
        let new = |number| AnyFilter::Mapping(MappingFilter::new(number, shared, default_value.clone(), charge));
        let object = shared.filters.create(shared, new)?;
        Ok(Some(object.unchecked_narrow()))
    }
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
        shared: &Shared,
        filter: Option<&cos_notify_filter::Filter>,
    ) -> Result<i32, SystemException> {
        let filter = filter.and_then(|filter| shared.filters.get(shared, filter.as_object()));
        let Some(AnyFilter::Plain(filter)) = filter else { return Err(foreign()) };
        let mut state = self.0.write();
        require_at_most(state.by_id.len() + 1, shared.limits.filters_of_object, "filters of an object")?;
        state.last = state.last.wrapping_add(1);
        let id = state.last;
        state.by_id.insert(id, filter);
        Ok(id)
    }

    pub(crate) fn remove(&self, id: i32) -> Result<(), FilterNotFound> {
        self.0.write().by_id.remove(&id).map(drop).ok_or(FilterNotFound {})
    }

    pub(crate) fn get(&self, shared: &Shared, id: i32) -> Result<Option<ObjectRef>, FilterNotFound> {
        let number = self.0.read().by_id.get(&id).map(|filter| filter.id).ok_or(FilterNotFound {})?;
        // A filter that was destroyed has no object.
        Ok(shared.adapter.id_to_reference(&object_id(number)).ok())
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
    shared: &Shared,
    filter: Option<&Arc<MappingFilter>>,
) -> Option<cos_notify_filter::MappingFilter> {
    let object = shared.adapter.id_to_reference(&object_id(filter?.id)).ok()?;
    Some(object.unchecked_narrow())
}
