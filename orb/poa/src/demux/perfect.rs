//! Perfect hashing of the ids that exist when the adapter's manager is activated; later ids are hashed
//! dynamically.

use std::fmt;

use spandrel_demux::perfect::{self, Tables};

use super::{ObjectTable, dynamic::DynamicHash};

/// An entry of the settled set: its id, and its value unless removed.
type Entry<V> = Option<(Box<[u8]>, Option<V>)>;

/// A perfect hash table of the settled ids, and a dynamic one for later ids.
pub(super) struct PerfectHash<V> {
    seed: u32,
    displacements: Vec<u16>,
    /// Entries in the order of the hash function; empty before the first `settle`.
    settled: Vec<Entry<V>>,
    /// Number of settled entries with a value.
    present: usize,
    pub(super) others: DynamicHash<V>,
}

impl<V> PerfectHash<V> {
    /// The index of an id's settled entry.
    #[inline]
    fn settled_index(&self, id: &[u8]) -> Option<usize> {
        if self.settled.is_empty() {
            return None;
        }
        let at = perfect::place(self.seed, &self.displacements, self.settled.len(), id);
        let (own, _) = self.settled.get(at)?.as_ref()?;
        (**own == *id).then_some(at)
    }

    fn value_at(&mut self, index: usize) -> Option<&mut Option<V>> {
        self.settled[index].as_mut().map(|(_, value)| value)
    }
}

impl<V> Default for PerfectHash<V> {
    fn default() -> Self {
        let (displacements, settled, others) = (Vec::new(), Vec::new(), DynamicHash::default());
        Self { seed: 0, displacements, settled, present: 0, others }
    }
}

impl<V> fmt::Debug for PerfectHash<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PerfectHash")
            .field("present", &self.present)
            .field("others", &self.others)
            .finish_non_exhaustive()
    }
}

impl<V: Send + Sync> ObjectTable<V> for PerfectHash<V> {
    fn find(&self, id: &[u8]) -> Option<&V> {
        match self.settled_index(id) {
            Some(at) => self.settled[at].as_ref()?.1.as_ref(),
            None => self.others.find(id),
        }
    }

    /// Positions in the dynamic table follow those of the settled entries.
    fn find_near(&self, id: &[u8], predicted: usize) -> Option<(usize, &V)> {
        if let Some(Some((own, value))) = self.settled.get(predicted)
            && **own == *id
        {
            return value.as_ref().map(|value| (predicted, value));
        }
        let settled = self.settled.len();
        match self.settled_index(id) {
            Some(at) => self.settled[at].as_ref()?.1.as_ref().map(|value| (at, value)),
            None => {
                let (index, value) = self.others.find_near(id, predicted.wrapping_sub(settled))?;
                Some((index + settled, value))
            }
        }
    }

    fn find_mut(&mut self, id: &[u8]) -> Option<&mut V> {
        match self.settled_index(id) {
            Some(at) => self.value_at(at)?.as_mut(),
            None => self.others.find_mut(id),
        }
    }

    fn insert(&mut self, id: &[u8], value: V) -> Option<V> {
        let Some(at) = self.settled_index(id) else { return self.others.insert(id, value) };
        let old = self.value_at(at)?.replace(value);
        self.present += usize::from(old.is_none());
        old
    }

    fn remove(&mut self, id: &[u8]) -> Option<V> {
        let Some(at) = self.settled_index(id) else { return self.others.remove(id) };
        let old = self.value_at(at)?.take();
        self.present -= usize::from(old.is_some());
        old
    }

    fn len(&self) -> usize {
        self.present + self.others.len()
    }

    fn for_each(&self, show: &mut dyn FnMut(&[u8], &V)) {
        for (id, value) in self.settled.iter().flatten() {
            if let Some(value) = value {
                show(id, value);
            }
        }
        self.others.for_each(show);
    }

    /// Finds a hash function for all current ids. Without new ids the old function stays.
    fn settle(&mut self) {
        if self.others.is_empty() {
            return;
        }
        let settled = std::mem::take(&mut self.settled).into_iter().flatten();
        let present = settled.filter_map(|(id, value)| Some((id, value?)));
        let (ids, values): (Vec<Box<[u8]>>, Vec<V>) = present.chain(self.others.0.drain(..)).unzip();
        let Some(tables) = Tables::of(&ids) else {
            // A set without a perfect hash function; its ids stay in the dynamic table.
            self.others.0.extend(ids.into_iter().zip(values));
            self.present = 0;
            return;
        };
        let Tables { seed, displacements, places } = tables;
        self.present = ids.len();
        let mut entries: Vec<Entry<V>> =
            ids.into_iter().zip(values).map(|(id, value)| Some((id, Some(value)))).collect();
        self.settled = places.iter().map(|index| entries.get_mut(*index as usize).and_then(Option::take)).collect();
        (self.seed, self.displacements) = (seed, displacements);
        self.others.0.shrink_to_fit();
    }
}
