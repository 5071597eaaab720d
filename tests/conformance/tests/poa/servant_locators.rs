//! Servants that are found for one request each (15.3.7).

use std::{
    sync::{Arc, Mutex},
    thread,
};

use spandrel::poa::{Incarnation, ObjectId};
use spandrel::{CompletionStatus, Poa, SystemException, SystemExceptionKind};
use spandrel_conformance_tests::{
    idl::conformance::{Derived, Subject},
    managers::{Asked, Scripted, locating},
    support::{Gate, PATIENCE, Pair, acting, eventually, gated, in_background, judged, named},
};

const TYPE: &str = "IDL:Conformance/Subject:1.0";

fn managed(pair: &Pair, manager: &Arc<Scripted>) -> Poa {
    let poa = pair.adapter("child", locating());
    poa.set_servant_manager(manager.locator()).unwrap();
    poa
}

fn ways(pair: &Pair, poa: &Poa, id: &str) -> [Subject; 2] {
    pair.ways(&poa.create_reference_with_id(&id.into(), TYPE).unwrap())
}

/// What `preinvoke` and `postinvoke` were told, each as (is it the latter, id, operation), in order.
fn told(asked: &[Asked]) -> Vec<(bool, ObjectId, &str)> {
    asked
        .iter()
        .map(|asked| match asked {
            Asked::Preinvoke(id, operation, _) => (false, id.clone(), &**operation),
            Asked::Postinvoke(id, operation, ..) => (true, id.clone(), &**operation),
            other => panic!("{other:?}"),
        })
        .collect()
}

/// 15.3.7: preinvoke and postinvoke are called in pairs, for each request, with the object, and the operation's name.
#[test]
fn each_request_has_its_pair() {
    let pair = Pair::new();
    let manager = Scripted::naming();
    let poa = managed(&pair, &manager);
    for (round, object) in ways(&pair, &poa, "one").into_iter().enumerate() {
        assert_eq!(object.name().unwrap(), "one");
        manager.await_asked(4 * round + 2);
        assert_eq!(object.wait().unwrap(), "one");
        let asked = manager.await_asked(4 * round + 4);
        let one = ObjectId::from("one");
        let expected = [(false, "name"), (true, "name"), (false, "wait"), (true, "wait")]
            .map(|(is_post, name)| (is_post, one.clone(), name));
        assert_eq!(told(&asked[4 * round..]), expected);
    }
    assert_eq!(poa.active_objects(), 0, "nothing is retained");
}

/// 15.3.7.1: the operation is what GIOP calls it, also for the operations of all objects.
#[test]
fn operations_have_the_names_of_the_protocol() {
    let pair = Pair::new();
    let manager = Scripted::naming();
    let poa = managed(&pair, &manager);
    let object = pair.seen(&poa.create_reference_with_id(&"one".into(), "").unwrap());
    assert!(object.as_object().is_a("IDL:Conformance/Subject:1.0").unwrap());
    let asked = manager.await_asked(2);
    let one = ObjectId::from("one");
    assert_eq!(told(&asked), [(false, one.clone(), "_is_a"), (true, one, "_is_a")]);
}

/// 15.3.7: one thread calls preinvoke, runs the request, and calls postinvoke; the latter is given the cookie and the servant of the
/// former.
#[test]
fn a_request_stays_in_one_thread_and_keeps_its_cookie() {
    let pair = Pair::new();
    let ran_in = Arc::new(Mutex::new(Vec::new()));
    let runs = Arc::clone(&ran_in);
    let manager = Scripted::finding(move |_, _| {
        let runs = Arc::clone(&runs);
        Ok(acting(move || {
            runs.lock().unwrap().push(thread::current().id());
            String::new()
        }))
    });
    let poa = managed(&pair, &manager);
    for (round, object) in ways(&pair, &poa, "one").into_iter().enumerate() {
        object.name().unwrap();
        let asked = manager.await_asked(2 * round + 2);
        let ran_in = ran_in.lock().unwrap()[round];
        let one = || (ObjectId::from("one"), "name".to_owned(), ran_in);
        let (id, operation, thread) = one();
        assert_eq!(asked[2 * round], Asked::Preinvoke(id, operation, thread));
        let (id, operation, thread) = one();
        assert_eq!(asked[2 * round + 1], Asked::Postinvoke(id, operation, thread, Some(2 * round)));
    }
}

/// 15.3.7: concurrent requests have a pair each, with their own cookies and servants.
#[test]
fn concurrent_requests_keep_their_cookies_apart() {
    let pair = Pair::new();
    let gate = Gate::default();
    let passing = gate.clone();
    let manager = Scripted::finding(move |id, _| Ok(gated(&String::from_utf8_lossy(id), &passing)));
    let poa = managed(&pair, &manager);
    let calls: Vec<_> = ["a", "b"]
        .into_iter()
        .flat_map(|id| ways(&pair, &poa, id).map(|object| (id, in_background(move || object.wait()))))
        .collect();
    gate.await_arrivals(4);
    assert!(manager.asked().iter().all(|asked| matches!(asked, Asked::Preinvoke(..))), "all of them still run");
    gate.release();
    for (id, call) in calls {
        assert_eq!(call.recv_timeout(PATIENCE).unwrap().unwrap(), id);
    }
    let asked = manager.await_asked(8);
    for post in &asked[4..] {
        let Asked::Postinvoke(id, operation, thread, Some(place)) = post else { panic!("{post:?}") };
        assert_eq!(asked[*place], Asked::Preinvoke(id.clone(), operation.clone(), *thread));
    }
}

