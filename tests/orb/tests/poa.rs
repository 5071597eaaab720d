//! Object adapters over real sockets: what waits, what is counted, and in which order it happens.

use std::{
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use spandrel::{
    CompletionStatus, ObjectRef, Orb, Poa, Policy, Replied, Servant, ServerCall, SystemException, SystemExceptionKind,
    minor,
    poa::{
        AdapterActivator, Cookie, Current, IdAssignmentPolicy, IdUniquenessPolicy, Incarnation, LifespanPolicy,
        NoContext, ObjectId, PoaError, PoaManager, RequestProcessingPolicy, ServantActivator, ServantLocator,
        ServantManager, ServantRetentionPolicy, State, ThreadPolicy,
    },
    statistics::Level,
};
use spandrel_orb_tests::{
    Probe, arranged,
    probe::{Target, TargetAsyncServant, TargetAsyncSkeleton, TargetSkeleton, target::RefuseError},
    support::{PATIENCE, comes, deferring, in_background, kind_and_completion, servant},
};

/// An ORB with a child of its root adapter.
struct Stage {
    orb: Orb,
    root: Poa,
    poa: Poa,
    manager: PoaManager,
}

impl Stage {
    fn new(policies: impl IntoIterator<Item = Policy>) -> Self {
        spandrel::net::sync::held::enable_checks();
        let orb = arranged(Orb::builder()).build().unwrap();
        let root = Poa::root(&orb).unwrap();
        let poa = root.create_poa("child", None, policies).unwrap();
        let manager = poa.the_poa_manager();
        Self { orb, root, poa, manager }
    }

    fn active(policies: impl IntoIterator<Item = Policy>) -> Self {
        let stage = Self::new(policies);
        stage.manager.activate().unwrap();
        stage
    }

    /// How many requests its adapters hold.
    fn held(&self) -> i64 {
        // Which is looked at only when somebody asks for all that is measured.
        let _ = self.orb.render_metrics();
        self.orb.statistics().level(Level::RequestsHeld)
    }

    fn reference(&self, id: &str) -> ObjectRef {
        self.poa.create_reference_with_id(&id.into(), "IDL:Probe/Target:1.0").unwrap()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.orb.shutdown(true).unwrap();
    }
}

/// The object as a client of its own sees it.
fn client(object: &ObjectRef) -> Target {
    Orb::builder().build().unwrap().string_to_object(&object.to_string()).unwrap().unchecked_narrow()
}

/// Something that threads tell each other.
#[derive(Default)]
struct Board<T> {
    value: Mutex<T>,
    changed: Condvar,
}

impl<T> Board<T> {
    fn change<R>(&self, change: impl FnOnce(&mut T) -> R) {
        change(&mut self.value.lock().unwrap());
        self.changed.notify_all();
    }

    #[track_caller]
    fn await_that(&self, is_so: impl Fn(&T) -> bool) {
        let value = self.value.lock().unwrap();
        let (_value, waited) = self.changed.wait_timeout_while(value, PATIENCE, |value| !is_so(value)).unwrap();
        assert!(!waited.timed_out(), "it never came to be");
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

    fn stage() -> (Stage, Arc<Probe>, Target) {
        let stage = Stage::new([]);
        let (probe, servant) = probe(&stage.orb);
        let object = stage.poa.activate_shared(servant).unwrap();
        let target = client(&object);
        (stage, probe, target)
    }

    #[test]
    fn what_is_held_runs_when_the_manager_is_activated() {
        let (stage, _probe, target) = stage();
        assert_eq!(stage.manager.state(), State::Holding);
        let calls: Vec<_> = (0..8)
            .map(|number| {
                let target = target.clone();
                in_background(move || target.add(number, 1))
            })
            .collect();
        comes("the requests", || stage.held() == 8);
        assert!(calls[0].try_recv().is_err(), "it was held");
        stage.manager.activate().unwrap();
        for (number, call) in (0..).zip(calls) {
            assert_eq!(call.recv_timeout(PATIENCE).unwrap().unwrap(), number + 1);
        }
        assert_eq!(target.add(1, 1).unwrap(), 2);
    }

    #[test]
    fn what_is_held_is_discarded_or_refused_with_the_state() {
        let (stage, _probe, target) = stage();
        let held = in_background({
            let target = target.clone();
            move || target.ping()
        });
        comes("the request", || stage.held() == 1);
        assert!(held.try_recv().is_err(), "it was held");
        stage.manager.discard_requests(false).unwrap();
        for refused in [held.recv_timeout(PATIENCE).unwrap().unwrap_err(), target.ping().unwrap_err()] {
            let told = (refused.kind(), refused.minor(), refused.completed());
            assert_eq!(told, (SystemExceptionKind::Transient, minor::REQUEST_DISCARDED, CompletionStatus::No));
        }
        stage.manager.deactivate(true, true).unwrap();
        stage.manager.deactivate(true, true).unwrap();
        assert_eq!(target.ping().unwrap_err().kind(), SystemExceptionKind::ObjAdapter);
        assert_eq!(stage.manager.activate(), Err(PoaError::AdapterInactive));
        assert_eq!(stage.manager.hold_requests(false), Err(PoaError::AdapterInactive));
    }

    #[test]
    fn waiting_ends_when_the_last_request_has_and_nothing_new_runs_then() {
        let (stage, probe, target) = stage();
        stage.manager.activate().unwrap();
        let running = in_background({
            let target = target.clone();
            move || target.hold(1)
        });
        probe.await_held(1);
        let manager = stage.manager.clone();
        let waiting = in_background(move || manager.hold_requests(true));
        assert!(waiting.recv_timeout(Duration::from_millis(20)).is_err(), "a request runs");
        probe.open(1);
        waiting.recv_timeout(PATIENCE).unwrap().unwrap();
        running.recv_timeout(PATIENCE).unwrap().unwrap();
        stage.manager.activate().unwrap();
        target.ping().unwrap();
    }

    #[test]
    fn waiting_also_ends_when_the_state_changes_again() {
        let (stage, probe, target) = stage();
        stage.manager.activate().unwrap();
        let running = in_background(move || target.hold(1));
        probe.await_held(1);
        let manager = stage.manager.clone();
        let waiting = in_background(move || manager.hold_requests(true));
        comes("the other state", || stage.manager.state() == State::Holding);
        assert!(waiting.recv_timeout(Duration::from_millis(20)).is_err(), "a request runs");
        stage.manager.activate().unwrap();
        waiting.recv_timeout(PATIENCE).unwrap().unwrap();
        probe.open(1);
        running.recv_timeout(PATIENCE).unwrap().unwrap();
    }

    #[test]
    fn waiting_inside_of_an_upcall_is_refused_and_changes_nothing() {
        let stage = Stage::active([]);
        let seen = Arc::<Board<Vec<PoaError>>>::default();
        let (board, manager, poa) = (Arc::clone(&seen), stage.manager.clone(), stage.poa.clone());
        let doing = servant(move |_, call| {
            let refused = [
                manager.hold_requests(true),
                manager.discard_requests(true),
                manager.deactivate(true, true),
                poa.destroy(true, true),
            ];
            board.change(|seen| seen.extend(refused.into_iter().map(Result::unwrap_err)));
            call.reply(|_| Ok(()))
        });
        let object = stage.poa.activate(doing).unwrap();
        client(&object).ping().unwrap();
        seen.see(|seen| {
            for error in seen {
                let PoaError::System(exception) = error else { panic!("{error:?}") };
                let told = (exception.kind(), exception.minor());
                assert_eq!(told, (SystemExceptionKind::BadInvOrder, minor::OPERATION_WOULD_DEADLOCK));
            }
            assert_eq!(seen.len(), 4);
        });
        assert_eq!(stage.manager.state(), State::Active);
        client(&object).ping().unwrap();
    }

    #[test]
    fn shutting_down_does_not_wait_for_what_is_held() {
        let (stage, _probe, target) = stage();
        let held = in_background(move || target.ping());
        comes("the request", || stage.held() == 1);
        assert!(held.try_recv().is_err(), "it was held");
        stage.orb.shutdown(true).unwrap();
        let refused = held.recv_timeout(PATIENCE).unwrap().unwrap_err();
        assert_eq!(kind_and_completion(&refused), (SystemExceptionKind::ObjAdapter, CompletionStatus::No));
    }
}

mod activators {
    use super::*;

    /// Makes servants, and notes all it is asked.
    #[derive(Default)]
    struct Making {
        state: Board<Made>,
        servants: Mutex<Vec<Arc<Probe>>>,
    }

    #[derive(Default)]
    struct Made {
        incarnated: usize,
        etherealized: Vec<(bool, bool)>,
        inside: usize,
        is_closed: bool,
    }

    impl Making {
        fn pass(&self) {
            self.state.change(|made| {
                made.inside += 1;
                assert_eq!(made.inside, 1, "two calls at once for one object");
            });
            self.state.await_that(|made| !made.is_closed);
            self.state.change(|made| made.inside -= 1);
        }

        fn servant(&self, index: usize) -> Arc<Probe> {
            Arc::clone(&self.servants.lock().unwrap()[index])
        }
    }

    impl ServantActivator for Making {
        fn incarnate(&self, oid: &ObjectId, adapter: &Poa) -> Result<Arc<dyn Servant>, Incarnation> {
            self.pass();
            self.state.change(|made| made.incarnated += 1);
            match oid.as_bytes() {
                b"gone" => Err(SystemException::object_not_exist(7, CompletionStatus::No).into()),
                b"there" => {
                    Err(Incarnation::ForwardRequest(adapter.create_reference_with_id(&"here".into(), "").unwrap()))
                }
                b"panic" => panic!("as asked"),
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
            self.pass();
            self.state.change(|made| made.etherealized.push((cleanup, remaining)));
        }
    }

    fn stage() -> (Stage, Arc<Making>) {
        let stage = Stage::active([SERVANT_MANAGER.into(), USER_ID.into()]);
        let making = Arc::<Making>::default();
        stage.poa.set_servant_manager(ServantManager::Activator(Arc::clone(&making) as _)).unwrap();
        (stage, making)
    }

    #[test]
    fn first_requests_at_once_have_one_servant_made() {
        let (stage, making) = stage();
        making.state.change(|made| made.is_closed = true);
        let object = stage.reference("account");
        let calls: Vec<_> = (0..6)
            .map(|number| {
                let target = client(&object);
                in_background(move || target.add(number, 0))
            })
            .collect();
        making.state.await_that(|made| made.inside == 1);
        assert!(calls[0].recv_timeout(Duration::from_millis(20)).is_err());
        making.state.change(|made| made.is_closed = false);
        for call in calls {
            call.recv_timeout(PATIENCE).unwrap().unwrap();
        }
        assert_eq!(making.state.see(|made| made.incarnated), 1);
        assert_eq!(stage.poa.active_objects(), 1);
    }

    #[test]
    fn an_object_is_etherealized_after_its_last_request_and_then_made_anew() {
        let (stage, making) = stage();
        let object = stage.reference("account");
        let target = client(&object);
        target.ping().unwrap();
        let first = making.servant(0);
        let running = in_background({
            let target = client(&object);
            move || target.hold(1)
        });
        first.await_held(1);
        let id = ObjectId::from("account");
        stage.poa.deactivate_object(&id).unwrap();
        assert_eq!(stage.poa.deactivate_object(&id), Err(PoaError::ObjectNotActive));
        assert_eq!(stage.poa.active_objects(), 0);
        let next = in_background({
            let target = client(&object);
            move || target.count()
        });
        assert!(next.recv_timeout(Duration::from_millis(20)).is_err(), "the first servant is in use");
        assert_eq!(making.state.see(|made| (made.incarnated, made.etherealized.len())), (1, 0));
        making.state.change(|made| made.is_closed = true);
        first.open(1);
        running.recv_timeout(PATIENCE).unwrap().unwrap();
        making.state.await_that(|made| made.inside == 1);
        assert!(next.recv_timeout(Duration::from_millis(20)).is_err(), "it is being etherealized");
        making.state.change(|made| made.is_closed = false);
        assert_eq!(next.recv_timeout(PATIENCE).unwrap().unwrap(), 0);
        assert_eq!(making.state.see(|made| (made.incarnated, made.etherealized.clone())), (2, vec![(false, false)]));
    }

    #[test]
    fn deactivating_returns_at_once_and_activating_again_waits_for_the_end() {
        let (stage, making) = stage();
        let object = stage.reference("account");
        client(&object).ping().unwrap();
        making.state.change(|made| made.is_closed = true);
        let id = ObjectId::from("account");
        stage.poa.deactivate_object(&id).unwrap();
        making.state.await_that(|made| made.inside == 1);
        let (poa, orb) = (stage.poa.clone(), stage.orb.clone());
        let activating = in_background(move || poa.activate_object_with_id(&"account".into(), probe(&orb).1));
        assert!(activating.recv_timeout(Duration::from_millis(20)).is_err(), "it is being etherealized");
        making.state.change(|made| made.is_closed = false);
        activating.recv_timeout(PATIENCE).unwrap().unwrap();
        client(&object).ping().unwrap();
        assert_eq!(making.state.see(|made| (made.incarnated, made.etherealized.len())), (1, 1));
    }

    #[test]
    fn an_activator_may_refuse_and_forward_and_fail() {
        let (stage, making) = stage();
        let refused = client(&stage.reference("gone")).ping().unwrap_err();
        assert_eq!((refused.kind(), refused.minor()), (SystemExceptionKind::ObjectNotExist, 7));
        assert_eq!(client(&stage.reference("there")).add(1, 2).unwrap(), 3);
        for _ in 0..2 {
            let refused = client(&stage.reference("panic")).ping().unwrap_err();
            assert_eq!(refused.kind(), SystemExceptionKind::Unknown);
        }
        making.state.change(|made| assert_eq!(made.incarnated, 5));
        assert_eq!(stage.poa.active_objects(), 1);
    }

    #[test]
    fn an_activator_may_activate_the_object_itself_but_must_return_what_stands_there() {
        let (stage, making) = stage();
        client(&stage.reference("own")).ping().unwrap();
        client(&stage.reference("own")).ping().unwrap();
        assert_eq!(making.state.see(|made| made.incarnated), 1);
        // A servant that stands behind another object, although it may stand behind one only.
        for name in ["twice", "wrong"] {
            let refused = client(&stage.reference(name)).ping().unwrap_err();
            let told = (refused.kind(), refused.minor());
            assert_eq!(told, (SystemExceptionKind::ObjAdapter, minor::INCARNATE_VIOLATED_POLICY), "{name}");
        }
        client(&stage.reference("wrong")).ping().unwrap();
    }

    #[test]
    fn an_adapter_may_be_destroyed_inside_of_its_own_upcall() {
        let (stage, making) = stage();
        let poa = stage.poa.clone();
        let ending = servant(move |_, call| {
            poa.destroy(true, false).unwrap();
            // Requests go on, and so may children be made nowhere and by nobody.
            let PoaError::System(refused) = poa.create_poa("late", None, []).unwrap_err() else {
                panic!("it is a system exception")
            };
            assert_eq!(refused.minor(), minor::POA_BEING_DESTROYED);
            call.reply(|_| Ok(()))
        });
        stage.poa.activate_object_with_id(&"end".into(), Arc::new(ending)).unwrap();
        let target = client(&stage.reference("end"));
        target.ping().unwrap();
        making.state.await_that(|made| made.etherealized.len() == 1);
        assert_eq!(making.state.see(|made| made.etherealized.clone()), [(true, false)]);
        assert_eq!(target.ping().unwrap_err().kind(), SystemExceptionKind::ObjectNotExist);
        stage.poa.destroy(true, true).unwrap();
        let PoaError::System(gone) = stage.poa.create_poa("late", None, []).unwrap_err() else {
            panic!("it is a system exception")
        };
        assert_eq!(gone.kind(), SystemExceptionKind::ObjectNotExist);
    }

    #[test]
    fn at_the_end_of_the_adapter_or_the_orb_each_object_is_etherealized_once() {
        let (stage, making) = stage();
        for name in ["a", "b", "c"] {
            client(&stage.reference(name)).ping().unwrap();
        }
        let target = client(&stage.reference("c"));
        let running = in_background(move || target.hold(1));
        making.servant(2).await_held(1);
        let poa = stage.poa.clone();
        let destroying = in_background(move || poa.destroy(true, true));
        making.state.await_that(|made| made.etherealized.len() == 2);
        assert!(destroying.recv_timeout(Duration::from_millis(20)).is_err(), "a request runs");
        making.servant(2).open(1);
        destroying.recv_timeout(PATIENCE).unwrap().unwrap();
        running.recv_timeout(PATIENCE).unwrap().unwrap();
        assert_eq!(making.state.see(|made| made.etherealized.clone()), [(true, false); 3]);
        let gone = stage.poa.create_reference_with_id(&"a".into(), "").unwrap_err();
        assert!(matches!(gone, PoaError::System(exception) if exception.kind() == SystemExceptionKind::ObjectNotExist));

        let poa = stage.root.create_poa("child", None, [SERVANT_MANAGER.into(), USER_ID.into()]).unwrap();
        poa.the_poa_manager().activate().unwrap();
        let making = Arc::<Making>::default();
        poa.set_servant_manager(ServantManager::Activator(Arc::clone(&making) as _)).unwrap();
        client(&poa.create_reference_with_id(&"d".into(), "").unwrap()).ping().unwrap();
        stage.orb.shutdown(true).unwrap();
        assert_eq!(making.state.see(|made| made.etherealized.clone()), [(true, false)]);
    }

    #[test]
    fn deactivating_the_manager_etherealizes_and_says_why() {
        let (stage, making) = stage();
        client(&stage.reference("a")).ping().unwrap();
        stage.manager.deactivate(true, true).unwrap();
        assert_eq!(making.state.see(|made| made.etherealized.clone()), [(true, false)]);
        assert_eq!(client(&stage.reference("a")).ping().unwrap_err().kind(), SystemExceptionKind::ObjAdapter);
        stage.poa.destroy(true, true).unwrap();
        assert_eq!(making.state.see(|made| made.etherealized.len()), 1);
    }
}

mod locators {
    use super::*;

    #[derive(Default)]
    struct Finding {
        state: Board<(usize, Vec<(String, usize)>)>,
        servants: Mutex<Vec<Arc<dyn Servant>>>,
    }

    impl ServantLocator for Finding {
        fn preinvoke(&self, _: &ObjectId, _: &Poa, _: &str) -> Result<(Arc<dyn Servant>, Cookie), Incarnation> {
            let mut number = 0;
            self.state.change(|(begun, _)| {
                *begun += 1;
                number = *begun;
            });
            Ok((Arc::clone(&self.servants.lock().unwrap()[0]), Box::new(number)))
        }

        fn postinvoke(&self, oid: &ObjectId, _: &Poa, operation: &str, cookie: Cookie, _: Arc<dyn Servant>) {
            let number = *cookie.downcast::<usize>().unwrap();
            assert_eq!(oid.as_bytes(), b"any");
            self.state.change(|(_, ended)| ended.push((operation.to_owned(), number)));
        }
    }

    fn stage(servant: Arc<dyn Servant>, orb: Orb) -> (Stage, Arc<Finding>) {
        let root = Poa::root(&orb).unwrap();
        let policies = [SERVANT_MANAGER.into(), ServantRetentionPolicy::NonRetain.into(), Policy::from(USER_ID)];
        let poa = root.create_poa("child", None, policies).unwrap();
        let manager = poa.the_poa_manager();
        manager.activate().unwrap();
        let finding = Arc::<Finding>::default();
        finding.servants.lock().unwrap().push(servant);
        poa.set_servant_manager(ServantManager::Locator(Arc::clone(&finding) as _)).unwrap();
        (Stage { orb, root, poa, manager }, finding)
    }

    #[test]
    fn every_request_asks_and_tells_once_with_its_own_cookie() {
        let orb = arranged(Orb::builder()).build().unwrap();
        let (_probe, servant) = probe(&orb);
        let (stage, finding) = stage(servant, orb);
        let target = client(&stage.reference("any"));
        target.ping().unwrap();
        target.fail(3).unwrap_err();
        target.panic().unwrap_err();
        finding.state.await_that(|(_, ended)| ended.len() == 3);
        let told = finding.state.see(|(_, ended)| ended.clone());
        assert_eq!(told, [("ping".into(), 1), ("fail".into(), 2), ("panic".into(), 3)]);
    }

    #[test]
    fn a_request_that_is_answered_later_is_in_use_until_then() {
        let (servant, requests) = deferring();
        let (stage, finding) = stage(Arc::new(servant), arranged(Orb::builder()).build().unwrap());
        let target = client(&stage.reference("any"));
        let running = in_background(move || target.ping());
        let deferred = requests.recv_timeout(PATIENCE).unwrap();
        let manager = stage.manager.clone();
        let waiting = in_background(move || manager.hold_requests(true));
        assert!(waiting.recv_timeout(Duration::from_millis(20)).is_err(), "a request is not answered");
        assert!(finding.state.see(|(_, ended)| ended.is_empty()));
        let outcome = deferred.answer(|call| call.reply(|_| Ok(())));
        deferred.end(outcome);
        running.recv_timeout(PATIENCE).unwrap().unwrap();
        waiting.recv_timeout(PATIENCE).unwrap().unwrap();
        finding.state.await_that(|(_, ended)| ended.len() == 1);
    }

    #[test]
    fn an_object_whose_request_is_answered_later_is_deactivated_after_that() {
        let stage = Stage::active([]);
        let (servant, requests) = deferring();
        let servant: Arc<dyn Servant> = Arc::new(servant);
        let (object, watched) = (stage.poa.activate_shared(Arc::clone(&servant)).unwrap(), Arc::downgrade(&servant));
        drop(servant);
        let target = client(&object);
        let running = in_background(move || target.ping());
        let deferred = requests.recv_timeout(PATIENCE).unwrap();
        stage.poa.deactivate(&object).unwrap();
        assert!(watched.upgrade().is_some(), "it is in use");
        let outcome = deferred.answer(|call| call.reply(|_| Ok(())));
        deferred.end(outcome);
        running.recv_timeout(PATIENCE).unwrap().unwrap();
        // The upcall that deferred it may not have returned yet.
        stage.poa.destroy(true, true).unwrap();
        assert!(watched.upgrade().is_none(), "nobody uses it any longer");
    }
}

#[path = "poa/family.rs"]
mod family;
#[path = "poa/faults.rs"]
mod faults;
#[path = "poa/threads.rs"]
mod threads;
