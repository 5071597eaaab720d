//! The end of adapters (15.3.9 destroy).

use std::sync::{Arc, Mutex, OnceLock};

use spandrel::poa::{IdAssignmentPolicy, LifespanPolicy, ObjectId, PoaError};
use spandrel::{CompletionStatus, Poa, SystemExceptionKind, minor};
use spandrel_conformance_tests::{
    managers::{Asked, Scripted, activating},
    support::{Gate, PATIENCE, Pair, acting, eventually, gated, in_background, named, raised, refused},
};

/// What an adapter that has been destroyed says of itself (15.3.9 destroy).
fn is_gone(poa: &Poa) {
    assert_eq!(raised(poa.activate_object(named("late"))).0, SystemExceptionKind::ObjectNotExist);
}

/// 15.3.9 destroy: the adapter is destroyed, and all its descendants; others are not.
#[test]
fn descendants_are_destroyed_too_and_nobody_else() {
    let pair = Pair::new();
    let child = pair.root.create_poa("child", None, []).unwrap();
    let grandchild = child.create_poa("grandchild", None, []).unwrap();
    let sibling = pair.root.create_poa("sibling", None, []).unwrap();
    child.destroy(false, true).unwrap();
    is_gone(&child);
    is_gone(&grandchild);
    sibling.activate_object(named("one")).unwrap();
    assert_eq!(refused(pair.root.find_poa("child", false)), PoaError::AdapterNonExistent);
}

/// 15.3.9 destroy, 15.3.8.2: requests for objects of it are answered with OBJECT_NOT_EXIST.
#[test]
fn requests_for_a_destroyed_adapter_are_told_that_the_object_does_not_exist() {
    let pair = Pair::new();
    for lifespan in [LifespanPolicy::Transient, LifespanPolicy::Persistent] {
        let poa = pair.adapter("child", [lifespan.into()]);
        let id = poa.activate_object(named("one")).unwrap();
        let ways = pair.ways(&poa.id_to_reference(&id).unwrap());
        for object in &ways {
            assert_eq!(object.name().unwrap(), "one");
        }
        poa.destroy(false, true).unwrap();
        for object in &ways {
            let error = object.name().unwrap_err();
            let expected = (SystemExceptionKind::ObjectNotExist, CompletionStatus::No);
            assert_eq!((error.kind(), error.completed()), expected, "{lifespan:?}");
        }
    }
}

/// 15.3.9 destroy: an adapter of its name may be created again, even with other policies.
#[test]
fn an_adapter_may_be_created_again() {
    let pair = Pair::new();
    let first = pair.adapter("child", []);
    first.destroy(false, true).unwrap();
    let second = pair.adapter("child", [IdAssignmentPolicy::UserId.into()]);
    second.activate_object_with_id(&ObjectId::from("one"), named("one")).unwrap();
    is_gone(&first);
}

/// 15.3.8.2: references of a transient adapter end with it: one of the same name that comes later does not have its objects.
#[test]
fn transient_references_are_not_taken_for_those_of_a_later_adapter() {
    let pair = Pair::new();
    let user_ids = || [IdAssignmentPolicy::UserId.into()];
    let (first, id) = (pair.adapter("child", user_ids()), ObjectId::from("one"));
    first.activate_object_with_id(&id, named("first")).unwrap();
    let old = first.id_to_reference(&id).unwrap();
    first.destroy(false, true).unwrap();
    let second = pair.adapter("child", user_ids());
    second.activate_object_with_id(&id, named("second")).unwrap();
    for object in pair.ways(&old) {
        assert_eq!(object.name().unwrap_err().kind(), SystemExceptionKind::ObjectNotExist);
    }
    assert_eq!(refused(second.reference_to_id(&old)), PoaError::WrongAdapter);
}

/// 15.3.8.2: those of a persistent adapter are for whichever adapter has its name and those of its ancestors.
#[test]
fn persistent_references_are_for_a_later_adapter_of_the_same_name() {
    let pair = Pair::new();
    let policies = || [IdAssignmentPolicy::UserId.into(), LifespanPolicy::Persistent.into()];
    let (first, id) = (pair.adapter("child", policies()), ObjectId::from("one"));
    first.activate_object_with_id(&id, named("first")).unwrap();
    let ways = pair.ways(&first.id_to_reference(&id).unwrap());
    first.destroy(false, true).unwrap();
    let second = pair.adapter("child", policies());
    second.activate_object_with_id(&id, named("second")).unwrap();
    for object in ways {
        assert_eq!(object.name().unwrap(), "second");
    }
}

