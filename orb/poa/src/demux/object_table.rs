//! The interface of the tables that map object ids to objects.
//!
//! Objects with system-assigned ids are in no table: `objects` finds them by their slot (`slots`).

use std::fmt;

/// A map from object ids to values. Ids are any octets: looked-up ids come from peers, inserted ids do not.
///
/// Guarantees to callers: a table changes only through `&mut self`, and a position stays valid until then; no
/// method panics for any id; `find` allocates nothing.
pub(crate) trait ObjectTable<V>: Send + Sync + fmt::Debug {
    /// The value of an id.
    fn find(&self, id: &[u8]) -> Option<&V>;

    /// The value of an id, and its position in the table. The search begins at `predicted`, the position of
    /// an earlier id; it may be any number.
    fn find_near(&self, id: &[u8], predicted: usize) -> Option<(usize, &V)>;

    /// The value of an id, for modification.
    fn find_mut(&mut self, id: &[u8]) -> Option<&mut V>;

    /// Inserts a value; returns the previous one.
    fn insert(&mut self, id: &[u8], value: V) -> Option<V>;

    /// Removes the value of an id.
    fn remove(&mut self, id: &[u8]) -> Option<V>;

    /// The number of ids in the table.
    fn len(&self) -> usize;

    /// Whether there are no ids.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Calls `show` for all ids with their values, in any order.
    fn for_each(&self, show: &mut dyn FnMut(&[u8], &V));

    /// Optimizes the table for its current ids, when the adapter's manager is activated: few ids will change
    /// after this.
    fn settle(&mut self) {}
}
