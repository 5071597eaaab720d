//! Activation and deactivation of objects (15.3.9 activate_object, activate_object_with_id,
//! deactivate_object).

use std::collections::HashSet;

use spandrel::poa::{IdAssignmentPolicy, IdUniquenessPolicy, ObjectId, PoaError};
use spandrel::{CompletionStatus, Poa, SystemExceptionKind, minor, policy::Policy};
use spandrel_conformance_tests::{
    managers::{ManagerUpcall, ScriptedManager, activating, etherealized, locating},
    support::{
        Gate, Pair, TEST_TIMEOUT, default_servant_only, expect_exception, expect_refusal, gated_servant, in_background,
        named_servant,
    },
};

fn user_ids() -> [Policy; 1] {
    [IdAssignmentPolicy::UserId.into()]
}

/// Two adapters with NON_RETAIN: one with a default servant, one with a locator.
fn non_retaining(pair: &Pair) -> [Poa; 2] {
    [pair.adapter("default", default_servant_only()), pair.adapter("locator", locating())]
}

/// activate_object: returns the id with which the servant was activated.
#[test]
fn an_activated_object_is_served() {
    let pair = Pair::new();
    let poa = pair.adapter("child", []);
    let id = poa.activate_object(named_servant("one")).unwrap();
    for object in pair.remote_and_local(&poa.id_to_reference(&id).unwrap()) {
        assert_eq!(object.name().unwrap(), "one");
    }
}

/// activate_object: system ids are unique.
#[test]
fn system_ids_are_unique_even_after_deactivation() {
    let pair = Pair::new();
    let poa = pair.adapter("child", []);
    let mut ids = HashSet::new();
    for _ in 0..100 {
        let id = poa.activate_object(named_servant("one")).unwrap();
        poa.deactivate_object(&id).unwrap();
        assert!(ids.insert(id), "an id was generated twice");
        assert!(ids.insert(poa.activate_object(named_servant("two")).unwrap()), "an id was generated twice");
    }
}

/// activate_object: WrongPolicy without SYSTEM_ID.
#[test]
fn activate_object_needs_system_ids() {
    let pair = Pair::new();
    let poa = pair.adapter("child", user_ids());
    assert!(matches!(expect_refusal(poa.activate_object(named_servant("one"))), PoaError::WrongPolicy { .. }));
}

/// activate_object, activate_object_with_id, deactivate_object: WrongPolicy without RETAIN.
#[test]
fn activation_needs_retention() {
    let pair = Pair::new();
    for poa in non_retaining(&pair) {
        let id = ObjectId::from("one");
        assert!(matches!(expect_refusal(poa.activate_object(named_servant("one"))), PoaError::WrongPolicy { .. }));
        assert!(matches!(
            expect_refusal(poa.activate_object_with_id(&id, named_servant("one"))),
            PoaError::WrongPolicy { .. }
        ));
        assert!(matches!(expect_refusal(poa.deactivate_object(&id)), PoaError::WrongPolicy { .. }));
    }
}

/// activate_object, activate_object_with_id: ServantAlreadyActive under UNIQUE_ID.
#[test]
fn under_unique_id_a_servant_has_one_object() {
    let pair = Pair::new();
    let servant = named_servant("one");
    let poa = pair.adapter("system", []);
    poa.activate_object(servant.clone()).unwrap();
    assert!(matches!(expect_refusal(poa.activate_object(servant.clone())), PoaError::ServantAlreadyActive { .. }));
    let poa = pair.adapter("user", user_ids());
    poa.activate_object_with_id(&"a".into(), servant.clone()).unwrap();
    assert!(matches!(
        expect_refusal(poa.activate_object_with_id(&"b".into(), servant)),
        PoaError::ServantAlreadyActive { .. }
    ));
}

/// 15.3.8.3: under MULTIPLE_ID a servant may have one or more ids.
#[test]
fn under_multiple_id_a_servant_may_have_several_objects() {
    let pair = Pair::new();
    let servant = named_servant("one");
    let poa = pair.adapter("child", [IdUniquenessPolicy::MultipleId.into()]);
    let ids = [(); 2].map(|()| poa.activate_object(servant.clone()).unwrap());
    assert_ne!(ids[0], ids[1]);
    for id in ids {
        assert_eq!(pair.as_client(&poa.id_to_reference(&id).unwrap()).name().unwrap(), "one");
    }
}

