//! Servant activators (15.3.6).

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use spandrel::poa::{EtherealizeObjects, IdUniquenessPolicy, Incarnation, ObjectId, PoaError, WaitForCompletion};
use spandrel::{CompletionStatus, Poa, SystemException, SystemExceptionKind, minor, server::Servant};
use spandrel_conformance_tests::{
    idl::conformance::Subject,
    managers::{ManagerUpcall, ScriptedManager, activating, etherealized},
    support::{
        Gate, Pair, TEST_TIMEOUT, closure_servant, expect_refusal, in_background, kind_minor_completion, named_servant,
        same_servant,
    },
};

const TYPE: &str = "IDL:Conformance/Subject:1.0";

fn managed(pair: &Pair, manager: &Arc<ScriptedManager>) -> Poa {
    let poa = pair.adapter("child", activating());
    poa.set_servant_manager(manager.activator()).unwrap();
    poa
}

fn references(pair: &Pair, poa: &Poa, id: &str) -> [Subject; 2] {
    pair.remote_and_local(&poa.create_reference_with_id(&id.into(), TYPE).unwrap())
}

/// 15.3.6.1: incarnate is called for a request for an inactive object, with its id and its adapter.
#[test]
fn incarnate_gets_object_id_and_adapter() {
    let pair = Pair::new();
    let manager = ScriptedManager::with_finder(|id, adapter| {
        Ok(named_servant(&format!("{} of {}", String::from_utf8_lossy(id), adapter.the_name())))
    });
    let poa = managed(&pair, &manager);
    for (object, id) in
        references(&pair, &poa, "a").into_iter().zip(["a", "a"]).chain(references(&pair, &poa, "b").map(|b| (b, "b")))
    {
        assert_eq!(object.name().unwrap(), format!("{id} of child"));
    }
    assert_eq!(manager.upcalls(), ["a", "b"].map(|id| ManagerUpcall::Incarnate(id.into())));
}

/// 15.3.6.1: the servant is entered into the active object map and serves later requests.
#[test]
fn incarnate_activates_the_object() {
    let pair = Pair::new();
    let servant = named_servant("one");
    let incarnated = servant.clone();
    let manager = ScriptedManager::with_finder(move |_, _| Ok(incarnated.clone()));
    let poa = managed(&pair, &manager);
    let id = ObjectId::from("one");
    assert!(matches!(expect_refusal(poa.id_to_servant(&id)), PoaError::ObjectNotActive { .. }));
    for object in references(&pair, &poa, "one") {
        assert_eq!((object.name().unwrap(), object.name().unwrap()), ("one".to_owned(), "one".to_owned()));
    }
    assert!(same_servant(&poa.id_to_servant(&id).unwrap(), &servant));
    assert_eq!(poa.servant_to_id(&servant).unwrap(), id);
    assert!(matches!(
        expect_refusal(poa.activate_object_with_id(&id, named_servant("two"))),
        PoaError::ObjectAlreadyActive { .. }
    ));
    assert_eq!(manager.upcalls(), [ManagerUpcall::Incarnate(id)]);
}

/// 15.3.6: incarnations of an object do not overlap: concurrent requests wait for the first.
#[test]
fn concurrent_first_requests_call_incarnate_once() {
    let pair = Pair::new();
    let gate = Gate::default();
    let passing = gate.clone();
    let manager = ScriptedManager::with_finder(move |_, _| {
        passing.wait_until_open();
        Ok(named_servant("one"))
    });
    let poa = managed(&pair, &manager);
    let calls: Vec<_> = (0..4)
        .flat_map(|_| references(&pair, &poa, "one"))
        .map(|object| in_background(move || object.name()))
        .collect();
    gate.await_arrivals(1);
    gate.release();
    for call in calls {
        assert_eq!(call.recv_timeout(TEST_TIMEOUT).unwrap().unwrap(), "one");
    }
    assert_eq!(manager.upcalls(), [ManagerUpcall::Incarnate("one".into())]);
}

