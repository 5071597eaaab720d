//! POA managers and their states (15.3.2), and the factory that makes them (15.3.3).

use std::sync::mpsc::Receiver;

use spandrel::poa::{Poa, PoaError, PoaManager, State};
use spandrel::{CompletionStatus, SystemException, SystemExceptionKind, minor};
use spandrel_conformance_tests::{
    idl::conformance::Subject,
    support::{Gate, PATIENCE, Pair, eventually, gated, in_background, judged, named},
};

/// An adapter under a manager of its own, and an object of it as the client sees it.
fn managed(pair: &Pair) -> (Poa, PoaManager, Subject) {
    let poa = pair.root.create_poa("managed", None, []).unwrap();
    let id = poa.activate_object(named("one")).unwrap();
    let object = pair.seen(&poa.id_to_reference(&id).unwrap());
    (poa.clone(), poa.the_poa_manager(), object)
}

/// An object under an active manager of its own, one of whose requests runs until the gate is opened.
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
        let id = poa.activate_object(gated("one", &gate)).unwrap();
        let object = pair.seen(&poa.id_to_reference(&id).unwrap());
        let called = in_background(move || object.wait());
        gate.await_arrivals(1);
        Self { _pair: pair, manager, gate, called }
    }

    fn ends_in_peace(self) {
        self.gate.release();
        assert_eq!(self.called.recv_timeout(PATIENCE).unwrap().unwrap(), "one");
    }
}

/// 15.3.2.1: a POA manager is created in the holding state.
#[test]
fn a_manager_is_created_in_the_holding_state() {
    let pair = Pair::new();
    let (_, manager, _) = managed(&pair);
    assert_eq!(manager.state(), State::Holding);
    let made = pair.root.the_poa_manager_factory().create("another", []).unwrap();
    assert_eq!(made.state(), State::Holding);
}

/// 15.3.2.1: in the holding state, the associated POAs queue incoming requests; 15.3.2.3: activate has them process requests.
#[test]
fn a_held_request_is_queued_and_run_once_the_manager_is_active() {
    let pair = Pair::new();
    let (_, manager, object) = managed(&pair);
    let called = in_background(move || object.name());
    assert!(
        called.recv_timeout(std::time::Duration::from_millis(50)).is_err(),
        "it was answered while it was to be held"
    );
    manager.activate().unwrap();
    assert_eq!(called.recv_timeout(PATIENCE).unwrap().unwrap(), "one");
}

/// 15.3.2.1: held requests are processed in the order of their arrival, for one client at least those that are one-way.
#[test]
fn held_one_ways_are_run() {
    let pair = Pair::new();
    let poa = pair.root.create_poa("managed", None, []).unwrap();
    let gate = Gate::open();
    let id = poa.activate_object(gated("one", &gate)).unwrap();
    let object = pair.seen(&poa.id_to_reference(&id).unwrap());
    for _ in 0..3 {
        object.note().unwrap();
    }
    poa.the_poa_manager().activate().unwrap();
    gate.await_arrivals(3);
}

/// 15.3.2.1: in the discarding state, the associated POAs discard all incoming requests; the client gets TRANSIENT with minor code 1.
#[test]
fn a_discarded_request_raises_transient() {
    let pair = Pair::new();
    let (_, manager, object) = managed(&pair);
    manager.discard_requests(false).unwrap();
    assert_eq!(manager.state(), State::Discarding);
    let error = object.name().unwrap_err();
    let expected = (SystemExceptionKind::Transient, minor::REQUEST_DISCARDED, CompletionStatus::No);
    assert_eq!(judged(&error), expected);
}

/// 15.3.2.5: requests that were queued in the holding state are discarded, too.
#[test]
fn held_requests_are_discarded_when_the_manager_begins_to_discard() {
    let pair = Pair::new();
    let (_, manager, object) = managed(&pair);
    let called = in_background(move || object.name());
    assert!(called.recv_timeout(std::time::Duration::from_millis(50)).is_err());
    manager.discard_requests(false).unwrap();
    let error = called.recv_timeout(PATIENCE).unwrap().unwrap_err();
    assert_eq!(error.kind(), SystemExceptionKind::Transient);
}

/// 15.3.2.1: from discarding it may become active again, and requests are processed.
#[test]
fn a_discarding_manager_may_become_active_or_holding() {
    let pair = Pair::new();
    let (_, manager, object) = managed(&pair);
    manager.discard_requests(false).unwrap();
    manager.activate().unwrap();
    assert_eq!((manager.state(), object.name().unwrap()), (State::Active, "one".to_owned()));
    manager.discard_requests(false).unwrap();
    manager.hold_requests(false).unwrap();
    assert_eq!(manager.state(), State::Holding);
}

/// 15.3.2.1: in the inactive state, the associated POAs reject new requests: OBJ_ADAPTER, or another way that says that they are gone.
#[test]
fn an_inactive_manager_rejects_requests() {
    let pair = Pair::new();
    let (_, manager, object) = managed(&pair);
    manager.activate().unwrap();
    assert_eq!(object.name().unwrap(), "one");
    manager.deactivate(false, true).unwrap();
    assert_eq!(manager.state(), State::Inactive);
    let error = object.name().unwrap_err();
    assert_eq!((error.kind(), error.completed()), (SystemExceptionKind::ObjAdapter, CompletionStatus::No));
}

