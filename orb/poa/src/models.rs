//! Models of objects that are activated, deactivated and etherealized while requests arrive, and of adapters
//! and managers that end.

use std::collections::HashMap;

use spandrel_giop::SystemExceptionKind;
use spandrel_orb::{Orb, SystemException};
use spandrel_server::{Entry, LastTarget, ObjectAdapter, Resolution, Servant};
use spandrel_sync::{
    Arc, Mutex, Weak,
    atomic::{AtomicUsize, Ordering},
    models::{below, check, one_in},
    thread,
};

use crate::{
    Cookie, EtherealizeObjects, IdAssignmentPolicy, Incarnation, ObjectId, Poa, PoaError, RequestProcessingPolicy,
    ServantActivator, ServantLocator, ServantManager, ServantRetentionPolicy, WaitForCompletion,
    serial_lock::{LockAttempt, SerialLock},
    servant_lookup::ServantLookup,
};

const NAMES: [&str; 2] = ["a", "b"];

/// A servant that counts its running requests.
struct CountingServant {
    running: AtomicUsize,
    is_etherealized: AtomicUsize,
}

impl Servant for CountingServant {
    fn repository_id(&self) -> &str {
        "IDL:Busy:1.0"
    }

    fn is_a(&self, _: &str) -> bool {
        false
    }
}

/// The state of an object, as its activator sees it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum ObjectState {
    #[default]
    Inactive,
    Incarnating,
    Active,
    Etherealizing,
}

#[derive(Default)]
struct Activator {
    states: Mutex<HashMap<ObjectId, ObjectState>>,
    servants: Mutex<HashMap<ObjectId, Arc<CountingServant>>>,
    incarnated: AtomicUsize,
    etherealized: AtomicUsize,
}

impl Activator {
    fn transition(&self, id: &ObjectId, from: ObjectState, to: ObjectState) {
        let before = self.states.lock().insert(id.clone(), to).unwrap_or_default();
        assert_eq!(before, from, "{id:?} changes to {to:?}");
    }
}

impl ServantActivator for Activator {
    fn incarnate(&self, oid: &ObjectId, _: &Poa) -> Result<Arc<dyn Servant>, Incarnation> {
        self.transition(oid, ObjectState::Inactive, ObjectState::Incarnating);
        thread::yield_now();
        if one_in(6) {
            self.transition(oid, ObjectState::Incarnating, ObjectState::Inactive);
            return Err(crate::error::not_active().into());
        }
        self.incarnated.fetch_add(1, Ordering::SeqCst);
        let servant = Arc::new(CountingServant { running: AtomicUsize::new(0), is_etherealized: AtomicUsize::new(0) });
        self.servants.lock().insert(oid.clone(), Arc::clone(&servant));
        self.transition(oid, ObjectState::Incarnating, ObjectState::Active);
        Ok(servant)
    }

    fn etherealize(&self, oid: &ObjectId, _: &Poa, servant: Arc<dyn Servant>, _: bool, remaining: bool) {
        self.transition(oid, ObjectState::Active, ObjectState::Etherealizing);
        thread::yield_now();
        let own = self.servants.lock().remove(oid).expect("it was incarnated");
        assert!(std::ptr::addr_eq(Arc::as_ptr(&own), Arc::as_ptr(&servant)), "another's servant");
        assert_eq!(own.running.load(Ordering::SeqCst), 0, "it is in use");
        own.is_etherealized.store(1, Ordering::SeqCst);
        assert!(!remaining);
        self.etherealized.fetch_add(1, Ordering::SeqCst);
        self.transition(oid, ObjectState::Etherealizing, ObjectState::Inactive);
    }
}

/// An adapter with a servant activator.
struct Setup {
    poa: Poa,
    activator: Arc<Activator>,
    weak: Weak<crate::adapter::Adapter>,
}

impl Setup {
    fn new() -> Arc<Self> {
        // Without warnings of long waits, whose timer is a reactor of the system.
        let orb = Orb::builder().long_wait_warning(None).build().unwrap();
        let root = Poa::root(&orb).expect("the ORB has no other adapter");
        let policies = [RequestProcessingPolicy::UseServantManager.into(), IdAssignmentPolicy::UserId.into()];
        let poa = root.create_poa("child", None, policies).expect("the policies are consistent");
        poa.the_poa_manager().activate().expect("the manager is not inactive");
        let activator = Arc::<Activator>::default();
        poa.set_servant_manager(ServantManager::Activator(Arc::clone(&activator) as _))
            .expect("it has no servant manager yet");
        let weak = Arc::downgrade(&poa.adapter);
        Arc::new(Self { poa, activator, weak })
    }