/// 15.3.6: requests for other objects do not wait for an incarnation.
#[test]
fn requests_for_other_objects_do_not_wait_for_an_incarnation() {
    let pair = Pair::new();
    let gate = Gate::default();
    let passing = gate.clone();
    let manager = ScriptedManager::with_finder(move |id, _| {
        passing.wait_until_open();
        Ok(named_servant(&String::from_utf8_lossy(id)))
    });
    let poa = managed(&pair, &manager);
    poa.activate_object_with_id(&"active".into(), named_servant("active")).unwrap();
    let [slow, _] = references(&pair, &poa, "slow");
    let called = in_background(move || slow.name());
    gate.await_arrivals(1);
    for object in references(&pair, &poa, "active") {
        assert_eq!(object.name().unwrap(), "active");
    }
    gate.release();
    assert_eq!(called.recv_timeout(TEST_TIMEOUT).unwrap().unwrap(), "slow");
}

/// 15.3.6.1: a system exception of incarnate goes to the client; the object stays inactive, and the next
/// request calls incarnate again.
#[test]
fn an_exception_in_incarnate_goes_to_the_client() {
    let pair = Pair::new();
    let raised = SystemException::no_permission(7, CompletionStatus::No);
    let expected = kind_minor_completion(&raised);
    let is_allowed = Arc::new(AtomicBool::new(false));
    let allowed = Arc::clone(&is_allowed);
    let manager = ScriptedManager::with_finder(move |_, _| {
        if allowed.load(Ordering::SeqCst) { Ok(named_servant("one")) } else { Err(raised.clone().into()) }
    });
    let poa = managed(&pair, &manager);
    let references = references(&pair, &poa, "one");
    for object in &references {
        assert_eq!(kind_minor_completion(&object.name().unwrap_err()), expected);
    }
    assert_eq!((manager.upcalls().len(), poa.active_objects()), (2, 0));
    is_allowed.store(true, Ordering::SeqCst);
    for object in &references {
        assert_eq!(object.name().unwrap(), "one");
    }
}

/// 15.3.5, 15.3.6.1: after ForwardRequest the named object answers the request; the original object stays
/// inactive.
#[test]
fn forward_request_in_incarnate_redirects_the_request() {
    let pair = Pair::new();
    let elsewhere = Pair::new();
    let id = elsewhere.root.activate_object(named_servant("elsewhere")).unwrap();
    let target = elsewhere.root.id_to_reference(&id).unwrap();
    let manager = ScriptedManager::with_finder(move |_, _| Err(Incarnation::ForwardRequest(target.clone())));
    let poa = managed(&pair, &manager);
    for object in references(&pair, &poa, "one") {
        assert_eq!(object.name().unwrap(), "elsewhere");
    }
    assert_eq!(poa.active_objects(), 0);
    assert!(manager.upcalls().contains(&ManagerUpcall::Incarnate("one".into())));
}

/// 15.3.6.1: returning a servant that is active with another id violates UNIQUE_ID: OBJ_ADAPTER 5.
#[test]
fn under_unique_id_incarnate_must_not_return_an_active_servant() {
    let pair = Pair::new();
    let servant = named_servant("shared");
    let manager = ScriptedManager::with_finder(move |_, _| Ok(servant.clone()));
    let poa = managed(&pair, &manager);
    assert_eq!(references(&pair, &poa, "first")[0].name().unwrap(), "shared");
    for object in references(&pair, &poa, "second") {
        let expected = (SystemExceptionKind::ObjAdapter, minor::INCARNATE_VIOLATED_POLICY, CompletionStatus::No);
        assert_eq!(kind_minor_completion(&object.name().unwrap_err()), expected);
    }
    assert_eq!(poa.active_objects(), 1);
    assert!(
        manager.upcalls().iter().all(|upcalls| matches!(upcalls, ManagerUpcall::Incarnate(_))),
        "nothing was etherealized"
    );
}

/// 15.3.6.2: remaining_activations is true while the servant has other active objects in the adapter.
#[test]
fn etherealize_gets_remaining_activations() {
    let pair = Pair::new();
    let servant = named_servant("shared");
    let manager = ScriptedManager::with_finder(move |_, _| Ok(servant.clone()));
    let policies = [&activating()[..], &[IdUniquenessPolicy::MultipleId.into()]].concat();
    let poa = pair.adapter("child", policies);
    poa.set_servant_manager(manager.activator()).unwrap();
    for id in ["a", "b"] {
        assert_eq!(references(&pair, &poa, id)[0].name().unwrap(), "shared");
    }
    poa.deactivate_object(&"a".into()).unwrap();
    manager.await_upcalls(3);
    poa.deactivate_object(&"b".into()).unwrap();
    let first = ManagerUpcall::Etherealize { id: "a".into(), cleanup_in_progress: false, remaining_activations: true };
    assert_eq!(manager.await_upcalls(4)[2..], [first, etherealized("b")]);
}

