//! The active object map: which servant stands behind which object, of one adapter.
//!
//! A request takes a count of the object's [`Active`], under a shared lock. So the object is in use as long as anybody but the map has
//! a count, and whoever gives the last one back learns of that: it ends a deactivation that has begun meanwhile. What happens to
//! servants then, and all waiting, is left to the adapter. No code of others runs under the lock.

mod servants;

use std::fmt;

use spandrel_giop::SystemException;
use spandrel_orb::{Located, ObjectRef, Replied, Servant, ServerCall};
use spandrel_sync::{
    Arc, RwLock, Weak,
    atomic::{AtomicBool, Ordering},
    thread::{self, ThreadId},
};

use self::servants::{Servants, Serves};
use crate::{
    ObjectDemux, ObjectId, PoaError,
    demux::{self, ObjectTable},
    error,
    key::{IdForm, Made, Place},
    policies::Policies,
    signal::Signal,
    slots::Slots,
};

/// What stands behind an object. Whoever has a count of it uses the object.
pub(crate) struct Active {
    pub(crate) behind: Behind,
    /// Something else was put in its place: its end is not the end of the object's activation.
    is_replaced: AtomicBool,
}

/// A servant, or another object.
#[derive(Clone)]
pub(crate) enum Behind {
    Servant(Arc<dyn Servant>),
    Forward(Forwarding),
}

/// The object that is to be asked instead.
#[derive(Clone)]
pub(crate) struct Forwarding {
    pub(crate) target: ObjectRef,
    /// From now on, and not only as long as it is there.
    pub(crate) is_permanent: bool,
}

impl Forwarding {
    /// Tells the client.
    pub(crate) fn answer(&self, call: ServerCall<'_>) -> Result<Replied, SystemException> {
        if self.is_permanent { call.forward_permanently(&self.target) } else { call.forward(&self.target) }
    }

    /// What is said to who asks where the object is.
    pub(crate) fn located(self) -> Located {
        let ior = self.target.ior().clone();
        if self.is_permanent { Located::ForwardPermanently(ior) } else { Located::Forward(ior) }
    }
}

/// What the map has of an object.
enum Entry {
    Active(Arc<Active>),
    Busy(Box<Busy>),
}

/// An object between being active and not being active.
struct Busy {
    why: Why,
    /// Given when that is over.
    over: Arc<Signal>,
}

#[derive(Clone, Copy)]
enum Why {
    /// This thread asks a servant activator for a servant.
    Incarnating(ThreadId),
    Ending(Ending),
}

/// How an object is deactivated.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Ending {
    /// A servant activator is told.
    pub(crate) etherealize: bool,
    /// The adapter or its manager ends, not only the object.
    pub(crate) is_cleanup: bool,
}

/// What a request found.
pub(crate) enum Found {
    Active(Arc<Active>),
    /// It is neither active nor not until this is given.
    Busy(Arc<Signal>),
    Nothing,
    /// The adapter accepts no requests now.
    Shut,
}

/// What came of putting an object behind an id.
pub(crate) enum Put {
    Done,
    Refused(PoaError),
    /// The last activation must end first.
    Wait(Arc<Signal>),
}

/// The active object map of one adapter.
pub(crate) struct Objects {
    map: RwLock<Map>,
    /// How the ids look that the adapter makes; `None` if the application makes them.
    form: Option<IdForm>,
    /// Whether objects are found by what their ids say.
    is_active_demux: bool,
    uniqueness: Uniqueness,
}

/// What is known of servants.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Uniqueness {
    /// Which object each stands behind.
    Unique,
    /// How many, until the end of their deactivation.
    Counted,
    /// Nothing: nobody asks.
    Unknown,
}

struct Map {
    /// Objects that were activated with an id that the adapter made for that.
    slots: Slots<Entry>,
    /// All others.
    others: Box<dyn ObjectTable<Entry>>,
    servants: Servants,
    /// How many ids were made that say nothing of a place.
    numbered: u64,
    /// No object is activated any more.
    is_shut: bool,
}

impl Objects {
    pub(crate) fn new(policies: &Policies, form: IdForm) -> Self {
        let uniqueness = match (policies.is_unique(), policies.has_servant_manager()) {
            (true, _) => Uniqueness::Unique,
            (false, true) => Uniqueness::Counted,
            (false, false) => Uniqueness::Unknown,
        };
        let map = Map {
            slots: Slots::default(),
            others: demux::table(policies.demux),
            servants: Servants::default(),
            numbered: 0,
            is_shut: false,
        };
        Self {
            map: RwLock::new(map),
            form: policies.makes_ids().then_some(form),
            is_active_demux: policies.demux == ObjectDemux::Active,
            uniqueness,
        }
    }

    /// What stands behind an id, in use from now on; `is_open` is asked under the lock, so that whoever has closed and then
    /// [passed the barrier](Self::barrier) finds all that is in use. A call without a request has nowhere to be predicted from.
    #[inline]
    pub(crate) fn enter(&self, id: &[u8], call: Option<&ServerCall<'_>>, is_open: impl FnOnce() -> bool) -> Found {
        let map = self.map.read();
        if !is_open() {
            return Found::Shut;
        }
        let entry = match self.placed(&map, id) {
            Some(entry) => Some(entry),
            None if map.others.is_empty() => None,
            None => call.map_or_else(|| map.others.find(id), |call| predicted(&*map.others, id, call)),
        };
        match entry {
            Some(Entry::Active(active)) => Found::Active(Arc::clone(active)),
            Some(Entry::Busy(busy)) => Found::Busy(Arc::clone(&busy.over)),
            None => Found::Nothing,
        }
    }

