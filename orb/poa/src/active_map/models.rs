//! Models of objects that come and go while requests look for them.

use std::collections::HashMap;

use spandrel_giop::{CompletionStatus, SystemException};
use spandrel_orb::{Replied, Servant, ServerCall};
use spandrel_sync::{
    Arc, Mutex,
    models::{below, check, one_in},
    thread,
};

use super::{Active, ActiveObjectMap, ObjectId};

/// A servant that can be told from all others.
struct Numbered(usize);

impl Servant for Numbered {
    fn repository_id(&self) -> &'static str {
        "IDL:Numbered:1.0"
    }

    fn is_a(&self, number: &str) -> bool {
        number == self.0.to_string()
    }

    fn dispatch(&self, _: &str, _: ServerCall<'_>) -> Result<Replied, SystemException> {
        Err(SystemException::no_implement(0, CompletionStatus::No))
    }
}

/// What became of an object.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Fate {
    Active,
    /// Being taken out, or being given another servant.
    Changing,
    Gone,
}

/// A map, and what the threads know of it.
#[derive(Default)]
struct Stage {
    map: ActiveObjectMap,
    /// The servant's number behind each id ever given, and its fate.
    known: Mutex<HashMap<ObjectId, (usize, Fate)>>,
}

impl Stage {
    fn activate(&self, number: usize) -> ObjectId {
        let id = self.map.insert(Active::Servant(Arc::new(Numbered(number)))).expect("there is room");
        let before = self.known.lock().insert(id, (number, Fate::Active));
        assert_eq!(before, None, "{id:?} was given twice");
        id
    }

    fn deactivate(&self, id: ObjectId, number: usize) {
        self.set_fate(id, Fate::Changing);
        let removed = self.map.remove(id).expect("only this thread takes it out");
        assert!(is_numbered(&removed, number));
        self.set_fate(id, Fate::Gone);
        assert!(self.map.remove(id).is_none(), "{id:?} was taken out twice");
        assert!(self.map.replace(id, removed).is_none(), "{id:?} is stale and something was put behind it");
    }

    fn set_fate(&self, id: ObjectId, fate: Fate) {
        self.known.lock().get_mut(&id).expect("it was given").1 = fate;
    }

    /// Looks for any object that was ever there.
    fn look(&self) {
        let known: Vec<ObjectId> = {
            let known = self.known.lock();
            let mut ids: Vec<ObjectId> = known.keys().copied().collect();
            ids.sort_unstable_by_key(|id| (id.slot, id.generation)); // so that a replay chooses the same
            ids
        };
        if known.is_empty() {
            return;
        }
        let id = known[below(known.len())];
        let (number, before) = self.known.lock()[&id];
        let found = self.map.find(id);
        let (_, after) = self.known.lock()[&id];
        match found {
            Some(active) => {
                assert_ne!(before, Fate::Gone, "{id:?} was found after it had been taken out");
                assert!(is_numbered(&active, number), "{id:?} led to another's servant");
            }
            None => assert_ne!(after, Fate::Active, "{id:?} was not found"),
        }
    }
}

fn is_numbered(active: &Active, number: usize) -> bool {
    matches!(active, Active::Servant(servant) if servant.is_a(&number.to_string()))
}

fn come_and_go(stage: &Arc<Stage>) {
    let mut threads = Vec::new();
    for thread in 0..2 {
        let stage = Arc::clone(stage);
        threads.push(thread::spawn(move || {
            for turn in 0..3 {
                let number = thread * 10 + turn;
                let id = stage.activate(number);
                if !one_in(4) {
                    stage.deactivate(id, number);
                }
            }
        }));
    }
    for _ in 0..2 {
        let stage = Arc::clone(stage);
        threads.push(thread::spawn(move || (0..4).for_each(|_| stage.look())));
    }
    threads.into_iter().for_each(|thread| thread.join().expect("it did not panic"));
    let active = stage.known.lock().values().filter(|(_, fate)| *fate == Fate::Active).count();
    assert_eq!(stage.map.len(), active);
}

#[test]
fn a_stale_id_never_leads_to_anothers_servant() {
    check(10_000, || come_and_go(&Arc::default()));
}

#[test]
fn a_slot_whose_generations_are_used_up_is_not_used_again() {
    check(10_000, || {
        let stage = Arc::<Stage>::default();
        let first = stage.activate(99);
        stage.deactivate(first, 99);
        // As after four thousand million objects, less two.
        stage.map.0.write().slots[0].generation = u32::MAX - 1;
        come_and_go(&stage);
    });
}

#[test]
fn ids_from_before_a_clearing_are_stale() {
    check(4000, || {
        let stage = Arc::<Stage>::default();
        let (clearing, activating) = (Arc::clone(&stage), Arc::clone(&stage));
        let threads = [
            thread::spawn(move || (0..2).for_each(|_| drop(clearing.map.clear()))),
            thread::spawn(move || (0..4).for_each(|number| _ = activating.activate(number))),
        ];
        threads.into_iter().for_each(|thread| thread.join().expect("it did not panic"));
        for (id, (number, _)) in &*stage.known.lock() {
            assert!(stage.map.find(*id).is_none_or(|active| is_numbered(&active, *number)));
        }
        stage.map.clear();
        assert_eq!(stage.map.len(), 0);
    });
}
