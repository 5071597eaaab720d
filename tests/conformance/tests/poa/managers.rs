//! POA managers and their states (15.3.2), and the factory that creates them (15.3.3).

use std::sync::mpsc::Receiver;

use spandrel::{CompletionStatus, SystemException, SystemExceptionKind, minor};
use spandrel::{
    Poa,
    poa::{EtherealizeObjects, PoaError, PoaManager, State, WaitForCompletion},
};
use spandrel_conformance_tests::{
    idl::conformance::Subject,
    support::{
        Gate, Pair, TEST_TIMEOUT, eventually, gated_servant, in_background, kind_minor_completion, named_servant,
    },
};

/// An adapter with its own manager, and the client's reference to one of its objects.
fn managed(pair: &Pair) -> (Poa, PoaManager, Subject) {
    let poa = pair.root.create_poa("managed", None, []).unwrap();
    let id = poa.activate_object(named_servant("one")).unwrap();
    let object = pair.as_client(&poa.id_to_reference(&id).unwrap());
    (poa.clone(), poa.the_poa_manager(), object)
}

/// An object with its own active manager and a request that runs until the gate is opened.
struct Running {
    _pair: Pair,
    manager: PoaManager,
    gate: Gate,
    called: Receiver<Result<String, SystemException>>,
}

impl Running {
    fn begin() -> Self {
        let pair = Pair::new();
        let poa = pair.root.create_poa("managed", None, []).unwrap();
        let manager = poa.the_poa_manager();
        manager.activate().unwrap();
        let gate = Gate::default();
        let id = poa.activate_object(gated_servant("one", &gate)).unwrap();
        let object = pair.as_client(&poa.id_to_reference(&id).unwrap());
        let called = in_background(move || object.wait());
        gate.await_arrivals(1);
        Self { _pair: pair, manager, gate, called }
    }

    fn complete(self) {
        self.gate.release();
        assert_eq!(self.called.recv_timeout(TEST_TIMEOUT).unwrap().unwrap(), "one");
    }
}

/// 15.3.2.1: a POA manager is created in the holding state.
#[test]
fn a_manager_is_created_in_the_holding_state() {
    let pair = Pair::new();
    let (_, manager, _) = managed(&pair);
    assert_eq!(manager.state(), State::Holding);
    let created = pair.root.the_poa_manager_factory().create("another", []).unwrap();
    assert_eq!(created.state(), State::Holding);
}

/// 15.3.2.1: in the holding state, the associated POAs queue incoming requests; 15.3.2.3: activate makes them
/// process requests.
#[test]
fn a_held_request_runs_after_activation() {
    let pair = Pair::new();
    let (_, manager, object) = managed(&pair);
    let called = in_background(move || object.name());
    assert!(
        called.recv_timeout(std::time::Duration::from_millis(50)).is_err(),
        "a request was answered in the holding state"
    );
    manager.activate().unwrap();
    assert_eq!(called.recv_timeout(TEST_TIMEOUT).unwrap().unwrap(), "one");
}

/// 15.3.2.1: held requests are processed after activation, one-way requests included.
#[test]
fn held_one_ways_run_after_activation() {
    let pair = Pair::new();
    let poa = pair.root.create_poa("managed", None, []).unwrap();
    let gate = Gate::open();
    let id = poa.activate_object(gated_servant("one", &gate)).unwrap();
    let object = pair.as_client(&poa.id_to_reference(&id).unwrap());
    for _ in 0..3 {
        object.note().unwrap();
    }
    poa.the_poa_manager().activate().unwrap();
    gate.await_arrivals(3);
}

/// 15.3.2.1: in the discarding state, the associated POAs discard all incoming requests with TRANSIENT 1.
#[test]
fn a_discarded_request_raises_transient() {
    let pair = Pair::new();
    let (_, manager, object) = managed(&pair);
    manager.discard_requests(WaitForCompletion::No).unwrap();
    assert_eq!(manager.state(), State::Discarding);
    let error = object.name().unwrap_err();
    let expected = (SystemExceptionKind::Transient, minor::REQUEST_DISCARDED, CompletionStatus::No);
    assert_eq!(kind_minor_completion(&error), expected);
}

/// 15.3.2.5: requests queued in the holding state are discarded, too.
#[test]
fn discard_requests_discards_held_requests() {
    let pair = Pair::new();
    let (_, manager, object) = managed(&pair);
    let called = in_background(move || object.name());
    assert!(called.recv_timeout(std::time::Duration::from_millis(50)).is_err());
    manager.discard_requests(WaitForCompletion::No).unwrap();
    let error = called.recv_timeout(TEST_TIMEOUT).unwrap().unwrap_err();
    assert_eq!(error.kind(), SystemExceptionKind::Transient);
}

/// 15.3.2.1: a discarding manager may become active or holding again.
#[test]
fn a_discarding_manager_may_become_active_or_holding() {
    let pair = Pair::new();
    let (_, manager, object) = managed(&pair);
    manager.discard_requests(WaitForCompletion::No).unwrap();
    manager.activate().unwrap();
    assert_eq!((manager.state(), object.name().unwrap()), (State::Active, "one".to_owned()));
    manager.discard_requests(WaitForCompletion::No).unwrap();
    manager.hold_requests(WaitForCompletion::No).unwrap();
    assert_eq!(manager.state(), State::Holding);
}

