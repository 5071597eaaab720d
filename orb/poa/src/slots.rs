//! Slots with generations: the table of objects whose ids contain their slot.

use crate::key::SlotId;

/// Values in slots. A reused slot has another generation, so that an old id finds nothing.
#[derive(Debug)]
pub(crate) struct Slots<V> {
    slots: Vec<Slot<V>>,
    free: Vec<u32>,
}

/// Aligned so that no slot crosses the end of a cache line: for large tables the cost of a lookup is its
/// cache lines.
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
    /// Inserts a value in a slot of its own; `None` if all 2³¹ slots are in use.
    pub(crate) fn insert(&mut self, value: V) -> Option<SlotId> {
        let slot_id = self.take_free_slot()?;
        self.slots[slot_id.slot as usize].value = Some(value);
        Some(slot_id)
    }

    /// Inserts a value that knows its slot.
    pub(crate) fn insert_with(&mut self, make: impl FnOnce(SlotId) -> V) -> Option<&V> {
        let slot_id = self.take_free_slot()?;
        Some(self.slots[slot_id.slot as usize].value.insert(make(slot_id)))
    }

    /// Reuses the slot that was freed last, or adds one. `None` if all 2³¹ slots are in use.
    fn take_free_slot(&mut self) -> Option<SlotId> {
        if let Some(slot) = self.free.pop() {
            return Some(SlotId { slot, generation: self.slots[slot as usize].generation });
        }
        let slot = u32::try_from(self.slots.len()).ok()?;
        let slot_id = Some(SlotId { slot, generation: 0 }).filter(|slot_id| slot_id.number().is_none())?;
        self.slots.push(Slot { generation: 0, value: None });
        Some(slot_id)
    }

    #[inline]
    pub(crate) fn get(&self, slot_id: SlotId) -> Option<&V> {
        let slot = self.slots.get(slot_id.slot as usize)?;
        if slot.generation == slot_id.generation { slot.value.as_ref() } else { None }
    }

    pub(crate) fn get_mut(&mut self, slot_id: SlotId) -> Option<&mut V> {
        let slot = self.slots.get_mut(slot_id.slot as usize)?;
        if slot.generation == slot_id.generation { slot.value.as_mut() } else { None }
    }

    /// The current generation of a slot.
    pub(crate) fn current(&self, slot: u32) -> Option<SlotId> {
        let entry = self.slots.get(slot as usize).filter(|entry| entry.value.is_some())?;
        Some(SlotId { slot, generation: entry.generation })
    }

    /// Whether this slot and generation were ever assigned.
    pub(crate) fn was_assigned(&self, slot_id: SlotId) -> bool {
        self.slots.get(slot_id.slot as usize).is_some_and(|entry| {
            slot_id.generation < entry.generation || (slot_id.generation == entry.generation && entry.value.is_some())
        })
    }

    /// Removes a value. Its generation is never valid again; a slot with exhausted generations is not reused.
    pub(crate) fn remove(&mut self, slot_id: SlotId) -> Option<V> {
        let entry = self.slots.get_mut(slot_id.slot as usize).filter(|entry| entry.generation == slot_id.generation)?;
        let value = entry.value.take()?;
        if let Some(next) = entry.generation.checked_add(1) {
            entry.generation = next;
            self.free.push(slot_id.slot);
        }
        Some(value)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (SlotId, &V)> {
        self.slots
            .iter()
            .zip(0..)
            .filter_map(|(entry, slot)| Some((SlotId { slot, generation: entry.generation }, entry.value.as_ref()?)))
    }

    /// Sets the generation as after as many values in this slot.
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
