//! Adapters that are made when they are needed (15.3.4).

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use spandrel::poa::{AdapterActivator, IdAssignmentPolicy, LifespanPolicy, PoaError};
use spandrel::{CompletionStatus, ObjectRef, Policy, SystemExceptionKind, minor};
use spandrel_conformance_tests::support::{Gate, PATIENCE, Pair, in_background, judged, named, raised, refused};

type Make = dyn Fn(&spandrel::Poa, &str) -> bool + Send + Sync;

/// An adapter activator that does what a test says, and writes down what it was asked: the parent's name and the child's.
struct Scripted {
    make: Box<Make>,
    asked: Mutex<Vec<(String, String)>>,
}

impl Scripted {
    fn new(make: impl Fn(&spandrel::Poa, &str) -> bool + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { make: Box::new(make), asked: Mutex::default() })
    }

    fn asked(&self) -> Vec<(String, String)> {
        self.asked.lock().unwrap().clone()
    }
}

impl AdapterActivator for Scripted {
    fn unknown_adapter(&self, parent: &spandrel::Poa, name: &str) -> bool {
        self.asked.lock().unwrap().push((parent.the_name(), name.to_owned()));
        (self.make)(parent, name)
    }
}

fn policies() -> [Policy; 2] {
    [IdAssignmentPolicy::UserId.into(), LifespanPolicy::Persistent.into()]
}

/// Makes the child under the root's manager, with one object.
fn make(parent: &spandrel::Poa, name: &str) -> spandrel::Poa {
    let child = parent.create_poa(name, Some(&parent.the_poa_manager()), policies()).unwrap();
    child.activate_object_with_id(&"one".into(), named(name)).unwrap();
    child
}

/// A reference to an object of an adapter that does not exist any more.
fn orphan(pair: &Pair, names: &[&str]) -> ObjectRef {
    let adapter = names.iter().fold(pair.root.clone(), |parent, name| make(&parent, name));
    let reference = adapter.id_to_reference(&"one".into()).unwrap();
    pair.root.find_poa(names[0], false).unwrap().destroy(false, true).unwrap();
    reference
}

/// 15.3.4.1: unknown_adapter is called for a request for an adapter that does not exist, with the parent and the name; if it returns
/// TRUE the request is processed.
#[test]
fn a_request_has_its_adapter_made() {
    for way in 0..2 {
        let pair = Pair::new();
        let object = &pair.ways(&orphan(&pair, &["late"]))[way];
        let activator = Scripted::new(|parent, name| {
            make(parent, name);
            true
        });
        pair.root.set_the_activator(Some(Arc::<Scripted>::clone(&activator)));
        assert_eq!(object.name().unwrap(), "late");
        assert_eq!(object.name().unwrap(), "late");
        assert_eq!(activator.asked(), [("RootPOA".to_owned(), "late".to_owned())]);
    }
}

/// 15.3.4.1: once for each adapter that must be made, beginning with the ancestor nearest to the root.
#[test]
fn ancestors_are_made_first_and_one_by_one() {
    let pair = Pair::new();
    let object = pair.seen(&orphan(&pair, &["a", "b", "c"]));
    let below = Arc::new(Mutex::new(None::<Arc<dyn AdapterActivator>>));
    let next = Arc::clone(&below);
    let activator = Scripted::new(move |parent, name| {
        make(parent, name).set_the_activator(next.lock().unwrap().clone());
        true
    });
    *below.lock().unwrap() = Some(Arc::<Scripted>::clone(&activator));
    pair.root.set_the_activator(Some(Arc::<Scripted>::clone(&activator)));
    assert_eq!(object.name().unwrap(), "c");
    let expected =
        [("RootPOA", "a"), ("a", "b"), ("b", "c")].map(|(parent, name)| (parent.to_owned(), name.to_owned()));
    assert_eq!(activator.asked(), expected);
    *below.lock().unwrap() = None;
}

/// 15.3.4.1: the activator of the parent is asked: one further up is not.
#[test]
fn an_activator_is_asked_for_children_only() {
    let pair = Pair::new();
    let object = pair.seen(&orphan(&pair, &["a", "b"]));
    let activator = Scripted::new(|parent, name| {
        make(parent, name);
        true
    });
    pair.root.set_the_activator(Some(Arc::<Scripted>::clone(&activator)));
    let error = object.name().unwrap_err();
    assert_eq!(judged(&error), (SystemExceptionKind::ObjectNotExist, minor::NO_SUCH_ADAPTER, CompletionStatus::No));
    assert_eq!(activator.asked(), [("RootPOA".to_owned(), "a".to_owned())]);
}