/// activate_object_with_id: the object has the given id, which may consist of any octets.
#[test]
fn activate_object_with_id_uses_the_given_id() {
    let pair = Pair::new();
    let poa = pair.adapter("child", user_ids());
    let long = vec![0x5a; 5000];
    for octets in [&b""[..], b"\0", b"one", b"one\0", b"\xff\xfe/.", &long] {
        let id = ObjectId::from(octets);
        poa.activate_object_with_id(&id, named_servant(&octets.len().to_string())).unwrap();
        let reference = poa.id_to_reference(&id).unwrap();
        assert_eq!(poa.reference_to_id(&reference).unwrap().as_bytes(), octets);
        for object in pair.remote_and_local(&reference) {
            assert_eq!(object.name().unwrap(), octets.len().to_string());
        }
    }
}

/// activate_object_with_id: ObjectAlreadyActive for an active object, whose servant stays.
#[test]
fn an_active_object_is_not_activated_again() {
    let pair = Pair::new();
    let (poa, id) = (pair.adapter("child", user_ids()), ObjectId::from("one"));
    poa.activate_object_with_id(&id, named_servant("first")).unwrap();
    assert!(matches!(
        expect_refusal(poa.activate_object_with_id(&id, named_servant("second"))),
        PoaError::ObjectAlreadyActive { .. }
    ));
    assert_eq!(pair.as_client(&poa.id_to_reference(&id).unwrap()).name().unwrap(), "first");
}

/// activate_object_with_id: BAD_PARAM 14 under SYSTEM_ID for an id that the adapter did not generate.
#[test]
fn under_system_id_a_foreign_id_is_refused() {
    let pair = Pair::new();
    let poa = pair.adapter("child", []);
    let expected = (SystemExceptionKind::BadParam, minor::INVALID_OBJECT_ID, CompletionStatus::No);
    assert_eq!(expect_exception(poa.activate_object_with_id(&"mine".into(), named_servant("one"))), expected);
    assert_eq!(expect_exception(poa.create_reference_with_id(&"mine".into(), "IDL:X:1.0")), expected);
    assert_eq!(poa.active_objects(), 0);
}

/// activate_object_with_id: a system id may be activated again after deactivation.
#[test]
fn a_system_id_may_be_activated_again() {
    let pair = Pair::new();
    let poa = pair.adapter("child", []);
    let id = poa.activate_object(named_servant("first")).unwrap();
    assert!(matches!(
        expect_refusal(poa.activate_object_with_id(&id, named_servant("second"))),
        PoaError::ObjectAlreadyActive { .. }
    ));
    let reference = poa.id_to_reference(&id).unwrap();
    poa.deactivate_object(&id).unwrap();
    poa.activate_object_with_id(&id, named_servant("second")).unwrap();
    for object in pair.remote_and_local(&reference) {
        assert_eq!(object.name().unwrap(), "second");
    }
    assert!(poa.id_to_reference(&id).unwrap().is_equivalent(&reference));
}

/// deactivate_object: ObjectNotActive for an inactive object.
#[test]
fn deactivating_an_inactive_object_raises_object_not_active() {
    let pair = Pair::new();
    let poa = pair.adapter("child", []);
    assert!(matches!(expect_refusal(poa.deactivate_object(&"unknown".into())), PoaError::ObjectNotActive { .. }));
    let id = poa.activate_object(named_servant("one")).unwrap();
    poa.deactivate_object(&id).unwrap();
    assert!(matches!(expect_refusal(poa.deactivate_object(&id)), PoaError::ObjectNotActive { .. }));
}

/// 15.2.6: a request for an inactive object raises OBJECT_NOT_EXIST under USE_ACTIVE_OBJECT_MAP_ONLY.
#[test]
fn a_deactivated_object_does_not_exist() {
    let pair = Pair::new();
    let poa = pair.adapter("child", []);
    let id = poa.activate_object(named_servant("one")).unwrap();
    let references = pair.remote_and_local(&poa.id_to_reference(&id).unwrap());
    poa.deactivate_object(&id).unwrap();
    for object in references {
        let error = object.name().unwrap_err();
        assert_eq!((error.kind(), error.completed()), (SystemExceptionKind::ObjectNotExist, CompletionStatus::No));
    }
}

/// deactivate_object: returns at once, and running requests complete.
#[test]
fn deactivation_returns_at_once_and_running_requests_complete() {
    let pair = Pair::new();
    let (poa, gate) = (pair.adapter("child", []), Gate::default());
    let id = poa.activate_object(gated_servant("one", &gate)).unwrap();
    let object = pair.as_client(&poa.id_to_reference(&id).unwrap());
    let called = in_background(move || object.wait());
    gate.await_arrivals(1);
    poa.deactivate_object(&id).unwrap();
    gate.release();
    assert_eq!(called.recv_timeout(TEST_TIMEOUT).unwrap().unwrap(), "one");
}

