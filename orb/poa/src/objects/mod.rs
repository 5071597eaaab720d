//! The active object map of one adapter: the servant of each object, found by the slot in its id (active
//! demultiplexing) or in a table of `demux`. Its changes are in [`transitions`].
//!
//! A request takes a reference to the object's [`ActiveObject`], under a shared lock. So the object is in use
//! while any reference but the map's own exists. The holder of the last one completes a deactivation that
//! began meanwhile. Etherealization and all waiting are left to the adapter. No code of the application runs
//! under the lock.

mod servants;
mod transitions;

use std::fmt;

use spandrel_orb::{Located, ObjectRef};
use spandrel_server::{LastTarget, Resolution, Servant};
use spandrel_sync::{Arc, RwLock, Weak, atomic::AtomicBool, thread::ThreadId};

use self::servants::{Servants, ServedObjects};
use crate::{
    EtherealizeObjects, ObjectDemux, ObjectId,
    demux::{self, ObjectTable},
    key::{IdOrigin, SlotId, SystemIdFormat},
    policies::Policies,
    slots::Slots,
    waiting::Event,
};

/// The target of an object. A reference to it keeps the object in use.
pub(crate) struct ActiveObject {
    pub(crate) binding: Binding,
    /// Whether another target replaced it: its end is then not the end of the object's activation.
    is_replaced: AtomicBool,
}

/// The target of an object: a servant, or another object.
#[derive(Clone)]
pub(crate) enum Binding {
    Servant(Arc<dyn Servant>),
    Forward(Forwarding),
}

/// The target of a forwarded object.
#[derive(Clone)]
pub(crate) struct Forwarding {
    pub(crate) target: ObjectRef,
    /// Whether the forwarding is permanent (LOCATION_FORWARD_PERM).
    pub(crate) is_permanent: bool,
}

impl Forwarding {
    /// The answer to a request.
    pub(crate) fn resolution(self) -> Resolution {
        if self.is_permanent { Resolution::ForwardPermanently(self.target) } else { Resolution::Forward(self.target) }
    }

    /// The answer to a LocateRequest.
    pub(crate) fn located(self) -> Located {
        let ior = self.target.ior().clone();
        if self.is_permanent { Located::ForwardPermanently(ior) } else { Located::Forward(ior) }
    }
}

/// An entry of the map.
enum Entry {
    Active(Arc<ActiveObject>),
    InTransition(Box<Transition>),
}

/// An object in transition between active and inactive.
struct Transition {
    kind: TransitionKind,
    /// Set at the end of the transition.
    finished: Arc<Event>,
}

#[derive(Clone, Copy)]
enum TransitionKind {
    /// This thread calls a servant activator.
    Incarnating(ThreadId),
    Deactivating(Deactivation),
}

/// The kind of a deactivation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Deactivation {
    /// Whether a servant activator is called.
    pub(crate) etherealize: EtherealizeObjects,
    /// Whether the adapter or its manager ends, not only the object.
    pub(crate) is_cleanup: bool,
}

/// The result of a request's lookup.
pub(crate) enum ObjectLookup {
    Active(Arc<ActiveObject>),
    /// It is in transition until this event is set.
    InTransition(Arc<Event>),
    NotFound,
    /// The adapter accepts no requests now.
    Closed,
}

/// The result of an activation.
pub(crate) enum ActivationOutcome {
    Done,
    Rejected(ActivationRefusal),
    /// The previous deactivation must end first.
    Wait(Arc<Event>),
}

/// The reason why an object was not activated. The adapter adds its name.
#[derive(Debug, Eq, PartialEq)]
pub(crate) enum ActivationRefusal {
    ObjectActive,
    /// The servant serves this object, and the adapter has UNIQUE_ID.
    ServantActive(ObjectId),
    /// An activation without an id, and the application assigns ids.
    UserAssignedIds,
    /// The adapter did not assign the id, and has SYSTEM_ID.
    IdNotAssigned,
    NoMoreIds,
    Destroyed,
}

/// The active object map of one adapter.
pub(crate) struct Objects {
    map: RwLock<Map>,
    /// The format of system-assigned ids; `None` if the application assigns them.
    id_format: Option<SystemIdFormat>,
    /// Whether ids contain the slot of their object.
    is_active_demux: bool,
    uniqueness: Uniqueness,
}

