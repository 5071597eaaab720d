//! What becomes of requests and objects while adapters, managers and objects end (15.3.2.6, 15.3.9 destroy and deactivate_object).

use std::sync::{Arc, Mutex};

use spandrel::poa::{
    AdapterActivator, IdAssignmentPolicy, IdUniquenessPolicy, LifespanPolicy, ObjectId, PoaError, PoaManager,
    RequestProcessingPolicy, State, ThreadPolicy,
};
use spandrel::{CompletionStatus, Poa, Policy, SystemException, SystemExceptionKind, minor};
use spandrel_conformance_tests::{
    managers::{Asked, Scripted, activating},
    support::{Gate, PATIENCE, Pair, acting, gated, in_background, named, refused},
};

const TYPE: &str = "IDL:Conformance/Subject:1.0";

/// What a request is told that came to an adapter which is gone, or which is going at that moment: then it may be sent again.
#[track_caller]
fn assert_gone(error: &SystemException) {
    let is_going = (error.kind(), error.minor()) == (SystemExceptionKind::Transient, minor::POA_DESTROYED);
    assert!(error.kind() == SystemExceptionKind::ObjectNotExist || is_going, "{error}");
    assert_eq!(error.completed(), CompletionStatus::No);
}

/// destroy: requests that have not begun are processed as if they had newly arrived, when there is no adapter: those that a manager
/// held.
#[test]
fn held_requests_of_a_destroyed_adapter_are_told_that_it_does_not_exist() {
    let pair = Pair::new();
    let poa = pair.root.create_poa("child", None, []).unwrap();
    let reference = poa.id_to_reference(&poa.activate_object(named("one")).unwrap()).unwrap();
    let calls = pair.ways(&reference).map(|object| in_background(move || object.name()));
    let id = pair.root.activate_object(named("other")).unwrap();
    assert_eq!(pair.seen(&pair.root.id_to_reference(&id).unwrap()).name().unwrap(), "other");
    poa.destroy(false, false).unwrap();
    for call in calls {
        let error = call.recv_timeout(PATIENCE).unwrap().unwrap_err();
        assert_gone(&error);
    }
}

/// destroy: and those that waited for the adapter's thread.
#[test]
fn waiting_requests_of_a_destroyed_adapter_are_told_that_it_does_not_exist() {
    let pair = Pair::new();
    let (poa, gate) = (pair.adapter("child", [ThreadPolicy::SingleThreadModel.into()]), Gate::default());
    let slow = pair.seen(&poa.id_to_reference(&poa.activate_object(gated("slow", &gate)).unwrap()).unwrap());
    let running = in_background(move || slow.wait());
    gate.await_arrivals(1);
    let reference = poa.id_to_reference(&poa.activate_object(named("late")).unwrap()).unwrap();
    let calls = pair.ways(&reference).map(|object| in_background(move || object.name()));
    poa.destroy(false, false).unwrap();
    gate.release();
    assert_eq!(running.recv_timeout(PATIENCE).unwrap().unwrap(), "slow");
    for call in calls {
        let error = call.recv_timeout(PATIENCE).unwrap().unwrap_err();
        assert_gone(&error);
    }
}

/// 15.3.9 destroy: after deactivate of its manager an adapter may be created again only once it has been destroyed.
#[test]
fn an_inactive_adapter_is_in_the_way_until_it_is_destroyed() {
    let pair = Pair::new();
    let poa = pair.root.create_poa("child", None, []).unwrap();
    poa.the_poa_manager().deactivate(false, true).unwrap();
    assert_eq!(refused(pair.root.create_poa("child", None, [])), PoaError::AdapterAlreadyExists);
    poa.destroy(false, true).unwrap();
    let again = pair.adapter("child", []);
    let object = pair.seen(&again.id_to_reference(&again.activate_object(named("one")).unwrap()).unwrap());
    assert_eq!(object.name().unwrap(), "one");
}

