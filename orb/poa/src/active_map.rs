//! The active object map: slots with generations.

use spandrel_orb::{ObjectRef, Servant};
use spandrel_sync::{Arc, RwLock};

/// Where an object is in the map. A slot that is used again has another generation.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) struct ObjectId {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

/// What stands behind an object id.
#[derive(Clone)]
pub(crate) enum Active {
    /// A servant.
    Servant(Arc<dyn Servant>),
    /// Another object that requests are forwarded to.
    Forward(ObjectRef),
}

/// Maps object ids to servants. Looking up takes a shared lock for an index and a comparison.
#[derive(Default)]
pub(crate) struct ActiveObjectMap(RwLock<Slots>);

#[derive(Default)]
struct Slots {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

struct Slot {
    generation: u32,
    active: Option<Active>,
}

impl ActiveObjectMap {
    /// Gives an object an id; `None` if all four thousand million are taken.
    pub(crate) fn insert(&self, active: Active) -> Option<ObjectId> {
        let mut map = self.0.write();
        let Some(slot) = map.free.pop() else {
            let slot = u32::try_from(map.slots.len()).ok()?;
            map.slots.push(Slot { generation: 0, active: Some(active) });
            return Some(ObjectId { slot, generation: 0 });
        };
        let entry = &mut map.slots[slot as usize];
        entry.active = Some(active);
        Some(ObjectId { slot, generation: entry.generation })
    }

    /// What stands behind an id.
    #[inline]
    pub(crate) fn find(&self, id: ObjectId) -> Option<Active> {
        let map = self.0.read();
        let slot = map.slots.get(id.slot as usize)?;
        if slot.generation == id.generation { slot.active.clone() } else { None }
    }

    /// Puts something else behind an id; what was there before, `None` if the id is stale.
    pub(crate) fn replace(&self, id: ObjectId, active: Active) -> Option<Active> {
        let mut map = self.0.write();
        let slot = map.slots.get_mut(id.slot as usize).filter(|slot| slot.generation == id.generation)?;
        slot.active.as_mut().map(|current| std::mem::replace(current, active))
    }

    /// Takes an object out. Its id is never valid again; a slot whose generations are used up is not used again.
    pub(crate) fn remove(&self, id: ObjectId) -> Option<Active> {
        let mut map = self.0.write();
        map.slots.get(id.slot as usize).filter(|slot| slot.generation == id.generation)?;
        map.vacate(id.slot)
    }

    /// Takes all objects out. Their ids are never valid again.
    pub(crate) fn clear(&self) -> Vec<Active> {
        let mut map = self.0.write();
        let slots = 0..u32::try_from(map.slots.len()).expect("no more slots than ids were made");
        slots.filter_map(|slot| map.vacate(slot)).collect()
    }

    /// How many objects are active.
    pub(crate) fn len(&self) -> usize {
        let map = self.0.read();
        map.slots.iter().filter(|slot| slot.active.is_some()).count()
    }
}

impl Slots {
    fn vacate(&mut self, slot: u32) -> Option<Active> {
        let entry = &mut self.slots[slot as usize];
        let active = entry.active.take()?;
        if let Some(next) = entry.generation.checked_add(1) {
            entry.generation = next;
            self.free.push(slot);
        }
        Some(active)
    }
}

#[cfg(all(test, shuttle))]
mod models;