/// 15.3.9 destroy: requests that have begun continue to completion.
#[test]
fn requests_that_run_end_in_peace() {
    let pair = Pair::new();
    let (poa, gate) = (pair.adapter("child", []), Gate::default());
    let id = poa.activate_object(gated("one", &gate)).unwrap();
    let object = pair.seen(&poa.id_to_reference(&id).unwrap());
    let called = in_background(move || object.wait());
    gate.await_arrivals(1);
    poa.destroy(false, false).unwrap();
    gate.release();
    assert_eq!(called.recv_timeout(PATIENCE).unwrap().unwrap(), "one");
}

/// 15.3.9 destroy: with wait_for_completion it returns once all active requests have completed.
#[test]
fn waiting_for_completion_is_waiting_for_the_requests_that_run() {
    let pair = Pair::new();
    let (poa, gate) = (pair.adapter("child", []), Gate::default());
    let below = poa.create_poa("below", Some(&pair.root.the_poa_manager()), []).unwrap();
    for adapter in [&poa, &below] {
        let id = adapter.activate_object(gated("one", &gate)).unwrap();
        pair.seen(&adapter.id_to_reference(&id).unwrap()).note().unwrap();
    }
    gate.await_arrivals(2);
    let events = Arc::new(Mutex::new(Vec::new()));
    let (destroying, seen) = (poa.clone(), Arc::clone(&events));
    let destroyed = in_background(move || {
        let outcome = destroying.destroy(false, true);
        seen.lock().unwrap().push("destroyed");
        outcome
    });
    eventually(|| pair.root.find_poa("child", false).is_err());
    events.lock().unwrap().push("released");
    gate.release();
    destroyed.recv_timeout(PATIENCE).unwrap().unwrap();
    assert_eq!(*events.lock().unwrap(), ["released", "destroyed"]);
}

/// 15.3.9 destroy: waiting inside of an upcall of the same ORB raises BAD_INV_ORDER 3, and nothing is destroyed.
#[test]
fn waiting_inside_of_an_upcall_is_refused() {
    let pair = Pair::new();
    let victim = pair.adapter("victim", []);
    let (poa, destroyed) = (pair.adapter("child", []), victim.clone());
    let id = poa.activate_object(acting(move || format!("{:?}", raised(destroyed.destroy(false, true))))).unwrap();
    let expected = (SystemExceptionKind::BadInvOrder, minor::OPERATION_WOULD_DEADLOCK, CompletionStatus::No);
    for object in pair.ways(&poa.id_to_reference(&id).unwrap()) {
        assert_eq!(object.name().unwrap(), format!("{expected:?}"));
        victim.activate_object(named("still there")).unwrap();
    }
}

/// 15.3.9 destroy: without waiting, an upcall may destroy even its own adapter.
#[test]
fn an_upcall_may_destroy_its_own_adapter() {
    let pair = Pair::new();
    let poa = pair.adapter("child", []);
    let own = poa.clone();
    let id = poa.activate_object(acting(move || format!("{:?}", own.destroy(true, false)))).unwrap();
    let object = pair.seen(&poa.id_to_reference(&id).unwrap());
    assert_eq!(object.name().unwrap(), "Ok(())");
    assert_eq!(object.name().unwrap_err().kind(), SystemExceptionKind::ObjectNotExist);
}

/// 15.3.9 destroy: with etherealize_objects, etherealize is called once for each active object, for cleanup; 15.3.6.2 says so of the
/// argument.
#[test]
fn active_objects_are_etherealized_once_each() {
    let pair = Pair::new();
    let (poa, manager) = (pair.adapter("child", activating()), Scripted::naming());
    poa.set_servant_manager(manager.activator()).unwrap();
    for id in ["a", "b"] {
        poa.activate_object_with_id(&id.into(), named(id)).unwrap();
    }
    poa.destroy(true, true).unwrap();
    let mut asked = manager.asked();
    asked.sort_by_key(|asked| format!("{asked:?}"));
    let of = |id: &str| Asked::Etherealize { id: id.into(), cleanup_in_progress: true, remaining_activations: false };
    assert_eq!(asked, [of("a"), of("b")]);
}

