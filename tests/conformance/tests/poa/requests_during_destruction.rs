//! Requests and objects during deactivation and destruction (15.3.2.6, 15.3.9 destroy and deactivate_object).

use std::sync::{Arc, Mutex};

use spandrel::poa::{
    AdapterActivator, EtherealizeObjects, IdAssignmentPolicy, IdUniquenessPolicy, IfMissing, LifespanPolicy, ObjectId,
    PoaError, PoaManager, RequestProcessingPolicy, State, ThreadPolicy, WaitForCompletion,
};
use spandrel::{CompletionStatus, Poa, SystemException, SystemExceptionKind, minor, policy::Policy};
use spandrel_conformance_tests::{
    managers::{ManagerUpcall, ScriptedManager, activating},
    support::{Gate, Pair, TEST_TIMEOUT, closure_servant, expect_refusal, gated_servant, in_background, named_servant},
};

const TYPE: &str = "IDL:Conformance/Subject:1.0";

/// Asserts the exception for a request to an adapter that is destroyed, or is being destroyed; in the latter
/// case it may be resent.
#[track_caller]
fn assert_destroyed(error: &SystemException) {
    let is_going = (error.kind(), error.minor()) == (SystemExceptionKind::Transient, minor::POA_DESTROYED);
    assert!(error.kind() == SystemExceptionKind::ObjectNotExist || is_going, "{error}");
    assert_eq!(error.completed(), CompletionStatus::No);
}

/// destroy: requests held by the manager are processed as new ones, for which there is no adapter.
#[test]
fn held_requests_of_a_destroyed_adapter_raise_object_not_exist() {
    let pair = Pair::new();
    let poa = pair.root.create_poa("child", None, []).unwrap();
    let reference = poa.id_to_reference(&poa.activate_object(named_servant("one")).unwrap()).unwrap();
    let calls = pair.remote_and_local(&reference).map(|object| in_background(move || object.name()));
    let id = pair.root.activate_object(named_servant("other")).unwrap();
    assert_eq!(pair.as_client(&pair.root.id_to_reference(&id).unwrap()).name().unwrap(), "other");
    poa.destroy(EtherealizeObjects::No, WaitForCompletion::No).unwrap();
    for call in calls {
        let error = call.recv_timeout(TEST_TIMEOUT).unwrap().unwrap_err();
        assert_destroyed(&error);
    }
}

/// destroy: the same for requests that wait for the adapter's thread.
#[test]
fn waiting_requests_of_a_destroyed_single_thread_adapter_raise_object_not_exist() {
    let pair = Pair::new();
    let (poa, gate) = (pair.adapter("child", [ThreadPolicy::SingleThreadModel.into()]), Gate::default());
    let slow =
        pair.as_client(&poa.id_to_reference(&poa.activate_object(gated_servant("slow", &gate)).unwrap()).unwrap());
    let running = in_background(move || slow.wait());
    gate.await_arrivals(1);
    let reference = poa.id_to_reference(&poa.activate_object(named_servant("late")).unwrap()).unwrap();
    let calls = pair.remote_and_local(&reference).map(|object| in_background(move || object.name()));
    poa.destroy(EtherealizeObjects::No, WaitForCompletion::No).unwrap();
    gate.release();
    assert_eq!(running.recv_timeout(TEST_TIMEOUT).unwrap().unwrap(), "slow");
    for call in calls {
        let error = call.recv_timeout(TEST_TIMEOUT).unwrap().unwrap_err();
        assert_destroyed(&error);
    }
}

/// 15.3.9 destroy: an adapter with an inactive manager can be created again only after it was destroyed.
#[test]
fn an_inactive_adapter_keeps_its_name_until_destroyed() {
    let pair = Pair::new();
    let poa = pair.root.create_poa("child", None, []).unwrap();
    poa.the_poa_manager().deactivate(EtherealizeObjects::No, WaitForCompletion::Yes).unwrap();
    assert!(matches!(expect_refusal(pair.root.create_poa("child", None, [])), PoaError::AdapterAlreadyExists { .. }));
    poa.destroy(EtherealizeObjects::No, WaitForCompletion::Yes).unwrap();
    let again = pair.adapter("child", []);
    let object = pair.as_client(&again.id_to_reference(&again.activate_object(named_servant("one")).unwrap()).unwrap());
    assert_eq!(object.name().unwrap(), "one");
}

