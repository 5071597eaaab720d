//! The state that a trader's threads share, and its changes.
//!
//! A change has the values that it was made for. It is refused if one of them is another by now, and then made anew, so
//! that no lock is held while the disk is written.

use std::collections::HashSet;

use spandrel::net::sync::{Arc, Mutex, RwLock};
use spandrel::{CompletionStatus, SystemException};
use spandrel_store::{GroupCommit, StoreFailure};

use crate::attributes::Attributes;
use crate::edit::Part;
pub(crate) use crate::edit::{Edit, State};
use crate::store::Store;

/// The outcome of a change.
#[derive(Debug)]
pub(crate) enum ChangeError {
    /// A part was changed meanwhile.
    Conflict,
    Store(StoreFailure),
}

/// The state that threads share, with its store.
#[derive(Debug, Default)]
pub(crate) struct SharedState {
    state: RwLock<State>,
    /// `None` for a state in memory.
    store: Option<Arc<Mutex<Store>>>,
    commits: GroupCommit<Vec<Edit>, Result<(), ChangeError>>,
    /// Held while a service type is checked and changed.
    pub(crate) types_change: Mutex<()>,
    /// Held while attributes are changed.
    attributes_change: Mutex<()>,
}

impl SharedState {
    pub(crate) fn new(mut state: State, store: Option<Arc<Mutex<Store>>>) -> Self {
        if state.instance == 0 {
            state.instance = fastrand::u32(1..);
        }
        if state.attributes.request_id_stem.is_empty() {
            state.attributes.request_id_stem = state.instance.to_be_bytes().to_vec();
        }
        Self { state: RwLock::new(state), store, ..Self::default() }
    }

    /// Reads the state. Nothing that may block is done meanwhile.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&State) -> T) -> T {
        read(&self.state.read())
    }

    /// The number of a new offer.
    pub(crate) fn next_offer(&self) -> u64 {
        let mut state = self.state.write();
        state.next_offer += 1;
        state.next_offer
    }

    /// The incarnation number of a new type.
    pub(crate) fn next_incarnation(&self) -> u64 {
        let mut state = self.state.write();
        state.incarnation += 1;
        state.incarnation - 1
    }

    /// Makes a change: `edits` returns it for the current state, and is called again after a conflict. It is durable when
    /// this returns.
    pub(crate) fn change<E: From<SystemException>>(
        &self,
        mut edits: impl FnMut(&State) -> Result<Vec<Edit>, E>,
    ) -> Result<(), E> {
        loop {
            let edits = self.read(&mut edits)?;
            match self.commits.submit(edits, |batch| self.apply(batch)) {
                Ok(()) => return Ok(()),
                Err(ChangeError::Conflict) => {}
                Err(ChangeError::Store(failure)) => {
                    let (completed, text) = match failure {
                        StoreFailure::Unchanged(text) => (CompletionStatus::No, text),
                        StoreFailure::Uncertain(text) => (CompletionStatus::Maybe, text),
                    };
                    return Err(SystemException::persist_store(0, completed).with_detail(move || text).into());
                }
            }
        }
    }

    /// Changes an attribute. Returns its former value.
    pub(crate) fn change_attribute<T>(&self, change: impl FnOnce(&mut Attributes) -> T) -> Result<T, SystemException> {
        let _lock = self.attributes_change.lock();
        let mut attributes = self.read(|state| state.attributes.clone());
        let before = change(&mut attributes);
        self.change(|_| Ok::<_, SystemException>(vec![Edit::Attributes(attributes.clone())]))?;
        Ok(before)
    }

    /// Writes and applies the changes of a batch that do not conflict.
    fn apply(&self, batch: Vec<Vec<Edit>>) -> Vec<Result<(), ChangeError>> {
        let (accepted, counters) = {
            let state = self.state.read();
            let mut touched = HashSet::new();
            let accepted: Vec<bool> = batch
                .iter()
                .map(|edits| {
                    let is_current = edits.iter().all(|edit| edit.is_current(&state));
                    let parts: Vec<Part> = edits.iter().map(Edit::part).collect();
                    let is_free = is_current && !parts.iter().any(|part| touched.contains(part));
                    if is_free {
                        touched.extend(parts);
                    }
                    is_free
                })
                .collect();
            (accepted, (state.next_offer, state.incarnation, state.instance))
        };
        let written = match &self.store {
            None => Ok(()),
            Some(store) => {
                let edits: Vec<&Edit> = batch
                    .iter()
                    .zip(&accepted)
                    .filter(|(_, accepted)| **accepted)
                    .flat_map(|(edits, _)| edits)
                    .collect();
                if edits.is_empty() { Ok(()) } else { store.lock().write(&edits, counters) }
            }
        };
        let mut state = self.state.write();
        let outcomes = batch.into_iter().zip(accepted).map(|(edits, accepted)| match (accepted, &written) {
            (false, _) => Err(ChangeError::Conflict),
            (true, Err(failure)) => Err(ChangeError::Store(failure.clone())),
            (true, Ok(())) => {
                edits.into_iter().for_each(|edit| edit.apply(&mut state));
                Ok(())
            }
        });
        outcomes.collect()
    }
}