/// 15.3.9 destroy: without etherealize_objects, none is.
#[test]
fn without_etherealizing_nobody_is_asked() {
    let pair = Pair::new();
    let (poa, manager) = (pair.adapter("child", activating()), Scripted::naming());
    poa.set_servant_manager(manager.activator()).unwrap();
    poa.activate_object_with_id(&"a".into(), named("a")).unwrap();
    poa.destroy(false, true).unwrap();
    assert_eq!(manager.asked(), []);
}

/// 15.3.9 destroy: the destruction is apparent before etherealize is called: there the adapter's operations raise OBJECT_NOT_EXIST.
#[test]
fn an_adapter_is_gone_before_its_objects_are_etherealized() {
    let pair = Pair::new();
    let poa = pair.adapter("child", activating());
    let seen = Arc::new(OnceLock::new());
    let told = Arc::clone(&seen);
    let manager = Scripted::new(
        |_, _| unreachable!("nothing is incarnated"),
        move |id, adapter| {
            told.set(raised(adapter.id_to_reference(id)).0).expect("there is one object");
        },
    );
    poa.set_servant_manager(manager.activator()).unwrap();
    poa.activate_object_with_id(&"a".into(), named("a")).unwrap();
    poa.destroy(true, true).unwrap();
    assert_eq!(seen.get(), Some(&SystemExceptionKind::ObjectNotExist));
}

/// 15.3.9 destroy: etherealize is not called while requests of the object run (15.3.6.2).
#[test]
fn objects_are_etherealized_after_their_requests() {
    let pair = Pair::new();
    let (poa, manager, gate) = (pair.adapter("child", activating()), Scripted::naming(), Gate::default());
    poa.set_servant_manager(manager.activator()).unwrap();
    poa.activate_object_with_id(&"busy".into(), gated("busy", &gate)).unwrap();
    poa.activate_object_with_id(&"idle".into(), named("idle")).unwrap();
    let object = pair.seen(&poa.id_to_reference(&"busy".into()).unwrap());
    let called = in_background(move || object.wait());
    gate.await_arrivals(1);
    poa.destroy(true, false).unwrap();
    manager.await_asked(1);
    let of = |id: &str| Asked::Etherealize { id: id.into(), cleanup_in_progress: true, remaining_activations: false };
    assert_eq!(manager.asked(), [of("idle")], "a request still runs");
    gate.release();
    assert_eq!(called.recv_timeout(PATIENCE).unwrap().unwrap(), "busy");
    assert_eq!(manager.await_asked(2)[1], of("busy"));
}

/// 15.3.9 create_POA, destroy: a child of an adapter that is being destroyed is refused with BAD_INV_ORDER 17, or the adapter does
/// not exist any more.
#[test]
fn a_destroyed_adapter_has_no_children_any_more() {
    let pair = Pair::new();
    let poa = pair.adapter("child", []);
    poa.destroy(false, true).unwrap();
    let (kind, code, _) = raised(poa.create_poa("late", None, []));
    let being_destroyed = (SystemExceptionKind::BadInvOrder, minor::POA_BEING_DESTROYED);
    assert!(kind == SystemExceptionKind::ObjectNotExist || (kind, code) == being_destroyed, "{kind:?} {code}");
}

/// 15.3.9 destroy, of the root adapter: all adapters are destroyed.
#[test]
fn destroying_the_root_destroys_all() {
    let pair = Pair::new();
    let poa = pair.adapter("child", []);
    let id = poa.activate_object(named("one")).unwrap();
    let object = pair.seen(&poa.id_to_reference(&id).unwrap());
    assert_eq!(object.name().unwrap(), "one");
    pair.root.destroy(false, true).unwrap();
    is_gone(&poa);
    assert_eq!(object.name().unwrap_err().kind(), SystemExceptionKind::ObjectNotExist);
}
