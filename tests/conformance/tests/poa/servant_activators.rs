//! Servants that are found when they are needed, and remembered (15.3.6).

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use spandrel::poa::{IdUniquenessPolicy, Incarnation, ObjectId, PoaError};
use spandrel::{CompletionStatus, Poa, Servant, SystemException, SystemExceptionKind, minor};
use spandrel_conformance_tests::{
    idl::conformance::Subject,
    managers::{Asked, Scripted, activating, etherealized},
    support::{Gate, PATIENCE, Pair, acting, in_background, judged, named, refused, same},
};

const TYPE: &str = "IDL:Conformance/Subject:1.0";

fn managed(pair: &Pair, manager: &Arc<Scripted>) -> Poa {
    let poa = pair.adapter("child", activating());
    poa.set_servant_manager(manager.activator()).unwrap();
    poa
}

fn ways(pair: &Pair, poa: &Poa, id: &str) -> [Subject; 2] {
    pair.ways(&poa.create_reference_with_id(&id.into(), TYPE).unwrap())
}

/// 15.3.6.1: incarnate is called for a request for an object that is not active, with its id and its adapter.
#[test]
fn incarnate_is_told_the_object_and_the_adapter() {
    let pair = Pair::new();
    let manager = Scripted::finding(|id, adapter| {
        Ok(named(&format!("{} of {}", String::from_utf8_lossy(id), adapter.the_name())))
    });
    let poa = managed(&pair, &manager);
    for (object, id) in
        ways(&pair, &poa, "a").into_iter().zip(["a", "a"]).chain(ways(&pair, &poa, "b").map(|b| (b, "b")))
    {
        assert_eq!(object.name().unwrap(), format!("{id} of child"));
    }
    assert_eq!(manager.asked(), ["a", "b"].map(|id| Asked::Incarnate(id.into())));
}

/// 15.3.6.1: the servant is entered into the active object map, and later requests go to it without another incarnation.
#[test]
fn an_incarnated_object_is_active() {
    let pair = Pair::new();
    let servant = named("one");
    let given = servant.clone();
    let manager = Scripted::finding(move |_, _| Ok(given.clone()));
    let poa = managed(&pair, &manager);
    let id = ObjectId::from("one");
    assert_eq!(refused(poa.id_to_servant(&id)), PoaError::ObjectNotActive);
    for object in ways(&pair, &poa, "one") {
        assert_eq!((object.name().unwrap(), object.name().unwrap()), ("one".to_owned(), "one".to_owned()));
    }
    assert!(same(&poa.id_to_servant(&id).unwrap(), &servant));
    assert_eq!(poa.servant_to_id(&servant).unwrap(), id);
    assert_eq!(refused(poa.activate_object_with_id(&id, named("two"))), PoaError::ObjectAlreadyActive);
    assert_eq!(manager.asked(), [Asked::Incarnate(id)]);
}

/// 15.3.6: incarnations of an object do not overlap: requests that come meanwhile wait for the one.
#[test]
fn concurrent_first_requests_incarnate_once() {
    let pair = Pair::new();
    let gate = Gate::default();
    let passing = gate.clone();
    let manager = Scripted::finding(move |_, _| {
        passing.pass();
        Ok(named("one"))
    });
    let poa = managed(&pair, &manager);
    let calls: Vec<_> =
        (0..4).flat_map(|_| ways(&pair, &poa, "one")).map(|object| in_background(move || object.name())).collect();
    gate.await_arrivals(1);
    gate.release();
    for call in calls {
        assert_eq!(call.recv_timeout(PATIENCE).unwrap().unwrap(), "one");
    }
    assert_eq!(manager.asked(), [Asked::Incarnate("one".into())]);
}

