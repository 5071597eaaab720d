//! The active object map: which servant stands behind which object, of one adapter. What changes it is [`life`].
//!
//! A request takes a count of the object's [`Active`], under a shared lock. So the object is in use as long as anybody but the map has
//! a count, and whoever gives the last one back learns of that: it ends a deactivation that has begun meanwhile. What happens to
//! servants then, and all waiting, is left to the adapter. No code of others runs under the lock.

mod life;
mod servants;

use std::fmt;

use spandrel_giop::SystemException;
use spandrel_orb::{Located, ObjectRef, Replied, Servant, ServerCall};
use spandrel_sync::{Arc, RwLock, Weak, atomic::AtomicBool, thread::ThreadId};

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
    pub(crate) fn enter<L: LastTarget>(&self, id: &[u8], last: Option<&L>, is_open: impl FnOnce() -> bool) -> Found {
        let map = self.map.read();
        if !is_open() {
            return Found::Shut;
        }
        let entry = match self.placed(&map, id) {
            Some(entry) => Some(entry),
            None if map.others.is_empty() => None,
            None => last.map_or_else(|| map.others.find(id), |last| predicted(&*map.others, id, last)),
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

    /// The id of the one object that a servant stands behind.
    pub(crate) fn id_of(&self, servant: &Arc<dyn Servant>) -> Option<ObjectId> {
        let map = self.map.read();
        match map.servants.get(servant)? {
            Serves::Slot(slot) => Some(self.form?.encode(map.slots.current(*slot)?).into()),
            Serves::Id(id) => Some(ObjectId::clone(id)),
            Serves::Many(_) => None,
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
fn predicted<'m>(objects: &'m dyn ObjectTable<Entry>, id: &[u8], last: &impl LastTarget) -> Option<&'m Entry> {
    let predicted = last.predicted_target().and_then(|place| usize::try_from(place).ok()).unwrap_or(usize::MAX);
    let (place, entry) = objects.find_near(id, predicted)?;
    if place != predicted {
        last.note_target(place as u64);
    }
    Some(entry)
}

/// Where the object of the last request from the same place was found.
pub(crate) trait LastTarget {
    /// That place in the table, if predictions are made.
    fn predicted_target(&self) -> Option<u64>;

    /// Notes the place for the next request.
    fn note_target(&self, place: u64);
}

impl LastTarget for ServerCall<'_> {
    #[inline]
    fn predicted_target(&self) -> Option<u64> {
        self.predicted_target()
    }

    #[inline]
    fn note_target(&self, place: u64) {
        self.note_target(place);
    }
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
