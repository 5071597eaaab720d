//! Adapter activators (15.3.4).

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use spandrel::poa::{
    AdapterActivator, EtherealizeObjects, IdAssignmentPolicy, IfMissing, LifespanPolicy, PoaError, WaitForCompletion,
};
use spandrel::{CompletionStatus, ObjectRef, SystemExceptionKind, minor, policy::Policy};
use spandrel_conformance_tests::support::{
    Gate, Pair, TEST_TIMEOUT, expect_exception, expect_refusal, in_background, kind_minor_completion, named_servant,
};

type UnknownAdapter = dyn Fn(&spandrel::Poa, &str) -> bool + Send + Sync;

/// A scripted adapter activator that records its upcalls: the names of parent and child.
struct ScriptedActivator {
    create_child: Box<UnknownAdapter>,
    upcalls: Mutex<Vec<(String, String)>>,
}

impl ScriptedActivator {
    fn new(create_child: impl Fn(&spandrel::Poa, &str) -> bool + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { create_child: Box::new(create_child), upcalls: Mutex::default() })
    }

    fn upcalls(&self) -> Vec<(String, String)> {
        self.upcalls.lock().unwrap().clone()
    }
}

impl AdapterActivator for ScriptedActivator {
    fn unknown_adapter(&self, parent: &spandrel::Poa, name: &str) -> bool {
        self.upcalls.lock().unwrap().push((parent.the_name(), name.to_owned()));
        (self.create_child)(parent, name)
    }
}

fn policies() -> [Policy; 2] {
    [IdAssignmentPolicy::UserId.into(), LifespanPolicy::Persistent.into()]
}

/// Creates the child with the parent's manager and one object.
fn create_child(parent: &spandrel::Poa, name: &str) -> spandrel::Poa {
    let child = parent.create_poa(name, Some(&parent.the_poa_manager()), policies()).unwrap();
    child.activate_object_with_id(&"one".into(), named_servant(name)).unwrap();
    child
}

/// A reference to an object of an adapter that was destroyed again.
fn reference_to_missing_adapter(pair: &Pair, names: &[&str]) -> ObjectRef {
    let adapter = names.iter().fold(pair.root.clone(), |parent, name| create_child(&parent, name));
    let reference = adapter.id_to_reference(&"one".into()).unwrap();
    pair.root
        .find_poa(names[0], IfMissing::Fail)
        .unwrap()
        .destroy(EtherealizeObjects::No, WaitForCompletion::Yes)
        .unwrap();
    reference
}

/// 15.3.4.1: unknown_adapter is called with parent and name for a request for a missing adapter; if it
/// returns TRUE the request is processed.
#[test]
fn a_request_for_a_missing_adapter_calls_unknown_adapter() {
    for index in 0..2 {
        let pair = Pair::new();
        let object = &pair.remote_and_local(&reference_to_missing_adapter(&pair, &["late"]))[index];
        let activator = ScriptedActivator::new(|parent, name| {
            create_child(parent, name);
            true
        });
        pair.root.set_the_activator(Some(Arc::<ScriptedActivator>::clone(&activator)));
        assert_eq!(object.name().unwrap(), "late");
        assert_eq!(object.name().unwrap(), "late");
        assert_eq!(activator.upcalls(), [("RootPOA".to_owned(), "late".to_owned())]);
    }
}

/// 15.3.4.1: it is called once for each missing adapter, beginning with the ancestor nearest to the root.
#[test]
fn missing_ancestors_are_created_from_the_root_on() {
    let pair = Pair::new();
    let object = pair.as_client(&reference_to_missing_adapter(&pair, &["a", "b", "c"]));
    let below = Arc::new(Mutex::new(None::<Arc<dyn AdapterActivator>>));
    let next = Arc::clone(&below);
    let activator = ScriptedActivator::new(move |parent, name| {
        create_child(parent, name).set_the_activator(next.lock().unwrap().clone());
        true
    });
    *below.lock().unwrap() = Some(Arc::<ScriptedActivator>::clone(&activator));
    pair.root.set_the_activator(Some(Arc::<ScriptedActivator>::clone(&activator)));
    assert_eq!(object.name().unwrap(), "c");
    let expected =
        [("RootPOA", "a"), ("a", "b"), ("b", "c")].map(|(parent, name)| (parent.to_owned(), name.to_owned()));
    assert_eq!(activator.upcalls(), expected);
    *below.lock().unwrap() = None;
}

/// 15.3.4.1: the parent's own activator is called, not one of a further ancestor.
#[test]
fn an_activator_is_called_for_direct_children_only() {
    let pair = Pair::new();
    let object = pair.as_client(&reference_to_missing_adapter(&pair, &["a", "b"]));
    let activator = ScriptedActivator::new(|parent, name| {
        create_child(parent, name);
        true
    });
    pair.root.set_the_activator(Some(Arc::<ScriptedActivator>::clone(&activator)));
    let error = object.name().unwrap_err();
    assert_eq!(
        kind_minor_completion(&error),
        (SystemExceptionKind::ObjectNotExist, minor::NO_SUCH_ADAPTER, CompletionStatus::No)
    );
    assert_eq!(activator.upcalls(), [("RootPOA".to_owned(), "a".to_owned())]);
}

