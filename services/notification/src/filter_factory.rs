//! The factory of filters, which all channels share.

use spandrel::net::sync::Arc;
use spandrel::services::cos_notify_filter::filter_factory::{CreateFilterError, CreateMappingFilterError};
use spandrel::services::cos_notify_filter::{
    self, FilterFactoryServant, FilterSkeleton, InvalidGrammar, MappingFilterSkeleton,
};
use spandrel::types::Any;
use spandrel::{ObjectRef, SystemException};

use crate::encoding::encoded_octets;
use crate::filter::{Filter, GRAMMAR};
use crate::filter_object::FilterObject;
use crate::filters::{AnyFilter, object_id};
use crate::mapping_filter::MappingFilter;
use crate::mapping_filter_object::MappingFilterObject;
use crate::shared::Shared;

/// The servant of the filter factory.
#[derive(Clone, Debug)]
pub(crate) struct FilterFactory(pub(crate) Arc<Shared>);

impl FilterFactory {
    fn create(&self, new: impl FnOnce(u64) -> AnyFilter) -> Result<ObjectRef, SystemException> {
        let shared = &self.0;
        let (number, filter) = shared.filters.add(&shared.filter_bounds, new)?;
        let (id, shared) = (object_id(number), Arc::clone(shared));
        match filter {
            AnyFilter::Plain(filter) => {
                let object = FilterObject::new(filter, Arc::clone(&shared));
                shared.serve(&id, Arc::new(FilterSkeleton::new(object)))
            }
            AnyFilter::Mapping(filter) => {
                let object = MappingFilterObject { filter, shared: Arc::clone(&shared) };
                shared.serve(&id, Arc::new(MappingFilterSkeleton::new(object)))
            }
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
        let object = self.create(|number| AnyFilter::Plain(Filter::new(number)))?;
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
        let new = |number| AnyFilter::Mapping(MappingFilter::new(number, default_value.clone(), charge));
        let object = self.create(new)?;
        Ok(Some(object.unchecked_narrow()))
    }
}