    /// Runs a request; the exception if it was rejected.
    fn request(&self, name: &str) -> Result<(), SystemException> {
        let (adapter, id) = (&self.poa.adapter, ObjectId::from(name));
        loop {
            if adapter.is_destroyed() {
                return Err(crate::error::no_adapter()); // the adapter would not have been found
            }
            match adapter.enter(&id, "run", None::<&dyn LastTarget>)? {
                ServantLookup::Found(in_use) => {
                    let servant = Arc::clone(&self.activator.servants.lock()[&id]);
                    servant.running.fetch_add(1, Ordering::SeqCst);
                    assert_eq!(servant.is_etherealized.load(Ordering::SeqCst), 0, "it was etherealized");
                    thread::yield_now();
                    assert_eq!(self.activator.states.lock()[&id], ObjectState::Active);
                    servant.running.fetch_sub(1, Ordering::SeqCst);
                    return in_use.end(adapter, &id);
                }
                ServantLookup::Wait(ticket) => ticket.wait(),
                ServantLookup::Retry => {}
                ServantLookup::Forward(_) => unreachable!("no object is forwarded"),
            }
        }
    }

    fn any(&self) -> &'static str {
        NAMES[below(NAMES.len())]
    }

    fn deactivate(&self) {
        match self.poa.deactivate_object(&self.any().into()) {
            Ok(()) | Err(PoaError::ObjectNotActive { .. }) => {}
            Err(PoaError::System(exception)) => assert_eq!(exception.kind(), SystemExceptionKind::ObjectNotExist),
            Err(other) => panic!("{other}"),
        }
    }

    /// Destroys the adapter, and checks that all incarnated servants were released.
    fn end(self: Arc<Self>) {
        self.poa.destroy(EtherealizeObjects::Yes, WaitForCompletion::Yes).expect("the wait is outside upcalls");
        let counts =
            [&self.activator.incarnated, &self.activator.etherealized].map(|count| count.load(Ordering::SeqCst));
        assert_eq!(counts[0], counts[1], "incarnated and etherealized");
        assert!(self.activator.servants.lock().is_empty());
        assert_eq!(self.poa.active_objects(), 0);
        let (root, weak) = (self.poa.root.clone(), self.weak.clone());
        drop(self);
        root.orb.release();
        drop(root);
        let _ = weak;
    }
}

fn in_threads(jobs: Vec<Box<dyn FnOnce() + Send>>) {
    let threads: Vec<_> = jobs.into_iter().map(thread::spawn).collect();
    threads.into_iter().for_each(|thread| thread.join().expect("the thread did not panic"));
}

fn job(setup: &Arc<Setup>, run: impl Fn(&Setup) + Send + 'static) -> Box<dyn FnOnce() + Send> {
    let setup = Arc::clone(setup);
    Box::new(move || run(&setup))
}

#[test]
fn incarnation_and_etherealization_alternate_and_never_overlap_a_request() {
    check(3000, || {
        let setup = Setup::new();
        let requesting = |setup: &Setup| (0..3).for_each(|_| _ = setup.request(setup.any()));
        in_threads(vec![
            job(&setup, requesting),
            job(&setup, requesting),
            job(&setup, |setup| (0..3).for_each(|_| setup.deactivate())),
        ]);
        setup.end();
    });
}

#[test]
fn an_adapter_destroyed_during_activations_releases_all_servants() {
    check(3000, || {
        let setup = Setup::new();
        let requesting = |setup: &Setup| (0..2).for_each(|_| _ = setup.request(setup.any()));
        in_threads(vec![
            job(&setup, requesting),
            job(&setup, requesting),
            job(&setup, Setup::deactivate),
            job(&setup, |setup| {
                let wait = if one_in(2) { WaitForCompletion::Yes } else { WaitForCompletion::No };
                setup.poa.destroy(EtherealizeObjects::Yes, wait).expect("the thread is not in an upcall");
            }),
        ]);
        setup.end();
    });
}

#[test]
fn after_hold_requests_no_request_runs_until_the_manager_is_activated() {
    check(3000, || {
        let setup = Setup::new();
        let requesting = |setup: &Setup| {
            for _ in 0..2 {
                if let Err(refused) = setup.request("a") {
                    assert_eq!(refused.kind(), SystemExceptionKind::ObjectNotExist, "the activator's own");
                }
            }
        };
        in_threads(vec![
            job(&setup, requesting),
            job(&setup, requesting),
            job(&setup, |setup| {
                let manager = setup.poa.the_poa_manager();
                manager.hold_requests(WaitForCompletion::Yes).expect("the thread is not in an upcall");
                for _ in 0..3 {
                    let servants: Vec<_> = setup.activator.servants.lock().values().cloned().collect();
                    assert!(servants.iter().all(|servant| servant.running.load(Ordering::SeqCst) == 0));
                    thread::yield_now();
                }
                manager.activate().expect("the manager is not inactive");
            }),
        ]);
        setup.end();
    });
}