/// 15.3.4.1: if it returns FALSE, the client gets OBJECT_NOT_EXIST with minor code 2.
#[test]
fn an_adapter_that_is_not_made_does_not_exist() {
    let pair = Pair::new();
    let reference = orphan(&pair, &["late"]);
    pair.root.set_the_activator(Some(Scripted::new(|_, _| false)));
    for object in pair.ways(&reference) {
        let expected = (SystemExceptionKind::ObjectNotExist, minor::NO_SUCH_ADAPTER, CompletionStatus::No);
        assert_eq!(judged(&object.name().unwrap_err()), expected);
    }
}

/// 15.3.4.1: without an activator, too.
#[test]
fn without_an_activator_the_adapter_does_not_exist() {
    let pair = Pair::new();
    for object in pair.ways(&orphan(&pair, &["late"])) {
        let expected = (SystemExceptionKind::ObjectNotExist, minor::NO_SUCH_ADAPTER, CompletionStatus::No);
        assert_eq!(judged(&object.name().unwrap_err()), expected);
    }
}

/// 15.3.4.1: if it raises a system exception, the client gets OBJ_ADAPTER with minor code 1. A panic is the nearest that there is.
#[test]
fn an_activator_that_fails_is_reported() {
    let pair = Pair::new();
    let reference = orphan(&pair, &["late"]);
    pair.root.set_the_activator(Some(Scripted::new(|_, _| panic!("this is the test's"))));
    let expected = (SystemExceptionKind::ObjAdapter, minor::UNKNOWN_ADAPTER_FAILED, CompletionStatus::No);
    for object in pair.ways(&reference) {
        assert_eq!(judged(&object.name().unwrap_err()), expected);
    }
    // 15.3.9 find_POA: the same for whoever looks for it.
    assert_eq!(raised(pair.root.find_poa("late", true)), expected);
}

/// 15.3.9 find_POA: with activate_it, the activator is called, and the adapter returned that it made.
#[test]
fn find_poa_has_the_adapter_made() {
    let pair = Pair::new();
    let activator = Scripted::new(|parent, name| name != "unwanted" && make(parent, name).the_name() == name);
    pair.root.set_the_activator(Some(Arc::<Scripted>::clone(&activator)));
    assert_eq!(refused(pair.root.find_poa("late", false)), PoaError::AdapterNonExistent);
    assert_eq!(activator.asked(), []);
    assert_eq!(pair.root.find_poa("late", true).unwrap().the_name(), "late");
    assert_eq!(refused(pair.root.find_poa("unwanted", true)), PoaError::AdapterNonExistent);
    assert_eq!(activator.asked().len(), 2);
}

/// 15.3.9 find_POA: an activator that returns TRUE without having made it has not activated it.
#[test]
fn an_activator_that_only_says_so_has_not_made_it() {
    let pair = Pair::new();
    let reference = orphan(&pair, &["late"]);
    pair.root.set_the_activator(Some(Scripted::new(|_, _| true)));
    assert_eq!(refused(pair.root.find_poa("late", true)), PoaError::AdapterNonExistent);
    assert_eq!(pair.seen(&reference).name().unwrap_err().kind(), SystemExceptionKind::ObjectNotExist);
}

/// 15.3.4.1: of many first requests at once, one has the adapter made; all others, and those for it that come before unknown_adapter
/// has returned, wait for that.
#[test]
fn concurrent_first_requests_wait_for_one_call() {
    let pair = Pair::new();
    let reference = orphan(&pair, &["late"]);
    let (gate, answered) = (Gate::default(), Arc::new(AtomicUsize::new(0)));
    let (passing, early) = (gate.clone(), Arc::clone(&answered));
    let activator = Scripted::new(move |parent, name| {
        make(parent, name);
        passing.pass();
        early.load(Ordering::SeqCst) == 0
    });
    pair.root.set_the_activator(Some(Arc::<Scripted>::clone(&activator)));
    let calls: Vec<_> = (0..4)
        .flat_map(|_| pair.ways(&reference))
        .map(|object| {
            let answered = Arc::clone(&answered);
            in_background(move || {
                let outcome = object.name();
                answered.fetch_add(1, Ordering::SeqCst);
                outcome
            })
        })
        .collect();
    gate.await_arrivals(1);
    assert!(calls.iter().all(|call| call.try_recv().is_err()), "the adapter was not ready");
    gate.release();
    for call in calls {
        assert_eq!(call.recv_timeout(PATIENCE).unwrap().unwrap(), "late");
    }
    assert_eq!(activator.asked().len(), 1);
}