/// 15.3.2.6, 15.3.6.2: deactivate with etherealize_objects etherealizes all active objects, with
/// cleanup_in_progress.
#[test]
fn deactivate_etherealizes_active_objects_if_requested() {
    for etherealize in [EtherealizeObjects::Yes, EtherealizeObjects::No] {
        let pair = Pair::new();
        let manager = ScriptedManager::with_named_servants();
        let poa = pair.root.create_poa("child", None, activating()).unwrap();
        poa.set_servant_manager(manager.activator()).unwrap();
        poa.the_poa_manager().activate().unwrap();
        let object = &references(&pair, &poa, "one")[0];
        assert_eq!(object.name().unwrap(), "one");
        poa.the_poa_manager().deactivate(etherealize, WaitForCompletion::Yes).unwrap();
        let upcall =
            ManagerUpcall::Etherealize { id: "one".into(), cleanup_in_progress: true, remaining_activations: false };
        let expected = if etherealize == EtherealizeObjects::Yes {
            vec![ManagerUpcall::Incarnate("one".into()), upcall]
        } else {
            vec![ManagerUpcall::Incarnate("one".into())]
        };
        assert_eq!(manager.upcalls(), expected);
        assert_eq!(object.name().unwrap_err().kind(), SystemExceptionKind::ObjAdapter);
        // A second deactivate has no effect.
        poa.the_poa_manager().deactivate(EtherealizeObjects::Yes, WaitForCompletion::Yes).unwrap();
        assert_eq!(manager.upcalls(), expected);
    }
}

/// 8.2.3.4 (ORB shutdown): adapters are destroyed, and all objects are etherealized.
#[test]
fn shutdown_etherealizes_active_objects() {
    let pair = Pair::new();
    let manager = ScriptedManager::with_named_servants();
    let poa = managed(&pair, &manager);
    assert_eq!(references(&pair, &poa, "one")[0].name().unwrap(), "one");
    pair.server.shutdown().unwrap();
    let upcall =
        ManagerUpcall::Etherealize { id: "one".into(), cleanup_in_progress: true, remaining_activations: false };
    assert_eq!(manager.upcalls(), [ManagerUpcall::Incarnate("one".into()), upcall]);
}

/// 15.3.2.1: servant managers are not called while the POA manager is holding or discarding.
#[test]
fn incarnate_is_not_called_while_the_manager_holds_or_discards() {
    let pair = Pair::new();
    let manager = ScriptedManager::with_named_servants();
    let poa = pair.root.create_poa("child", None, activating()).unwrap();
    poa.set_servant_manager(manager.activator()).unwrap();
    poa.the_poa_manager().discard_requests(WaitForCompletion::No).unwrap();
    for object in references(&pair, &poa, "one") {
        assert_eq!(object.name().unwrap_err().kind(), SystemExceptionKind::Transient);
    }
    poa.the_poa_manager().hold_requests(WaitForCompletion::No).unwrap();
    let calls = references(&pair, &poa, "one").map(|object| in_background(move || object.name()));
    let other = pair.root.activate_object(named_servant("other")).unwrap();
    assert_eq!(pair.as_client(&pair.root.id_to_reference(&other).unwrap()).name().unwrap(), "other");
    assert_eq!(manager.upcalls(), []);
    poa.the_poa_manager().activate().unwrap();
    for call in calls {
        assert_eq!(call.recv_timeout(TEST_TIMEOUT).unwrap().unwrap(), "one");
    }
    assert_eq!(manager.upcalls(), [ManagerUpcall::Incarnate("one".into())]);
}

