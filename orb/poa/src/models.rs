//! Models of objects that are activated, deactivated and etherealized while requests look for them, and of adapters and managers that end.

use std::collections::HashMap;

use spandrel_giop::SystemExceptionKind;
use spandrel_orb::{Orb, Servant, ServerCall, SystemException};
use spandrel_sync::{
    Arc, Mutex, Weak,
    atomic::{AtomicUsize, Ordering},
    models::{below, check, one_in},
    thread,
};

use crate::{
    IdAssignmentPolicy, Incarnation, ObjectId, Poa, PoaError, RequestProcessingPolicy, ServantActivator,
    ServantManager,
    entering::Entrance,
    turn::{Asked, Turn},
};

const NAMES: [&str; 2] = ["a", "b"];

/// A servant that knows how many requests it runs.
struct Busy {
    running: AtomicUsize,
    is_over: AtomicUsize,
}

impl Servant for Busy {
    fn repository_id(&self) -> &str {
        "IDL:Busy:1.0"
    }

    fn is_a(&self, _: &str) -> bool {
        false
    }
}

/// What the activator knows of its objects.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Life {
    #[default]
    Inactive,
    Incarnating,
    Active,
    Etherealizing,
}

#[derive(Default)]
struct Making {
    lives: Mutex<HashMap<ObjectId, Life>>,
    servants: Mutex<HashMap<ObjectId, Arc<Busy>>>,
    incarnated: AtomicUsize,
    etherealized: AtomicUsize,
}

impl Making {
    fn goes(&self, id: &ObjectId, from: Life, to: Life) {
        let before = self.lives.lock().insert(id.clone(), to).unwrap_or_default();
        assert_eq!(before, from, "{id:?} becomes {to:?}");
    }
}

impl ServantActivator for Making {
    fn incarnate(&self, oid: &ObjectId, _: &Poa) -> Result<Arc<dyn Servant>, Incarnation> {
        self.goes(oid, Life::Inactive, Life::Incarnating);
        thread::yield_now();
        if one_in(6) {
            self.goes(oid, Life::Incarnating, Life::Inactive);
            return Err(crate::error::not_active().into());
        }
        self.incarnated.fetch_add(1, Ordering::SeqCst);
        let servant = Arc::new(Busy { running: AtomicUsize::new(0), is_over: AtomicUsize::new(0) });
        self.servants.lock().insert(oid.clone(), Arc::clone(&servant));
        self.goes(oid, Life::Incarnating, Life::Active);
        Ok(servant)
    }

    fn etherealize(&self, oid: &ObjectId, _: &Poa, servant: Arc<dyn Servant>, _: bool, remaining: bool) {
        self.goes(oid, Life::Active, Life::Etherealizing);
        thread::yield_now();
        let own = self.servants.lock().remove(oid).expect("it was made");
        assert!(std::ptr::addr_eq(Arc::as_ptr(&own), Arc::as_ptr(&servant)), "another's servant");
        assert_eq!(own.running.load(Ordering::SeqCst), 0, "it is in use");
        own.is_over.store(1, Ordering::SeqCst);
        assert!(!remaining);
        self.etherealized.fetch_add(1, Ordering::SeqCst);
        self.goes(oid, Life::Etherealizing, Life::Inactive);
    }
}

/// An adapter with a servant activator.
struct Stage {
    poa: Poa,
    making: Arc<Making>,
    weak: Weak<crate::adapter::Adapter>,
}

impl Stage {
    fn new() -> Arc<Self> {
        let orb = Orb::builder().build().unwrap();
        let root = Poa::root(&orb).expect("it is the only adapter");
        let policies = [RequestProcessingPolicy::UseServantManager.into(), IdAssignmentPolicy::UserId.into()];
        let poa = root.create_poa("child", None, policies).expect("they go together");
        poa.the_poa_manager().activate().expect("it is not inactive");
        let making = Arc::<Making>::default();
        poa.set_servant_manager(ServantManager::Activator(Arc::clone(&making) as _)).expect("it is the first");
        let weak = Arc::downgrade(&poa.adapter);
        Arc::new(Self { poa, making, weak })
    }

    /// What a request does; the exception that it was refused with.
    fn request(&self, name: &str) -> Result<(), SystemException> {
        let (adapter, id) = (&self.poa.adapter, ObjectId::from(name));
        loop {
            if adapter.is_gone() {
                return Err(crate::error::no_adapter()); // it would not have been found
            }
            match adapter.enter(&id, "run", None::<&ServerCall<'_>>)? {
                Entrance::Serve(in_use) => {
                    let servant = Arc::clone(&self.making.servants.lock()[&id]);
                    servant.running.fetch_add(1, Ordering::SeqCst);
                    assert_eq!(servant.is_over.load(Ordering::SeqCst), 0, "it was etherealized");
                    thread::yield_now();
                    assert_eq!(self.making.lives.lock()[&id], Life::Active);
                    servant.running.fetch_sub(1, Ordering::SeqCst);
                    in_use.end(adapter, &id);
                    return Ok(());
                }
                Entrance::Wait(ticket) => ticket.wait(),
                Entrance::Again => {}
                Entrance::Forward(_) => unreachable!("nothing is forwarded"),
            }
        }
    }