/// The bookkeeping of servants.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Uniqueness {
    /// The object of each servant.
    Unique,
    /// The number of objects of each servant, until the end of their deactivation.
    Counted,
    /// None: no operation needs it.
    Unknown,
}

struct Map {
    /// Objects with a system-assigned id that contains a slot.
    slots: Slots<Entry>,
    /// The objects whose ids contain no slot.
    others: Box<dyn ObjectTable<Entry>>,
    servants: Servants,
    /// Number of assigned ids without a slot.
    last_number: u64,
    /// Whether activations are rejected.
    is_closed: bool,
}

impl Objects {
    pub(crate) fn new(policies: &Policies, id_format: SystemIdFormat) -> Self {
        let uniqueness = match (policies.is_unique(), policies.has_servant_manager()) {
            (true, _) => Uniqueness::Unique,
            (false, true) => Uniqueness::Counted,
            (false, false) => Uniqueness::Unknown,
        };
        let map = Map {
            slots: Slots::default(),
            others: demux::table(policies.demux),
            servants: Servants::default(),
            last_number: 0,
            is_closed: false,
        };
        Self {
            map: RwLock::new(map),
            id_format: policies.assigns_ids().then_some(id_format),
            is_active_demux: policies.demux == ObjectDemux::Active,
            uniqueness,
        }
    }

    /// The target of an id, in use from now on. `is_open` is called under the lock: after a close and a
    /// [`barrier`](Self::barrier) all users are visible. A call without a request has no predicted position.
    #[inline(always)]
    pub(crate) fn enter<L: LastTarget + ?Sized>(
        &self,
        id: &[u8],
        last: Option<&L>,
        is_open: impl FnOnce() -> bool,
    ) -> ObjectLookup {
        let map = self.map.read();
        if !is_open() {
            return ObjectLookup::Closed;
        }
        let entry = match self.slot_entry(&map, id) {
            Some(entry) => Some(entry),
            None if map.others.is_empty() => None,
            None => last.map_or_else(|| map.others.find(id), |last| predicted(&*map.others, id, last)),
        };
        match entry {
            Some(Entry::Active(active)) => ObjectLookup::Active(Arc::clone(active)),
            Some(Entry::InTransition(transition)) => ObjectLookup::InTransition(Arc::clone(&transition.finished)),
            None => ObjectLookup::NotFound,
        }
    }

    /// The target of an id.
    pub(crate) fn find(&self, id: &[u8]) -> Option<Binding> {
        match self.entry(&self.map.read(), id) {
            Some(Entry::Active(active)) => Some(active.binding.clone()),
            _ => None,
        }
    }

    /// Returns once all requests that entered before have their targets.
    pub(crate) fn barrier(&self) {
        drop(self.map.write());
    }

