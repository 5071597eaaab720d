use spandrel_orb::Servant;
use spandrel_sync::Arc;

use super::*;
use crate::{IdAssignmentPolicy, IdUniquenessPolicy, RequestProcessingPolicy, key::Incarnation};

struct Dummy;

impl Servant for Dummy {
    fn repository_id(&self) -> &str {
        "IDL:Dummy:1.0"
    }

    fn is_a(&self, _: &str) -> bool {
        false
    }
}

const ENDING: Ending = Ending { etherealize: true, is_cleanup: false };

fn servant() -> Arc<dyn Servant> {
    Arc::new(Dummy)
}

fn behind() -> Behind {
    Behind::Servant(servant())
}

fn objects(given: &[spandrel_orb::Policy]) -> Objects {
    Objects::new(&Policies::resolve(given).unwrap(), IdForm { incarnation: None })
}

fn enter(objects: &Objects, id: &[u8], is_open: impl FnOnce() -> bool) -> Found {
    objects.enter(id, None::<&ServerCall<'_>>, is_open)
}

fn end(objects: &Objects, id: &[u8]) {
    let active = objects.deactivate(id, ENDING).unwrap();
    assert!(Arc::into_inner(active).is_some(), "nobody uses it");
    objects.end_deactivation(id);
}

fn put(objects: &Objects, id: &[u8], servant: &Arc<dyn Servant>) -> Result<(), PoaError> {
    match objects.activate_at(id, Behind::Servant(Arc::clone(servant))) {
        Put::Done => Ok(()),
        Put::Refused(refused) => Err(refused),
        Put::Wait(_) => panic!("nothing is being ended"),
    }
}

#[test]
fn an_id_of_the_adapters_making_can_be_activated_again_and_leads_to_the_new_servant() {
    let objects = objects(&[]);
    let id = objects.activate(behind()).unwrap();
    end(&objects, &id);
    assert!(objects.find(&id).is_none());
    let other = objects.activate(behind()).unwrap();
    assert_ne!(other, id);
    let again = servant();
    put(&objects, &id, &again).unwrap();
    assert!(matches!(objects.find(&id), Some(Behind::Servant(found)) if Arc::ptr_eq(&found, &again)));
    assert_eq!(objects.id_of(&again), Some(id.clone()));
    assert_eq!(put(&objects, &id, &servant()), Err(PoaError::ObjectAlreadyActive));
    assert_eq!(put(&objects, &objects.make_id().unwrap(), &again), Err(PoaError::ServantAlreadyActive));
    assert_eq!(objects.len(), 2);
    end(&objects, &id);
    assert_eq!(objects.id_of(&again), None);
}

#[test]
fn ids_that_the_adapter_has_not_made_are_refused() {
    let objects = objects(&[]);
    let id = objects.activate(behind()).unwrap();
    let made = objects.make_id().unwrap();
    let mut never = made.as_bytes().to_vec();
    *never.last_mut().unwrap() += 1;
    let mut ahead = id.as_bytes().to_vec();
    *ahead.last_mut().unwrap() += 1;
    for stranger in [&b"stranger"[..], b"", b"a much longer one", &never, &ahead] {
        assert!(matches!(put(&objects, stranger, &servant()), Err(PoaError::System(_))), "{stranger:?}");
        assert!(objects.check_made(stranger).is_err());
    }
    put(&objects, &made, &servant()).unwrap();
}

#[test]
fn stale_and_malformed_ids_lead_nowhere() {
    let objects = objects(&[]);
    let ids: Vec<ObjectId> = (0..3).map(|_| objects.activate(behind()).unwrap()).collect();
    let is_found = |id: &[u8]| matches!(enter(&objects, id, || true), Found::Active(_));
    assert!(ids.iter().all(|id| is_found(id)));
    end(&objects, &ids[1]);
    let again = objects.activate(behind()).unwrap();
    assert_ne!(again, ids[1], "the slot is used again, with another generation");
    assert_eq!((is_found(&again), is_found(&ids[1])), (true, false));
    for hostile in [&[][..], &ids[0][..7], &[&ids[0][..], &[0]].concat(), &[0xff; 8], &[0, 0, 0, 9, 0, 0, 0, 0]] {
        assert!(!is_found(hostile), "{hostile:?}");
    }
}

#[test]
fn ids_of_an_earlier_run_are_taken_by_persistent_adapters() {
    let [earlier, now] = [(); 2].map(|()| IdForm { incarnation: Some(Incarnation::random()) });
    let id = Objects::new(&Policies::of_root(), earlier).activate(behind()).unwrap();
    let objects = Objects::new(&Policies::of_root(), now);
    assert_ne!(objects.activate(behind()).unwrap(), id);
    put(&objects, &id, &servant()).unwrap();
    assert!(objects.find(&id).is_some());
}

#[test]
fn a_servant_behind_many_objects_is_counted_where_activators_want_to_know() {
    let given = [
        IdUniquenessPolicy::MultipleId.into(),
        IdAssignmentPolicy::UserId.into(),
        RequestProcessingPolicy::UseServantManager.into(),
    ];
    let (objects, shared) = (objects(&given), servant());
    put(&objects, b"a", &shared).unwrap();
    put(&objects, b"b", &shared).unwrap();
    end(&objects, b"a");
    assert!(objects.let_go(&shared));
    end(&objects, b"b");
    assert!(!objects.let_go(&shared));
}

#[test]
fn what_is_in_use_is_ended_by_whoever_used_it_last() {
    let objects = objects(&[IdAssignmentPolicy::UserId.into()]);
    put(&objects, b"a", &servant()).unwrap();
    let Found::Active(user) = enter(&objects, b"a", || true) else { panic!("it is active") };
    assert_eq!(objects.in_use().len(), 1);
    assert!(matches!(enter(&objects, b"a", || false), Found::Shut));
    let map = objects.deactivate(b"a", ENDING).unwrap();
    assert!(Arc::into_inner(map).is_none(), "it is in use");
    assert!(matches!(enter(&objects, b"a", || true), Found::Busy(_)));
    assert!(matches!(objects.activate_at(b"a", behind()), Put::Wait(_)));
    let last = Arc::into_inner(user).unwrap();
    assert_eq!(objects.ending(b"a", &last), Some(ENDING));
    objects.end_deactivation(b"a");
    put(&objects, b"a", &servant()).unwrap();
}

#[test]
fn the_end_of_what_was_replaced_is_not_the_end_of_the_object() {
    let objects = objects(&[]);
    let id = objects.activate(behind()).unwrap();
    let old = objects.replace(&id, behind()).unwrap();
    let new = objects.deactivate(&id, ENDING).unwrap();
    assert_eq!(objects.ending(&id, &old), None);
    assert_eq!(objects.ending(&id, &new), Some(ENDING));
}
