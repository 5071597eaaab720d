//! Changes of the active object map: activation, incarnation and deactivation of objects.
//!
//! `servant_lookup` lets requests wait for the end of a change, and `resolution` resolves them anew.

use spandrel_server::Servant;
use spandrel_sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
    thread,
};

use super::{
    ActivationOutcome, ActivationRefusal, ActiveObject, Binding, Deactivation, Entry, Map, ObjectLookup, Objects,
    Transition, TransitionKind, Uniqueness, servants::ServedObjects,
};
use crate::{ObjectId, waiting::Event};

impl Objects {
    /// Activates an object with a system-assigned id.
    pub(crate) fn activate(&self, binding: Binding) -> Result<ObjectId, ActivationRefusal> {
        let id_format = self.id_format.ok_or(ActivationRefusal::UserAssignedIds)?;
        let active = ActiveObject::new(binding);
        let mut map = self.map.write();
        self.check_can_serve(&map, &active)?;
        if !self.is_active_demux {
            let id = ObjectId::from(id_format.encode(map.next_number()));
            self.record_servant(&mut map, &active, || ServedObjects::Id(Box::new(id.clone())));
            map.others.insert(&id, Entry::Active(active));
            return Ok(id);
        }
        let slot_id = map.slots.insert(Entry::Active(Arc::clone(&active))).ok_or(ActivationRefusal::NoMoreIds)?;
        self.record_servant(&mut map, &active, || ServedObjects::Slot(slot_id.slot));
        Ok(id_format.encode(slot_id).into())
    }

    /// Activates the object with this id. During its incarnation only the incarnating thread may do so.
    pub(crate) fn activate_at(&self, id: &[u8], binding: Binding) -> ActivationOutcome {
        let active = ActiveObject::new(binding);
        let mut map = self.map.write();
        match self.entry(&map, id) {
            None if !self.has_assigned(&map, id) => {
                return ActivationOutcome::Rejected(ActivationRefusal::IdNotAssigned);
            }
            Some(Entry::Active(_)) => return ActivationOutcome::Rejected(ActivationRefusal::ObjectActive),
            Some(Entry::InTransition(transition)) if !transition.is_incarnation_in_this_thread() => {
                return ActivationOutcome::Wait(Arc::clone(&transition.finished));
            }
            _ => {}
        }
        if let Err(refused) = self.check_can_serve(&map, &active) {
            return ActivationOutcome::Rejected(refused);
        }
        self.insert(&mut map, id, active).map_or(ActivationOutcome::Done, |finished| {
            drop(map);
            finished.set();
            ActivationOutcome::Done
        })
    }

    /// Inserts an object under a permitted id. Returns the event to set outside the lock.
    fn insert(&self, map: &mut Map, id: &[u8], active: Arc<ActiveObject>) -> Option<Arc<Event>> {
        let slot = self.slot_of(map, id);
        let serves =
            || slot.map_or_else(|| ServedObjects::Id(Box::new(id.into())), |slot_id| ServedObjects::Slot(slot_id.slot));
        self.record_servant(map, &active, serves);
        let entry = Entry::Active(active);
        let before = match slot.and_then(|slot_id| map.slots.get_mut(slot_id)) {
            Some(old) => Some(std::mem::replace(old, entry)),
            None => map.others.insert(id, entry),
        };
        match before {
            Some(Entry::InTransition(transition)) => Some(transition.finished),
            _ => None,
        }
    }

    /// The error if the object may not be activated now.
    fn check_can_serve(&self, map: &Map, active: &ActiveObject) -> Result<(), ActivationRefusal> {
        if map.is_closed {
            return Err(ActivationRefusal::Destroyed);
        }
        match &active.binding {
            // The servant's entry is removed before its object's, so that each entry has an id.
            Binding::Servant(servant) if self.uniqueness == Uniqueness::Unique => {
                self.id_in(map, servant).map_or(Ok(()), |id| Err(ActivationRefusal::ServantActive(id)))
            }
            _ => Ok(()),
        }
    }

    /// Records that the servant serves the object.
    fn record_servant(&self, map: &mut Map, active: &ActiveObject, serves: impl FnOnce() -> ServedObjects) {
        if let Binding::Servant(servant) = &active.binding {
            match self.uniqueness {
                Uniqueness::Unique => map.servants.insert(servant, serves()),
                Uniqueness::Counted => map.servants.add(servant),
                Uniqueness::Unknown => {}
            }
        }
    }

    fn forget_servant(&self, map: &mut Map, active: &ActiveObject) {
        if let (Binding::Servant(servant), true) = (&active.binding, self.uniqueness != Uniqueness::Unknown) {
            map.servants.remove(servant);
        }
    }

    /// Begins an incarnation; other requests wait until [`end_incarnation`](Self::end_incarnation).
    /// `NotFound` makes the caller call the activator.
    pub(crate) fn begin_incarnation(&self, id: &[u8]) -> ObjectLookup {
        let mut map = self.map.write();
        match self.entry(&map, id) {
            Some(Entry::Active(active)) => return ObjectLookup::Active(Arc::clone(active)),
            Some(Entry::InTransition(transition)) => {
                return ObjectLookup::InTransition(Arc::clone(&transition.finished));
            }
            None if map.is_closed => return ObjectLookup::Closed,
            None => {}
        }
        let transition =
            Transition { kind: TransitionKind::Incarnating(thread::current().id()), finished: Arc::default() };
        map.others.insert(id, Entry::InTransition(Box::new(transition)));
        ObjectLookup::NotFound
    }