/// 15.3.2.1: while the parent's manager discards, adapter activators are not called, and the client gets TRANSIENT; a parent that is
/// inactive rejects.
#[test]
fn the_activator_of_a_discarding_or_inactive_parent_is_not_called() {
    let pair = Pair::new();
    let parent = pair.root.create_poa("parent", None, policies()).unwrap();
    let manager = parent.the_poa_manager();
    let reference = make(&parent, "late").id_to_reference(&"one".into()).unwrap();
    parent.find_poa("late", false).unwrap().destroy(false, true).unwrap();
    let activator = Scripted::new(|parent, name| make(parent, name).the_name() == name);
    parent.set_the_activator(Some(Arc::<Scripted>::clone(&activator)));
    let object = pair.seen(&reference);
    manager.discard_requests(false).unwrap();
    let expected = (SystemExceptionKind::Transient, minor::REQUEST_DISCARDED, CompletionStatus::No);
    assert_eq!(judged(&object.name().unwrap_err()), expected);
    manager.deactivate(false, false).unwrap();
    assert!(object.name().is_err());
    assert_eq!(activator.asked(), []);
}

/// 15.3.2.1: while the parent's manager holds, adapter activators are not called: the request waits.
#[test]
fn the_activator_of_a_holding_parent_is_called_later() {
    let pair = Pair::new();
    let parent = pair.root.create_poa("parent", None, policies()).unwrap();
    let manager = parent.the_poa_manager();
    let reference = make(&parent, "late").id_to_reference(&"one".into()).unwrap();
    parent.find_poa("late", false).unwrap().destroy(false, true).unwrap();
    let holding = manager.clone();
    let activator = Scripted::new(move |parent, name| {
        make(parent, name);
        holding.state() == spandrel::poa::State::Active
    });
    parent.set_the_activator(Some(Arc::<Scripted>::clone(&activator)));
    let object = pair.seen(&reference);
    let calls = [object.clone(), object].map(|object| in_background(move || object.name()));
    // A request for something else shows that the server reads on.
    let id = pair.root.activate_object(named("other")).unwrap();
    assert_eq!(pair.seen(&pair.root.id_to_reference(&id).unwrap()).name().unwrap(), "other");
    assert_eq!(activator.asked(), []);
    manager.activate().unwrap();
    for call in calls {
        assert_eq!(call.recv_timeout(PATIENCE).unwrap().unwrap(), "late");
    }
    assert_eq!(activator.asked().len(), 1);
}

/// 15.3.9 destroy: what waits for an adapter that is being destroyed is processed as if it had newly arrived: its activator may make
/// it again.
#[test]
fn a_destroyed_adapter_is_made_again() {
    let pair = Pair::new();
    let activator = Scripted::new(|parent, name| make(parent, name).the_name() == name);
    pair.root.set_the_activator(Some(Arc::<Scripted>::clone(&activator)));
    let first = pair.root.find_poa("late", true).unwrap();
    let object = pair.seen(&first.id_to_reference(&"one".into()).unwrap());
    assert_eq!(object.name().unwrap(), "late");
    first.destroy(false, true).unwrap();
    assert_eq!(object.name().unwrap(), "late");
    assert_eq!(activator.asked().len(), 2);
}

/// 15.3.9 the_activator: none by default, then the one that was set; unset, it is not called.
#[test]
fn the_activator_is_the_one_that_was_set() {
    let pair = Pair::new();
    assert!(pair.root.the_activator().is_none());
    let activator = Scripted::new(|_, _| true);
    pair.root.set_the_activator(Some(Arc::<Scripted>::clone(&activator)));
    pair.root.the_activator().unwrap().unknown_adapter(&pair.root, "asked");
    assert_eq!(activator.asked().len(), 1);
    pair.root.set_the_activator(None);
    assert!(pair.root.the_activator().is_none());
    assert!(pair.root.find_poa("asked", true).is_err());
    assert_eq!(activator.asked().len(), 1);
}
