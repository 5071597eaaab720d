//! Models of objects that come and go while requests look for them.

use spandrel_orb::{Servant, ServerCall};
use spandrel_sync::{
    Arc, Mutex,
    models::{below, check, one_in},
    thread,
};

use super::{Behind, Ending, Found, Objects};
use crate::{ObjectId, key::IdForm, policies::Policies};

const ENDING: Ending = Ending { etherealize: false, is_cleanup: false };

/// A servant that can be told from all others.
struct Numbered(usize);

impl Servant for Numbered {
    fn repository_id(&self) -> &str {
        "IDL:Numbered:1.0"
    }

    fn is_a(&self, number: &str) -> bool {
        number == self.0.to_string()
    }
}

/// What became of an object.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Fate {
    Active,
    Changing,
    Gone,
}

/// A map, and what the threads know of it: the servant's number behind each id ever given, and its fate.
struct Stage {
    map: Objects,
    known: Mutex<Vec<(ObjectId, usize, Fate)>>,
}

impl Stage {
    fn new() -> Arc<Self> {
        let map = Objects::new(&Policies::of_root(), IdForm { incarnation: None });
        Arc::new(Self { map, known: Mutex::default() })
    }

    fn activate(&self, number: usize) -> ObjectId {
        let id = self.map.activate(Behind::Servant(Arc::new(Numbered(number)))).expect("there is room");
        let mut known = self.known.lock();
        assert!(known.iter().all(|(other, ..)| *other != id), "{id:?} was given twice");
        known.push((id.clone(), number, Fate::Active));
        id
    }

    fn set_fate(&self, id: &ObjectId, fate: Fate) {
        let mut known = self.known.lock();
        known.iter_mut().find(|(other, ..)| other == id).expect("it was given").2 = fate;
    }

    fn deactivate(&self, id: &ObjectId) {
        self.set_fate(id, Fate::Changing);
        let active = self.map.deactivate(id, ENDING).expect("only this thread takes it out");
        assert!(self.map.deactivate(id, ENDING).is_none(), "{id:?} was taken out twice");
        if Arc::into_inner(active).is_some() {
            self.map.end_deactivation(id);
        }
        self.set_fate(id, Fate::Gone);
    }

    /// Looks for any object that was ever there, and uses it for a while.
    fn look(&self) {
        let (id, number, before) = {
            let known = self.known.lock();
            if known.is_empty() {
                return;
            }
            known[below(known.len())].clone()
        };
        let found = self.map.enter(&id, None::<&ServerCall<'_>>, || true);
        let after = self.known.lock().iter().find(|(other, ..)| *other == id).expect("it was given").2;
        match found {
            Found::Active(active) => {
                assert_ne!(before, Fate::Gone, "{id:?} was found after it had been taken out");
                let Behind::Servant(servant) = &active.behind else { panic!("nothing is forwarded") };
                assert!(servant.is_a(&number.to_string()), "{id:?} led to another's servant");
                thread::yield_now();
                if let Some(active) = Arc::into_inner(active) {
                    assert_eq!(self.map.ending(&id, &active), Some(ENDING));
                    self.map.end_deactivation(&id);
                }
            }
            Found::Busy(_) | Found::Nothing => assert_ne!(after, Fate::Active, "{id:?} was not found"),
            Found::Shut => panic!("it is open"),
        }
    }
}

fn come_and_go(stage: &Arc<Stage>) {
    let mut threads = Vec::new();
    for thread in 0..2 {
        let stage = Arc::clone(stage);
        threads.push(thread::spawn(move || {
            for turn in 0..3 {
                let id = stage.activate(thread * 10 + turn);
                if !one_in(4) {
                    stage.deactivate(&id);
                }
            }
        }));
    }
    for _ in 0..2 {
        let stage = Arc::clone(stage);
        threads.push(thread::spawn(move || (0..4).for_each(|_| stage.look())));
    }
    threads.into_iter().for_each(|thread| thread.join().expect("it did not panic"));
    let active = stage.known.lock().iter().filter(|(_, _, fate)| *fate == Fate::Active).count();
    assert_eq!(stage.map.len(), active);
    // Whoever used it last has ended it: nothing is left between being active and not.
    let left = stage.map.map.read().slots.iter().count();
    assert_eq!(left, active);
}

#[test]
fn a_stale_id_never_leads_to_anothers_servant() {
    check(6000, || come_and_go(&Stage::new()));
}

#[test]
fn a_slot_whose_generations_are_used_up_is_not_used_again() {
    check(6000, || {
        let stage = Stage::new();
        let first = stage.activate(99);
        stage.deactivate(&first);
        // As after four thousand million objects, less two.
        stage.map.map.write().slots.age(0, u32::MAX - 1);
        come_and_go(&stage);
    });
}
