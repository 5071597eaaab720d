//! Durable changes of the sets of a service: those of many clients are one transaction.

use std::collections::BTreeMap;

use spandrel::net::sync::{Arc, Mutex};
use spandrel_store::{Backup, GroupCommit, StoreFileError};

use crate::limits::Limits;
use crate::state::{AcceptedChanges, SetChange, SetState};
use crate::store::{JournalError, Record, SetRecord, Store};
use crate::table::Table;

/// Whether a change was made. It was not if a property on which it depends was changed meanwhile.
type Outcome = Result<bool, JournalError>;

/// The store of a service, and the changes that wait for it.
#[derive(Debug)]
pub(crate) struct SharedStore {
    store: Mutex<Store>,
    commits: GroupCommit<WaitingChange, Outcome>,
}

#[derive(Debug)]
struct WaitingChange {
    record: Record,
    /// The set and its change; `None` for a new set.
    change: Option<(Journal, SetChange)>,
}

/// The part of a store that has the properties of one set.
#[derive(Clone, Debug)]
pub(crate) struct Journal {
    pub(crate) store: Arc<SharedStore>,
    pub(crate) number: u64,
    pub(crate) state: Arc<Mutex<SetState>>,
    pub(crate) limits: Limits,
}

impl Journal {
    /// Makes a change, also in the state of the set. It is durable when this returns true.
    pub(crate) fn commit(&self, change: SetChange) -> Outcome {
        let record = Record::of_changes(self.number, &change.changes)?;
        self.store.submit(WaitingChange { record, change: Some((self.clone(), change)) })
    }
}

impl SharedStore {
    pub(crate) fn new(store: Store) -> Self {
        Self { store: Mutex::new(store), commits: GroupCommit::default() }
    }

    /// Writes a new set with its properties. It is durable when this returns.
    pub(crate) fn create(&self, number: u64, set: &SetRecord, table: &Table) -> Result<(), JournalError> {
        let record = Record::of_set(number, set, table)?;
        let is_made = self.submit(WaitingChange { record, change: None })?;
        debug_assert!(is_made, "a new set has no conflict");
        Ok(())
    }

    /// Begins a copy of the sets in the file.
    pub(crate) fn begin_backup(&self) -> Result<Backup, StoreFileError> {
        self.store.lock().begin_backup()
    }

    fn submit(&self, change: WaitingChange) -> Outcome {
        self.commits.submit(change, |batch| self.apply(batch))
    }

    /// Writes and applies the changes that do not conflict. No other thread changes the states of stored sets.
    fn apply(&self, batch: Vec<WaitingChange>) -> Vec<Outcome> {
        let mut sets = BTreeMap::<u64, AcceptedChanges>::new();
        let accepted: Vec<bool> = batch
            .iter()
            .map(|waiting| {
                waiting.change.as_ref().is_none_or(|(set, change)| {
                    let others = sets.entry(set.number).or_default();
                    others.accept(change, &set.state.lock(), &set.limits)
                })
            })
            .collect();
        let written = self.write(batch.iter().zip(&accepted).filter(|(_, accepted)| **accepted).map(|(it, _)| it));
        let outcomes = batch.into_iter().zip(accepted).map(|(waiting, accepted)| {
            if let Some((set, change)) = waiting.change.filter(|_| accepted) {
                let mut state = set.state.lock();
                match &written {
                    Ok(()) => {
                        state.unsettled.clear();
                        state.apply(change.changes);
                    }
                    Err(JournalError::Uncertain(_)) => state.unsettled.extend(change.changes.into_keys()),
                    Err(JournalError::Unchanged(_)) => {}
                }
            }
            if accepted { written.clone().map(|()| true) } else { Ok(false) }
        });
        outcomes.collect()
    }

    /// Writes changes, and the unsettled properties of their sets.
    fn write<'b>(&self, accepted: impl Iterator<Item = &'b WaitingChange>) -> Result<(), JournalError> {
        let accepted: Vec<&WaitingChange> = accepted.collect();
        let mut settling = Vec::new();
        for (set, _) in accepted.iter().filter_map(|waiting| waiting.change.as_ref()) {
            let state = set.state.lock();
            if !state.unsettled.is_empty() {
                let entry = |name: &String| (name.clone(), state.table.entries.get(name).cloned());
                settling.push(Record::of_changes(set.number, &state.unsettled.iter().map(entry).collect())?);
            }
        }
        // A change of an unsettled property comes after its present state.
        let records: Vec<&Record> = settling.iter().chain(accepted.iter().map(|waiting| &waiting.record)).collect();
        if records.is_empty() { Ok(()) } else { self.store.lock().write(&records) }
    }
}
