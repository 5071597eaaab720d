//! The records of filters in the store: a filter has one from its first use by an object of the store on.

use spandrel::SystemException;
use spandrel::net::sync::{Arc, Mutex, MutexGuard};
use spandrel::types::Any;

use crate::constraints::{ChangeError, Constraints, FilterResult, SharedConstraints};
use crate::durable::DurableStore;
use crate::edit::Edit;
use crate::encoding::encoded;
use crate::records::FilterRecord;

/// The record of a filter. It is removed when the filter is dropped.
#[derive(Debug)]
pub(crate) struct RecordCell {
    pub(crate) number: u64,
    store: Option<Arc<DurableStore>>,
    /// Held while the filter and its record are changed.
    state: Mutex<RecordState>,
}

/// The relation of a filter to the store.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RecordState {
    pub(crate) is_stored: bool,
    pub(crate) is_destroyed: bool,
}

/// The record of a filter as octets.
pub(crate) fn encoded_record<R: FilterResult>(
    default: Option<&Any>,
    constraints: &Constraints<R>,
    is_destroyed: bool,
) -> Result<Vec<u8>, SystemException> {
    let (constraints, last) = constraints.recorded();
    let record: FilterRecord = (default.cloned().into_iter().collect(), constraints, last, is_destroyed);
    encoded(&record)
}

impl RecordCell {
    /// The record of a new filter.
    pub(crate) fn new(number: u64, store: Option<Arc<DurableStore>>) -> Self {
        Self { number, store, state: Mutex::default() }
    }

    /// The record of a filter of the store.
    pub(crate) fn restored(number: u64, store: Arc<DurableStore>, is_destroyed: bool) -> Self {
        Self { number, store: Some(store), state: Mutex::new(RecordState { is_stored: true, is_destroyed }) }
    }

    /// Locks the filter and its record against changes.
    pub(crate) fn lock(&self) -> MutexGuard<'_, RecordState> {
        self.state.lock()
    }

    /// Stores that the filter has no object any more: it lives until no other object uses it.
    pub(crate) fn mark_destroyed(
        &self,
        edit: impl FnOnce(bool) -> Result<Edit, SystemException>,
    ) -> Result<(), SystemException> {
        let mut state = self.state.lock();
        if let Some(store) = self.store.as_ref().filter(|_| state.is_stored) {
            store.write(vec![edit(true)?])?;
        }
        state.is_destroyed = true;
        Ok(())
    }

    /// Changes the constraints of the filter after its record. Returns the constraints before.
    pub(crate) fn change<R: FilterResult, T>(
        &self,
        default: Option<&Any>,
        shared: &SharedConstraints<R>,
        change: impl FnOnce(&Constraints<R>) -> Result<(Constraints<R>, T), ChangeError>,
    ) -> Result<(Arc<Constraints<R>>, T), ChangeError> {
        let state = self.state.lock();
        let before = Arc::clone(&shared.read());
        let (changed, outcome) = change(&before)?;
        if let Some(store) = self.store.as_ref().filter(|_| state.is_stored) {
            let octets = encoded_record(default, &changed, state.is_destroyed).map_err(ChangeError::System)?;
            store.write(vec![Edit::Filter(self.number, Some(octets))]).map_err(ChangeError::System)?;
        }
        *shared.write() = Arc::new(changed);
        Ok((before, outcome))
    }
}

impl Drop for RecordCell {
    fn drop(&mut self) {
        if let Some(store) = &self.store
            && self.state.lock().is_stored
        {
            store.write_later(Edit::Filter(self.number, None));
        }
    }
}
