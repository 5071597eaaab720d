//! Thread policies (15.3.8.1), and waiting for requests within an upcall (15.3.2, 15.3.9 destroy).

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use spandrel::poa::{EtherealizeObjects, IdUniquenessPolicy, PoaManager, State, ThreadPolicy, WaitForCompletion};
use spandrel::{CompletionStatus, SystemExceptionKind, minor};
use spandrel_conformance_tests::{
    idl::conformance::Subject,
    managers::{ScriptedManager, activating, locating},
    support::{
        Gate, Pair, TEST_TIMEOUT, closure_servant, eventually, expect_exception, gated_servant, in_background,
        named_servant,
    },
};

const TYPE: &str = "IDL:Conformance/Subject:1.0";

/// Counts concurrent upcalls: the present number, the maximum and the total.
#[derive(Default)]
struct UpcallCounter {
    now: AtomicUsize,
    maximum: AtomicUsize,
    total: AtomicUsize,
}

impl UpcallCounter {
    fn enter_and_leave(&self) {
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.maximum.fetch_max(now, Ordering::SeqCst);
        self.total.fetch_add(1, Ordering::SeqCst);
        thread::yield_now();
        self.now.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Calls each object 50 times, in a thread of its own.
fn call_all(objects: impl IntoIterator<Item = Subject>) {
    let calls: Vec<_> = objects
        .into_iter()
        .map(|object| in_background(move || (0..50).try_for_each(|_| object.name().map(drop))))
        .collect();
    for call in calls {
        call.recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
    }
}

/// SINGLE_THREAD_MODEL: requests are processed sequentially.
#[test]
fn a_single_threaded_adapter_runs_one_request_at_a_time() {
    let pair = Pair::new();
    let poa = pair.adapter("child", [ThreadPolicy::SingleThreadModel.into()]);
    let counter = Arc::new(UpcallCounter::default());
    let objects: Vec<_> = (0..3)
        .flat_map(|_| {
            let counter = Arc::clone(&counter);
            let servant = closure_servant(move || {
                counter.enter_and_leave();
                String::new()
            });
            pair.remote_and_local(&poa.id_to_reference(&poa.activate_object(servant).unwrap()).unwrap())
        })
        .collect();
    call_all(objects);
    assert_eq!((counter.maximum.load(Ordering::SeqCst), counter.total.load(Ordering::SeqCst)), (1, 300));
}

/// SINGLE_THREAD_MODEL: a request waits while another one runs; requests of other adapters do not.
#[test]
fn a_busy_single_threaded_adapter_blocks_no_other_adapter() {
    let pair = Pair::new();
    let single = |name| pair.adapter(name, [ThreadPolicy::SingleThreadModel.into()]);
    let (poa, other) = (single("child"), single("other"));
    let gate = Gate::default();
    let slow =
        pair.as_client(&poa.id_to_reference(&poa.activate_object(gated_servant("slow", &gate)).unwrap()).unwrap());
    let first = in_background(move || slow.wait());
    gate.await_arrivals(1);
    let quick = poa.id_to_reference(&poa.activate_object(named_servant("quick")).unwrap()).unwrap();
    let waiting = pair.remote_and_local(&quick).map(|object| in_background(move || object.name()));
    let reference = other.id_to_reference(&other.activate_object(named_servant("other")).unwrap()).unwrap();
    for object in pair.remote_and_local(&reference) {
        assert_eq!(object.name().unwrap(), "other");
    }
    assert!(waiting.iter().all(|call| call.try_recv().is_err()), "a request still runs");
    gate.release();
    assert_eq!(first.recv_timeout(TEST_TIMEOUT).unwrap().unwrap(), "slow");
    for call in waiting {
        assert_eq!(call.recv_timeout(TEST_TIMEOUT).unwrap().unwrap(), "quick");
    }
}

/// SINGLE_THREAD_MODEL: a servant may call itself and other servants of its adapter.
#[test]
fn a_single_threaded_adapter_lets_its_servants_call_each_other() {
    let pair = Pair::new();
    let poa = pair.adapter("child", [ThreadPolicy::SingleThreadModel.into()]);
    let inner = poa.id_to_reference(&poa.activate_object(named_servant("inner")).unwrap()).unwrap();
    let [_, called] = pair.remote_and_local(&inner);
    let outer = poa.activate_object(closure_servant(move || format!("outer and {}", called.name().unwrap()))).unwrap();
    for object in pair.remote_and_local(&poa.id_to_reference(&outer).unwrap()) {
        assert_eq!(object.name().unwrap(), "outer and inner");
    }
}

/// SINGLE_THREAD_MODEL: all upcalls are sequential, those to the servant manager included.
#[test]
fn a_single_threaded_adapter_calls_its_servant_manager_sequentially() {
    let pair = Pair::new();
    for (name, policies) in [("activator", activating().to_vec()), ("locator", locating().to_vec())] {
        let single = [ThreadPolicy::SingleThreadModel.into(), IdUniquenessPolicy::MultipleId.into()];
        let poa = pair.adapter(name, [policies, single.to_vec()].concat());
        let counter = Arc::new(UpcallCounter::default());
        let (with_finder, leaving) = (Arc::clone(&counter), Arc::clone(&counter));
        let manager = ScriptedManager::new(
            move |_, _| {
                with_finder.enter_and_leave();
                let running = Arc::clone(&with_finder);
                Ok(closure_servant(move || {
                    running.enter_and_leave();
                    String::new()
                }))
            },
            move |_, _| leaving.enter_and_leave(),
        );
        let is_activator = name == "activator";
        poa.set_servant_manager(if is_activator { manager.activator() } else { manager.locator() }).unwrap();
        let ids = ["a", "b", "c"];
        let ending = poa.clone();
        let ended = in_background(move || {
            for id in ids.iter().cycle().take(if is_activator { 100 } else { 0 }) {
                // Refused while the object is inactive.
                _ = ending.deactivate_object(&(*id).into());
            }
        });
        call_all(
            ids.iter()
                .flat_map(|id| pair.remote_and_local(&poa.create_reference_with_id(&(*id).into(), TYPE).unwrap())),
        );
        ended.recv_timeout(TEST_TIMEOUT).unwrap();
        poa.destroy(EtherealizeObjects::Yes, WaitForCompletion::Yes).unwrap();
        assert_eq!(counter.maximum.load(Ordering::SeqCst), 1, "{name}");
        assert!(counter.total.load(Ordering::SeqCst) > 300);
    }
}

/// MAIN_THREAD_MODEL: requests of all such adapters are processed sequentially in the main thread.
#[test]
fn main_thread_adapters_run_in_the_main_thread() {
    let pair = Pair::new();
    let ran_in = Arc::new(Mutex::new(Vec::new()));
    let objects: Vec<_> = ["one", "two"]
        .into_iter()
        .flat_map(|name| {
            let poa = pair.adapter(name, [ThreadPolicy::MainThreadModel.into()]);
            let ran_in = Arc::clone(&ran_in);
            let servant = closure_servant(move || {
                ran_in.lock().unwrap().push(thread::current().id());
                String::new()
            });
            pair.remote_and_local(&poa.id_to_reference(&poa.activate_object(servant).unwrap()).unwrap())
        })
        .collect();
    let server = pair.server.clone();
    let main = thread::spawn(move || server.run());
    let thread = main.thread().id();
    let callers: Vec<_> = objects.into_iter().map(|object| in_background(move || object.name())).collect();
    for caller in callers {
        caller.recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
    }
    assert_eq!(*ran_in.lock().unwrap(), [thread; 4]);
    pair.server.shutdown().unwrap();
    main.join().unwrap();
}

/// 15.3.2.4 to 15.3.2.6: waiting within an upcall of the same ORB raises BAD_INV_ORDER 3, and the state is
/// not changed.
#[test]
fn waiting_for_completion_within_an_upcall_is_refused() {
    type Change = fn(&PoaManager) -> Result<(), spandrel::poa::PoaError>;
    let changes: [Change; 3] = [
        |m| m.hold_requests(WaitForCompletion::Yes),
        |m| m.discard_requests(WaitForCompletion::Yes),
        |m| m.deactivate(EtherealizeObjects::Yes, WaitForCompletion::Yes),
    ];
    let pair = Pair::new();
    let other = pair.root.create_poa("other", None, []).unwrap();
    other.the_poa_manager().activate().unwrap();
    let expected = (SystemExceptionKind::BadInvOrder, minor::OPERATION_WOULD_DEADLOCK, CompletionStatus::No);
    for manager in [pair.root.the_poa_manager(), other.the_poa_manager()] {
        for change in changes {
            let changing = manager.clone();
            let servant = closure_servant(move || format!("{:?}", expect_exception(change(&changing))));
            let id = pair.root.activate_object(servant).unwrap();
            for object in pair.remote_and_local(&pair.root.id_to_reference(&id).unwrap()) {
                assert_eq!(object.name().unwrap(), format!("{expected:?}"));
                assert_eq!(manager.state(), State::Active);
            }
        }
    }
}

/// 15.3.2: an upcall may change the state of its own manager without waiting.
#[test]
fn an_upcall_may_change_the_state_of_its_manager() {
    let pair = Pair::new();
    let poa = pair.root.create_poa("child", None, []).unwrap();
    let manager = poa.the_poa_manager();
    manager.activate().unwrap();
    let changing = manager.clone();
    let servant = closure_servant(move || {
        changing.discard_requests(WaitForCompletion::No).unwrap();
        changing.hold_requests(WaitForCompletion::No).unwrap();
        changing.activate().unwrap();
        changing.deactivate(EtherealizeObjects::No, WaitForCompletion::No).unwrap();
        "changed".to_owned()
    });
    let object = pair.as_client(&poa.id_to_reference(&poa.activate_object(servant).unwrap()).unwrap());
    assert_eq!(object.name().unwrap(), "changed");
    eventually(|| manager.state() == State::Inactive);
}
