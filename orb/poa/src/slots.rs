//! Slots with generations: where objects are whose ids say where they are.

use crate::key::Place;

/// Values at places. A place that is used again has another generation, so that an old one leads nowhere.
#[derive(Debug)]
pub(crate) struct Slots<V> {
    slots: Vec<Slot<V>>,
    free: Vec<u32>,
}

/// Aligned so that none lies across the end of a cache line: where there are many, looking one up is a matter of lines.
#[derive(Debug)]
#[repr(align(32))]
struct Slot<V> {
    generation: u32,
    value: Option<V>,
}

impl<V> Default for Slots<V> {
    fn default() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }
}

impl<V> Slots<V> {
    /// Puts a value at a place of its own; `None` if all two thousand million are taken.
    pub(crate) fn insert(&mut self, value: V) -> Option<Place> {
        let place = self.vacant()?;
        self.slots[place.slot as usize].value = Some(value);
        Some(place)
    }

    /// Puts a value at a place that it knows of.
    pub(crate) fn insert_with(&mut self, make: impl FnOnce(Place) -> V) -> Option<&V> {
        let place = self.vacant()?;
        Some(self.slots[place.slot as usize].value.insert(make(place)))
    }

    /// A place where nothing is, no longer among the free ones.
    fn vacant(&mut self) -> Option<Place> {
        if let Some(slot) = self.free.pop() {
            return Some(Place { slot, generation: self.slots[slot as usize].generation });
        }
        let slot = u32::try_from(self.slots.len()).ok()?;
        let place = Some(Place { slot, generation: 0 }).filter(|place| place.number().is_none())?;
        self.slots.push(Slot { generation: 0, value: None });
        Some(place)
    }

    #[inline]
    pub(crate) fn get(&self, place: Place) -> Option<&V> {
        let slot = self.slots.get(place.slot as usize)?;
        if slot.generation == place.generation { slot.value.as_ref() } else { None }
    }

    pub(crate) fn get_mut(&mut self, place: Place) -> Option<&mut V> {
        let slot = self.slots.get_mut(place.slot as usize)?;
        if slot.generation == place.generation { slot.value.as_mut() } else { None }
    }

    /// What is at this place in whatever generation, and which that is.
    pub(crate) fn current(&self, slot: u32) -> Option<Place> {
        let entry = self.slots.get(slot as usize).filter(|entry| entry.value.is_some())?;
        Some(Place { slot, generation: entry.generation })
    }

    /// Whether this place was ever given.
    pub(crate) fn was_given(&self, place: Place) -> bool {
        self.slots.get(place.slot as usize).is_some_and(|entry| {
            place.generation < entry.generation || (place.generation == entry.generation && entry.value.is_some())
        })
    }

    /// Takes a value out. Its place is never valid again; a slot whose generations are used up is not used again.
    pub(crate) fn remove(&mut self, place: Place) -> Option<V> {
        let entry = self.slots.get_mut(place.slot as usize).filter(|entry| entry.generation == place.generation)?;
        let value = entry.value.take()?;
        if let Some(next) = entry.generation.checked_add(1) {
            entry.generation = next;
            self.free.push(place.slot);
        }
        Some(value)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Place, &V)> {
        self.slots
            .iter()
            .zip(0..)
            .filter_map(|(entry, slot)| Some((Place { slot, generation: entry.generation }, entry.value.as_ref()?)))
    }

    /// As after so many values in this slot.
    #[cfg(all(test, shuttle))]
    pub(crate) fn age(&mut self, slot: usize, generation: u32) {
        self.slots[slot].generation = generation;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_slot_lies_across_the_end_of_a_cache_line() {
        assert_eq!(size_of::<Slot<Option<Box<u8>>>>(), 32);
        assert_eq!(64 % align_of::<Slot<u8>>(), 0);
    }
}
