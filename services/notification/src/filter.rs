//! Filters: sets of constraints that objects share.

use spandrel::net::sync::{Arc, RwLock};

use crate::constraints::{ChangeError, Constraints, FilteredEvent, SharedConstraints};
use crate::filter_record::RecordCell;

/// A filter: one of its constraints has to match.
#[derive(Debug)]
pub(crate) struct Filter {
    pub(crate) id: u64,
    pub(crate) constraints: SharedConstraints<()>,
    pub(crate) record: RecordCell,
}

impl Filter {
    pub(crate) fn new(id: u64, constraints: Constraints<()>, record: RecordCell) -> Arc<Self> {
        Arc::new(Self { id, constraints: RwLock::new(Arc::new(constraints)), record })
    }

    /// Whether one of the constraints matches; without constraints no event does.
    pub(crate) fn is_match(&self, event: &FilteredEvent<'_>, steps: &mut u64) -> bool {
        let constraints = Arc::clone(&self.constraints.read());
        constraints.matching(event, steps).is_some()
    }

    /// Changes the constraints, durably if the filter is in the store. Returns those before as well.
    pub(crate) fn change<T>(
        &self,
        change: impl FnOnce(&Constraints<()>) -> Result<(Constraints<()>, T), ChangeError>,
    ) -> Result<(Arc<Constraints<()>>, T), ChangeError> {
        self.record.change(None, &self.constraints, change)
    }
}