/// 15.3.6: only requests for the same object wait for it.
#[test]
fn requests_for_other_objects_do_not_wait_for_an_incarnation() {
    let pair = Pair::new();
    let gate = Gate::default();
    let passing = gate.clone();
    let manager = Scripted::finding(move |id, _| {
        passing.pass();
        Ok(named(&String::from_utf8_lossy(id)))
    });
    let poa = managed(&pair, &manager);
    poa.activate_object_with_id(&"active".into(), named("active")).unwrap();
    let [slow, _] = ways(&pair, &poa, "slow");
    let called = in_background(move || slow.name());
    gate.await_arrivals(1);
    for object in ways(&pair, &poa, "active") {
        assert_eq!(object.name().unwrap(), "active");
    }
    gate.release();
    assert_eq!(called.recv_timeout(PATIENCE).unwrap().unwrap(), "slow");
}

/// 15.3.6.1: a system exception of incarnate is what the client gets; the object is not active, and the next request asks again.
#[test]
fn an_exception_of_incarnate_reaches_the_client() {
    let pair = Pair::new();
    let raised = SystemException::no_permission(7, CompletionStatus::No);
    let expected = judged(&raised);
    let is_allowed = Arc::new(AtomicBool::new(false));
    let allowed = Arc::clone(&is_allowed);
    let manager =
        Scripted::finding(
            move |_, _| {
                if allowed.load(Ordering::SeqCst) { Ok(named("one")) } else { Err(raised.clone().into()) }
            },
        );
    let poa = managed(&pair, &manager);
    let ways = ways(&pair, &poa, "one");
    for object in &ways {
        assert_eq!(judged(&object.name().unwrap_err()), expected);
    }
    assert_eq!((manager.asked().len(), poa.active_objects()), (2, 0));
    is_allowed.store(true, Ordering::SeqCst);
    for object in &ways {
        assert_eq!(object.name().unwrap(), "one");
    }
}

/// 15.3.5, 15.3.6.1: ForwardRequest has the request answered by the object that it names; the object does not become active.
#[test]
fn a_forwarded_request_is_answered_elsewhere() {
    let pair = Pair::new();
    let elsewhere = Pair::new();
    let id = elsewhere.root.activate_object(named("elsewhere")).unwrap();
    let target = elsewhere.root.id_to_reference(&id).unwrap();
    let manager = Scripted::finding(move |_, _| Err(Incarnation::ForwardRequest(target.clone())));
    let poa = managed(&pair, &manager);
    for object in ways(&pair, &poa, "one") {
        assert_eq!(object.name().unwrap(), "elsewhere");
    }
    assert_eq!(poa.active_objects(), 0);
    assert!(manager.asked().contains(&Asked::Incarnate("one".into())));
}

/// 15.3.6.1: a servant that is already active for another id violates UNIQUE_ID: OBJ_ADAPTER (minor code 5).
#[test]
fn a_servant_of_another_object_is_an_error_if_ids_are_unique() {
    let pair = Pair::new();
    let servant = named("shared");
    let manager = Scripted::finding(move |_, _| Ok(servant.clone()));
    let poa = managed(&pair, &manager);
    assert_eq!(ways(&pair, &poa, "first")[0].name().unwrap(), "shared");
    for object in ways(&pair, &poa, "second") {
        let expected = (SystemExceptionKind::ObjAdapter, minor::INCARNATE_VIOLATED_POLICY, CompletionStatus::No);
        assert_eq!(judged(&object.name().unwrap_err()), expected);
    }
    assert_eq!(poa.active_objects(), 1);
    assert!(manager.asked().iter().all(|asked| matches!(asked, Asked::Incarnate(_))), "nothing was etherealized");
}

