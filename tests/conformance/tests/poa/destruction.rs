//! Destruction of adapters (15.3.9 destroy).

use std::sync::{Arc, Mutex, OnceLock};

use spandrel::poa::{
    EtherealizeObjects, IdAssignmentPolicy, IfMissing, LifespanPolicy, ObjectId, PoaError, WaitForCompletion,
};
use spandrel::{CompletionStatus, Poa, SystemExceptionKind, minor};
use spandrel_conformance_tests::{
    managers::{ManagerUpcall, ScriptedManager, activating},
    support::{
        Gate, Pair, TEST_TIMEOUT, closure_servant, eventually, expect_exception, expect_refusal, gated_servant,
        in_background, named_servant,
    },
};

/// Asserts that the operations of a destroyed adapter raise OBJECT_NOT_EXIST (15.3.9 destroy).
fn assert_destroyed(poa: &Poa) {
    assert_eq!(expect_exception(poa.activate_object(named_servant("late"))).0, SystemExceptionKind::ObjectNotExist);
}

/// 15.3.9 destroy: the adapter and all its descendants are destroyed; others are not.
#[test]
fn destroy_destroys_descendants_and_no_other_adapter() {
    let pair = Pair::new();
    let child = pair.root.create_poa("child", None, []).unwrap();
    let grandchild = child.create_poa("grandchild", None, []).unwrap();
    let sibling = pair.root.create_poa("sibling", None, []).unwrap();
    child.destroy(EtherealizeObjects::No, WaitForCompletion::Yes).unwrap();
    assert_destroyed(&child);
    assert_destroyed(&grandchild);
    sibling.activate_object(named_servant("one")).unwrap();
    assert!(matches!(
        expect_refusal(pair.root.find_poa("child", IfMissing::Fail)),
        PoaError::AdapterNonExistent { .. }
    ));
}

/// 15.3.9 destroy, 15.3.8.2: requests for its objects are answered with OBJECT_NOT_EXIST.
#[test]
fn requests_for_a_destroyed_adapter_raise_object_not_exist() {
    let pair = Pair::new();
    for lifespan in [LifespanPolicy::Transient, LifespanPolicy::Persistent] {
        let poa = pair.adapter("child", [lifespan.into()]);
        let id = poa.activate_object(named_servant("one")).unwrap();
        let references = pair.remote_and_local(&poa.id_to_reference(&id).unwrap());
        for object in &references {
            assert_eq!(object.name().unwrap(), "one");
        }
        poa.destroy(EtherealizeObjects::No, WaitForCompletion::Yes).unwrap();
        for object in &references {
            let error = object.name().unwrap_err();
            let expected = (SystemExceptionKind::ObjectNotExist, CompletionStatus::No);
            assert_eq!((error.kind(), error.completed()), expected, "{lifespan:?}");
        }
    }
}

/// 15.3.9 destroy: an adapter with its name may be created again, also with other policies.
#[test]
fn a_destroyed_adapter_may_be_created_again() {
    let pair = Pair::new();
    let first = pair.adapter("child", []);
    first.destroy(EtherealizeObjects::No, WaitForCompletion::Yes).unwrap();
    let second = pair.adapter("child", [IdAssignmentPolicy::UserId.into()]);
    second.activate_object_with_id(&ObjectId::from("one"), named_servant("one")).unwrap();
    assert_destroyed(&first);
}

/// 15.3.8.2: references of a transient adapter become invalid with it, also if a later adapter has the same
/// name.
#[test]
fn transient_references_are_invalid_for_a_later_adapter_of_the_same_name() {
    let pair = Pair::new();
    let user_ids = || [IdAssignmentPolicy::UserId.into()];
    let (first, id) = (pair.adapter("child", user_ids()), ObjectId::from("one"));
    first.activate_object_with_id(&id, named_servant("first")).unwrap();
    let old = first.id_to_reference(&id).unwrap();
    first.destroy(EtherealizeObjects::No, WaitForCompletion::Yes).unwrap();
    let second = pair.adapter("child", user_ids());
    second.activate_object_with_id(&id, named_servant("second")).unwrap();
    for object in pair.remote_and_local(&old) {
        assert_eq!(object.name().unwrap_err().kind(), SystemExceptionKind::ObjectNotExist);
    }
    assert!(matches!(expect_refusal(second.reference_to_id(&old)), PoaError::WrongAdapter { .. }));
}

