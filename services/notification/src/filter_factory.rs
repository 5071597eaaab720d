//! The factory of filters, which all channels share.

use spandrel::net::sync::Arc;
use spandrel::services::cos_notify_filter::filter_factory::{CreateFilterError, CreateMappingFilterError};
use spandrel::services::cos_notify_filter::{
    self, FilterFactoryServant, FilterSkeleton, InvalidGrammar, MappingFilterSkeleton,
};
use spandrel::types::Any;
use spandrel::{ObjectRef, SystemException};

use crate::constraints::{Constraints, GRAMMAR};
use crate::encoding::encoded_octets;
use crate::filter::Filter;
use crate::filter_object::FilterObject;
use crate::filter_record::RecordCell;
use crate::filters::{AnyFilter, object_id};
use crate::mapping_filter::MappingFilter;
use crate::mapping_filter_object::MappingFilterObject;
use crate::shared::Shared;

/// The servant of the filter factory.
#[derive(Clone, Debug)]
pub(crate) struct FilterFactory(pub(crate) Arc<Shared>);

impl FilterFactory {
    fn create(&self, new: impl FnOnce(u64, RecordCell) -> AnyFilter) -> Result<ObjectRef, SystemException> {
        let (_, filter) = self.0.filters.add(&self.0.filter_bounds, new)?;
        serve_filter(&self.0, filter)
    }
}

/// Activates the object of a filter.
pub(crate) fn serve_filter(shared: &Arc<Shared>, filter: AnyFilter) -> Result<ObjectRef, SystemException> {
    let id = object_id(filter.number());
    match filter {
        AnyFilter::Plain(filter) => {
            let object = FilterObject::new(filter, Arc::clone(shared));
            shared.serve(&id, Arc::new(FilterSkeleton::new(object)))
        }
        AnyFilter::Mapping(filter) => {
            let object = MappingFilterObject { filter, shared: Arc::clone(shared) };
            shared.serve(&id, Arc::new(MappingFilterSkeleton::new(object)))
        }
    }
}

fn require_grammar<E: From<InvalidGrammar>>(grammar: &str) -> Result<(), E> {
    // The names that services in use accept for the same language.
    if [GRAMMAR, "ETCL", "TCL", ""].contains(&grammar) { Ok(()) } else { Err(InvalidGrammar {}.into()) }
}

impl FilterFactoryServant for FilterFactory {
    fn create_filter(&self, constraint_grammar: &str) -> Result<Option<cos_notify_filter::Filter>, CreateFilterError> {
        require_grammar::<CreateFilterError>(constraint_grammar)?;
        let object =
            self.create(|number, record| AnyFilter::Plain(Filter::new(number, Constraints::default(), record)))?;
        Ok(Some(object.unchecked_narrow()))
    }

    fn create_mapping_filter(
        &self,
        constraint_grammar: &str,
        default_value: &Any,
    ) -> Result<Option<cos_notify_filter::MappingFilter>, CreateMappingFilterError> {
        require_grammar::<CreateMappingFilterError>(constraint_grammar)?;
        let shared = &self.0;
        let charge = shared.filter_bounds.charge(encoded_octets(default_value)?)?;
        let object = self.create(|number, record| {
            let default = default_value.clone();
            AnyFilter::Mapping(MappingFilter::new(number, default, Constraints::default(), record, charge))
        })?;
        Ok(Some(object.unchecked_narrow()))
    }
}
