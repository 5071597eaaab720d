//! Linear search: the baseline for comparison.

use std::fmt;

use super::ObjectTable;

/// Ids in a list.
pub(super) struct Linear<V>(Vec<(Box<[u8]>, V)>);

impl<V> Linear<V> {
    fn position(&self, id: &[u8]) -> Option<usize> {
        self.0.iter().position(|(own, _)| **own == *id)
    }
}

impl<V> Default for Linear<V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<V> fmt::Debug for Linear<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Linear").field("len", &self.0.len()).finish_non_exhaustive()
    }
}

impl<V: Send + Sync> ObjectTable<V> for Linear<V> {
    fn find(&self, id: &[u8]) -> Option<&V> {
        self.0.iter().find(|(own, _)| **own == *id).map(|(_, value)| value)
    }

    fn find_near(&self, id: &[u8], predicted: usize) -> Option<(usize, &V)> {
        let is_there = self.0.get(predicted).is_some_and(|(own, _)| **own == *id);
        let index = if is_there { predicted } else { self.position(id)? };
        Some((index, &self.0[index].1))
    }

    fn find_mut(&mut self, id: &[u8]) -> Option<&mut V> {
        self.0.iter_mut().find(|(own, _)| **own == *id).map(|(_, value)| value)
    }

    fn insert(&mut self, id: &[u8], value: V) -> Option<V> {
        if let Some(own) = self.find_mut(id) {
            return Some(std::mem::replace(own, value));
        }
        self.0.push((id.into(), value));
        None
    }

    fn remove(&mut self, id: &[u8]) -> Option<V> {
        self.position(id).map(|at| self.0.swap_remove(at).1)
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn for_each(&self, show: &mut dyn FnMut(&[u8], &V)) {
        self.0.iter().for_each(|(id, value)| show(id, value));
    }
}