/// 15.3.4.1: if it returns FALSE, the client gets OBJECT_NOT_EXIST 2.
#[test]
fn if_unknown_adapter_returns_false_the_object_does_not_exist() {
    let pair = Pair::new();
    let reference = reference_to_missing_adapter(&pair, &["late"]);
    pair.root.set_the_activator(Some(ScriptedActivator::new(|_, _| false)));
    for object in pair.remote_and_local(&reference) {
        let expected = (SystemExceptionKind::ObjectNotExist, minor::NO_SUCH_ADAPTER, CompletionStatus::No);
        assert_eq!(kind_minor_completion(&object.name().unwrap_err()), expected);
    }
}

/// 15.3.4.1: the same without an activator.
#[test]
fn without_an_activator_the_object_does_not_exist() {
    let pair = Pair::new();
    for object in pair.remote_and_local(&reference_to_missing_adapter(&pair, &["late"])) {
        let expected = (SystemExceptionKind::ObjectNotExist, minor::NO_SUCH_ADAPTER, CompletionStatus::No);
        assert_eq!(kind_minor_completion(&object.name().unwrap_err()), expected);
    }
}

/// 15.3.4.1: if it raises a system exception, here a panic, the client gets OBJ_ADAPTER 1.
#[test]
fn an_exception_in_unknown_adapter_raises_obj_adapter() {
    let pair = Pair::new();
    let reference = reference_to_missing_adapter(&pair, &["late"]);
    pair.root.set_the_activator(Some(ScriptedActivator::new(|_, _| panic!("intended"))));
    let expected = (SystemExceptionKind::ObjAdapter, minor::UNKNOWN_ADAPTER_FAILED, CompletionStatus::No);
    for object in pair.remote_and_local(&reference) {
        assert_eq!(kind_minor_completion(&object.name().unwrap_err()), expected);
    }
    // 15.3.9 find_POA: the same for find_POA.
    assert_eq!(expect_exception(pair.root.find_poa("late", IfMissing::Activate)), expected);
}

/// 15.3.9 find_POA: with activate_it, the activator is called and the created adapter returned.
#[test]
fn find_poa_with_activate_it_calls_the_activator() {
    let pair = Pair::new();
    let activator =
        ScriptedActivator::new(|parent, name| name != "unwanted" && create_child(parent, name).the_name() == name);
    pair.root.set_the_activator(Some(Arc::<ScriptedActivator>::clone(&activator)));
    assert!(matches!(expect_refusal(pair.root.find_poa("late", IfMissing::Fail)), PoaError::AdapterNonExistent { .. }));
    assert_eq!(activator.upcalls(), []);
    assert_eq!(pair.root.find_poa("late", IfMissing::Activate).unwrap().the_name(), "late");
    assert!(matches!(
        expect_refusal(pair.root.find_poa("unwanted", IfMissing::Activate)),
        PoaError::AdapterNonExistent { .. }
    ));
    assert_eq!(activator.upcalls().len(), 2);
}

/// 15.3.9 find_POA: if the activator returns TRUE without creating the adapter, AdapterNonExistent is raised.
#[test]
fn an_activator_that_returns_true_must_have_created_the_adapter() {
    let pair = Pair::new();
    let reference = reference_to_missing_adapter(&pair, &["late"]);
    pair.root.set_the_activator(Some(ScriptedActivator::new(|_, _| true)));
    assert!(matches!(
        expect_refusal(pair.root.find_poa("late", IfMissing::Activate)),
        PoaError::AdapterNonExistent { .. }
    ));
    assert_eq!(pair.as_client(&reference).name().unwrap_err().kind(), SystemExceptionKind::ObjectNotExist);
}

/// 15.3.4.1: of concurrent first requests, one calls unknown_adapter; all others wait until it has returned.
#[test]
fn concurrent_first_requests_call_unknown_adapter_once() {
    let pair = Pair::new();
    let reference = reference_to_missing_adapter(&pair, &["late"]);
    let (gate, answered) = (Gate::default(), Arc::new(AtomicUsize::new(0)));
    let (passing, early) = (gate.clone(), Arc::clone(&answered));
    let activator = ScriptedActivator::new(move |parent, name| {
        create_child(parent, name);
        passing.wait_until_open();
        early.load(Ordering::SeqCst) == 0
    });
    pair.root.set_the_activator(Some(Arc::<ScriptedActivator>::clone(&activator)));
    let calls: Vec<_> = (0..4)
        .flat_map(|_| pair.remote_and_local(&reference))
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
    assert!(calls.iter().all(|call| call.try_recv().is_err()), "the activator has not returned");
    gate.release();
    for call in calls {
        assert_eq!(call.recv_timeout(TEST_TIMEOUT).unwrap().unwrap(), "late");
    }
    assert_eq!(activator.upcalls().len(), 1);
}