    fn entry<'m>(&self, map: &'m Map, id: &[u8]) -> Option<&'m Entry> {
        self.slot_entry(map, id).or_else(|| map.others.find(id))
    }

    /// The object in the slot that its id contains, if any.
    #[inline]
    fn slot_entry<'m>(&self, map: &'m Map, id: &[u8]) -> Option<&'m Entry> {
        let id_format = self.id_format.filter(|_| self.is_active_demux)?;
        match id_format.decode(id) {
            IdOrigin::ThisRun(slot_id) => map.slots.get(slot_id),
            IdOrigin::EarlierRun | IdOrigin::NotAssigned => None,
        }
    }

    fn entry_mut<'m>(&self, map: &'m mut Map, id: &[u8]) -> Option<&'m mut Entry> {
        match self.slot_of(map, id) {
            Some(slot_id) => map.slots.get_mut(slot_id),
            None => map.others.find_mut(id),
        }
    }

    /// The slot of an object, if its id contains it.
    fn slot_of(&self, map: &Map, id: &[u8]) -> Option<SlotId> {
        let Some(IdOrigin::ThisRun(slot_id)) =
            self.id_format.filter(|_| self.is_active_demux).map(|id_format| id_format.decode(id))
        else {
            return None;
        };
        map.slots.get(slot_id).map(|_| slot_id)
    }

    /// Assigns a new id; `None` if the application assigns ids.
    pub(crate) fn make_id(&self) -> Option<ObjectId> {
        let id_format = self.id_format?;
        Some(id_format.encode(self.map.write().next_number()).into())
    }

    /// Whether this adapter assigned the id, as far as that can be determined.
    fn has_assigned(&self, map: &Map, id: &[u8]) -> bool {
        match self.id_format.map(|id_format| id_format.decode(id)) {
            None | Some(IdOrigin::EarlierRun) => true,
            Some(IdOrigin::ThisRun(slot_id)) => match slot_id.number() {
                Some(number) => number <= map.last_number,
                None => map.slots.was_assigned(slot_id),
            },
            Some(IdOrigin::NotAssigned) => false,
        }
    }

    /// Whether this adapter or the application, whichever assigns ids, may have assigned this one.
    pub(crate) fn is_assigned(&self, id: &[u8]) -> bool {
        self.has_assigned(&self.map.read(), id)
    }

    /// The id of the one object of a servant.
    pub(crate) fn id_of(&self, servant: &Arc<dyn Servant>) -> Option<ObjectId> {
        self.id_in(&self.map.read(), servant)
    }

    fn id_in(&self, map: &Map, servant: &Arc<dyn Servant>) -> Option<ObjectId> {
        match map.servants.get(servant)? {
            ServedObjects::Slot(slot) => Some(self.id_format?.encode(map.slots.current(*slot)?).into()),
            ServedObjects::Id(id) => Some(ObjectId::clone(id)),
            ServedObjects::Many(_) => None,
        }
    }

    /// The ids of all active objects.
    pub(crate) fn ids(&self) -> Vec<ObjectId> {
        let map = self.map.read();
        let slot_entry = map.slots.iter().filter(|(_, entry)| entry.is_active());
        let mut ids: Vec<ObjectId> =
            slot_entry.filter_map(|(slot_id, _)| Some(self.id_format?.encode(slot_id).into())).collect();
        map.others.for_each(&mut |id, entry| {
            if entry.is_active() {
                ids.push(id.into());
            }
        });
        ids
    }

    /// Number of active objects.
    pub(crate) fn len(&self) -> usize {
        let map = self.map.read();
        let mut count = map.slots.iter().filter(|(_, entry)| entry.is_active()).count();
        map.others.for_each(&mut |_, entry| count += usize::from(entry.is_active()));
        count
    }

    /// The active objects that the map is not the only one to hold, such as those that run requests.
    pub(crate) fn in_use(&self) -> Vec<Weak<ActiveObject>> {
        let mut used = Vec::new();
        let mut note = |entry: &Entry| match entry {
            // One count is the map's own.
            Entry::Active(active) if Arc::strong_count(active) > 1 => used.push(Arc::downgrade(active)),
            _ => {}
        };
        let map = self.map.read();
        map.slots.iter().for_each(|(_, entry)| note(entry));
        map.others.for_each(&mut |_, entry| note(entry));
        used
    }

    /// Rejects activations from now on.
    pub(crate) fn close(&self) {
        self.map.write().is_closed = true;
    }

    /// Optimizes the tables: the configuration is complete for now.
    pub(crate) fn settle(&self) {
        self.map.write().others.settle();
    }
}

impl Map {
    /// The next number for an id without a slot.
    fn next_number(&mut self) -> SlotId {
        self.last_number += 1;
        SlotId::from_number(self.last_number)
    }
}

/// The entry of an id, searched first at the position of the last request from the same connection.
fn predicted<'m>(
    objects: &'m dyn ObjectTable<Entry>,
    id: &[u8],
    last: &(impl LastTarget + ?Sized),
) -> Option<&'m Entry> {
    let predicted = last.predicted_target().and_then(|place| usize::try_from(place).ok()).unwrap_or(usize::MAX);
    let (place, entry) = objects.find_near(id, predicted)?;
    if place != predicted {
        last.record_target(place as u64);
    }
    Some(entry)
}

impl Entry {
    fn is_active(&self) -> bool {
        matches!(self, Self::Active(_))
    }
}

impl fmt::Debug for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Objects").field("len", &self.len()).finish_non_exhaustive()
    }
}

#[cfg(all(test, shuttle))]
mod models;
#[cfg(all(test, not(shuttle)))]
mod tests;
