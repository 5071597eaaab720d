//! Objects that become active, and that end: what changes the active object map.

use spandrel_orb::Servant;
use spandrel_sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
    thread,
};

use super::{Active, Behind, Busy, Ending, Entry, Found, Map, Objects, Put, Uniqueness, Why, servants::Serves};
use crate::{ObjectId, PoaError, error, signal::Signal};

impl Objects {
    /// Activates an object with an id made for it.
    pub(crate) fn activate(&self, behind: Behind) -> Result<ObjectId, PoaError> {
        let form = self.form.ok_or(PoaError::WrongPolicy)?;
        let active = Active::new(behind);
        let mut map = self.map.write();
        self.check_may_serve(&map, &active)?;
        if !self.is_active_demux {
            let id = ObjectId::from(form.encode(map.next_number()));
            self.note(&mut map, &active, || Serves::Id(Box::new(id.clone())));
            map.others.insert(&id, Entry::Active(active));
            return Ok(id);
        }
        let place = map.slots.insert(Entry::Active(Arc::clone(&active))).ok_or_else(error::no_more_ids)?;
        self.note(&mut map, &active, || Serves::Slot(place.slot));
        Ok(form.encode(place).into())
    }

    /// Activates the object with this id. Inside of its own incarnation a thread may do so.
    pub(crate) fn activate_at(&self, id: &[u8], behind: Behind) -> Put {
        let active = Active::new(behind);
        let mut map = self.map.write();
        match self.entry(&map, id) {
            None if !self.has_made(&map, id) => return Put::Refused(error::not_made_here().into()),
            Some(Entry::Active(_)) => return Put::Refused(PoaError::ObjectAlreadyActive),
            Some(Entry::Busy(busy)) if !busy.is_incarnated_here() => return Put::Wait(Arc::clone(&busy.over)),
            _ => {}
        }
        if let Err(refused) = self.check_may_serve(&map, &active) {
            return Put::Refused(refused);
        }
        self.put(&mut map, id, active).map_or(Put::Done, |over| {
            drop(map);
            over.give();
            Put::Done
        })
    }

    /// Puts something behind an id that may have it; what is to be given outside of the lock.
    fn put(&self, map: &mut Map, id: &[u8], active: Arc<Active>) -> Option<Arc<Signal>> {
        let slot = self.slot_of(map, id);
        let serves = || slot.map_or_else(|| Serves::Id(Box::new(id.into())), |place| Serves::Slot(place.slot));
        self.note(map, &active, serves);
        let entry = Entry::Active(active);
        let before = match slot.and_then(|place| map.slots.get_mut(place)) {
            Some(old) => Some(std::mem::replace(old, entry)),
            None => map.others.insert(id, entry),
        };
        match before {
            Some(Entry::Busy(busy)) => Some(busy.over),
            _ => None,
        }
    }

    /// Refuses what no object of this adapter may be activated with now.
    fn check_may_serve(&self, map: &Map, active: &Active) -> Result<(), PoaError> {
        if map.is_shut {
            return Err(error::destroyed().into());
        }
        match &active.behind {
            Behind::Servant(servant)
                if self.uniqueness == Uniqueness::Unique && map.servants.get(servant).is_some() =>
            {
                Err(PoaError::ServantAlreadyActive)
            }
            _ => Ok(()),
        }
    }

    /// Remembers what the servant stands behind.
    fn note(&self, map: &mut Map, active: &Active, serves: impl FnOnce() -> Serves) {
        if let Behind::Servant(servant) = &active.behind {
            match self.uniqueness {
                Uniqueness::Unique => map.servants.insert(servant, serves()),
                Uniqueness::Counted => map.servants.add(servant),
                Uniqueness::Unknown => {}
            }
        }
    }

    fn forget(&self, map: &mut Map, active: &Active) {
        if let (Behind::Servant(servant), true) = (&active.behind, self.uniqueness != Uniqueness::Unknown) {
            map.servants.remove(servant);
        }
    }

    /// Begins to look for a servant; others wait until [`end_incarnation`](Self::end_incarnation). `Nothing` is for the caller to do that.
    pub(crate) fn begin_incarnation(&self, id: &[u8]) -> Found {
        let mut map = self.map.write();
        match self.entry(&map, id) {
            Some(Entry::Active(active)) => return Found::Active(Arc::clone(active)),
            Some(Entry::Busy(busy)) => return Found::Busy(Arc::clone(&busy.over)),
            None if map.is_shut => return Found::Shut,
            None => {}
        }
        let busy = Busy { why: Why::Incarnating(thread::current().id()), over: Arc::default() };
        map.others.insert(id, Entry::Busy(Box::new(busy)));
        Found::Nothing
    }

