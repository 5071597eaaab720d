//! Servant locators (15.3.7).

use std::{
    sync::{Arc, Mutex},
    thread,
};

use spandrel::poa::{EtherealizeObjects, IfMissing, Incarnation, ObjectId, WaitForCompletion};
use spandrel::{CompletionStatus, Poa, SystemException, SystemExceptionKind};
use spandrel_conformance_tests::{
    idl::conformance::{Derived, Subject},
    managers::{ManagerUpcall, ScriptedManager, locating},
    support::{
        Gate, Pair, TEST_TIMEOUT, closure_servant, eventually, gated_servant, in_background, kind_minor_completion,
        named_servant,
    },
};

const TYPE: &str = "IDL:Conformance/Subject:1.0";

fn managed(pair: &Pair, manager: &Arc<ScriptedManager>) -> Poa {
    let poa = pair.adapter("child", locating());
    poa.set_servant_manager(manager.locator()).unwrap();
    poa
}

fn references(pair: &Pair, poa: &Poa, id: &str) -> [Subject; 2] {
    pair.remote_and_local(&poa.create_reference_with_id(&id.into(), TYPE).unwrap())
}

/// The upcalls as (is it `postinvoke`, object id, operation), in order.
fn pre_and_postinvokes(upcalls: &[ManagerUpcall]) -> Vec<(bool, ObjectId, &str)> {
    upcalls
        .iter()
        .map(|upcalls| match upcalls {
            ManagerUpcall::Preinvoke(id, operation, _) => (false, id.clone(), &**operation),
            ManagerUpcall::Postinvoke(id, operation, ..) => (true, id.clone(), &**operation),
            other => panic!("{other:?}"),
        })
        .collect()
}

/// 15.3.7: preinvoke and postinvoke are called in pairs for each request, with object id and operation.
#[test]
fn each_request_has_a_preinvoke_and_a_postinvoke() {
    let pair = Pair::new();
    let manager = ScriptedManager::with_named_servants();
    let poa = managed(&pair, &manager);
    for (round, object) in references(&pair, &poa, "one").into_iter().enumerate() {
        assert_eq!(object.name().unwrap(), "one");
        manager.await_upcalls(4 * round + 2);
        assert_eq!(object.wait().unwrap(), "one");
        let upcalls = manager.await_upcalls(4 * round + 4);
        let one = ObjectId::from("one");
        let expected = [(false, "name"), (true, "name"), (false, "wait"), (true, "wait")]
            .map(|(is_post, name)| (is_post, one.clone(), name));
        assert_eq!(pre_and_postinvokes(&upcalls[4 * round..]), expected);
    }
    assert_eq!(poa.active_objects(), 0, "no object is retained");
}

/// 15.3.7.1: the operation has its GIOP name, implicit operations included.
#[test]
fn preinvoke_gets_the_giop_operation_name() {
    let pair = Pair::new();
    let manager = ScriptedManager::with_named_servants();
    let poa = managed(&pair, &manager);
    let object = pair.as_client(&poa.create_reference_with_id(&"one".into(), "").unwrap());
    assert!(object.as_object().is_a("IDL:Conformance/Subject:1.0").unwrap());
    let upcalls = manager.await_upcalls(2);
    let one = ObjectId::from("one");
    assert_eq!(pre_and_postinvokes(&upcalls), [(false, one.clone(), "_is_a"), (true, one, "_is_a")]);
}

/// 15.3.7: preinvoke, the request and postinvoke run in one thread; postinvoke receives the cookie and the
/// servant of preinvoke.
#[test]
fn preinvoke_request_and_postinvoke_share_thread_and_cookie() {
    let pair = Pair::new();
    let ran_in = Arc::new(Mutex::new(Vec::new()));
    let runs = Arc::clone(&ran_in);
    let manager = ScriptedManager::with_finder(move |_, _| {
        let runs = Arc::clone(&runs);
        Ok(closure_servant(move || {
            runs.lock().unwrap().push(thread::current().id());
            String::new()
        }))
    });
    let poa = managed(&pair, &manager);
    for (round, object) in references(&pair, &poa, "one").into_iter().enumerate() {
        object.name().unwrap();
        let upcalls = manager.await_upcalls(2 * round + 2);
        let ran_in = ran_in.lock().unwrap()[round];
        let one = || (ObjectId::from("one"), "name".to_owned(), ran_in);
        let (id, operation, thread) = one();
        assert_eq!(upcalls[2 * round], ManagerUpcall::Preinvoke(id, operation, thread));
        let (id, operation, thread) = one();
        assert_eq!(upcalls[2 * round + 1], ManagerUpcall::Postinvoke(id, operation, thread, Some(2 * round)));
    }
}

/// 15.3.7: concurrent requests have their own pairs, cookies and servants.
#[test]
fn concurrent_requests_have_their_own_cookies() {
    let pair = Pair::new();
    let gate = Gate::default();
    let passing = gate.clone();
    let manager = ScriptedManager::with_finder(move |id, _| Ok(gated_servant(&String::from_utf8_lossy(id), &passing)));
    let poa = managed(&pair, &manager);
    let calls: Vec<_> = ["a", "b"]
        .into_iter()
        .flat_map(|id| references(&pair, &poa, id).map(|object| (id, in_background(move || object.wait()))))
        .collect();
    gate.await_arrivals(4);
    assert!(
        manager.upcalls().iter().all(|upcalls| matches!(upcalls, ManagerUpcall::Preinvoke(..))),
        "all requests still run"
    );
    gate.release();
    for (id, call) in calls {
        assert_eq!(call.recv_timeout(TEST_TIMEOUT).unwrap().unwrap(), id);
    }
    let upcalls = manager.await_upcalls(8);
    for post in &upcalls[4..] {
        let ManagerUpcall::Postinvoke(id, operation, thread, Some(index)) = post else { panic!("{post:?}") };
        assert_eq!(upcalls[*index], ManagerUpcall::Preinvoke(id.clone(), operation.clone(), *thread));
    }
}

