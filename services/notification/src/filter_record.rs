//! The records of filters in the store: a filter has one from its first use by an object of the store on.

use std::collections::BTreeMap;

use spandrel::SystemException;
use spandrel::net::sync::{Arc, Mutex};
use spandrel::types::Any;

use crate::durable::DurableStore;
use crate::encoding::encoded;
use crate::filter::{ChangeError, Constraints, FilterResult, SharedConstraints};
use crate::filters::AnyFilter;
use crate::records::FilterRecord;
use crate::store::Edit;

/// The record of a filter. It is removed when the filter is dropped.
#[derive(Debug)]
pub(crate) struct RecordCell {
    number: u64,
    store: Option<Arc<DurableStore>>,
    /// Held while the filter and its record are changed.
    state: Mutex<RecordState>,
}

/// The relation of a filter to the store.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RecordState {
    is_stored: bool,
    is_destroyed: bool,
}

/// The record of a filter as octets.
fn encoded_record<R: FilterResult>(
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

    /// Stores that the filter has no object any more: it lives until no other object uses it.
    pub(crate) fn mark_destroyed(&self) -> Result<(), SystemException> {
        let record = self.record();
        let mut state = record.state.lock();
        if let Some(store) = record.store.as_ref().filter(|_| state.is_stored) {
            store.write(vec![self.edit(true)?])?;
        }
        state.is_destroyed = true;
        Ok(())
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
        let state = filter.record().state.lock();
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