/// deactivate_object: the servant may be activated for another object afterwards.
#[test]
fn a_servant_may_be_activated_again_after_deactivation() {
    let pair = Pair::new();
    let (poa, servant) = (pair.adapter("child", []), named_servant("one"));
    let first = poa.activate_object(servant.clone()).unwrap();
    poa.deactivate_object(&first).unwrap();
    let second = poa.activate_object(servant).unwrap();
    assert_ne!(first, second);
}

/// deactivate_object: with a servant manager, etherealize is called after the object's requests, with both
/// flags false.
#[test]
fn a_deactivated_object_is_etherealized_after_its_requests() {
    let pair = Pair::new();
    let (poa, manager, gate) =
        (pair.adapter("child", activating()), ScriptedManager::with_named_servants(), Gate::default());
    poa.set_servant_manager(manager.activator()).unwrap();
    let id = ObjectId::from("one");
    poa.activate_object_with_id(&id, gated_servant("one", &gate)).unwrap();
    let object = pair.as_client(&poa.id_to_reference(&id).unwrap());
    let calls = [object.clone(), object].map(|object| in_background(move || object.wait()));
    gate.await_arrivals(2);
    poa.deactivate_object(&id).unwrap();
    assert_eq!(manager.upcalls(), []);
    gate.release();
    for call in calls {
        assert_eq!(call.recv_timeout(TEST_TIMEOUT).unwrap().unwrap(), "one");
    }
    assert_eq!(manager.await_upcalls(1), [etherealized("one")]);
}

/// deactivate_object: reactivation by activate_object_with_id waits until the object is etherealized.
#[test]
fn reactivation_waits_for_etherealization() {
    let pair = Pair::new();
    let (poa, gate) = (pair.adapter("child", activating()), Gate::default());
    let passing = gate.clone();
    let manager = ScriptedManager::new(|_, _| Ok(named_servant("incarnated")), move |_, _| passing.wait_until_open());
    poa.set_servant_manager(manager.activator()).unwrap();
    let id = ObjectId::from("one");
    poa.activate_object_with_id(&id, named_servant("first")).unwrap();
    poa.deactivate_object(&id).unwrap();
    gate.await_arrivals(1);
    let (again, same) = (poa.clone(), id.clone());
    let activated = in_background(move || again.activate_object_with_id(&same, named_servant("second")));
    // Other objects may be activated meanwhile.
    poa.activate_object_with_id(&"other".into(), named_servant("other")).unwrap();
    assert!(activated.try_recv().is_err(), "the object is being etherealized");
    gate.release();
    activated.recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
    assert_eq!(pair.as_client(&poa.id_to_reference(&id).unwrap()).name().unwrap(), "second");
    assert_eq!(manager.upcalls(), [etherealized("one")]);
}

/// deactivate_object: reactivation by a request (incarnate) waits until running requests have ended and the
/// object is etherealized.
#[test]
fn reincarnation_waits_for_requests_and_etherealization() {
    let pair = Pair::new();
    let (poa, gate) = (pair.adapter("child", activating()), Gate::default());
    let manager = ScriptedManager::with_finder(|_, _| Ok(named_servant("second")));
    poa.set_servant_manager(manager.activator()).unwrap();
    let id = ObjectId::from("one");
    poa.activate_object_with_id(&id, gated_servant("first", &gate)).unwrap();
    let reference = poa.id_to_reference(&id).unwrap();
    let object = pair.as_client(&reference);
    let called = in_background(move || object.wait());
    gate.await_arrivals(1);
    poa.deactivate_object(&id).unwrap();
    let late = pair.remote_and_local(&reference).map(|object| in_background(move || object.name()));
    // A request for another object proves that the server has read the earlier ones.
    poa.activate_object_with_id(&"other".into(), named_servant("other")).unwrap();
    assert_eq!(pair.as_client(&poa.id_to_reference(&"other".into()).unwrap()).name().unwrap(), "other");
    assert_eq!(manager.upcalls(), [], "a request still runs with the old servant");
    gate.release();
    assert_eq!(called.recv_timeout(TEST_TIMEOUT).unwrap().unwrap(), "first");
    for call in late {
        assert_eq!(call.recv_timeout(TEST_TIMEOUT).unwrap().unwrap(), "second");
    }
    assert_eq!(manager.upcalls(), [etherealized("one"), ManagerUpcall::Incarnate(id)]);
}