/// 15.3.7: one-way requests have their pairs, too.
#[test]
fn one_ways_have_their_pairs() {
    let pair = Pair::new();
    let manager = Scripted::naming();
    let poa = managed(&pair, &manager);
    let [object, _] = ways(&pair, &poa, "one");
    object.note().unwrap();
    let one = ObjectId::from("one");
    assert_eq!(told(&manager.await_asked(2)), [(false, one.clone(), "note"), (true, one, "note")]);
}

/// 15.3.7.1: a system exception of preinvoke is what the client gets; there is nothing to be let go then.
#[test]
fn an_exception_of_preinvoke_reaches_the_client() {
    let pair = Pair::new();
    let raised = SystemException::no_permission(9, CompletionStatus::No);
    let expected = judged(&raised);
    let manager = Scripted::finding(move |_, _| Err(raised.clone().into()));
    let poa = managed(&pair, &manager);
    for object in ways(&pair, &poa, "one") {
        assert_eq!(judged(&object.name().unwrap_err()), expected);
    }
    poa.destroy(false, true).unwrap();
    let one = ObjectId::from("one");
    assert_eq!(told(&manager.asked()), [(false, one.clone(), "name"), (false, one, "name")]);
}

/// 15.3.7: the pair is complete also if the request raises an exception.
#[test]
fn a_request_that_fails_has_its_pair() {
    let pair = Pair::new();
    let manager = Scripted::naming();
    let poa = managed(&pair, &manager);
    for (round, object) in ways(&pair, &poa, "one").into_iter().enumerate() {
        let derived: Derived = object.as_object().unchecked_narrow();
        assert_eq!(derived.more().unwrap_err().kind(), SystemExceptionKind::BadOperation);
        let asked = manager.await_asked(2 * round + 2);
        let one = ObjectId::from("one");
        assert_eq!(told(&asked[2 * round..]), [(false, one.clone(), "more"), (true, one, "more")]);
    }
}

/// 15.3.5, 15.3.7.1: ForwardRequest has the request answered by the object that it names, and is not followed by postinvoke.
#[test]
fn a_forwarded_request_is_answered_elsewhere() {
    let pair = Pair::new();
    let id = pair.root.activate_object(named("elsewhere")).unwrap();
    let target = pair.root.id_to_reference(&id).unwrap();
    let manager = Scripted::finding(move |_, _| Err(Incarnation::ForwardRequest(target.clone())));
    let poa = managed(&pair, &manager);
    for object in ways(&pair, &poa, "one") {
        assert_eq!(object.name().unwrap(), "elsewhere");
    }
    poa.destroy(false, true).unwrap();
    assert!(manager.asked().iter().all(|asked| matches!(asked, Asked::Preinvoke(..))), "{:?}", manager.asked());
}

/// 15.3.7.2: postinvoke may call the adapter, and other objects.
#[test]
fn postinvoke_may_call_others() {
    let pair = Pair::new();
    let id = pair.root.activate_object(named("other")).unwrap();
    let other = pair.root.id_to_reference(&id).unwrap();
    let [_, local] = pair.ways(&other);
    let answers = Arc::new(Mutex::new(Vec::new()));
    let got = Arc::clone(&answers);
    let manager = Scripted::new(
        |_, _| Ok(named("one")),
        move |id, adapter| {
            let reference = adapter.create_reference_with_id(id, TYPE).unwrap();
            assert_eq!(adapter.reference_to_id(&reference).unwrap(), *id);
            got.lock().unwrap().push(local.name());
        },
    );
    let poa = managed(&pair, &manager);
    for object in ways(&pair, &poa, "one") {
        assert_eq!(object.name().unwrap(), "one");
    }
    eventually(|| answers.lock().unwrap().len() == 2);
    assert!(answers.lock().unwrap().iter().all(|answer| answer.as_deref() == Ok("other")));
}

/// 15.3.9 destroy: waiting for completion is waiting for postinvoke, too.
#[test]
fn a_request_has_not_completed_before_postinvoke() {
    let pair = Pair::new();
    let gate = Gate::default();
    let passing = gate.clone();
    let manager = Scripted::new(|_, _| Ok(named("one")), move |_, _| passing.pass());
    let poa = managed(&pair, &manager);
    let [object, _] = ways(&pair, &poa, "one");
    let called = in_background(move || object.name());
    gate.await_arrivals(1);
    let destroying = poa.clone();
    let destroyed = in_background(move || destroying.destroy(false, true));
    eventually(|| pair.root.find_poa("child", false).is_err());
    assert!(destroyed.try_recv().is_err(), "postinvoke still runs");
    gate.release();
    destroyed.recv_timeout(PATIENCE).unwrap().unwrap();
    assert_eq!(called.recv_timeout(PATIENCE).unwrap().unwrap(), "one");
}
