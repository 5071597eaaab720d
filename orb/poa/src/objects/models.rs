//! Models of objects that are activated and deactivated while requests look them up.

use spandrel_orb::internal::DemuxDefaults;
use spandrel_server::{LastTarget, Servant};
use spandrel_sync::{
    Arc, Mutex,
    models::{below, check, one_in},
    thread,
};

use super::{Binding, Deactivation, ObjectLookup, Objects};
use crate::{EtherealizeObjects, ObjectId, key::SystemIdFormat, policies::Policies};

const ENDING: Deactivation = Deactivation { etherealize: EtherealizeObjects::No, is_cleanup: false };

/// A servant with a unique number.
struct Numbered(usize);

impl Servant for Numbered {
    fn repository_id(&self) -> &str {
        "IDL:Numbered:1.0"
    }

    fn is_a(&self, number: &str) -> bool {
        number == self.0.to_string()
    }
}

/// The state of an object.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ObjectState {
    Active,
    Changing,
    Inactive,
}

/// A map, and the threads' record of it: the servant's number of each id ever assigned, and its state.
struct Setup {
    map: Objects,
    states: Mutex<Vec<(ObjectId, usize, ObjectState)>>,
}

impl Setup {
    fn new() -> Arc<Self> {
        let map = Objects::new(&Policies::of_root(DemuxDefaults::default()), SystemIdFormat { incarnation: None });
        Arc::new(Self { map, states: Mutex::default() })
    }

    fn activate(&self, number: usize) -> ObjectId {
        let id = self.map.activate(Binding::Servant(Arc::new(Numbered(number)))).expect("the table has room");
        let mut states = self.states.lock();
        assert!(states.iter().all(|(other, ..)| *other != id), "{id:?} was given twice");
        states.push((id.clone(), number, ObjectState::Active));
        id
    }

    fn set_state(&self, id: &ObjectId, state: ObjectState) {
        let mut states = self.states.lock();
        states.iter_mut().find(|(other, ..)| other == id).expect("it was given").2 = state;
    }

    fn deactivate(&self, id: &ObjectId) {
        self.set_state(id, ObjectState::Changing);
        let active = self.map.deactivate(id, ENDING).expect("only this thread takes it out");
        assert!(self.map.deactivate(id, ENDING).is_none(), "{id:?} was taken out twice");
        if Arc::into_inner(active).is_some() {
            self.map.end_deactivation(id);
        }
        self.set_state(id, ObjectState::Inactive);
    }

    /// Looks up any object that ever existed, and uses it for a while.
    fn look(&self) {
        let (id, number, before) = {
            let states = self.states.lock();
            if states.is_empty() {
                return;
            }
            states[below(states.len())].clone()
        };
        let entry = self.map.enter(&id, None::<&dyn LastTarget>, || true);
        let after = self.states.lock().iter().find(|(other, ..)| *other == id).expect("it was given").2;
        match entry {
            ObjectLookup::Active(active) => {
                assert_ne!(before, ObjectState::Inactive, "{id:?} was found after it had been taken out");
                let Binding::Servant(servant) = &active.binding else { panic!("no object is forwarded") };
                assert!(servant.is_a(&number.to_string()), "{id:?} led to another's servant");
                thread::yield_now();
                if let Some(active) = Arc::into_inner(active) {
                    assert_eq!(self.map.deactivation(&id, &active), Some(ENDING));
                    self.map.end_deactivation(&id);
                }
            }
            ObjectLookup::InTransition(_) | ObjectLookup::NotFound => {
                assert_ne!(after, ObjectState::Active, "{id:?} was not found")
            }
            ObjectLookup::Closed => panic!("the map is open"),
        }
    }
}

fn activate_and_deactivate(setup: &Arc<Setup>) {
    let mut threads = Vec::new();
    for thread in 0..2 {
        let setup = Arc::clone(setup);
        threads.push(thread::spawn(move || {
            for round in 0..3 {
                let id = setup.activate(thread * 10 + round);
                if !one_in(4) {
                    setup.deactivate(&id);
                }
            }
        }));
    }
    for _ in 0..2 {
        let setup = Arc::clone(setup);
        threads.push(thread::spawn(move || (0..4).for_each(|_| setup.look())));
    }
    threads.into_iter().for_each(|thread| thread.join().expect("it did not panic"));
    let active = setup.states.lock().iter().filter(|(_, _, state)| *state == ObjectState::Active).count();
    assert_eq!(setup.map.len(), active);
    // The last user has completed each deactivation: no object is in transition.
    let left = setup.map.map.read().slots.iter().count();
    assert_eq!(left, active);
}

#[test]
fn a_stale_id_never_finds_another_servant() {
    check(6000, || activate_and_deactivate(&Setup::new()));
}

#[test]
fn a_slot_with_exhausted_generations_is_not_reused() {
    check(6000, || {
        let setup = Setup::new();
        let first = setup.activate(99);
        setup.deactivate(&first);
        // As after 2³² objects, less two.
        setup.map.map.write().slots.age(0, u32::MAX - 1);
        activate_and_deactivate(&setup);
    });
}