    fn any(&self) -> &'static str {
        NAMES[below(NAMES.len())]
    }

    fn deactivate(&self) {
        match self.poa.deactivate_object(&self.any().into()) {
            Ok(()) | Err(PoaError::ObjectNotActive) => {}
            Err(PoaError::System(exception)) => assert_eq!(exception.kind(), SystemExceptionKind::ObjectNotExist),
            Err(other) => panic!("{other}"),
        }
    }

    /// Ends the adapter, and looks whether all that was made was let go.
    fn end(self: Arc<Self>) {
        self.poa.destroy(true, true).expect("it is waited for outside of upcalls");
        let counts = [&self.making.incarnated, &self.making.etherealized].map(|count| count.load(Ordering::SeqCst));
        assert_eq!(counts[0], counts[1], "incarnated and etherealized");
        assert!(self.making.servants.lock().is_empty());
        assert_eq!(self.poa.active_objects(), 0);
        let (root, weak) = (self.poa.root.clone(), self.weak.clone());
        drop(self);
        root.orb.let_go();
        drop(root);
        let _ = weak;
    }
}

fn in_threads(jobs: Vec<Box<dyn FnOnce() + Send>>) {
    let threads: Vec<_> = jobs.into_iter().map(thread::spawn).collect();
    threads.into_iter().for_each(|thread| thread.join().expect("it did not panic"));
}

fn job(stage: &Arc<Stage>, run: impl Fn(&Stage) + Send + 'static) -> Box<dyn FnOnce() + Send> {
    let stage = Arc::clone(stage);
    Box::new(move || run(&stage))
}

#[test]
fn each_object_is_incarnated_and_etherealized_in_turn_and_never_in_use_in_between() {
    check(3000, || {
        let stage = Stage::new();
        let requesting = |stage: &Stage| (0..3).for_each(|_| _ = stage.request(stage.any()));
        in_threads(vec![
            job(&stage, requesting),
            job(&stage, requesting),
            job(&stage, |stage| (0..3).for_each(|_| stage.deactivate())),
        ]);
        stage.end();
    });
}

#[test]
fn an_adapter_that_ends_while_objects_come_and_go_leaves_nothing_behind() {
    check(3000, || {
        let stage = Stage::new();
        let requesting = |stage: &Stage| (0..2).for_each(|_| _ = stage.request(stage.any()));
        in_threads(vec![
            job(&stage, requesting),
            job(&stage, requesting),
            job(&stage, Stage::deactivate),
            job(&stage, |stage| stage.poa.destroy(true, one_in(2)).expect("it is no upcall")),
        ]);
        stage.end();
    });
}

#[test]
fn once_requests_were_waited_for_none_runs_until_the_manager_is_activated() {
    check(3000, || {
        let stage = Stage::new();
        let requesting = |stage: &Stage| {
            for _ in 0..2 {
                if let Err(refused) = stage.request("a") {
                    assert_eq!(refused.kind(), SystemExceptionKind::ObjectNotExist, "the activator's own");
                }
            }
        };
        in_threads(vec![
            job(&stage, requesting),
            job(&stage, requesting),
            job(&stage, |stage| {
                let manager = stage.poa.the_poa_manager();
                manager.hold_requests(true).expect("it is no upcall");
                for _ in 0..3 {
                    let servants: Vec<_> = stage.making.servants.lock().values().cloned().collect();
                    assert!(servants.iter().all(|servant| servant.running.load(Ordering::SeqCst) == 0));
                    thread::yield_now();
                }
                manager.activate().expect("it is not inactive");
            }),
        ]);
        stage.end();
    });
}

#[test]
fn whoever_activates_an_object_that_is_being_ended_has_it_afterwards() {
    check(3000, || {
        let stage = Stage::new();
        let activating = |stage: &Stage| {
            let servant = Arc::new(Busy { running: AtomicUsize::new(0), is_over: AtomicUsize::new(0) });
            let id = ObjectId::from("a");
            match stage.poa.activate_object_with_id(&id, servant.clone()) {
                Ok(()) => {
                    stage.making.goes(&id, Life::Inactive, Life::Active);
                    stage.making.servants.lock().insert(id, servant);
                    stage.making.incarnated.fetch_add(1, Ordering::SeqCst);
                    stage.poa.deactivate_object(&"a".into()).expect("nobody else does");
                }
                Err(PoaError::ObjectAlreadyActive) => {}
                Err(other) => panic!("{other}"),
            }
        };
        in_threads(vec![job(&stage, activating), job(&stage, activating)]);
        stage.end();
    });
}

#[test]
fn a_turn_is_one_threads_and_nobody_waits_for_ever() {
    check(5000, || {
        let (turn, inside) = (Arc::<Turn>::default(), Arc::<AtomicUsize>::default());
        let jobs = (0..3).map(|number| -> Box<dyn FnOnce() + Send> {
            let (turn, inside) = (Arc::clone(&turn), Arc::clone(&inside));
            Box::new(move || {
                for _ in 0..2 {
                    let held = match turn.ask() {
                        Asked::Now(held) => held,
                        // Given up, before or after it has come due.
                        Asked::Later(promise) if number == 2 => {
                            thread::yield_now();
                            drop(promise);
                            continue;
                        }
                        Asked::Later(promise) => promise.wait(),
                        Asked::Never => unreachable!("there are three"),
                    };
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                    thread::yield_now();
                    inside.fetch_sub(1, Ordering::SeqCst);
                    drop(held);
                }
            })
        });
        in_threads(jobs.collect());
        drop(turn.take());
    });
}
