//! Dynamic hashing: the default.

use std::fmt;

use indexmap::IndexMap;

use super::ObjectTable;

/// A growing hash table; the hash is keyed, so that no peer can choose ids that collide.
pub(super) struct DynamicHash<V>(pub(super) IndexMap<Box<[u8]>, V>);

impl<V> Default for DynamicHash<V> {
    fn default() -> Self {
        Self(IndexMap::new())
    }
}

impl<V> fmt::Debug for DynamicHash<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynamicHash").field("len", &self.0.len()).finish_non_exhaustive()
    }
}

impl<V: Send + Sync> ObjectTable<V> for DynamicHash<V> {
    fn find(&self, id: &[u8]) -> Option<&V> {
        self.0.get(id)
    }

    #[inline]
    fn find_near(&self, id: &[u8], predicted: usize) -> Option<(usize, &V)> {
        match self.0.get_index(predicted) {
            Some((own, value)) if **own == *id => Some((predicted, value)),
            _ => self.0.get_full(id).map(|(index, _, value)| (index, value)),
        }
    }

    fn find_mut(&mut self, id: &[u8]) -> Option<&mut V> {
        self.0.get_mut(id)
    }

    fn insert(&mut self, id: &[u8], value: V) -> Option<V> {
        self.0.insert(id.into(), value)
    }

    fn remove(&mut self, id: &[u8]) -> Option<V> {
        self.0.swap_remove(id)
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn for_each(&self, show: &mut dyn FnMut(&[u8], &V)) {
        self.0.iter().for_each(|(id, value)| show(id, value));
    }
}
