//! Activating and deactivating objects (15.3.9 activate_object, activate_object_with_id, deactivate_object).

use std::collections::HashSet;

use spandrel::poa::{IdAssignmentPolicy, IdUniquenessPolicy, ObjectId, PoaError};
use spandrel::{CompletionStatus, Poa, Policy, SystemExceptionKind, minor};
use spandrel_conformance_tests::{
    managers::{Asked, Scripted, activating, etherealized, locating},
    support::{Gate, PATIENCE, Pair, default_servant_only, gated, in_background, named, raised, refused},
};

fn user_ids() -> [Policy; 1] {
    [IdAssignmentPolicy::UserId.into()]
}

/// Adapters that retain nothing.
fn forgetful(pair: &Pair) -> [Poa; 2] {
    [pair.adapter("default", default_servant_only()), pair.adapter("locator", locating())]
}

/// activate_object: it returns the id under which the servant was entered.
#[test]
fn an_activated_object_is_served() {
    let pair = Pair::new();
    let poa = pair.adapter("child", []);
    let id = poa.activate_object(named("one")).unwrap();
    for object in pair.ways(&poa.id_to_reference(&id).unwrap()) {
        assert_eq!(object.name().unwrap(), "one");
    }
}

/// activate_object: the ids that an adapter makes are unique.
#[test]
fn made_ids_are_unique_even_after_deactivation() {
    let pair = Pair::new();
    let poa = pair.adapter("child", []);
    let mut ids = HashSet::new();
    for _ in 0..100 {
        let id = poa.activate_object(named("one")).unwrap();
        poa.deactivate_object(&id).unwrap();
        assert!(ids.insert(id), "an id was made twice");
        assert!(ids.insert(poa.activate_object(named("two")).unwrap()), "an id was made twice");
    }
}

/// activate_object: WrongPolicy without SYSTEM_ID.
#[test]
fn activate_object_needs_system_ids() {
    let pair = Pair::new();
    let poa = pair.adapter("child", user_ids());
    assert_eq!(refused(poa.activate_object(named("one"))), PoaError::WrongPolicy);
}

/// activate_object, activate_object_with_id, deactivate_object: WrongPolicy without RETAIN.
#[test]
fn activation_needs_retention() {
    let pair = Pair::new();
    for poa in forgetful(&pair) {
        let id = ObjectId::from("one");
        assert_eq!(refused(poa.activate_object(named("one"))), PoaError::WrongPolicy);
        assert_eq!(refused(poa.activate_object_with_id(&id, named("one"))), PoaError::WrongPolicy);
        assert_eq!(refused(poa.deactivate_object(&id)), PoaError::WrongPolicy);
    }
}

/// activate_object, activate_object_with_id: ServantAlreadyActive under UNIQUE_ID.
#[test]
fn a_servant_stands_behind_one_object() {
    let pair = Pair::new();
    let servant = named("one");
    let poa = pair.adapter("system", []);
    poa.activate_object(servant.clone()).unwrap();
    assert_eq!(refused(poa.activate_object(servant.clone())), PoaError::ServantAlreadyActive);
    let poa = pair.adapter("user", user_ids());
    poa.activate_object_with_id(&"a".into(), servant.clone()).unwrap();
    assert_eq!(refused(poa.activate_object_with_id(&"b".into(), servant)), PoaError::ServantAlreadyActive);
}

/// 15.3.8.3: under MULTIPLE_ID a servant may have one or more ids.
#[test]
fn a_servant_stands_behind_many_objects_if_the_policy_says_so() {
    let pair = Pair::new();
    let servant = named("one");
    let poa = pair.adapter("child", [IdUniquenessPolicy::MultipleId.into()]);
    let ids = [(); 2].map(|()| poa.activate_object(servant.clone()).unwrap());
    assert_ne!(ids[0], ids[1]);
    for id in ids {
        assert_eq!(pair.seen(&poa.id_to_reference(&id).unwrap()).name().unwrap(), "one");
    }
}

