//! The properties of a set as its threads share them, and the changes that wait to be made.

use std::collections::{BTreeMap, BTreeSet};

use spandrel::net::sync::Arc;

use crate::limits::Limits;
use crate::table::{Changes, Entry, Table};

/// The properties of a set, as the disk has them.
#[derive(Debug, Default)]
pub(crate) struct SetState {
    pub(crate) table: Table,
    /// The properties that the disk may have otherwise than the table, after an uncertain write.
    pub(crate) unsettled: BTreeSet<String>,
    /// The number of changes so far.
    pub(crate) version: u64,
}

impl SetState {
    pub(crate) fn new(table: Table) -> Self {
        Self { table, ..Self::default() }
    }

    pub(crate) fn apply(&mut self, changes: Changes) {
        self.table.apply(changes);
        self.version += 1;
    }
}

/// A change of a set, and the properties on which it depends. It is refused if one of them is another by then.
#[derive(Debug)]
pub(crate) struct SetChange {
    /// The properties that the change examined; `None` for those that did not exist.
    pub(crate) observed: BTreeMap<String, Option<Arc<Entry>>>,
    /// The state that the change depends on, for a change that examined all properties.
    pub(crate) version: Option<u64>,
    pub(crate) changes: Changes,
    /// The numbers of properties before and after the change.
    pub(crate) count: (usize, usize),
    /// The octets of all properties before and after the change.
    pub(crate) octets: (usize, usize),
}

/// The accepted changes of one set in a transaction.
#[derive(Debug, Default)]
pub(crate) struct AcceptedChanges {
    changed_names: BTreeSet<String>,
    /// The growth of the number of properties.
    count: isize,
    /// The growth of their octets.
    octets: isize,
}

impl AcceptedChanges {
    /// Adds a change if it can follow the others in the same transaction. Returns whether it can.
    pub(crate) fn accept(&mut self, change: &SetChange, state: &SetState, limits: &Limits) -> bool {
        let is_current = change.observed.iter().all(|(name, observed)| {
            let is_same = match (state.table.entries.get(name), observed) {
                (Some(current), Some(observed)) => Arc::ptr_eq(current, observed),
                (current, observed) => current.is_none() && observed.is_none(),
            };
            is_same && !self.changed_names.contains(name)
        });
        let has_all_observed =
            change.version.is_none_or(|version| version == state.version && self.changed_names.is_empty());
        let count = grown(state.table.entries.len(), self.count, change.count, limits.properties);
        let octets = grown(state.table.octets, self.octets, change.octets, limits.octets);
        let (true, true, Some(count), Some(octets)) = (is_current, has_all_observed, count, octets) else {
            return false;
        };
        (self.count, self.octets) = (count, octets);
        self.changed_names.extend(change.changes.keys().cloned());
        true
    }
}

/// The growth with a further change of a total. `None` if the change makes it greater, and greater than the bound.
fn grown(total: usize, growth: isize, (before, after): (usize, usize), bound: usize) -> Option<isize> {
    let with_change = growth + after.cast_signed() - before.cast_signed();
    let is_within = after <= before || total.checked_add_signed(with_change).is_some_and(|sum| sum <= bound);
    is_within.then_some(with_change)
}