/// destroy: all operations of a destroyed adapter raise OBJECT_NOT_EXIST (find_POA and create_POA are tested
/// elsewhere).
#[test]
fn all_operations_of_a_destroyed_adapter_raise_object_not_exist() {
    let pair = Pair::new();
    let (poa, servant) = (pair.adapter("child", []), named_servant("one"));
    let id = poa.activate_object(servant.clone()).unwrap();
    let reference = poa.id_to_reference(&id).unwrap();
    poa.destroy(EtherealizeObjects::No, WaitForCompletion::Yes).unwrap();
    let outcomes = [
        poa.activate_object(named_servant("two")).err(),
        poa.activate_object_with_id(&id, named_servant("two")).err(),
        poa.deactivate_object(&id).err(),
        poa.create_reference(TYPE).err(),
        poa.create_reference_with_id(&id, TYPE).err(),
        poa.servant_to_id(&servant).err(),
        poa.servant_to_reference(&servant).err(),
        poa.reference_to_servant(&reference).err(),
        poa.reference_to_id(&reference).err(),
        poa.id_to_servant(&id).err(),
        poa.id_to_reference(&id).err(),
        poa.servant_manager().err(),
        poa.set_servant_manager(ScriptedManager::with_named_servants().activator()).err(),
        poa.servant().err(),
        poa.set_servant(servant).err(),
    ];
    for (index, outcome) in outcomes.into_iter().enumerate() {
        let Some(PoaError::System(exception)) = &outcome else { panic!("{index}: {outcome:?}") };
        assert_eq!(exception.kind(), SystemExceptionKind::ObjectNotExist, "{index}");
    }
}

type End = fn(&Poa, WaitForCompletion) -> Result<(), PoaError>;

/// Both operations that end an adapter's objects; the argument is wait_for_completion.
const ENDS: [End; 2] = [
    |poa, wait| poa.destroy(EtherealizeObjects::Yes, wait),
    |poa, wait| poa.the_poa_manager().deactivate(EtherealizeObjects::Yes, wait),
];

fn adapter_with_activator(
    pair: &Pair,
    manager: &Arc<ScriptedManager>,
    policies: impl IntoIterator<Item = Policy>,
) -> Poa {
    let poa = pair.root.create_poa("child", None, activating().into_iter().chain(policies)).unwrap();
    poa.the_poa_manager().activate().unwrap();
    poa.set_servant_manager(manager.activator()).unwrap();
    poa
}

/// 15.3.2.6, 15.3.9 destroy: with wait_for_completion they return after all calls of etherealize.
#[test]
fn wait_for_completion_waits_for_etherealization() {
    for end in ENDS {
        let (pair, gate) = (Pair::new(), Gate::default());
        let passing = gate.clone();
        let manager = ScriptedManager::new(|_, _| Ok(named_servant("one")), move |_, _| passing.wait_until_open());
        let poa = adapter_with_activator(&pair, &manager, []);
        poa.activate_object_with_id(&"one".into(), named_servant("one")).unwrap();
        let events = Arc::new(Mutex::new(Vec::new()));
        let recorded = Arc::clone(&events);
        let ended = in_background(move || {
            let outcome = end(&poa, WaitForCompletion::Yes);
            recorded.lock().unwrap().push("ended");
            outcome
        });
        gate.await_arrivals(1);
        events.lock().unwrap().push("released");
        gate.release();
        ended.recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
        assert_eq!(*events.lock().unwrap(), ["released", "ended"]);
    }
}

/// 15.3.6.2: an object is etherealized once, after its requests, whichever operations end it.
#[test]
fn an_object_ended_twice_is_etherealized_once() {
    for end in ENDS {
        let (pair, gate, manager) = (Pair::new(), Gate::default(), ScriptedManager::with_named_servants());
        let poa = adapter_with_activator(&pair, &manager, []);
        let id = ObjectId::from("one");
        poa.activate_object_with_id(&id, gated_servant("one", &gate)).unwrap();
        let object = pair.as_client(&poa.id_to_reference(&id).unwrap());
        let called = in_background(move || object.wait());
        gate.await_arrivals(1);
        poa.deactivate_object(&id).unwrap();
        end(&poa, WaitForCompletion::No).unwrap();
        assert_eq!(manager.upcalls(), []);
        gate.release();
        assert_eq!(called.recv_timeout(TEST_TIMEOUT).unwrap().unwrap(), "one");
        manager.await_upcalls(1);
        pair.server.shutdown().unwrap();
        let upcalls = manager.upcalls();
        assert!(matches!(&*upcalls, [ManagerUpcall::Etherealize { id: one, .. }] if *one == id), "{upcalls:?}");
    }
}