/// 15.3.6.2: remaining_activations is true while the servant stands behind other active objects of the adapter.
#[test]
fn etherealize_is_told_whether_the_servant_stands_behind_others() {
    let pair = Pair::new();
    let servant = named("shared");
    let manager = Scripted::finding(move |_, _| Ok(servant.clone()));
    let policies = [&activating()[..], &[IdUniquenessPolicy::MultipleId.into()]].concat();
    let poa = pair.adapter("child", policies);
    poa.set_servant_manager(manager.activator()).unwrap();
    for id in ["a", "b"] {
        assert_eq!(ways(&pair, &poa, id)[0].name().unwrap(), "shared");
    }
    poa.deactivate_object(&"a".into()).unwrap();
    manager.await_asked(3);
    poa.deactivate_object(&"b".into()).unwrap();
    let first = Asked::Etherealize { id: "a".into(), cleanup_in_progress: false, remaining_activations: true };
    assert_eq!(manager.await_asked(4)[2..], [first, etherealized("b")]);
}

/// 15.3.2.6, 15.3.6.2: deactivate of the manager with etherealize_objects etherealizes all active objects, for cleanup, and only then.
#[test]
fn deactivating_the_manager_etherealizes_if_it_is_told_to() {
    for etherealize in [true, false] {
        let pair = Pair::new();
        let manager = Scripted::naming();
        let poa = pair.root.create_poa("child", None, activating()).unwrap();
        poa.set_servant_manager(manager.activator()).unwrap();
        poa.the_poa_manager().activate().unwrap();
        let object = &ways(&pair, &poa, "one")[0];
        assert_eq!(object.name().unwrap(), "one");
        poa.the_poa_manager().deactivate(etherealize, true).unwrap();
        let done = Asked::Etherealize { id: "one".into(), cleanup_in_progress: true, remaining_activations: false };
        let expected =
            if etherealize { vec![Asked::Incarnate("one".into()), done] } else { vec![Asked::Incarnate("one".into())] };
        assert_eq!(manager.asked(), expected);
        assert_eq!(object.name().unwrap_err().kind(), SystemExceptionKind::ObjAdapter);
        // A second time, the argument is ignored.
        poa.the_poa_manager().deactivate(true, true).unwrap();
        assert_eq!(manager.asked(), expected);
    }
}

/// 8.2.3.4 (ORB shutdown): adapters are destroyed, and all objects etherealized.
#[test]
fn shutdown_etherealizes() {
    let pair = Pair::new();
    let manager = Scripted::naming();
    let poa = managed(&pair, &manager);
    assert_eq!(ways(&pair, &poa, "one")[0].name().unwrap(), "one");
    pair.server.shutdown(true).unwrap();
    let done = Asked::Etherealize { id: "one".into(), cleanup_in_progress: true, remaining_activations: false };
    assert_eq!(manager.asked(), [Asked::Incarnate("one".into()), done]);
}

/// 15.3.2.1: while the manager holds or discards, servant managers are not called.
#[test]
fn a_manager_that_is_not_active_has_nothing_incarnated() {
    let pair = Pair::new();
    let manager = Scripted::naming();
    let poa = pair.root.create_poa("child", None, activating()).unwrap();
    poa.set_servant_manager(manager.activator()).unwrap();
    poa.the_poa_manager().discard_requests(false).unwrap();
    for object in ways(&pair, &poa, "one") {
        assert_eq!(object.name().unwrap_err().kind(), SystemExceptionKind::Transient);
    }
    poa.the_poa_manager().hold_requests(false).unwrap();
    let calls = ways(&pair, &poa, "one").map(|object| in_background(move || object.name()));
    let other = pair.root.activate_object(named("other")).unwrap();
    assert_eq!(pair.seen(&pair.root.id_to_reference(&other).unwrap()).name().unwrap(), "other");
    assert_eq!(manager.asked(), []);
    poa.the_poa_manager().activate().unwrap();
    for call in calls {
        assert_eq!(call.recv_timeout(PATIENCE).unwrap().unwrap(), "one");
    }
    assert_eq!(manager.asked(), [Asked::Incarnate("one".into())]);
}

