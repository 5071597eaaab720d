use spandrel_orb::internal::DemuxDefaults;
use spandrel_server::Servant;
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

const ENDING: Deactivation = Deactivation { etherealize: EtherealizeObjects::Yes, is_cleanup: false };

fn servant() -> Arc<dyn Servant> {
    Arc::new(Dummy)
}

fn binding() -> Binding {
    Binding::Servant(servant())
}

fn objects(explicit_policies: &[spandrel_orb::Policy]) -> Objects {
    Objects::new(
        &Policies::resolve(explicit_policies, DemuxDefaults::default()).unwrap(),
        SystemIdFormat { incarnation: None },
    )
}

fn enter(objects: &Objects, id: &[u8], is_open: impl FnOnce() -> bool) -> ObjectLookup {
    objects.enter(id, None::<&dyn LastTarget>, is_open)
}

fn end(objects: &Objects, id: &[u8]) {
    let active = objects.deactivate(id, ENDING).unwrap();
    assert!(Arc::into_inner(active).is_some(), "it is not in use");
    objects.end_deactivation(id);
}

fn put(objects: &Objects, id: &[u8], servant: &Arc<dyn Servant>) -> Result<(), ActivationRefusal> {
    match objects.activate_at(id, Binding::Servant(Arc::clone(servant))) {
        ActivationOutcome::Done => Ok(()),
        ActivationOutcome::Rejected(refused) => Err(refused),
        ActivationOutcome::Wait(_) => panic!("no deactivation is in progress"),
    }
}

#[test]
fn a_system_id_can_be_reactivated_with_a_new_servant() {
    let objects = objects(&[]);
    let id = objects.activate(binding()).unwrap();
    end(&objects, &id);
    assert!(objects.find(&id).is_none());
    let other = objects.activate(binding()).unwrap();
    assert_ne!(other, id);
    let again = servant();
    put(&objects, &id, &again).unwrap();
    assert!(
        matches!(objects.find(&id), Some(Binding::Servant(active_servant)) if Arc::ptr_eq(&active_servant, &again))
    );
    assert_eq!(objects.id_of(&again), Some(id.clone()));
    assert_eq!(put(&objects, &id, &servant()), Err(ActivationRefusal::ObjectActive));
    assert_eq!(put(&objects, &objects.make_id().unwrap(), &again), Err(ActivationRefusal::ServantActive(id.clone())));
    assert_eq!(objects.len(), 2);
    end(&objects, &id);
    assert_eq!(objects.id_of(&again), None);
}

#[test]
fn ids_that_the_adapter_did_not_assign_are_rejected() {
    let objects = objects(&[]);
    let id = objects.activate(binding()).unwrap();
    let system_id = objects.make_id().unwrap();
    let mut never = system_id.as_bytes().to_vec();
    *never.last_mut().unwrap() += 1;
    let mut ahead = id.as_bytes().to_vec();
    *ahead.last_mut().unwrap() += 1;
    for foreign in [&b"foreign"[..], b"", b"a much longer one", &never, &ahead] {
        assert_eq!(put(&objects, foreign, &servant()), Err(ActivationRefusal::IdNotAssigned), "{foreign:?}");
        assert!(!objects.is_assigned(foreign));
    }
    put(&objects, &system_id, &servant()).unwrap();
}

#[test]
fn stale_and_malformed_ids_find_nothing() {
    let objects = objects(&[]);
    let ids: Vec<ObjectId> = (0..3).map(|_| objects.activate(binding()).unwrap()).collect();
    let is_found = |id: &[u8]| matches!(enter(&objects, id, || true), ObjectLookup::Active(_));
    assert!(ids.iter().all(|id| is_found(id)));
    end(&objects, &ids[1]);
    let again = objects.activate(binding()).unwrap();
    assert_ne!(again, ids[1], "the slot is reused with another generation");
    assert_eq!((is_found(&again), is_found(&ids[1])), (true, false));
    for hostile in [&[][..], &ids[0][..7], &[&ids[0][..], &[0]].concat(), &[0xff; 8], &[0, 0, 0, 9, 0, 0, 0, 0]] {
        assert!(!is_found(hostile), "{hostile:?}");
    }
}

#[test]
fn persistent_adapters_accept_ids_of_an_earlier_run() {
    let [earlier, now] = [(); 2].map(|()| SystemIdFormat { incarnation: Some(Incarnation::random()) });
    let id = Objects::new(&Policies::of_root(DemuxDefaults::default()), earlier).activate(binding()).unwrap();
    let objects = Objects::new(&Policies::of_root(DemuxDefaults::default()), now);
    assert_ne!(objects.activate(binding()).unwrap(), id);
    put(&objects, &id, &servant()).unwrap();
    assert!(objects.find(&id).is_some());
}

#[test]
fn objects_of_a_servant_are_counted_for_servant_activators() {
    let explicit_policies = [
        IdUniquenessPolicy::MultipleId.into(),
        IdAssignmentPolicy::UserId.into(),
        RequestProcessingPolicy::UseServantManager.into(),
    ];
    let (objects, shared) = (objects(&explicit_policies), servant());
    put(&objects, b"a", &shared).unwrap();
    put(&objects, b"b", &shared).unwrap();
    end(&objects, b"a");
    assert!(objects.release_servant(&shared));
    end(&objects, b"b");
    assert!(!objects.release_servant(&shared));
}

#[test]
fn the_last_user_completes_a_deactivation() {
    let objects = objects(&[IdAssignmentPolicy::UserId.into()]);
    put(&objects, b"a", &servant()).unwrap();
    let ObjectLookup::Active(user) = enter(&objects, b"a", || true) else { panic!("it is active") };
    assert_eq!(objects.in_use().len(), 1);
    assert!(matches!(enter(&objects, b"a", || false), ObjectLookup::Closed));
    let map = objects.deactivate(b"a", ENDING).unwrap();
    assert!(Arc::into_inner(map).is_none(), "it is in use");
    assert!(matches!(enter(&objects, b"a", || true), ObjectLookup::InTransition(_)));
    assert!(matches!(objects.activate_at(b"a", binding()), ActivationOutcome::Wait(_)));
    let last = Arc::into_inner(user).unwrap();
    assert_eq!(objects.deactivation(b"a", &last), Some(ENDING));
    objects.end_deactivation(b"a");
    put(&objects, b"a", &servant()).unwrap();
}

#[test]
fn the_end_of_a_replaced_target_does_not_end_the_object() {
    let objects = objects(&[]);
    let id = objects.activate(binding()).unwrap();
    let old = objects.replace(&id, binding()).unwrap();
    let new = objects.deactivate(&id, ENDING).unwrap();
    assert_eq!(objects.deactivation(&id, &old), None);
    assert_eq!(objects.deactivation(&id, &new), Some(ENDING));
}