#[test]
fn an_activation_during_deactivation_waits_and_succeeds() {
    check(3000, || {
        let setup = Setup::new();
        let activating = |setup: &Setup| {
            let servant =
                Arc::new(CountingServant { running: AtomicUsize::new(0), is_etherealized: AtomicUsize::new(0) });
            let id = ObjectId::from("a");
            match setup.poa.activate_object_with_id(&id, servant.clone()) {
                Ok(()) => {
                    setup.activator.transition(&id, ObjectState::Inactive, ObjectState::Active);
                    setup.activator.servants.lock().insert(id, servant);
                    setup.activator.incarnated.fetch_add(1, Ordering::SeqCst);
                    setup.poa.deactivate_object(&"a".into()).expect("no other thread deactivates it");
                }
                Err(PoaError::ObjectAlreadyActive { .. }) => {}
                Err(other) => panic!("{other}"),
            }
        };
        in_threads(vec![job(&setup, activating), job(&setup, activating)]);
        setup.end();
    });
}

/// A locator that counts the ends of requests.
struct CountingLocator {
    servant: Arc<CountingServant>,
    ended: Arc<AtomicUsize>,
}

impl ServantLocator for CountingLocator {
    fn preinvoke(&self, _: &ObjectId, _: &Poa, _: &str) -> Result<(Arc<dyn Servant>, Cookie), Incarnation> {
        Ok((Arc::clone(&self.servant) as _, Box::new(())))
    }

    fn postinvoke(
        &self,
        _: &ObjectId,
        _: &Poa,
        _: &str,
        _: Cookie,
        _: Arc<dyn Servant>,
    ) -> Result<(), SystemException> {
        thread::yield_now();
        self.ended.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

/// No connection, and so no prediction.
struct Unpredicted;

impl LastTarget for Unpredicted {
    fn predicted_target(&self) -> Option<u64> {
        None
    }

    fn record_target(&self, _: u64) {}
}

#[test]
fn a_request_deferred_and_answered_during_its_upcall_has_one_postinvoke_before_its_reply() {
    check(3000, || {
        let orb = Orb::builder().long_wait_warning(None).build().unwrap();
        let root = Poa::root(&orb).expect("the ORB has no other adapter");
        let policies = [
            RequestProcessingPolicy::UseServantManager.into(),
            ServantRetentionPolicy::NonRetain.into(),
            IdAssignmentPolicy::UserId.into(),
        ];
        let poa = root.create_poa("child", None, policies).expect("the policies are consistent");
        poa.the_poa_manager().activate().expect("the manager is not inactive");
        let servant = CountingServant { running: AtomicUsize::new(0), is_etherealized: AtomicUsize::new(0) };
        let (ended, replied) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        let locator = CountingLocator { servant: Arc::new(servant), ended: Arc::clone(&ended) };
        poa.set_servant_manager(ServantManager::Locator(Arc::new(locator))).expect("it has no servant manager yet");
        let key = poa.adapter.key(b"a");
        let entry = Entry::Request { last: &Unpredicted, reservation: None };
        let Ok(Resolution::Serve(upcall)) = poa.root.resolve(&key, "run", entry) else { panic!("it has a servant") };
        assert!(upcall.ends_before_reply());
        let kept_use = upcall.target().keep_in_use();
        let answering = thread::spawn({
            let (ended, replied) = (Arc::clone(&ended), Arc::clone(&replied));
            move || {
                if one_in(3) {
                    return drop(kept_use);
                }
                kept_use.end(Box::new(move |result| {
                    assert_eq!(result, Ok(()));
                    assert_eq!(ended.load(Ordering::SeqCst), 1, "the reply comes after `postinvoke`");
                    replied.fetch_add(1, Ordering::SeqCst);
                }));
            }
        });
        upcall.end().expect("`postinvoke` raises nothing");
        drop(upcall);
        answering.join().expect("it did not panic");
        assert_eq!(ended.load(Ordering::SeqCst), 1);
        assert!(replied.load(Ordering::SeqCst) <= 1);
        poa.destroy(EtherealizeObjects::Yes, WaitForCompletion::Yes).expect("the wait is outside upcalls");
        root.root.orb.release();
    });
}

#[test]
fn the_serial_lock_has_one_holder_and_reaches_every_waiter() {
    check(5000, || {
        let (serial_lock, inside) = (Arc::<SerialLock>::default(), Arc::<AtomicUsize>::default());
        let jobs = (0..3).map(|number| -> Box<dyn FnOnce() + Send> {
            let (serial_lock, inside) = (Arc::clone(&serial_lock), Arc::clone(&inside));
            Box::new(move || {
                for _ in 0..2 {
                    let held = match serial_lock.try_acquire() {
                        LockAttempt::Acquired(held) => held,
                        // Dropped, before or after it is ready.
                        LockAttempt::Queued(queued) if number == 2 => {
                            thread::yield_now();
                            drop(queued);
                            continue;
                        }
                        LockAttempt::Queued(queued) => queued.wait(),
                        LockAttempt::QueueFull => unreachable!("the queue has room for three"),
                    };
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                    thread::yield_now();
                    inside.fetch_sub(1, Ordering::SeqCst);
                    drop(held);
                }
            })
        });
        in_threads(jobs.collect());
        drop(serial_lock.acquire_blocking());
    });
}