/// 15.3.2.1: in the inactive state, the associated POAs reject new requests, here with OBJ_ADAPTER.
#[test]
fn an_inactive_manager_rejects_requests() {
    let pair = Pair::new();
    let (_, manager, object) = managed(&pair);
    manager.activate().unwrap();
    assert_eq!(object.name().unwrap(), "one");
    manager.deactivate(EtherealizeObjects::No, WaitForCompletion::Yes).unwrap();
    assert_eq!(manager.state(), State::Inactive);
    let error = object.name().unwrap_err();
    assert_eq!((error.kind(), error.completed()), (SystemExceptionKind::ObjAdapter, CompletionStatus::No));
}

/// 15.3.2.6: deactivate rejects queued requests.
#[test]
fn deactivate_rejects_held_requests() {
    let pair = Pair::new();
    let (_, manager, object) = managed(&pair);
    let called = in_background(move || object.name());
    assert!(called.recv_timeout(std::time::Duration::from_millis(50)).is_err());
    manager.deactivate(EtherealizeObjects::No, WaitForCompletion::No).unwrap();
    let error = called.recv_timeout(TEST_TIMEOUT).unwrap().unwrap_err();
    assert_eq!(error.completed(), CompletionStatus::No);
}

/// 15.3.2.3, 15.3.2.4, 15.3.2.5: on an inactive manager, the operations raise AdapterInactive.
#[test]
fn an_inactive_manager_raises_adapter_inactive() {
    let pair = Pair::new();
    let (_, manager, _) = managed(&pair);
    manager.deactivate(EtherealizeObjects::No, WaitForCompletion::Yes).unwrap();
    assert!(matches!(manager.activate(), Err(PoaError::AdapterInactive { .. })));
    assert!(matches!(manager.hold_requests(WaitForCompletion::No), Err(PoaError::AdapterInactive { .. })));
    assert!(matches!(manager.discard_requests(WaitForCompletion::No), Err(PoaError::AdapterInactive { .. })));
    assert_eq!(manager.state(), State::Inactive);
}

/// 15.3.2.6: deactivate on an inactive manager has no effect.
#[test]
fn deactivating_an_inactive_manager_has_no_effect() {
    let pair = Pair::new();
    let (_, manager, _) = managed(&pair);
    manager.deactivate(EtherealizeObjects::No, WaitForCompletion::Yes).unwrap();
    manager.deactivate(EtherealizeObjects::Yes, WaitForCompletion::Yes).unwrap();
}

/// 15.3.2.4, 15.3.2.5, 15.3.2.6: with wait_for_completion, the operation returns when no request executes.
#[test]
fn wait_for_completion_waits_for_running_requests() {
    type Change = fn(&PoaManager) -> Result<(), PoaError>;
    let changes: [Change; 3] = [
        |m| m.hold_requests(WaitForCompletion::Yes),
        |m| m.discard_requests(WaitForCompletion::Yes),
        |m| m.deactivate(EtherealizeObjects::No, WaitForCompletion::Yes),
    ];
    for change in changes {
        let running = Running::begin();
        let manager = running.manager.clone();
        let changed = in_background(move || change(&manager));
        assert!(changed.recv_timeout(std::time::Duration::from_millis(50)).is_err(), "a request still runs");
        running.gate.release();
        changed.recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
        running.complete();
    }
}

/// 15.3.2.4: the wait also ends if the state is changed meanwhile.
#[test]
fn waiting_for_completion_ends_when_the_state_is_changed() {
    let running = Running::begin();
    let holding = running.manager.clone();
    let held = in_background(move || holding.hold_requests(WaitForCompletion::Yes));
    eventually(|| running.manager.state() == State::Holding);
    running.manager.activate().unwrap();
    held.recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
    running.complete();
}

/// 15.3.2.4: without wait_for_completion it returns at once, and running requests complete.
#[test]
fn running_requests_complete_after_a_state_change() {
    let running = Running::begin();
    running.manager.deactivate(EtherealizeObjects::No, WaitForCompletion::No).unwrap();
    running.complete();
}

/// 15.3.3.1: create raises ManagerAlreadyExists if a manager has this id; 15.3.3.2, 15.3.3.3: list and find
/// return it.
#[test]
fn the_factory_finds_its_managers_by_id() {
    let pair = Pair::new();
    let factory = pair.root.the_poa_manager_factory();
    let created = factory.create("mine", []).unwrap();
    assert_eq!(created.id(), "mine");
    assert!(matches!(factory.create("mine", []), Err(PoaError::ManagerAlreadyExists { .. })));
    assert_eq!(factory.find("mine").unwrap().id(), "mine");
    assert!(factory.find("unknown").is_none());
    assert!(factory.list().iter().any(|manager| manager.id() == "mine"));
}

/// 15.3.2.8: the root adapter's manager has the id `RootPOAManager`; ids are unique within an ORB.
#[test]
fn managers_have_unique_ids() {
    let pair = Pair::new();
    assert_eq!(pair.root.the_poa_manager().id(), "RootPOAManager");
    let first = pair.root.create_poa("first", None, []).unwrap().the_poa_manager();
    let second = pair.root.create_poa("second", None, []).unwrap().the_poa_manager();
    assert_ne!(first.id(), second.id());
}

/// 15.3.9.3: adapters created with the same manager share its state.
#[test]
fn adapters_share_a_manager() {
    let pair = Pair::new();
    let (_, manager, object) = managed(&pair);
    let other = pair.root.create_poa("other", Some(&manager), []).unwrap();
    let id = other.activate_object(named_servant("two")).unwrap();
    let second = pair.as_client(&other.id_to_reference(&id).unwrap());
    manager.activate().unwrap();
    assert_eq!((object.name().unwrap(), second.name().unwrap()), ("one".to_owned(), "two".to_owned()));
    manager.discard_requests(WaitForCompletion::Yes).unwrap();
    assert!(object.name().is_err() && second.name().is_err());
}