/// 15.3.8.2: references of a persistent adapter are valid for any adapter with its name and its ancestors'
/// names.
#[test]
fn persistent_references_are_valid_for_a_later_adapter_of_the_same_name() {
    let pair = Pair::new();
    let policies = || [IdAssignmentPolicy::UserId.into(), LifespanPolicy::Persistent.into()];
    let (first, id) = (pair.adapter("child", policies()), ObjectId::from("one"));
    first.activate_object_with_id(&id, named_servant("first")).unwrap();
    let references = pair.remote_and_local(&first.id_to_reference(&id).unwrap());
    first.destroy(EtherealizeObjects::No, WaitForCompletion::Yes).unwrap();
    let second = pair.adapter("child", policies());
    second.activate_object_with_id(&id, named_servant("second")).unwrap();
    for object in references {
        assert_eq!(object.name().unwrap(), "second");
    }
}

/// 15.3.9 destroy: requests that have begun are completed.
#[test]
fn running_requests_complete_during_destroy() {
    let pair = Pair::new();
    let (poa, gate) = (pair.adapter("child", []), Gate::default());
    let id = poa.activate_object(gated_servant("one", &gate)).unwrap();
    let object = pair.as_client(&poa.id_to_reference(&id).unwrap());
    let called = in_background(move || object.wait());
    gate.await_arrivals(1);
    poa.destroy(EtherealizeObjects::No, WaitForCompletion::No).unwrap();
    gate.release();
    assert_eq!(called.recv_timeout(TEST_TIMEOUT).unwrap().unwrap(), "one");
}

/// 15.3.9 destroy: with wait_for_completion it returns after all active requests have completed.
#[test]
fn wait_for_completion_waits_for_running_requests() {
    let pair = Pair::new();
    let (poa, gate) = (pair.adapter("child", []), Gate::default());
    let below = poa.create_poa("below", Some(&pair.root.the_poa_manager()), []).unwrap();
    for adapter in [&poa, &below] {
        let id = adapter.activate_object(gated_servant("one", &gate)).unwrap();
        pair.as_client(&adapter.id_to_reference(&id).unwrap()).note().unwrap();
    }
    gate.await_arrivals(2);
    let events = Arc::new(Mutex::new(Vec::new()));
    let (destroying, seen) = (poa.clone(), Arc::clone(&events));
    let destroyed = in_background(move || {
        let outcome = destroying.destroy(EtherealizeObjects::No, WaitForCompletion::Yes);
        seen.lock().unwrap().push("destroyed");
        outcome
    });
    eventually(|| pair.root.find_poa("child", IfMissing::Fail).is_err());
    events.lock().unwrap().push("released");
    gate.release();
    destroyed.recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
    assert_eq!(*events.lock().unwrap(), ["released", "destroyed"]);
}

/// 15.3.9 destroy: waiting within an upcall of the same ORB raises BAD_INV_ORDER 3, and nothing is destroyed.
#[test]
fn waiting_for_completion_within_an_upcall_is_refused() {
    let pair = Pair::new();
    let victim = pair.adapter("victim", []);
    let (poa, destroyed) = (pair.adapter("child", []), victim.clone());
    let id = poa
        .activate_object(closure_servant(move || {
            format!("{:?}", expect_exception(destroyed.destroy(EtherealizeObjects::No, WaitForCompletion::Yes)))
        }))
        .unwrap();
    let expected = (SystemExceptionKind::BadInvOrder, minor::OPERATION_WOULD_DEADLOCK, CompletionStatus::No);
    for object in pair.remote_and_local(&poa.id_to_reference(&id).unwrap()) {
        assert_eq!(object.name().unwrap(), format!("{expected:?}"));
        victim.activate_object(named_servant("not destroyed")).unwrap();
    }
}

/// 15.3.9 destroy: an upcall may destroy its own adapter without waiting.
#[test]
fn an_upcall_may_destroy_its_own_adapter() {
    let pair = Pair::new();
    let poa = pair.adapter("child", []);
    let own = poa.clone();
    let id = poa
        .activate_object(closure_servant(move || {
            format!("{:?}", own.destroy(EtherealizeObjects::Yes, WaitForCompletion::No))
        }))
        .unwrap();
    let object = pair.as_client(&poa.id_to_reference(&id).unwrap());
    assert_eq!(object.name().unwrap(), "Ok(())");
    assert_eq!(object.name().unwrap_err().kind(), SystemExceptionKind::ObjectNotExist);
}

/// 15.3.9 destroy, 15.3.6.2: with etherealize_objects, etherealize is called once for each active object,
/// with cleanup_in_progress.
#[test]
fn destroy_etherealizes_each_active_object_once() {
    let pair = Pair::new();
    let (poa, manager) = (pair.adapter("child", activating()), ScriptedManager::with_named_servants());
    poa.set_servant_manager(manager.activator()).unwrap();
    for id in ["a", "b"] {
        poa.activate_object_with_id(&id.into(), named_servant(id)).unwrap();
    }
    poa.destroy(EtherealizeObjects::Yes, WaitForCompletion::Yes).unwrap();
    let mut upcalls = manager.upcalls();
    upcalls.sort_by_key(|upcalls| format!("{upcalls:?}"));
    let of = |id: &str| ManagerUpcall::Etherealize {
        id: id.into(),
        cleanup_in_progress: true,
        remaining_activations: false,
    };
    assert_eq!(upcalls, [of("a"), of("b")]);
}