/// 15.3.9 deactivate_object: a servant may deactivate its own object; etherealize comes when its request has ended.
#[test]
fn an_object_may_deactivate_itself() {
    let pair = Pair::new();
    let (running, overlapped) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (seen, told, runs) = (Arc::clone(&running), Arc::clone(&overlapped), Arc::clone(&running));
    let manager = Scripted::new(
        move |id, adapter| {
            let (id, adapter, running) = (id.clone(), adapter.clone(), Arc::clone(&runs));
            Ok(acting(move || {
                running.store(true, Ordering::SeqCst);
                adapter.deactivate_object(&id).unwrap();
                running.store(false, Ordering::SeqCst);
                "deactivated".to_owned()
            }))
        },
        move |_, _| told.store(seen.load(Ordering::SeqCst), Ordering::SeqCst),
    );
    let poa = managed(&pair, &manager);
    for (round, object) in ways(&pair, &poa, "one").into_iter().enumerate() {
        assert_eq!(object.name().unwrap(), "deactivated");
        let asked = manager.await_asked(2 * round + 2);
        assert_eq!(asked[2 * round..], [Asked::Incarnate("one".into()), etherealized("one")]);
    }
    assert!(!overlapped.load(Ordering::SeqCst), "it was etherealized while its request ran");
}

/// What one object goes through, and what it must not go through at once.
#[derive(Default)]
struct Life {
    managing: AtomicUsize,
    running: AtomicUsize,
    is_alive: AtomicBool,
    faults: Mutex<Vec<&'static str>>,
}

impl Life {
    fn must(&self, is_so: bool, otherwise: &'static str) {
        if !is_so {
            self.faults.lock().unwrap().push(otherwise);
        }
    }

    fn manage(&self, comes_alive: bool) {
        self.must(self.managing.fetch_add(1, Ordering::SeqCst) == 0, "incarnate and etherealize at once");
        self.must(self.running.load(Ordering::SeqCst) == 0, "etherealized while requests ran");
        self.must(self.is_alive.swap(comes_alive, Ordering::SeqCst) != comes_alive, "twice the same");
        std::thread::yield_now();
        self.managing.fetch_sub(1, Ordering::SeqCst);
    }

    fn serve(&self) {
        self.running.fetch_add(1, Ordering::SeqCst);
        self.must(self.is_alive.load(Ordering::SeqCst), "a request ran while the object was not active");
        std::thread::yield_now();
        self.running.fetch_sub(1, Ordering::SeqCst);
    }
}

/// 15.3.6: whatever requests and deactivations there are at once: incarnate and etherealize of an object take turns, exclude each
/// other, and etherealize excludes its requests.
#[test]
fn incarnate_and_etherealize_take_turns() {
    let pair = Pair::new();
    let life = Arc::new(Life::default());
    let (born, buried) = (Arc::clone(&life), Arc::clone(&life));
    let manager = Scripted::new(
        move |_, _| {
            born.manage(true);
            let serving = Arc::clone(&born);
            Ok::<Arc<dyn Servant>, _>(acting(move || {
                serving.serve();
                String::new()
            }))
        },
        move |_, _| buried.manage(false),
    );
    let poa = managed(&pair, &manager);
    let callers: Vec<_> = (0..2)
        .flat_map(|_| ways(&pair, &poa, "one"))
        .map(|object| in_background(move || (0..100).try_for_each(|_| object.name().map(drop))))
        .collect();
    let ending = poa.clone();
    let ended = in_background(move || {
        // Refused while it is not active, which it mostly is.
        (0..300).filter(|_| ending.deactivate_object(&"one".into()).is_ok()).count()
    });
    for caller in callers {
        caller.recv_timeout(PATIENCE).unwrap().unwrap();
    }
    ended.recv_timeout(PATIENCE).unwrap();
    poa.destroy(true, true).unwrap();
    assert_eq!(*life.faults.lock().unwrap(), [""; 0]);
    let asked = manager.asked();
    let incarnations = asked.iter().filter(|asked| matches!(asked, Asked::Incarnate(_))).count();
    assert!(incarnations > 0 && asked.len() == 2 * incarnations, "{incarnations} of {}", asked.len());
}
