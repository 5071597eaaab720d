//! Mapping filters: they give an event another priority or lifetime for one consumer.

use spandrel::net::sync::{Arc, RwLock};
use spandrel::types::Any;
use spandrel_delivery::MemoryCharge;

use crate::constraints::{ChangeError, Constraints, FilteredEvent, SharedConstraints};
use crate::filter_record::RecordCell;

/// A mapping filter. All results have the type of its default value.
#[derive(Debug)]
pub(crate) struct MappingFilter {
    pub(crate) id: u64,
    pub(crate) default: Any,
    pub(crate) constraints: SharedConstraints<Any>,
    pub(crate) record: RecordCell,
    _charge: MemoryCharge,
}

impl MappingFilter {
    pub(crate) fn new(
        id: u64,
        default: Any,
        constraints: Constraints<Any>,
        record: RecordCell,
        charge: MemoryCharge,
    ) -> Arc<Self> {
        Arc::new(Self { id, default, constraints: RwLock::new(Arc::new(constraints)), record, _charge: charge })
    }

    /// Changes the constraints, durably if the filter is in the store.
    pub(crate) fn change<T>(
        &self,
        change: impl FnOnce(&Constraints<Any>) -> Result<(Constraints<Any>, T), ChangeError>,
    ) -> Result<T, ChangeError> {
        self.record.change(Some(&self.default), &self.constraints, change).map(|(_, outcome)| outcome)
    }

    /// The result of the first constraint that matches, else the default value, and whether one matched.
    pub(crate) fn evaluate(&self, event: &FilteredEvent<'_>, steps: &mut u64) -> (bool, Any) {
        let constraints = Arc::clone(&self.constraints.read());
        match constraints.matching(event, steps) {
            Some(constraint) => (true, constraint.result.clone()),
            None => (false, self.default.clone()),
        }
    }

    pub(crate) fn is_of_type(&self, value: &Any) -> bool {
        value.type_code().equivalent(self.default.type_code())
    }
}

/// The mapping filters of a proxy or administrator of consumers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mappings {
    pub(crate) priority: Option<Arc<MappingFilter>>,
    pub(crate) lifetime: Option<Arc<MappingFilter>>,
}

impl Mappings {
    pub(crate) fn is_empty(&self) -> bool {
        self.priority.is_none() && self.lifetime.is_none()
    }
}