/// 15.3.7: the same for one-way requests.
#[test]
fn one_ways_have_a_preinvoke_and_a_postinvoke() {
    let pair = Pair::new();
    let manager = ScriptedManager::with_named_servants();
    let poa = managed(&pair, &manager);
    let [object, _] = references(&pair, &poa, "one");
    object.note().unwrap();
    let one = ObjectId::from("one");
    assert_eq!(pre_and_postinvokes(&manager.await_upcalls(2)), [(false, one.clone(), "note"), (true, one, "note")]);
}

/// 15.3.7.1: a system exception of preinvoke goes to the client; postinvoke is not called.
#[test]
fn an_exception_in_preinvoke_goes_to_the_client() {
    let pair = Pair::new();
    let raised = SystemException::no_permission(9, CompletionStatus::No);
    let expected = kind_minor_completion(&raised);
    let manager = ScriptedManager::with_finder(move |_, _| Err(raised.clone().into()));
    let poa = managed(&pair, &manager);
    for object in references(&pair, &poa, "one") {
        assert_eq!(kind_minor_completion(&object.name().unwrap_err()), expected);
    }
    poa.destroy(EtherealizeObjects::No, WaitForCompletion::Yes).unwrap();
    let one = ObjectId::from("one");
    assert_eq!(pre_and_postinvokes(&manager.upcalls()), [(false, one.clone(), "name"), (false, one, "name")]);
}

/// 15.3.7: postinvoke is called also if the request raises an exception.
#[test]
fn a_failing_request_has_a_postinvoke() {
    let pair = Pair::new();
    let manager = ScriptedManager::with_named_servants();
    let poa = managed(&pair, &manager);
    for (round, object) in references(&pair, &poa, "one").into_iter().enumerate() {
        let derived: Derived = object.as_object().unchecked_narrow();
        assert_eq!(derived.more().unwrap_err().kind(), SystemExceptionKind::BadOperation);
        let upcalls = manager.await_upcalls(2 * round + 2);
        let one = ObjectId::from("one");
        assert_eq!(pre_and_postinvokes(&upcalls[2 * round..]), [(false, one.clone(), "more"), (true, one, "more")]);
    }
}

/// 15.3.5, 15.3.7.1: after ForwardRequest the named object answers the request, and postinvoke is not called.
#[test]
fn forward_request_in_preinvoke_redirects_the_request() {
    let pair = Pair::new();
    let id = pair.root.activate_object(named_servant("elsewhere")).unwrap();
    let target = pair.root.id_to_reference(&id).unwrap();
    let manager = ScriptedManager::with_finder(move |_, _| Err(Incarnation::ForwardRequest(target.clone())));
    let poa = managed(&pair, &manager);
    for object in references(&pair, &poa, "one") {
        assert_eq!(object.name().unwrap(), "elsewhere");
    }
    poa.destroy(EtherealizeObjects::No, WaitForCompletion::Yes).unwrap();
    assert!(
        manager.upcalls().iter().all(|upcalls| matches!(upcalls, ManagerUpcall::Preinvoke(..))),
        "{:?}",
        manager.upcalls()
    );
}

/// 15.3.7.2: postinvoke may call the adapter and other objects.
#[test]
fn postinvoke_may_make_calls() {
    let pair = Pair::new();
    let id = pair.root.activate_object(named_servant("other")).unwrap();
    let other = pair.root.id_to_reference(&id).unwrap();
    let [_, local] = pair.remote_and_local(&other);
    let answers = Arc::new(Mutex::new(Vec::new()));
    let recorded = Arc::clone(&answers);
    let manager = ScriptedManager::new(
        |_, _| Ok(named_servant("one")),
        move |id, adapter| {
            let reference = adapter.create_reference_with_id(id, TYPE).unwrap();
            assert_eq!(adapter.reference_to_id(&reference).unwrap(), *id);
            recorded.lock().unwrap().push(local.name());
        },
    );
    let poa = managed(&pair, &manager);
    for object in references(&pair, &poa, "one") {
        assert_eq!(object.name().unwrap(), "one");
    }
    eventually(|| answers.lock().unwrap().len() == 2);
    assert!(answers.lock().unwrap().iter().all(|answer| answer.as_deref() == Ok("other")));
}

/// 15.3.9 destroy: wait_for_completion includes postinvoke.
#[test]
fn destroy_waits_for_postinvoke() {
    let pair = Pair::new();
    let gate = Gate::default();
    let passing = gate.clone();
    let manager = ScriptedManager::new(|_, _| Ok(named_servant("one")), move |_, _| passing.wait_until_open());
    let poa = managed(&pair, &manager);
    let [object, _] = references(&pair, &poa, "one");
    let called = in_background(move || object.name());
    gate.await_arrivals(1);
    let destroying = poa.clone();
    let destroyed = in_background(move || destroying.destroy(EtherealizeObjects::No, WaitForCompletion::Yes));
    eventually(|| pair.root.find_poa("child", IfMissing::Fail).is_err());
    assert!(destroyed.try_recv().is_err(), "postinvoke still runs");
    gate.release();
    destroyed.recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
    assert_eq!(called.recv_timeout(TEST_TIMEOUT).unwrap().unwrap(), "one");
}