/// destroy: all operations of an adapter that has been destroyed raise OBJECT_NOT_EXIST (of find_POA and create_POA see there).
#[test]
fn a_destroyed_adapter_does_nothing_any_more() {
    let pair = Pair::new();
    let (poa, servant) = (pair.adapter("child", []), named("one"));
    let id = poa.activate_object(servant.clone()).unwrap();
    let reference = poa.id_to_reference(&id).unwrap();
    poa.destroy(false, true).unwrap();
    let outcomes = [
        poa.activate_object(named("two")).err(),
        poa.activate_object_with_id(&id, named("two")).err(),
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
        poa.set_servant_manager(Scripted::naming().activator()).err(),
        poa.servant().err(),
        poa.set_servant(servant).err(),
    ];
    for (place, outcome) in outcomes.into_iter().enumerate() {
        let Some(PoaError::System(exception)) = &outcome else { panic!("{place}: {outcome:?}") };
        assert_eq!(exception.kind(), SystemExceptionKind::ObjectNotExist, "{place}");
    }
}

type End = fn(&Poa, bool) -> Result<(), PoaError>;

/// Both ways to end an adapter's objects; whether to wait.
const ENDS: [End; 2] = [|poa, wait| poa.destroy(true, wait), |poa, wait| poa.the_poa_manager().deactivate(true, wait)];

fn etherealizing(pair: &Pair, manager: &Arc<Scripted>, policies: impl IntoIterator<Item = Policy>) -> Poa {
    let poa = pair.root.create_poa("child", None, activating().into_iter().chain(policies)).unwrap();
    poa.the_poa_manager().activate().unwrap();
    poa.set_servant_manager(manager.activator()).unwrap();
    poa
}

/// 15.3.2.6, 15.3.9 destroy: with wait_for_completion they return once all calls of etherealize have completed.
#[test]
fn waiting_for_completion_is_waiting_for_etherealization() {
    for end in ENDS {
        let (pair, gate) = (Pair::new(), Gate::default());
        let passing = gate.clone();
        let manager = Scripted::new(|_, _| Ok(named("one")), move |_, _| passing.pass());
        let poa = etherealizing(&pair, &manager, []);
        poa.activate_object_with_id(&"one".into(), named("one")).unwrap();
        let events = Arc::new(Mutex::new(Vec::new()));
        let told = Arc::clone(&events);
        let ended = in_background(move || {
            let outcome = end(&poa, true);
            told.lock().unwrap().push("ended");
            outcome
        });
        gate.await_arrivals(1);
        events.lock().unwrap().push("released");
        gate.release();
        ended.recv_timeout(PATIENCE).unwrap().unwrap();
        assert_eq!(*events.lock().unwrap(), ["released", "ended"]);
    }
}

/// 15.3.6.2: whoever ends an object first, it is etherealized once, after its requests.
#[test]
fn what_is_ended_twice_is_etherealized_once() {
    for end in ENDS {
        let (pair, gate, manager) = (Pair::new(), Gate::default(), Scripted::naming());
        let poa = etherealizing(&pair, &manager, []);
        let id = ObjectId::from("one");
        poa.activate_object_with_id(&id, gated("one", &gate)).unwrap();
        let object = pair.seen(&poa.id_to_reference(&id).unwrap());
        let called = in_background(move || object.wait());
        gate.await_arrivals(1);
        poa.deactivate_object(&id).unwrap();
        end(&poa, false).unwrap();
        assert_eq!(manager.asked(), []);
        gate.release();
        assert_eq!(called.recv_timeout(PATIENCE).unwrap().unwrap(), "one");
        manager.await_asked(1);
        pair.server.shutdown(true).unwrap();
        let asked = manager.asked();
        assert!(matches!(&*asked, [Asked::Etherealize { id: one, .. }] if *one == id), "{asked:?}");
    }
}