/// 15.3.9 deactivate_object: a servant may deactivate its own object; etherealize is called after the
/// request.
#[test]
fn an_object_may_deactivate_itself() {
    let pair = Pair::new();
    let (running, overlapped) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (observed, result, running_in_upcall) = (Arc::clone(&running), Arc::clone(&overlapped), Arc::clone(&running));
    let manager = ScriptedManager::new(
        move |id, adapter| {
            let (id, adapter, running) = (id.clone(), adapter.clone(), Arc::clone(&running_in_upcall));
            Ok(closure_servant(move || {
                running.store(true, Ordering::SeqCst);
                adapter.deactivate_object(&id).unwrap();
                running.store(false, Ordering::SeqCst);
                "deactivated".to_owned()
            }))
        },
        move |_, _| result.store(observed.load(Ordering::SeqCst), Ordering::SeqCst),
    );
    let poa = managed(&pair, &manager);
    for (round, object) in references(&pair, &poa, "one").into_iter().enumerate() {
        assert_eq!(object.name().unwrap(), "deactivated");
        let upcalls = manager.await_upcalls(2 * round + 2);
        assert_eq!(upcalls[2 * round..], [ManagerUpcall::Incarnate("one".into()), etherealized("one")]);
    }
    assert!(!overlapped.load(Ordering::SeqCst), "the object was etherealized during its request");
}

/// Detects forbidden overlaps in the life of one object.
#[derive(Default)]
struct OverlapDetector {
    managing: AtomicUsize,
    running: AtomicUsize,
    is_active: AtomicBool,
    faults: Mutex<Vec<&'static str>>,
}

impl OverlapDetector {
    fn expect(&self, is_so: bool, otherwise: &'static str) {
        if !is_so {
            self.faults.lock().unwrap().push(otherwise);
        }
    }

    fn enter_manager_upcall(&self, becomes_active: bool) {
        self.expect(self.managing.fetch_add(1, Ordering::SeqCst) == 0, "incarnate and etherealize at once");
        self.expect(self.running.load(Ordering::SeqCst) == 0, "etherealize during a request");
        self.expect(
            self.is_active.swap(becomes_active, Ordering::SeqCst) != becomes_active,
            "the same upcall twice in a row",
        );
        std::thread::yield_now();
        self.managing.fetch_sub(1, Ordering::SeqCst);
    }

    fn run_request(&self) {
        self.running.fetch_add(1, Ordering::SeqCst);
        self.expect(self.is_active.load(Ordering::SeqCst), "a request for an inactive object");
        std::thread::yield_now();
        self.running.fetch_sub(1, Ordering::SeqCst);
    }
}

/// 15.3.6: with concurrent requests and deactivations, incarnate and etherealize of an object alternate and
/// do not overlap, and etherealize does not overlap requests.
#[test]
fn incarnate_and_etherealize_alternate_without_overlap() {
    let pair = Pair::new();
    let detector = Arc::new(OverlapDetector::default());
    let (incarnating, etherealizing) = (Arc::clone(&detector), Arc::clone(&detector));
    let manager = ScriptedManager::new(
        move |_, _| {
            incarnating.enter_manager_upcall(true);
            let serving = Arc::clone(&incarnating);
            Ok::<Arc<dyn Servant>, _>(closure_servant(move || {
                serving.run_request();
                String::new()
            }))
        },
        move |_, _| etherealizing.enter_manager_upcall(false),
    );
    let poa = managed(&pair, &manager);
    let callers: Vec<_> = (0..2)
        .flat_map(|_| references(&pair, &poa, "one"))
        .map(|object| in_background(move || (0..100).try_for_each(|_| object.name().map(drop))))
        .collect();
    let ending = poa.clone();
    let ended = in_background(move || {
        // Refused while the object is inactive, which is the usual case.
        (0..300).filter(|_| ending.deactivate_object(&"one".into()).is_ok()).count()
    });
    for caller in callers {
        caller.recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
    }
    ended.recv_timeout(TEST_TIMEOUT).unwrap();
    poa.destroy(EtherealizeObjects::Yes, WaitForCompletion::Yes).unwrap();
    assert_eq!(*detector.faults.lock().unwrap(), [""; 0]);
    let upcalls = manager.upcalls();
    let incarnations = upcalls.iter().filter(|upcalls| matches!(upcalls, ManagerUpcall::Incarnate(_))).count();
    assert!(incarnations > 0 && upcalls.len() == 2 * incarnations, "{incarnations} of {}", upcalls.len());
}