    /// Ends what [`begin_incarnation`](Self::begin_incarnation) began. The object is in use from now on.
    ///
    /// A servant is refused that stands behind another object already, or another than the one that was activated meanwhile.
    pub(crate) fn end_incarnation(&self, id: &[u8], servant: Option<Arc<dyn Servant>>) -> Option<Arc<Active>> {
        let mut map = self.map.write();
        let now = match self.entry(&map, id) {
            Some(Entry::Active(active)) => Some(Arc::clone(active)),
            _ => None,
        };
        let (Some(servant), None) = (&servant, &now) else {
            // Activated by the activator itself, and then it must be this one; or there is none.
            let over = if now.is_none() { map.others.remove(id) } else { None };
            drop(map);
            if let Some(Entry::Busy(busy)) = over {
                busy.over.give();
            }
            return now.filter(|now| servant.is_some_and(|servant| now.is(&servant)));
        };
        let is_taken = self.uniqueness == Uniqueness::Unique && map.servants.get(servant).is_some();
        let active = Active::new(Behind::Servant(Arc::clone(servant)));
        let over = if is_taken {
            map.others.remove(id).and_then(Entry::over)
        } else {
            self.put(&mut map, id, Arc::clone(&active))
        };
        drop(map);
        over.iter().for_each(|over| over.give());
        (!is_taken).then_some(active)
    }

    /// Begins to deactivate an object: requests that come wait or are refused. What is returned is the map's count.
    pub(crate) fn deactivate(&self, id: &[u8], ending: Ending) -> Option<Arc<Active>> {
        let mut map = self.map.write();
        let entry = self.entry_mut(&mut map, id)?;
        let Entry::Active(_) = entry else { return None };
        let busy = Busy { why: Why::Ending(ending), over: Arc::default() };
        let Entry::Active(active) = std::mem::replace(entry, Entry::Busy(Box::new(busy))) else { return None };
        if self.uniqueness == Uniqueness::Unique {
            self.forget(&mut map, &active);
        }
        Some(active)
    }

    /// How an object is being deactivated that was in use until now; `None` if it is not.
    pub(crate) fn ending(&self, id: &[u8], active: &Active) -> Option<Ending> {
        if active.is_replaced.load(Ordering::Relaxed) {
            return None;
        }
        match self.entry(&self.map.read(), id)? {
            Entry::Busy(busy) => match busy.why {
                Why::Ending(ending) => Some(ending),
                Why::Incarnating(_) => None,
            },
            Entry::Active(_) => None,
        }
    }

    /// Ends a deactivation: the id stands for nothing, and what waited goes on.
    pub(crate) fn end_deactivation(&self, id: &[u8]) {
        let mut map = self.map.write();
        let removed = match self.slot_of(&map, id) {
            Some(place) => map.slots.remove(place),
            None => map.others.remove(id),
        };
        drop(map);
        if let Some(over) = removed.and_then(Entry::over) {
            over.give();
        }
    }

    /// Puts something else behind an id; what was there before, whose users go on with it.
    pub(crate) fn replace(&self, id: &[u8], behind: Behind) -> Option<Arc<Active>> {
        let new = Active::new(behind);
        let mut map = self.map.write();
        let Some(Entry::Active(now)) = self.entry_mut(&mut map, id) else { return None };
        let old = std::mem::replace(now, new);
        old.is_replaced.store(true, Ordering::Relaxed);
        self.forget(&mut map, &old);
        Some(old)
    }

    /// One of a servant's objects has ended. Whether it stands behind others, counting those that are still to be ended so: of several
    /// that are deactivated together, the last one leaves it without any (15.3.6.2).
    pub(crate) fn let_go(&self, servant: &Arc<dyn Servant>) -> bool {
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

impl Active {
    fn new(behind: Behind) -> Arc<Self> {
        Arc::new(Self { behind, is_replaced: AtomicBool::new(false) })
    }

    fn is(&self, servant: &Arc<dyn Servant>) -> bool {
        matches!(&self.behind, Behind::Servant(mine) if Arc::ptr_eq(mine, servant))
    }
}

impl Entry {
    fn over(self) -> Option<Arc<Signal>> {
        match self {
            Self::Busy(busy) => Some(busy.over),
            Self::Active(_) => None,
        }
    }
}

impl Busy {
    fn is_incarnated_here(&self) -> bool {
        matches!(self.why, Why::Incarnating(thread) if thread == thread::current().id())
    }
}