/// 15.3.6.2: for the last object of a servant, remaining_activations is false.
#[test]
fn remaining_activations_is_false_for_a_servants_last_object() {
    for end in ENDS {
        let (pair, manager) = (Pair::new(), ScriptedManager::with_named_servants());
        let poa = adapter_with_activator(&pair, &manager, [IdUniquenessPolicy::MultipleId.into()]);
        let servant = named_servant("shared");
        for id in ["a", "b", "c"] {
            poa.activate_object_with_id(&id.into(), servant.clone()).unwrap();
        }
        end(&poa, WaitForCompletion::Yes).unwrap();
        let remaining: Vec<_> = manager
            .upcalls()
            .into_iter()
            .map(|upcalls| match upcalls {
                ManagerUpcall::Etherealize { remaining_activations, cleanup_in_progress: true, .. } => {
                    remaining_activations
                }
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(remaining, [true, true, false]);
    }
}

/// deactivate_object: an object is inactive from then on, even if its requests still run.
#[test]
fn an_object_is_inactive_while_its_last_requests_run() {
    let (pair, gate) = (Pair::new(), Gate::default());
    let poa = pair.adapter("child", []);
    let id = poa.activate_object(gated_servant("one", &gate)).unwrap();
    let object = pair.as_client(&poa.id_to_reference(&id).unwrap());
    let called = in_background(move || object.wait());
    gate.await_arrivals(1);
    poa.deactivate_object(&id).unwrap();
    assert!(matches!(expect_refusal(poa.deactivate_object(&id)), PoaError::ObjectNotActive { .. }));
    assert!(matches!(expect_refusal(poa.id_to_servant(&id)), PoaError::ObjectNotActive { .. }));
    gate.release();
    assert_eq!(called.recv_timeout(TEST_TIMEOUT).unwrap().unwrap(), "one");
}

/// deactivate_object: later requests do not reach the servant, even if earlier ones still run: without
/// another servant they raise OBJECT_NOT_EXIST.
#[test]
fn requests_after_deactivation_do_not_reach_the_servant() {
    let (pair, gate) = (Pair::new(), Gate::default());
    let poa = pair.adapter("map", []);
    let defaulting = pair
        .adapter("default", [RequestProcessingPolicy::UseDefaultServant.into(), IdUniquenessPolicy::MultipleId.into()]);
    defaulting.set_servant(named_servant("default")).unwrap();
    for poa in [poa, defaulting] {
        let gate = Gate::default();
        let id = poa.activate_object(gated_servant("own", &gate)).unwrap();
        let reference = poa.id_to_reference(&id).unwrap();
        let object = pair.as_client(&reference);
        let called = in_background(move || object.wait());
        gate.await_arrivals(1);
        poa.deactivate_object(&id).unwrap();
        let late = pair.remote_and_local(&reference).map(|object| in_background(move || object.name()));
        gate.release();
        assert_eq!(called.recv_timeout(TEST_TIMEOUT).unwrap().unwrap(), "own");
        for call in late {
            match (&*poa.the_name(), call.recv_timeout(TEST_TIMEOUT).unwrap()) {
                ("map", Err(error)) => assert_eq!(error.kind(), SystemExceptionKind::ObjectNotExist),
                ("default", Ok(name)) => assert_eq!(name, "default"),
                (name, outcome) => panic!("{name}: {outcome:?}"),
            }
        }
    }
    gate.release();
}

/// deactivate_object: without a servant manager nothing is etherealized: an object may be activated again at
/// once or after its requests.
#[test]
fn an_object_may_be_activated_again_while_its_requests_run() {
    let (pair, gate) = (Pair::new(), Gate::default());
    let (poa, id) = (pair.adapter("child", [IdAssignmentPolicy::UserId.into()]), ObjectId::from("one"));
    poa.activate_object_with_id(&id, gated_servant("first", &gate)).unwrap();
    let reference = poa.id_to_reference(&id).unwrap();
    let object = pair.as_client(&reference);
    let called = in_background(move || object.wait());
    gate.await_arrivals(1);
    poa.deactivate_object(&id).unwrap();
    let (again, same) = (poa.clone(), id.clone());
    let activated = in_background(move || again.activate_object_with_id(&same, named_servant("second")));
    gate.release();
    assert_eq!(called.recv_timeout(TEST_TIMEOUT).unwrap().unwrap(), "first");
    activated.recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
    for object in pair.remote_and_local(&reference) {
        assert_eq!(object.name().unwrap(), "second");
    }
}

/// 15.3.2.1, 15.3.2.6: an inactive manager's adapters reject new requests, remote and collocated.
#[test]
fn an_inactive_manager_rejects_remote_and_collocated_requests() {
    for etherealize in [EtherealizeObjects::No, EtherealizeObjects::Yes] {
        let pair = Pair::new();
        let poa = pair.root.create_poa("child", None, []).unwrap();
        poa.the_poa_manager().activate().unwrap();
        let references =
            pair.remote_and_local(&poa.id_to_reference(&poa.activate_object(named_servant("one")).unwrap()).unwrap());
        for object in &references {
            assert_eq!(object.name().unwrap(), "one");
        }
        poa.the_poa_manager().deactivate(etherealize, WaitForCompletion::Yes).unwrap();
        for object in &references {
            let error = object.name().unwrap_err();
            assert_eq!((error.kind(), error.completed()), (SystemExceptionKind::ObjAdapter, CompletionStatus::No));
        }
    }
}

/// An adapter activator that creates the adapter and its object again.
struct RecreatingActivator;

impl AdapterActivator for RecreatingActivator {
    fn unknown_adapter(&self, parent: &Poa, name: &str) -> bool {
        let policies = [IdAssignmentPolicy::UserId.into(), LifespanPolicy::Persistent.into()];
        parent
            .create_poa(name, Some(&parent.the_poa_manager()), policies)
            .is_ok_and(|created| created.activate_object_with_id(&"one".into(), named_servant("one")).is_ok())
    }
}

/// destroy: while an adapter is repeatedly destroyed and created again by its activator, all requests are
/// answered, possibly with TRANSIENT 4.
#[test]
fn requests_are_answered_while_an_adapter_is_destroyed_and_recreated() {
    let pair = Pair::new();
    pair.root.set_the_activator(Some(Arc::new(RecreatingActivator)));
    let reference = pair.root.find_poa("late", IfMissing::Activate).unwrap().id_to_reference(&"one".into()).unwrap();
    let callers = pair.remote_and_local(&reference).map(|object| {
        in_background(move || {
            (0..200).try_for_each(|_| match object.name() {
                Err(error) if error.kind() == SystemExceptionKind::Transient => Ok(()),
                other => other.map(drop),
            })
        })
    });
    let root = pair.root.clone();
    let destroyer = in_background(move || {
        (0..100)
            .filter(|_| {
                root.find_poa("late", IfMissing::Activate)
                    .is_ok_and(|poa| poa.destroy(EtherealizeObjects::No, WaitForCompletion::Yes).is_ok())
            })
            .count()
    });
    for caller in callers {
        assert_eq!(caller.recv_timeout(TEST_TIMEOUT).unwrap(), Ok::<(), SystemException>(()));
    }
    assert!(destroyer.recv_timeout(TEST_TIMEOUT).unwrap() > 0);
}

/// 15.3.2.6: with concurrent state changes, a deactivated manager ends inactive, and all requests are
/// answered.
#[test]
fn deactivate_prevails_over_concurrent_state_changes() {
    let pair = Pair::new();
    let poa = pair.root.create_poa("child", None, []).unwrap();
    let manager = poa.the_poa_manager();
    let reference = poa.id_to_reference(&poa.activate_object(closure_servant(String::new)).unwrap()).unwrap();
    let callers = pair
        .remote_and_local(&reference)
        .map(|object| in_background(move || (0..100).filter(|_| object.name().is_ok()).count()));
    type Change = fn(&PoaManager) -> Result<(), PoaError>;
    let changes: [Change; 3] = [
        PoaManager::activate,
        |manager| manager.hold_requests(WaitForCompletion::No),
        |manager| manager.discard_requests(WaitForCompletion::No),
    ];
    let changers = changes.map(|change| {
        let manager = manager.clone();
        in_background(move || (0..200).all(|_| change(&manager).is_ok()))
    });
    for changer in changers {
        assert!(changer.recv_timeout(TEST_TIMEOUT).unwrap());
    }
    manager.deactivate(EtherealizeObjects::No, WaitForCompletion::Yes).unwrap();
    for caller in callers {
        caller.recv_timeout(TEST_TIMEOUT).unwrap();
    }
    assert_eq!(manager.state(), State::Inactive);
}
