//! Object adapters over real sockets: held requests, request counts, and the order of activation and
//! etherealization.

use spandrel::poa::{EtherealizeObjects, WaitForCompletion};
use std::{
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use spandrel::{
    CompletionStatus, ObjectRef, Orb, Poa, SystemException, SystemExceptionKind,
    diagnostics::statistics::Level,
    minor,
    poa::{
        AdapterActivator, Cookie, Current, IdAssignmentPolicy, IdUniquenessPolicy, Incarnation, LifespanPolicy,
        NoContext, ObjectId, PoaError, PoaManager, RequestProcessingPolicy, ServantActivator, ServantLocator,
        ServantManager, ServantRetentionPolicy, State, ThreadPolicy,
    },
    policy::Policy,
    server::{Replied, Servant, ServerCall},
};
use spandrel_orb_tests::{
    Probe, configured_servers,
    probe::{Target, TargetAsyncServant, TargetAsyncSkeleton, TargetSkeleton, target::RefuseError},
    support::{TEST_TIMEOUT, deferring, in_background, kind_and_completion, servant, wait_until},
};

/// An ORB with a child adapter of its root adapter.
struct AdapterFixture {
    orb: Orb,
    root: Poa,
    poa: Poa,
    manager: PoaManager,
}

impl AdapterFixture {
    fn new(policies: impl IntoIterator<Item = Policy>) -> Self {
        spandrel::net::sync::held::enable_checks();
        let orb = configured_servers(Orb::builder()).build().unwrap();
        let root = Poa::root(&orb).unwrap();
        let poa = root.create_poa("child", None, policies).unwrap();
        let manager = poa.the_poa_manager();
        Self { orb, root, poa, manager }
    }

    fn active(policies: impl IntoIterator<Item = Policy>) -> Self {
        let fixture = Self::new(policies);
        fixture.manager.activate().unwrap();
        fixture
    }

    /// Number of requests that the adapters hold.
    fn held(&self) -> i64 {
        // The level is updated when the metrics are rendered.
        let _ = self.orb.render_metrics();
        self.orb.statistics().level(Level::RequestsHeld)
    }

    fn reference(&self, id: &str) -> ObjectRef {
        self.poa.create_reference_with_id(&id.into(), "IDL:Probe/Target:1.0").unwrap()
    }
}

impl Drop for AdapterFixture {
    fn drop(&mut self) {
        self.orb.shutdown().unwrap();
    }
}

/// The object as referred to by a client with its own ORB.
fn client(object: &ObjectRef) -> Target {
    Orb::builder().build().unwrap().string_to_object(&object.to_string()).unwrap().unchecked_narrow()
}

/// A value shared between threads, with a condition variable.
#[derive(Default)]
struct Shared<T> {
    value: Mutex<T>,
    changed: Condvar,
}

impl<T> Shared<T> {
    fn change<R>(&self, change: impl FnOnce(&mut T) -> R) {
        change(&mut self.value.lock().unwrap());
        self.changed.notify_all();
    }

    #[track_caller]
    fn await_value(&self, is_so: impl Fn(&T) -> bool) {
        let value = self.value.lock().unwrap();
        let (_value, waited) = self.changed.wait_timeout_while(value, TEST_TIMEOUT, |value| !is_so(value)).unwrap();
        assert!(!waited.timed_out(), "timed out waiting for the condition");
    }

    fn see<R>(&self, see: impl FnOnce(&T) -> R) -> R {
        see(&self.value.lock().unwrap())
    }
}

fn probe(orb: &Orb) -> (Arc<Probe>, Arc<dyn Servant>) {
    let probe = Arc::new(Probe::new(orb));
    (Arc::clone(&probe), Arc::new(TargetSkeleton::new(probe)))
}

const SERVANT_MANAGER: RequestProcessingPolicy = RequestProcessingPolicy::UseServantManager;
const USER_ID: IdAssignmentPolicy = IdAssignmentPolicy::UserId;

mod managers {
    use super::*;

    fn fixture() -> (AdapterFixture, Arc<Probe>, Target) {
        let fixture = AdapterFixture::new([]);
        let (probe, servant) = probe(&fixture.orb);
        let object = fixture.poa.activate_shared(servant).unwrap();
        let target = client(&object);
        (fixture, probe, target)
    }

    #[test]
    fn held_requests_run_when_the_manager_is_activated() {
        let (fixture, _probe, target) = fixture();
        assert_eq!(fixture.manager.state(), State::Holding);
        let calls: Vec<_> = (0..8)
            .map(|number| {
                let target = target.clone();
                in_background(move || target.add(number, 1))
            })
            .collect();
        wait_until("the held requests", || fixture.held() == 8);
        assert!(calls[0].try_recv().is_err(), "the request is held");
        fixture.manager.activate().unwrap();
        for (number, call) in (0..).zip(calls) {
            assert_eq!(call.recv_timeout(TEST_TIMEOUT).unwrap().unwrap(), number + 1);
        }
        assert_eq!(target.add(1, 1).unwrap(), 2);
    }

    #[test]
    fn held_requests_are_discarded_when_the_state_changes() {
        let (fixture, _probe, target) = fixture();
        let held = in_background({
            let target = target.clone();
            move || target.ping()
        });
        wait_until("the held request", || fixture.held() == 1);
        assert!(held.try_recv().is_err(), "the request is held");
        fixture.manager.discard_requests(WaitForCompletion::No).unwrap();
        for refused in [held.recv_timeout(TEST_TIMEOUT).unwrap().unwrap_err(), target.ping().unwrap_err()] {
            let outcome = (refused.kind(), refused.minor(), refused.completed());
            assert_eq!(outcome, (SystemExceptionKind::Transient, minor::REQUEST_DISCARDED, CompletionStatus::No));
        }
        fixture.manager.deactivate(EtherealizeObjects::Yes, WaitForCompletion::Yes).unwrap();
        fixture.manager.deactivate(EtherealizeObjects::Yes, WaitForCompletion::Yes).unwrap();
        assert_eq!(target.ping().unwrap_err().kind(), SystemExceptionKind::ObjAdapter);
        assert!(matches!(fixture.manager.activate(), Err(PoaError::AdapterInactive { .. })));
        assert!(matches!(fixture.manager.hold_requests(WaitForCompletion::No), Err(PoaError::AdapterInactive { .. })));
    }

    #[test]
    fn hold_requests_waits_for_the_last_running_request() {
        let (fixture, probe, target) = fixture();
        fixture.manager.activate().unwrap();
        let running = in_background({
            let target = target.clone();
            move || target.hold(1)
        });
        probe.await_held(1);
        let manager = fixture.manager.clone();
        let waiting = in_background(move || manager.hold_requests(WaitForCompletion::Yes));
        assert!(waiting.recv_timeout(Duration::from_millis(20)).is_err(), "a request runs");
        probe.open(1);
        waiting.recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
        running.recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
        fixture.manager.activate().unwrap();
        target.ping().unwrap();
    }

    #[test]
    fn waiting_for_completion_ends_when_the_state_changes_again() {
        let (fixture, probe, target) = fixture();
        fixture.manager.activate().unwrap();
        let running = in_background(move || target.hold(1));
        probe.await_held(1);
        let manager = fixture.manager.clone();
        let waiting = in_background(move || manager.hold_requests(WaitForCompletion::Yes));
        wait_until("the state Holding", || fixture.manager.state() == State::Holding);
        assert!(waiting.recv_timeout(Duration::from_millis(20)).is_err(), "a request runs");
        fixture.manager.activate().unwrap();
        waiting.recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
        probe.open(1);
        running.recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
    }

    #[test]
    fn waiting_for_completion_within_an_upcall_is_refused_and_changes_nothing() {
        let fixture = AdapterFixture::active([]);
        let outcomes = Arc::<Shared<Vec<PoaError>>>::default();
        let (board, manager, poa) = (Arc::clone(&outcomes), fixture.manager.clone(), fixture.poa.clone());
        let deadlocking = servant(move |_, call| {
            let refused = [
                manager.hold_requests(WaitForCompletion::Yes),
                manager.discard_requests(WaitForCompletion::Yes),
                manager.deactivate(EtherealizeObjects::Yes, WaitForCompletion::Yes),
                poa.destroy(EtherealizeObjects::Yes, WaitForCompletion::Yes),
            ];
            board.change(|outcomes| outcomes.extend(refused.into_iter().map(Result::unwrap_err)));
            call.reply(|_| Ok(()))
        });
        let object = fixture.poa.activate(deadlocking).unwrap();
        client(&object).ping().unwrap();
        outcomes.see(|outcomes| {
            for error in outcomes {
                let PoaError::System(exception) = error else { panic!("{error:?}") };
                let outcome = (exception.kind(), exception.minor());
                assert_eq!(outcome, (SystemExceptionKind::BadInvOrder, minor::OPERATION_WOULD_DEADLOCK));
            }
            assert_eq!(outcomes.len(), 4);
        });
        assert_eq!(fixture.manager.state(), State::Active);
        client(&object).ping().unwrap();
    }

    #[test]
    fn shutdown_does_not_wait_for_held_requests() {
        let (fixture, _probe, target) = fixture();
        let held = in_background(move || target.ping());
        wait_until("the held request", || fixture.held() == 1);
        assert!(held.try_recv().is_err(), "the request is held");
        fixture.orb.shutdown().unwrap();
        let refused = held.recv_timeout(TEST_TIMEOUT).unwrap().unwrap_err();
        assert_eq!(kind_and_completion(&refused), (SystemExceptionKind::ObjAdapter, CompletionStatus::No));
    }
}

mod activators {
    use super::*;

    /// A servant activator that records its calls.
    #[derive(Default)]
    struct RecordingActivator {
        state: Shared<ActivatorState>,
        servants: Mutex<Vec<Arc<Probe>>>,
    }

    #[derive(Default)]
    struct ActivatorState {
        incarnated: usize,
        etherealized: Vec<(bool, bool)>,
        inside: usize,
        is_closed: bool,
    }

    impl RecordingActivator {
        fn enter_and_leave(&self) {
            self.state.change(|state| {
                state.inside += 1;
                assert_eq!(state.inside, 1, "two calls at once for one object");
            });
            self.state.await_value(|state| !state.is_closed);
            self.state.change(|state| state.inside -= 1);
        }

        fn servant(&self, index: usize) -> Arc<Probe> {
            Arc::clone(&self.servants.lock().unwrap()[index])
        }
    }

    impl ServantActivator for RecordingActivator {
        fn incarnate(&self, oid: &ObjectId, adapter: &Poa) -> Result<Arc<dyn Servant>, Incarnation> {
            self.enter_and_leave();
            self.state.change(|state| state.incarnated += 1);
            match oid.as_bytes() {
                b"gone" => Err(SystemException::object_not_exist(7, CompletionStatus::No).into()),
                b"there" => {
                    Err(Incarnation::ForwardRequest(adapter.create_reference_with_id(&"here".into(), "").unwrap()))
                }
                b"panic" => panic!("intended"),
                b"own" | b"wrong" => {
                    let (probe, servant) = probe(adapter.orb());
                    adapter.activate_object_with_id(oid, Arc::clone(&servant)).unwrap();
                    let other = self::probe(adapter.orb()).1;
                    self.servants.lock().unwrap().push(probe);
                    Ok(if oid.as_bytes() == b"own" { servant } else { other })
                }
                b"twice" => Ok(adapter.id_to_servant(&"own".into()).unwrap()),
                _ => {
                    let (probe, servant) = probe(adapter.orb());
                    self.servants.lock().unwrap().push(probe);
                    Ok(servant)
                }
            }
        }

        fn etherealize(&self, _: &ObjectId, _: &Poa, _: Arc<dyn Servant>, cleanup: bool, remaining: bool) {
            self.enter_and_leave();
            self.state.change(|state| state.etherealized.push((cleanup, remaining)));
        }
    }

    fn fixture() -> (AdapterFixture, Arc<RecordingActivator>) {
        let fixture = AdapterFixture::active([SERVANT_MANAGER.into(), USER_ID.into()]);
        let activator = Arc::<RecordingActivator>::default();
        fixture.poa.set_servant_manager(ServantManager::Activator(Arc::clone(&activator) as _)).unwrap();
        (fixture, activator)
    }

    #[test]
    fn concurrent_first_requests_incarnate_one_servant() {
        let (fixture, activator) = fixture();
        activator.state.change(|state| state.is_closed = true);
        let object = fixture.reference("account");
        let calls: Vec<_> = (0..6)
            .map(|number| {
                let target = client(&object);
                in_background(move || target.add(number, 0))
            })
            .collect();
        activator.state.await_value(|state| state.inside == 1);
        assert!(calls[0].recv_timeout(Duration::from_millis(20)).is_err());
        activator.state.change(|state| state.is_closed = false);
        for call in calls {
            call.recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
        }
        assert_eq!(activator.state.see(|state| state.incarnated), 1);
        assert_eq!(fixture.poa.active_objects(), 1);
    }

    #[test]
    fn an_object_is_etherealized_after_its_last_request_and_then_incarnated_again() {
        let (fixture, activator) = fixture();
        let object = fixture.reference("account");
        let target = client(&object);
        target.ping().unwrap();
        let first = activator.servant(0);
        let running = in_background({
            let target = client(&object);
            move || target.hold(1)
        });
        first.await_held(1);
        let id = ObjectId::from("account");
        fixture.poa.deactivate_object(&id).unwrap();
        assert!(matches!(fixture.poa.deactivate_object(&id), Err(PoaError::ObjectNotActive { .. })));
        assert_eq!(fixture.poa.active_objects(), 0);
        let next = in_background({
            let target = client(&object);
            move || target.count()
        });
        assert!(next.recv_timeout(Duration::from_millis(20)).is_err(), "the first servant is in use");
        assert_eq!(activator.state.see(|state| (state.incarnated, state.etherealized.len())), (1, 0));
        activator.state.change(|state| state.is_closed = true);
        first.open(1);
        running.recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
        activator.state.await_value(|state| state.inside == 1);
        assert!(next.recv_timeout(Duration::from_millis(20)).is_err(), "the object is being etherealized");
        activator.state.change(|state| state.is_closed = false);
        assert_eq!(next.recv_timeout(TEST_TIMEOUT).unwrap().unwrap(), 0);
        assert_eq!(
            activator.state.see(|state| (state.incarnated, state.etherealized.clone())),
            (2, vec![(false, false)])
        );
    }

    #[test]
    fn deactivation_returns_at_once_and_reactivation_waits_for_etherealization() {
        let (fixture, activator) = fixture();
        let object = fixture.reference("account");
        client(&object).ping().unwrap();
        activator.state.change(|state| state.is_closed = true);
        let id = ObjectId::from("account");
        fixture.poa.deactivate_object(&id).unwrap();
        activator.state.await_value(|state| state.inside == 1);
        let (poa, orb) = (fixture.poa.clone(), fixture.orb.clone());
        let activating = in_background(move || poa.activate_object_with_id(&"account".into(), probe(&orb).1));
        assert!(activating.recv_timeout(Duration::from_millis(20)).is_err(), "the object is being etherealized");
        activator.state.change(|state| state.is_closed = false);
        activating.recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
        client(&object).ping().unwrap();
        assert_eq!(activator.state.see(|state| (state.incarnated, state.etherealized.len())), (1, 1));
    }

    #[test]
    fn a_servant_activator_may_refuse_forward_or_panic() {
        let (fixture, activator) = fixture();
        let refused = client(&fixture.reference("gone")).ping().unwrap_err();
        assert_eq!((refused.kind(), refused.minor()), (SystemExceptionKind::ObjectNotExist, 7));
        assert_eq!(client(&fixture.reference("there")).add(1, 2).unwrap(), 3);
        for _ in 0..2 {
            let refused = client(&fixture.reference("panic")).ping().unwrap_err();
            assert_eq!(refused.kind(), SystemExceptionKind::Unknown);
        }
        activator.state.change(|state| assert_eq!(state.incarnated, 5));
        assert_eq!(fixture.poa.active_objects(), 1);
    }

    #[test]
    fn an_object_activated_within_incarnate_must_have_the_returned_servant() {
        let (fixture, activator) = fixture();
        client(&fixture.reference("own")).ping().unwrap();
        client(&fixture.reference("own")).ping().unwrap();
        assert_eq!(activator.state.see(|state| state.incarnated), 1);
        // A servant already active for another object, although the policy is UNIQUE_ID.
        for name in ["twice", "wrong"] {
            let refused = client(&fixture.reference(name)).ping().unwrap_err();
            let outcome = (refused.kind(), refused.minor());
            assert_eq!(outcome, (SystemExceptionKind::ObjAdapter, minor::INCARNATE_VIOLATED_POLICY), "{name}");
        }
        client(&fixture.reference("wrong")).ping().unwrap();
    }

    #[test]
    fn an_adapter_may_be_destroyed_within_its_own_upcall() {
        let (fixture, activator) = fixture();
        let poa = fixture.poa.clone();
        let ending = servant(move |_, call| {
            poa.destroy(EtherealizeObjects::Yes, WaitForCompletion::No).unwrap();
            // Requests continue to run, but no children can be created.
            let PoaError::System(refused) = poa.create_poa("late", None, []).unwrap_err() else {
                panic!("it is a system exception")
            };
            assert_eq!(refused.minor(), minor::POA_BEING_DESTROYED);
            call.reply(|_| Ok(()))
        });
        fixture.poa.activate_object_with_id(&"end".into(), Arc::new(ending)).unwrap();
        let target = client(&fixture.reference("end"));
        target.ping().unwrap();
        activator.state.await_value(|state| state.etherealized.len() == 1);
        assert_eq!(activator.state.see(|state| state.etherealized.clone()), [(true, false)]);
        assert_eq!(target.ping().unwrap_err().kind(), SystemExceptionKind::ObjectNotExist);
        fixture.poa.destroy(EtherealizeObjects::Yes, WaitForCompletion::Yes).unwrap();
        let PoaError::System(exception) = fixture.poa.create_poa("late", None, []).unwrap_err() else {
            panic!("it is a system exception")
        };
        assert_eq!(exception.kind(), SystemExceptionKind::ObjectNotExist);
    }

    #[test]
    fn destroying_the_adapter_or_the_orb_etherealizes_each_object_once() {
        let (fixture, activator) = fixture();
        for name in ["a", "b", "c"] {
            client(&fixture.reference(name)).ping().unwrap();
        }
        let target = client(&fixture.reference("c"));
        let running = in_background(move || target.hold(1));
        activator.servant(2).await_held(1);
        let poa = fixture.poa.clone();
        let destroying = in_background(move || poa.destroy(EtherealizeObjects::Yes, WaitForCompletion::Yes));
        activator.state.await_value(|state| state.etherealized.len() == 2);
        assert!(destroying.recv_timeout(Duration::from_millis(20)).is_err(), "a request runs");
        activator.servant(2).open(1);
        destroying.recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
        running.recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
        assert_eq!(activator.state.see(|state| state.etherealized.clone()), [(true, false); 3]);
        let exception = fixture.poa.create_reference_with_id(&"a".into(), "").unwrap_err();
        assert!(
            matches!(exception, PoaError::System(exception) if exception.kind() == SystemExceptionKind::ObjectNotExist)
        );

        let poa = fixture.root.create_poa("child", None, [SERVANT_MANAGER.into(), USER_ID.into()]).unwrap();
        poa.the_poa_manager().activate().unwrap();
        let activator = Arc::<RecordingActivator>::default();
        poa.set_servant_manager(ServantManager::Activator(Arc::clone(&activator) as _)).unwrap();
        client(&poa.create_reference_with_id(&"d".into(), "").unwrap()).ping().unwrap();
        fixture.orb.shutdown().unwrap();
        assert_eq!(activator.state.see(|state| state.etherealized.clone()), [(true, false)]);
    }

    #[test]
    fn deactivating_the_manager_etherealizes_its_objects() {
        let (fixture, activator) = fixture();
        client(&fixture.reference("a")).ping().unwrap();
        fixture.manager.deactivate(EtherealizeObjects::Yes, WaitForCompletion::Yes).unwrap();
        assert_eq!(activator.state.see(|state| state.etherealized.clone()), [(true, false)]);
        assert_eq!(client(&fixture.reference("a")).ping().unwrap_err().kind(), SystemExceptionKind::ObjAdapter);
        fixture.poa.destroy(EtherealizeObjects::Yes, WaitForCompletion::Yes).unwrap();
        assert_eq!(activator.state.see(|state| state.etherealized.len()), 1);
    }
}

mod locators {
    use super::*;

    #[derive(Default)]
    struct RecordingLocator {
        state: Shared<(usize, Vec<(String, usize)>)>,
        servants: Mutex<Vec<Arc<dyn Servant>>>,
    }

    impl ServantLocator for RecordingLocator {
        fn preinvoke(&self, _: &ObjectId, _: &Poa, _: &str) -> Result<(Arc<dyn Servant>, Cookie), Incarnation> {
            let mut number = 0;
            self.state.change(|(begun, _)| {
                *begun += 1;
                number = *begun;
            });
            Ok((Arc::clone(&self.servants.lock().unwrap()[0]), Box::new(number)))
        }

        fn postinvoke(
            &self,
            oid: &ObjectId,
            _: &Poa,
            operation: &str,
            cookie: Cookie,
            _: Arc<dyn Servant>,
        ) -> Result<(), SystemException> {
            let number = *cookie.downcast::<usize>().unwrap();
            assert_eq!(oid.as_bytes(), b"any");
            self.state.change(|(_, ended)| ended.push((operation.to_owned(), number)));
            Ok(())
        }
    }

    fn fixture(servant: Arc<dyn Servant>, orb: Orb) -> (AdapterFixture, Arc<RecordingLocator>) {
        let root = Poa::root(&orb).unwrap();
        let policies = [SERVANT_MANAGER.into(), ServantRetentionPolicy::NonRetain.into(), Policy::from(USER_ID)];
        let poa = root.create_poa("child", None, policies).unwrap();
        let manager = poa.the_poa_manager();
        manager.activate().unwrap();
        let locator = Arc::<RecordingLocator>::default();
        locator.servants.lock().unwrap().push(servant);
        poa.set_servant_manager(ServantManager::Locator(Arc::clone(&locator) as _)).unwrap();
        (AdapterFixture { orb, root, poa, manager }, locator)
    }

    #[test]
    fn preinvoke_and_postinvoke_run_once_per_request_with_the_same_cookie() {
        let orb = configured_servers(Orb::builder()).build().unwrap();
        let (_probe, servant) = probe(&orb);
        let (fixture, locator) = fixture(servant, orb);
        let target = client(&fixture.reference("any"));
        target.ping().unwrap();
        target.fail(3).unwrap_err();
        target.panic().unwrap_err();
        locator.state.await_value(|(_, ended)| ended.len() == 3);
        let calls = locator.state.see(|(_, ended)| ended.clone());
        assert_eq!(calls, [("ping".into(), 1), ("fail".into(), 2), ("panic".into(), 3)]);
    }

    #[test]
    fn a_deferred_request_counts_as_running_until_its_answer() {
        let (servant, requests) = deferring();
        let (fixture, locator) = fixture(Arc::new(servant), configured_servers(Orb::builder()).build().unwrap());
        let target = client(&fixture.reference("any"));
        let running = in_background(move || target.ping());
        let deferred = requests.recv_timeout(TEST_TIMEOUT).unwrap();
        let manager = fixture.manager.clone();
        let waiting = in_background(move || manager.hold_requests(WaitForCompletion::Yes));
        assert!(waiting.recv_timeout(Duration::from_millis(20)).is_err(), "a request is not answered");
        assert!(locator.state.see(|(_, ended)| ended.is_empty()));
        let outcome = deferred.answer(|call| call.reply(|_| Ok(())));
        deferred.end(outcome);
        running.recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
        waiting.recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
        locator.state.await_value(|(_, ended)| ended.len() == 1);
    }

    #[test]
    fn a_deactivated_servant_is_dropped_after_its_deferred_answer() {
        let fixture = AdapterFixture::active([]);
        let (servant, requests) = deferring();
        let servant: Arc<dyn Servant> = Arc::new(servant);
        let (object, watched) = (fixture.poa.activate_shared(Arc::clone(&servant)).unwrap(), Arc::downgrade(&servant));
        drop(servant);
        let target = client(&object);
        let running = in_background(move || target.ping());
        let deferred = requests.recv_timeout(TEST_TIMEOUT).unwrap();
        fixture.poa.deactivate(&object).unwrap();
        assert!(watched.upgrade().is_some(), "the servant is in use");
        let outcome = deferred.answer(|call| call.reply(|_| Ok(())));
        deferred.end(outcome);
        running.recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
        // The upcall that deferred the request may not have returned yet.
        fixture.poa.destroy(EtherealizeObjects::Yes, WaitForCompletion::Yes).unwrap();
        assert!(watched.upgrade().is_none(), "the servant is not in use any more");
    }
}

#[path = "poa/child_adapters.rs"]
mod child_adapters;
#[path = "poa/faults.rs"]
mod faults;
#[path = "poa/threads.rs"]
mod threads;