/// activate_object_with_id: the object has the id that was given, whatever octets those are.
#[test]
fn an_object_has_the_id_that_it_was_given() {
    let pair = Pair::new();
    let poa = pair.adapter("child", user_ids());
    let long = vec![0x5a; 5000];
    for octets in [&b""[..], b"\0", b"one", b"one\0", b"\xff\xfe/.", &long] {
        let id = ObjectId::from(octets);
        poa.activate_object_with_id(&id, named(&octets.len().to_string())).unwrap();
        let reference = poa.id_to_reference(&id).unwrap();
        assert_eq!(poa.reference_to_id(&reference).unwrap().as_bytes(), octets);
        for object in pair.ways(&reference) {
            assert_eq!(object.name().unwrap(), octets.len().to_string());
        }
    }
}

/// activate_object_with_id: ObjectAlreadyActive if it is, and its servant stays.
#[test]
fn an_active_object_is_not_activated_again() {
    let pair = Pair::new();
    let (poa, id) = (pair.adapter("child", user_ids()), ObjectId::from("one"));
    poa.activate_object_with_id(&id, named("first")).unwrap();
    assert_eq!(refused(poa.activate_object_with_id(&id, named("second"))), PoaError::ObjectAlreadyActive);
    assert_eq!(pair.seen(&poa.id_to_reference(&id).unwrap()).name().unwrap(), "first");
}

/// activate_object_with_id: BAD_PARAM 14 under SYSTEM_ID for an id that the adapter did not make.
#[test]
fn a_foreign_id_is_refused_by_an_adapter_that_makes_its_own() {
    let pair = Pair::new();
    let poa = pair.adapter("child", []);
    let expected = (SystemExceptionKind::BadParam, minor::INVALID_OBJECT_ID, CompletionStatus::No);
    assert_eq!(raised(poa.activate_object_with_id(&"mine".into(), named("one"))), expected);
    assert_eq!(raised(poa.create_reference_with_id(&"mine".into(), "IDL:X:1.0")), expected);
    assert_eq!(poa.active_objects(), 0);
}

/// activate_object_with_id: an id that the adapter made may be activated again once it is not active.
#[test]
fn an_id_that_was_made_may_be_used_again() {
    let pair = Pair::new();
    let poa = pair.adapter("child", []);
    let id = poa.activate_object(named("first")).unwrap();
    assert_eq!(refused(poa.activate_object_with_id(&id, named("second"))), PoaError::ObjectAlreadyActive);
    let reference = poa.id_to_reference(&id).unwrap();
    poa.deactivate_object(&id).unwrap();
    poa.activate_object_with_id(&id, named("second")).unwrap();
    for object in pair.ways(&reference) {
        assert_eq!(object.name().unwrap(), "second");
    }
    assert!(poa.id_to_reference(&id).unwrap().is_equivalent(&reference));
}

/// deactivate_object: ObjectNotActive if it is not.
#[test]
fn what_is_not_active_is_not_deactivated() {
    let pair = Pair::new();
    let poa = pair.adapter("child", []);
    assert_eq!(refused(poa.deactivate_object(&"nobody".into())), PoaError::ObjectNotActive);
    let id = poa.activate_object(named("one")).unwrap();
    poa.deactivate_object(&id).unwrap();
    assert_eq!(refused(poa.deactivate_object(&id)), PoaError::ObjectNotActive);
}

/// 15.2.6: a request for an object that is not active is answered with OBJECT_NOT_EXIST under USE_ACTIVE_OBJECT_MAP_ONLY.
#[test]
fn a_deactivated_object_does_not_exist() {
    let pair = Pair::new();
    let poa = pair.adapter("child", []);
    let id = poa.activate_object(named("one")).unwrap();
    let ways = pair.ways(&poa.id_to_reference(&id).unwrap());
    poa.deactivate_object(&id).unwrap();
    for object in ways {
        let error = object.name().unwrap_err();
        assert_eq!((error.kind(), error.completed()), (SystemExceptionKind::ObjectNotExist, CompletionStatus::No));
    }
}

/// deactivate_object: it returns at once, and the requests that run complete.
#[test]
fn deactivation_does_not_wait_for_requests_and_lets_them_end() {
    let pair = Pair::new();
    let (poa, gate) = (pair.adapter("child", []), Gate::default());
    let id = poa.activate_object(gated("one", &gate)).unwrap();
    let object = pair.seen(&poa.id_to_reference(&id).unwrap());
    let called = in_background(move || object.wait());
    gate.await_arrivals(1);
    poa.deactivate_object(&id).unwrap();
    gate.release();
    assert_eq!(called.recv_timeout(PATIENCE).unwrap().unwrap(), "one");
}