/// 15.3.9 destroy: without etherealize_objects, etherealize is not called.
#[test]
fn destroy_without_etherealize_objects_calls_no_etherealize() {
    let pair = Pair::new();
    let (poa, manager) = (pair.adapter("child", activating()), ScriptedManager::with_named_servants());
    poa.set_servant_manager(manager.activator()).unwrap();
    poa.activate_object_with_id(&"a".into(), named_servant("a")).unwrap();
    poa.destroy(EtherealizeObjects::No, WaitForCompletion::Yes).unwrap();
    assert_eq!(manager.upcalls(), []);
}

/// 15.3.9 destroy: the destruction is apparent before etherealize is called: there the adapter's operations
/// raise OBJECT_NOT_EXIST.
#[test]
fn the_destruction_is_apparent_before_etherealize_is_called() {
    let pair = Pair::new();
    let poa = pair.adapter("child", activating());
    let kind = Arc::new(OnceLock::new());
    let in_manager = Arc::clone(&kind);
    let manager = ScriptedManager::new(
        |_, _| unreachable!("nothing is incarnated"),
        move |id, adapter| {
            in_manager.set(expect_exception(adapter.id_to_reference(id)).0).expect("there is one object");
        },
    );
    poa.set_servant_manager(manager.activator()).unwrap();
    poa.activate_object_with_id(&"a".into(), named_servant("a")).unwrap();
    poa.destroy(EtherealizeObjects::Yes, WaitForCompletion::Yes).unwrap();
    assert_eq!(kind.get(), Some(&SystemExceptionKind::ObjectNotExist));
}

/// 15.3.9 destroy: etherealize is not called while requests for the object run (15.3.6.2).
#[test]
fn objects_are_etherealized_after_their_requests() {
    let pair = Pair::new();
    let (poa, manager, gate) =
        (pair.adapter("child", activating()), ScriptedManager::with_named_servants(), Gate::default());
    poa.set_servant_manager(manager.activator()).unwrap();
    poa.activate_object_with_id(&"busy".into(), gated_servant("busy", &gate)).unwrap();
    poa.activate_object_with_id(&"idle".into(), named_servant("idle")).unwrap();
    let object = pair.as_client(&poa.id_to_reference(&"busy".into()).unwrap());
    let called = in_background(move || object.wait());
    gate.await_arrivals(1);
    poa.destroy(EtherealizeObjects::Yes, WaitForCompletion::No).unwrap();
    manager.await_upcalls(1);
    let of = |id: &str| ManagerUpcall::Etherealize {
        id: id.into(),
        cleanup_in_progress: true,
        remaining_activations: false,
    };
    assert_eq!(manager.upcalls(), [of("idle")], "a request for the other object still runs");
    gate.release();
    assert_eq!(called.recv_timeout(TEST_TIMEOUT).unwrap().unwrap(), "busy");
    assert_eq!(manager.await_upcalls(2)[1], of("busy"));
}

/// 15.3.9 create_POA, destroy: creating a child of an adapter that is being destroyed raises BAD_INV_ORDER
/// 17, or OBJECT_NOT_EXIST if the adapter is destroyed.
#[test]
fn a_destroyed_adapter_creates_no_children() {
    let pair = Pair::new();
    let poa = pair.adapter("child", []);
    poa.destroy(EtherealizeObjects::No, WaitForCompletion::Yes).unwrap();
    let (kind, code, _) = expect_exception(poa.create_poa("late", None, []));
    let being_destroyed = (SystemExceptionKind::BadInvOrder, minor::POA_BEING_DESTROYED);
    assert!(kind == SystemExceptionKind::ObjectNotExist || (kind, code) == being_destroyed, "{kind:?} {code}");
}

/// 15.3.9 destroy: destroying the root adapter destroys all adapters.
#[test]
fn destroying_the_root_destroys_all() {
    let pair = Pair::new();
    let poa = pair.adapter("child", []);
    let id = poa.activate_object(named_servant("one")).unwrap();
    let object = pair.as_client(&poa.id_to_reference(&id).unwrap());
    assert_eq!(object.name().unwrap(), "one");
    pair.root.destroy(EtherealizeObjects::No, WaitForCompletion::Yes).unwrap();
    assert_destroyed(&poa);
    assert_eq!(object.name().unwrap_err().kind(), SystemExceptionKind::ObjectNotExist);
}
