//! Active demultiplexing as a table: ids that the table makes, and that say themselves where their value is.

use crate::{
    key::{IdForm, Made},
    slots::Slots,
};

/// Values behind ids that were made for them. An adapter has the same inside of its active object map.
#[derive(Debug)]
pub struct Placed<V>(Slots<V>);

/// Without an incarnation: these ids do not outlive the process.
const FORM: IdForm = IdForm { incarnation: None };

impl<V> Default for Placed<V> {
    fn default() -> Self {
        Self(Slots::default())
    }
}

impl<V> Placed<V> {
    /// Puts a value behind an id of its own; `None` if all two thousand million are taken.
    pub fn insert(&mut self, value: V) -> Option<Vec<u8>> {
        self.0.insert(value).map(|place| FORM.encode(place))
    }

    /// What stands behind the id: an index and a comparison. Ids come from peers, and may be any octets.
    #[inline]
    #[must_use]
    pub fn find(&self, id: &[u8]) -> Option<&V> {
        match FORM.decode(id) {
            Made::Here(place) => self.0.get(place),
            Made::Earlier | Made::No => None,
        }
    }

    /// Takes out what stands behind the id, which is good for nothing from then on.
    pub fn remove(&mut self, id: &[u8]) -> Option<V> {
        match FORM.decode(id) {
            Made::Here(place) => self.0.remove(place),
            Made::Earlier | Made::No => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stale_and_malformed_ids_lead_nowhere() {
        let mut table = Placed::default();
        let ids: Vec<Vec<u8>> = (0..3).map(|number| table.insert(number).expect("there is room")).collect();
        assert_eq!(table.find(&ids[1]), Some(&1));
        assert_eq!((table.remove(&ids[1]), table.find(&ids[1]).copied(), table.remove(&ids[1])), (Some(1), None, None));
        let again = table.insert(7).expect("there is room");
        assert_ne!(again, ids[1], "the slot is used again, with another generation");
        assert_eq!((table.find(&again), table.find(&ids[1])), (Some(&7), None));
        for hostile in [&[][..], &ids[0][..7], &[&ids[0][..], &[0]].concat(), &[0xff; 8], &[0, 0, 0, 9, 0, 0, 0, 0]] {
            assert_eq!(table.find(hostile), None, "{hostile:?}");
        }
    }
}