/// 15.3.6.2: a servant that stands behind several objects is told with the last of them that it stands behind no other.
#[test]
fn the_last_of_a_servants_objects_is_known_as_such() {
    for end in ENDS {
        let (pair, manager) = (Pair::new(), Scripted::naming());
        let poa = etherealizing(&pair, &manager, [IdUniquenessPolicy::MultipleId.into()]);
        let servant = named("shared");
        for id in ["a", "b", "c"] {
            poa.activate_object_with_id(&id.into(), servant.clone()).unwrap();
        }
        end(&poa, true).unwrap();
        let remaining: Vec<_> = manager
            .asked()
            .into_iter()
            .map(|asked| match asked {
                Asked::Etherealize { remaining_activations, cleanup_in_progress: true, .. } => remaining_activations,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(remaining, [true, true, false]);
    }
}

/// deactivate_object: an object whose requests still run is not active any more.
#[test]
fn an_object_is_deactivated_once_even_while_its_requests_run() {
    let (pair, gate) = (Pair::new(), Gate::default());
    let poa = pair.adapter("child", []);
    let id = poa.activate_object(gated("one", &gate)).unwrap();
    let object = pair.seen(&poa.id_to_reference(&id).unwrap());
    let called = in_background(move || object.wait());
    gate.await_arrivals(1);
    poa.deactivate_object(&id).unwrap();
    assert_eq!(refused(poa.deactivate_object(&id)), PoaError::ObjectNotActive);
    assert_eq!(refused(poa.id_to_servant(&id)), PoaError::ObjectNotActive);
    gate.release();
    assert_eq!(called.recv_timeout(PATIENCE).unwrap().unwrap(), "one");
}

/// deactivate_object: requests that come later are not its servant's, even while others still run: without another servant to be
/// had, there is no object.
#[test]
fn requests_after_deactivation_do_not_reach_the_servant() {
    let (pair, gate) = (Pair::new(), Gate::default());
    let poa = pair.adapter("map", []);
    let defaulting = pair
        .adapter("default", [RequestProcessingPolicy::UseDefaultServant.into(), IdUniquenessPolicy::MultipleId.into()]);
    defaulting.set_servant(named("default")).unwrap();
    for poa in [poa, defaulting] {
        let gate = Gate::default();
        let id = poa.activate_object(gated("own", &gate)).unwrap();
        let reference = poa.id_to_reference(&id).unwrap();
        let object = pair.seen(&reference);
        let called = in_background(move || object.wait());
        gate.await_arrivals(1);
        poa.deactivate_object(&id).unwrap();
        let late = pair.ways(&reference).map(|object| in_background(move || object.name()));
        gate.release();
        assert_eq!(called.recv_timeout(PATIENCE).unwrap().unwrap(), "own");
        for call in late {
            match (&*poa.the_name(), call.recv_timeout(PATIENCE).unwrap()) {
                ("map", Err(error)) => assert_eq!(error.kind(), SystemExceptionKind::ObjectNotExist),
                ("default", Ok(name)) => assert_eq!(name, "default"),
                (name, outcome) => panic!("{name}: {outcome:?}"),
            }
        }
    }
    gate.release();
}

/// deactivate_object: without a servant manager there is nothing to etherealize: an object may be active again at once or after its
/// requests.
#[test]
fn an_object_may_be_activated_again_after_its_requests() {
    let (pair, gate) = (Pair::new(), Gate::default());
    let (poa, id) = (pair.adapter("child", [IdAssignmentPolicy::UserId.into()]), ObjectId::from("one"));
    poa.activate_object_with_id(&id, gated("first", &gate)).unwrap();
    let reference = poa.id_to_reference(&id).unwrap();
    let object = pair.seen(&reference);
    let called = in_background(move || object.wait());
    gate.await_arrivals(1);
    poa.deactivate_object(&id).unwrap();
    let (again, same) = (poa.clone(), id.clone());
    let activated = in_background(move || again.activate_object_with_id(&same, named("second")));
    gate.release();
    assert_eq!(called.recv_timeout(PATIENCE).unwrap().unwrap(), "first");
    activated.recv_timeout(PATIENCE).unwrap().unwrap();
    for object in pair.ways(&reference) {
        assert_eq!(object.name().unwrap(), "second");
    }
}

/// 15.3.2.1, 15.3.2.6: a manager's adapters reject new requests once it is inactive, whichever way they come.
#[test]
fn an_inactive_manager_rejects_requests_from_everywhere() {
    for etherealize in [false, true] {
        let pair = Pair::new();
        let poa = pair.root.create_poa("child", None, []).unwrap();
        poa.the_poa_manager().activate().unwrap();
        let ways = pair.ways(&poa.id_to_reference(&poa.activate_object(named("one")).unwrap()).unwrap());
        for object in &ways {
            assert_eq!(object.name().unwrap(), "one");
        }
        poa.the_poa_manager().deactivate(etherealize, true).unwrap();
        for object in &ways {
            let error = object.name().unwrap_err();
            assert_eq!((error.kind(), error.completed()), (SystemExceptionKind::ObjAdapter, CompletionStatus::No));
        }
    }
}

/// Makes the adapter again, with its object.
struct Again;

impl AdapterActivator for Again {
    fn unknown_adapter(&self, parent: &Poa, name: &str) -> bool {
        let policies = [IdAssignmentPolicy::UserId.into(), LifespanPolicy::Persistent.into()];
        parent
            .create_poa(name, Some(&parent.the_poa_manager()), policies)
            .is_ok_and(|made| made.activate_object_with_id(&"one".into(), named("one")).is_ok())
    }
}

/// destroy: an adapter that is destroyed again and again, and made again by its activator, has all requests answered; TRANSIENT 4
/// may be raised while it is being destroyed.
#[test]
fn requests_survive_the_destruction_of_an_adapter_that_is_made_again() {
    let pair = Pair::new();
    pair.root.set_the_activator(Some(Arc::new(Again)));
    let reference = pair.root.find_poa("late", true).unwrap().id_to_reference(&"one".into()).unwrap();
    let callers = pair.ways(&reference).map(|object| {
        in_background(move || {
            (0..200).try_for_each(|_| match object.name() {
                Err(error) if error.kind() == SystemExceptionKind::Transient => Ok(()),
                other => other.map(drop),
            })
        })
    });
    let root = pair.root.clone();
    let destroyer = in_background(move || {
        (0..100).filter(|_| root.find_poa("late", true).is_ok_and(|poa| poa.destroy(false, true).is_ok())).count()
    });
    for caller in callers {
        assert_eq!(caller.recv_timeout(PATIENCE).unwrap(), Ok::<(), SystemException>(()));
    }
    assert!(destroyer.recv_timeout(PATIENCE).unwrap() > 0);
}

/// 15.3.2.6, of many that change a manager's state at once: it ends inactive, and all its requests are answered.
#[test]
fn a_manager_that_is_deactivated_while_others_change_it_is_inactive() {
    let pair = Pair::new();
    let poa = pair.root.create_poa("child", None, []).unwrap();
    let manager = poa.the_poa_manager();
    let reference = poa.id_to_reference(&poa.activate_object(acting(String::new)).unwrap()).unwrap();
    let callers =
        pair.ways(&reference).map(|object| in_background(move || (0..100).filter(|_| object.name().is_ok()).count()));
    type Change = fn(&PoaManager) -> Result<(), PoaError>;
    let changes: [Change; 3] =
        [PoaManager::activate, |manager| manager.hold_requests(false), |manager| manager.discard_requests(false)];
    let changers = changes.map(|change| {
        let manager = manager.clone();
        in_background(move || (0..200).all(|_| change(&manager).is_ok()))
    });
    for changer in changers {
        assert!(changer.recv_timeout(PATIENCE).unwrap());
    }
    manager.deactivate(false, true).unwrap();
    for caller in callers {
        caller.recv_timeout(PATIENCE).unwrap();
    }
    assert_eq!(manager.state(), State::Inactive);
}