/// 15.3.2.1: while the parent's manager is discarding, adapter activators are not called and the client gets
/// TRANSIENT; an inactive manager rejects requests.
#[test]
fn the_activator_of_a_discarding_or_inactive_parent_is_not_called() {
    let pair = Pair::new();
    let parent = pair.root.create_poa("parent", None, policies()).unwrap();
    let manager = parent.the_poa_manager();
    let reference = create_child(&parent, "late").id_to_reference(&"one".into()).unwrap();
    parent.find_poa("late", IfMissing::Fail).unwrap().destroy(EtherealizeObjects::No, WaitForCompletion::Yes).unwrap();
    let activator = ScriptedActivator::new(|parent, name| create_child(parent, name).the_name() == name);
    parent.set_the_activator(Some(Arc::<ScriptedActivator>::clone(&activator)));
    let object = pair.as_client(&reference);
    manager.discard_requests(WaitForCompletion::No).unwrap();
    let expected = (SystemExceptionKind::Transient, minor::REQUEST_DISCARDED, CompletionStatus::No);
    assert_eq!(kind_minor_completion(&object.name().unwrap_err()), expected);
    manager.deactivate(EtherealizeObjects::No, WaitForCompletion::No).unwrap();
    assert!(object.name().is_err());
    assert_eq!(activator.upcalls(), []);
}

/// 15.3.2.1: while the parent's manager is holding, adapter activators are not called, and the request waits.
#[test]
fn the_activator_of_a_holding_parent_is_called_later() {
    let pair = Pair::new();
    let parent = pair.root.create_poa("parent", None, policies()).unwrap();
    let manager = parent.the_poa_manager();
    let reference = create_child(&parent, "late").id_to_reference(&"one".into()).unwrap();
    parent.find_poa("late", IfMissing::Fail).unwrap().destroy(EtherealizeObjects::No, WaitForCompletion::Yes).unwrap();
    let holding = manager.clone();
    let activator = ScriptedActivator::new(move |parent, name| {
        create_child(parent, name);
        holding.state() == spandrel::poa::State::Active
    });
    parent.set_the_activator(Some(Arc::<ScriptedActivator>::clone(&activator)));
    let object = pair.as_client(&reference);
    let calls = [object.clone(), object].map(|object| in_background(move || object.name()));
    // A request for another object proves that the server has read the earlier ones.
    let id = pair.root.activate_object(named_servant("other")).unwrap();
    assert_eq!(pair.as_client(&pair.root.id_to_reference(&id).unwrap()).name().unwrap(), "other");
    assert_eq!(activator.upcalls(), []);
    manager.activate().unwrap();
    for call in calls {
        assert_eq!(call.recv_timeout(TEST_TIMEOUT).unwrap().unwrap(), "late");
    }
    assert_eq!(activator.upcalls().len(), 1);
}

/// 15.3.9 destroy: requests that arrive during destroy are processed afterwards as new ones: the activator
/// may create the adapter again.
#[test]
fn an_activator_may_recreate_a_destroyed_adapter() {
    let pair = Pair::new();
    let activator = ScriptedActivator::new(|parent, name| create_child(parent, name).the_name() == name);
    pair.root.set_the_activator(Some(Arc::<ScriptedActivator>::clone(&activator)));
    let first = pair.root.find_poa("late", IfMissing::Activate).unwrap();
    let object = pair.as_client(&first.id_to_reference(&"one".into()).unwrap());
    assert_eq!(object.name().unwrap(), "late");
    first.destroy(EtherealizeObjects::No, WaitForCompletion::Yes).unwrap();
    assert_eq!(object.name().unwrap(), "late");
    assert_eq!(activator.upcalls().len(), 2);
}

/// 15.3.9 the_activator: nil by default, otherwise the one set; after it is reset, it is not called.
#[test]
fn the_activator_returns_the_activator_set() {
    let pair = Pair::new();
    assert!(pair.root.the_activator().is_none());
    let activator = ScriptedActivator::new(|_, _| true);
    pair.root.set_the_activator(Some(Arc::<ScriptedActivator>::clone(&activator)));
    pair.root.the_activator().unwrap().unknown_adapter(&pair.root, "unknown");
    assert_eq!(activator.upcalls().len(), 1);
    pair.root.set_the_activator(None);
    assert!(pair.root.the_activator().is_none());
    assert!(pair.root.find_poa("unknown", IfMissing::Activate).is_err());
    assert_eq!(activator.upcalls().len(), 1);
}