/// deactivate_object: the servant may stand behind another object afterwards.
#[test]
fn a_servant_is_free_after_deactivation() {
    let pair = Pair::new();
    let (poa, servant) = (pair.adapter("child", []), named("one"));
    let first = poa.activate_object(servant.clone()).unwrap();
    poa.deactivate_object(&first).unwrap();
    let second = poa.activate_object(servant).unwrap();
    assert_ne!(first, second);
}

/// deactivate_object: with a servant manager, etherealize is called after the object's requests, and neither argument is true.
#[test]
fn a_deactivated_object_is_etherealized_after_its_requests() {
    let pair = Pair::new();
    let (poa, manager, gate) = (pair.adapter("child", activating()), Scripted::naming(), Gate::default());
    poa.set_servant_manager(manager.activator()).unwrap();
    let id = ObjectId::from("one");
    poa.activate_object_with_id(&id, gated("one", &gate)).unwrap();
    let object = pair.seen(&poa.id_to_reference(&id).unwrap());
    let calls = [object.clone(), object].map(|object| in_background(move || object.wait()));
    gate.await_arrivals(2);
    poa.deactivate_object(&id).unwrap();
    assert_eq!(manager.asked(), []);
    gate.release();
    for call in calls {
        assert_eq!(call.recv_timeout(PATIENCE).unwrap().unwrap(), "one");
    }
    assert_eq!(manager.await_asked(1), [etherealized("one")]);
}

/// deactivate_object: reactivation by activate_object_with_id blocks until the object is etherealized.
#[test]
fn reactivation_waits_for_etherealization() {
    let pair = Pair::new();
    let (poa, gate) = (pair.adapter("child", activating()), Gate::default());
    let passing = gate.clone();
    let manager = Scripted::new(|_, _| Ok(named("incarnated")), move |_, _| passing.pass());
    poa.set_servant_manager(manager.activator()).unwrap();
    let id = ObjectId::from("one");
    poa.activate_object_with_id(&id, named("first")).unwrap();
    poa.deactivate_object(&id).unwrap();
    gate.await_arrivals(1);
    let (again, same) = (poa.clone(), id.clone());
    let activated = in_background(move || again.activate_object_with_id(&same, named("second")));
    // Something else may be activated meanwhile.
    poa.activate_object_with_id(&"other".into(), named("other")).unwrap();
    assert!(activated.try_recv().is_err(), "it is being etherealized");
    gate.release();
    activated.recv_timeout(PATIENCE).unwrap().unwrap();
    assert_eq!(pair.seen(&poa.id_to_reference(&id).unwrap()).name().unwrap(), "second");
    assert_eq!(manager.asked(), [etherealized("one")]);
}

/// deactivate_object: reactivation by a request (incarnate) blocks until requests that run have ended and the object is
/// etherealized.
#[test]
fn reincarnation_waits_for_requests_and_etherealization() {
    let pair = Pair::new();
    let (poa, gate) = (pair.adapter("child", activating()), Gate::default());
    let manager = Scripted::finding(|_, _| Ok(named("second")));
    poa.set_servant_manager(manager.activator()).unwrap();
    let id = ObjectId::from("one");
    poa.activate_object_with_id(&id, gated("first", &gate)).unwrap();
    let reference = poa.id_to_reference(&id).unwrap();
    let object = pair.seen(&reference);
    let called = in_background(move || object.wait());
    gate.await_arrivals(1);
    poa.deactivate_object(&id).unwrap();
    let late = pair.ways(&reference).map(|object| in_background(move || object.name()));
    // A request for another object shows that the server has read on.
    poa.activate_object_with_id(&"other".into(), named("other")).unwrap();
    assert_eq!(pair.seen(&poa.id_to_reference(&"other".into()).unwrap()).name().unwrap(), "other");
    assert_eq!(manager.asked(), [], "a request of the old servant still runs");
    gate.release();
    assert_eq!(called.recv_timeout(PATIENCE).unwrap().unwrap(), "first");
    for call in late {
        assert_eq!(call.recv_timeout(PATIENCE).unwrap().unwrap(), "second");
    }
    assert_eq!(manager.asked(), [etherealized("one"), Asked::Incarnate(id)]);
}