    /// Ends the incarnation that [`begin_incarnation`](Self::begin_incarnation) began. The object is in use
    /// from now on.
    ///
    /// A servant that already serves another object is rejected, and so is one that differs from the servant
    /// activated meanwhile.
    pub(crate) fn end_incarnation(&self, id: &[u8], servant: Option<Arc<dyn Servant>>) -> Option<Arc<ActiveObject>> {
        let mut map = self.map.write();
        let current = match self.entry(&map, id) {
            Some(Entry::Active(active)) => Some(Arc::clone(active)),
            _ => None,
        };
        let (Some(servant), None) = (&servant, &current) else {
            // The activator itself activated the object, so the servant must be the same; or there is none.
            let finished = if current.is_none() { map.others.remove(id) } else { None };
            drop(map);
            if let Some(Entry::InTransition(transition)) = finished {
                transition.finished.set();
            }
            return current.filter(|current| servant.is_some_and(|servant| current.has_servant(&servant)));
        };
        let serves_another = self.uniqueness == Uniqueness::Unique && map.servants.get(servant).is_some();
        let active = ActiveObject::new(Binding::Servant(Arc::clone(servant)));
        let finished = if serves_another {
            map.others.remove(id).and_then(Entry::into_finished)
        } else {
            self.insert(&mut map, id, Arc::clone(&active))
        };
        drop(map);
        finished.iter().for_each(|finished| finished.set());
        (!serves_another).then_some(active)
    }

    /// Begins the deactivation of an object: new requests wait or are rejected. Returns the map's reference.
    pub(crate) fn deactivate(&self, id: &[u8], deactivation: Deactivation) -> Option<Arc<ActiveObject>> {
        let mut map = self.map.write();
        let entry = self.entry_mut(&mut map, id)?;
        let Entry::Active(_) = entry else { return None };
        let transition = Transition { kind: TransitionKind::Deactivating(deactivation), finished: Arc::default() };
        let Entry::Active(active) = std::mem::replace(entry, Entry::InTransition(Box::new(transition))) else {
            return None;
        };
        if self.uniqueness == Uniqueness::Unique {
            self.forget_servant(&mut map, &active);
        }
        Some(active)
    }

    /// The deactivation in progress of an object that was in use until now; `None` if there is none.
    pub(crate) fn deactivation(&self, id: &[u8], active: &ActiveObject) -> Option<Deactivation> {
        if active.is_replaced.load(Ordering::Relaxed) {
            return None;
        }
        match self.entry(&self.map.read(), id)? {
            Entry::InTransition(transition) => match transition.kind {
                TransitionKind::Deactivating(deactivation) => Some(deactivation),
                TransitionKind::Incarnating(_) => None,
            },
            Entry::Active(_) => None,
        }
    }

    /// Ends a deactivation: the id has no object, and waiting requests continue.
    pub(crate) fn end_deactivation(&self, id: &[u8]) {
        let mut map = self.map.write();
        let removed = match self.slot_of(&map, id) {
            Some(slot_id) => map.slots.remove(slot_id),
            None => map.others.remove(id),
        };
        drop(map);
        if let Some(finished) = removed.and_then(Entry::into_finished) {
            finished.set();
        }
    }

    /// Replaces the target of an id; returns the previous one, which its requests still use.
    pub(crate) fn replace(&self, id: &[u8], binding: Binding) -> Option<Arc<ActiveObject>> {
        let new = ActiveObject::new(binding);
        let mut map = self.map.write();
        let Some(Entry::Active(current)) = self.entry_mut(&mut map, id) else { return None };
        let old = std::mem::replace(current, new);
        old.is_replaced.store(true, Ordering::Relaxed);
        self.forget_servant(&mut map, &old);
        Some(old)
    }

    /// Ends one activation of a servant. Returns whether the servant serves other objects, including those
    /// whose deactivation is in progress. Of several objects that are deactivated together, the last one
    /// leaves it without any (15.3.6.2).
    pub(crate) fn release_servant(&self, servant: &Arc<dyn Servant>) -> bool {
        match self.uniqueness {
            Uniqueness::Unique => self.map.read().servants.get(servant).is_some(),
            Uniqueness::Counted => {
                let mut map = self.map.write();
                map.servants.remove(servant);
                map.servants.get(servant).is_some()
            }
            Uniqueness::Unknown => false,
        }
    }
}

impl ActiveObject {
    fn new(binding: Binding) -> Arc<Self> {
        Arc::new(Self { binding, is_replaced: AtomicBool::new(false) })
    }

    fn has_servant(&self, servant: &Arc<dyn Servant>) -> bool {
        matches!(&self.binding, Binding::Servant(own) if Arc::ptr_eq(own, servant))
    }
}

impl Entry {
    fn into_finished(self) -> Option<Arc<Event>> {
        match self {
            Self::InTransition(transition) => Some(transition.finished),
            Self::Active(_) => None,
        }
    }
}

impl Transition {
    fn is_incarnation_in_this_thread(&self) -> bool {
        matches!(self.kind, TransitionKind::Incarnating(thread) if thread == thread::current().id())
    }
}