/// 15.3.2.6: deactivate rejects requests that were queued.
#[test]
fn held_requests_are_rejected_when_the_manager_is_deactivated() {
    let pair = Pair::new();
    let (_, manager, object) = managed(&pair);
    let called = in_background(move || object.name());
    assert!(called.recv_timeout(std::time::Duration::from_millis(50)).is_err());
    manager.deactivate(false, false).unwrap();
    let error = called.recv_timeout(PATIENCE).unwrap().unwrap_err();
    assert_eq!(error.completed(), CompletionStatus::No);
}

/// 15.3.2.3, 15.3.2.4, 15.3.2.5: if issued while the manager is inactive, AdapterInactive is raised.
#[test]
fn an_inactive_manager_changes_its_state_no_more() {
    let pair = Pair::new();
    let (_, manager, _) = managed(&pair);
    manager.deactivate(false, true).unwrap();
    assert!(matches!(manager.activate(), Err(PoaError::AdapterInactive)));
    assert!(matches!(manager.hold_requests(false), Err(PoaError::AdapterInactive)));
    assert!(matches!(manager.discard_requests(false), Err(PoaError::AdapterInactive)));
    assert_eq!(manager.state(), State::Inactive);
}

/// 15.3.2.6: if deactivate is called on an inactive manager, it has no effect.
#[test]
fn deactivating_again_has_no_effect() {
    let pair = Pair::new();
    let (_, manager, _) = managed(&pair);
    manager.deactivate(false, true).unwrap();
    manager.deactivate(true, true).unwrap();
}

/// 15.3.2.4, 15.3.2.5, 15.3.2.6: with wait_for_completion, the operation does not return before no request executes.
#[test]
fn waiting_for_completion_is_waiting_for_the_requests_that_run() {
    type Change = fn(&PoaManager) -> Result<(), PoaError>;
    let changes: [Change; 3] = [|m| m.hold_requests(true), |m| m.discard_requests(true), |m| m.deactivate(false, true)];
    for change in changes {
        let running = Running::begin();
        let manager = running.manager.clone();
        let changed = in_background(move || change(&manager));
        assert!(changed.recv_timeout(std::time::Duration::from_millis(50)).is_err(), "a request still ran");
        running.gate.release();
        changed.recv_timeout(PATIENCE).unwrap().unwrap();
        running.ends_in_peace();
    }
}

/// 15.3.2.4: the wait ends also if the state is changed meanwhile.
#[test]
fn waiting_for_completion_ends_when_the_state_is_changed() {
    let running = Running::begin();
    let holding = running.manager.clone();
    let held = in_background(move || holding.hold_requests(true));
    eventually(|| running.manager.state() == State::Holding);
    running.manager.activate().unwrap();
    held.recv_timeout(PATIENCE).unwrap().unwrap();
    running.ends_in_peace();
}

/// 15.3.2.4: without wait_for_completion it returns at once, and requests that run end in peace.
#[test]
fn requests_that_run_when_the_state_changes_end_in_peace() {
    let running = Running::begin();
    running.manager.deactivate(false, false).unwrap();
    running.ends_in_peace();
}

/// 15.3.3.1: create raises ManagerAlreadyExists if there is one of this id; 15.3.3.2, 15.3.3.3: list and find know it.
#[test]
fn the_factory_knows_its_managers_by_their_ids() {
    let pair = Pair::new();
    let factory = pair.root.the_poa_manager_factory();
    let made = factory.create("mine", []).unwrap();
    assert_eq!(made.id(), "mine");
    assert!(matches!(factory.create("mine", []), Err(PoaError::ManagerAlreadyExists)));
    assert_eq!(factory.find("mine").unwrap().id(), "mine");
    assert!(factory.find("nobody").is_none());
    assert!(factory.list().iter().any(|manager| manager.id() == "mine"));
}

/// 15.3.2.8: the root adapter's manager has the id `RootPOAManager`; ids are unique within an ORB.
#[test]
fn managers_have_ids_of_their_own() {
    let pair = Pair::new();
    assert_eq!(pair.root.the_poa_manager().id(), "RootPOAManager");
    let first = pair.root.create_poa("first", None, []).unwrap().the_poa_manager();
    let second = pair.root.create_poa("second", None, []).unwrap().the_poa_manager();
    assert_ne!(first.id(), second.id());
}

/// 15.3.9.3: an adapter that is created with a manager is associated with it, and shares its state with the others of that manager.
#[test]
fn adapters_share_a_manager() {
    let pair = Pair::new();
    let (_, manager, object) = managed(&pair);
    let other = pair.root.create_poa("other", Some(&manager), []).unwrap();
    let id = other.activate_object(named("two")).unwrap();
    let second = pair.seen(&other.id_to_reference(&id).unwrap());
    manager.activate().unwrap();
    assert_eq!((object.name().unwrap(), second.name().unwrap()), ("one".to_owned(), "two".to_owned()));
    manager.discard_requests(true).unwrap();
    assert!(object.name().is_err() && second.name().is_err());
}