    /// What stands behind an id.
    pub(crate) fn find(&self, id: &[u8]) -> Option<Behind> {
        match self.entry(&self.map.read(), id) {
            Some(Entry::Active(active)) => Some(active.behind.clone()),
            _ => None,
        }
    }

    /// Returns once all that entered before have what they found.
    pub(crate) fn barrier(&self) {
        drop(self.map.write());
    }

    fn entry<'m>(&self, map: &'m Map, id: &[u8]) -> Option<&'m Entry> {
        self.placed(map, id).or_else(|| map.others.find(id))
    }

    /// The object that is where its id says, if it says that.
    #[inline]
    fn placed<'m>(&self, map: &'m Map, id: &[u8]) -> Option<&'m Entry> {
        let form = self.form.filter(|_| self.is_active_demux)?;
        match form.decode(id) {
            Made::Here(place) => map.slots.get(place),
            Made::Earlier | Made::No => None,
        }
    }

    fn entry_mut<'m>(&self, map: &'m mut Map, id: &[u8]) -> Option<&'m mut Entry> {
        match self.slot_of(map, id) {
            Some(place) => map.slots.get_mut(place),
            None => map.others.find_mut(id),
        }
    }

    /// Where an object is, if it is where its id says.
    fn slot_of(&self, map: &Map, id: &[u8]) -> Option<Place> {
        let Some(Made::Here(place)) = self.form.filter(|_| self.is_active_demux).map(|form| form.decode(id)) else {
            return None;
        };
        map.slots.get(place).map(|_| place)
    }

    /// An id that was never given before.
    pub(crate) fn make_id(&self) -> Result<ObjectId, PoaError> {
        let form = self.form.ok_or(PoaError::WrongPolicy)?;
        Ok(form.encode(self.map.write().next_number()).into())
    }

    /// Whether this adapter has made the id, as far as one can see.
    fn has_made(&self, map: &Map, id: &[u8]) -> bool {
        match self.form.map(|form| form.decode(id)) {
            None | Some(Made::Earlier) => true,
            Some(Made::Here(place)) => match place.number() {
                Some(number) => number <= map.numbered,
                None => map.slots.was_given(place),
            },
            Some(Made::No) => false,
        }
    }

    /// BAD_PARAM for ids that this adapter should have made and has not.
    pub(crate) fn check_made(&self, id: &[u8]) -> Result<(), PoaError> {
        if self.has_made(&self.map.read(), id) { Ok(()) } else { Err(error::not_made_here().into()) }
    }

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

    /// The id of the one object that a servant stands behind.
    pub(crate) fn id_of(&self, servant: &Arc<dyn Servant>) -> Option<ObjectId> {
        let map = self.map.read();
        match map.servants.get(servant)? {
            Serves::Slot(slot) => Some(self.form?.encode(map.slots.current(*slot)?).into()),
            Serves::Id(id) => Some(ObjectId::clone(id)),
            Serves::Many(_) => None,
        }
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

    /// The ids of all active objects.
    pub(crate) fn ids(&self) -> Vec<ObjectId> {
        let map = self.map.read();
        let placed = map.slots.iter().filter(|(_, entry)| entry.is_active());
        let mut ids: Vec<ObjectId> = placed.filter_map(|(place, _)| Some(self.form?.encode(place).into())).collect();
        map.others.for_each(&mut |id, entry| {
            if entry.is_active() {
                ids.push(id.into());
            }
        });
        ids
    }

    /// How many objects are active.
    pub(crate) fn len(&self) -> usize {
        let map = self.map.read();
        let mut count = map.slots.iter().filter(|(_, entry)| entry.is_active()).count();
        map.others.for_each(&mut |_, entry| count += usize::from(entry.is_active()));
        count
    }

    /// The active objects that are in use.
    pub(crate) fn in_use(&self) -> Vec<Weak<Active>> {
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

    /// No object is activated any more.
    pub(crate) fn shut(&self) {
        self.map.write().is_shut = true;
    }

    /// The configuration is complete for now.
    pub(crate) fn settle(&self) {
        self.map.write().others.settle();
    }
}

impl Map {
    /// A place that is in no table.
    fn next_number(&mut self) -> Place {
        self.numbered += 1;
        Place::numbered(self.numbered)
    }
}

/// What stands behind an id, looked for first where the object of the last request from the same place was.
fn predicted<'m>(objects: &'m dyn ObjectTable<Entry>, id: &[u8], call: &ServerCall<'_>) -> Option<&'m Entry> {
    let predicted = call.predicted_target().and_then(|place| usize::try_from(place).ok()).unwrap_or(usize::MAX);
    let (place, entry) = objects.find_near(id, predicted)?;
    if place != predicted {
        call.note_target(place as u64);
    }
    Some(entry)
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
    fn is_active(&self) -> bool {
        matches!(self, Self::Active(_))
    }

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

impl fmt::Debug for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Objects").field("len", &self.len()).finish_non_exhaustive()
    }
}

#[cfg(all(test, shuttle))]
mod models;
#[cfg(all(test, not(shuttle)))]
mod tests;
