//! Slow application code in a request's path (interceptors, servant managers, single-thread adapters) delays
//! only its own requests.

use std::{
    collections::HashSet,
    sync::{Arc, Condvar, Mutex},
};

use spandrel::{
    Orb, OrbBuilder, Poa,
    interception::{Interceptor, Interruption, ServerRequestInfo, ServerRequestInterceptor},
    options::Concurrency,
    poa::{
        IdAssignmentPolicy, Incarnation, ObjectId, RequestProcessingPolicy, ServantActivator, ServantManager,
        ThreadPolicy,
    },
    server::Servant,
};
use spandrel_orb_tests::{
    Probe, Server,
    probe::{Target, TargetSkeleton},
    support::{TEST_TIMEOUT, in_background},
};

/// Blocks passes with selected names until it is opened.
#[derive(Default)]
struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    slow: HashSet<String>,
    held: usize,
    is_open: bool,
}

impl Gate {
    fn holding(name: &str) -> Arc<Self> {
        let gate = Self::default();
        gate.state.lock().unwrap().slow.insert(name.to_owned());
        Arc::new(gate)
    }

    fn wait_if_slow(&self, name: &str) {
        let mut state = self.state.lock().unwrap();
        if state.slow.contains(name) {
            state.held += 1;
            self.changed.notify_all();
            drop(self.changed.wait_while(state, |state| !state.is_open).unwrap());
        }
    }

    fn await_held(&self) {
        let state = self.state.lock().unwrap();
        let (_state, waited) = self.changed.wait_timeout_while(state, TEST_TIMEOUT, |state| state.held == 0).unwrap();
        assert!(!waited.timed_out(), "no pass was blocked");
    }

    fn open(&self) {
        self.state.lock().unwrap().is_open = true;
        self.changed.notify_all();
    }
}

/// The concurrency strategies with at least two threads.
fn strategies() -> [OrbBuilder; 4] {
    [
        Concurrency::default(),
        Concurrency::LeaderFollowers { threads: None },
        Concurrency::LeaderFollowers { threads: Some(2) },
        Concurrency::ThreadPool { threads: 2, queue: 8 },
    ]
    .map(|strategy| Orb::builder().concurrency(strategy))
}

/// Makes one call that `gate` blocks, and calls of another client that must not wait for it.
fn assert_only_one_call_is_delayed(gate: &Gate, slow: Target, quick: &Target) {
    let held = in_background(move || slow.ping());
    gate.await_held();
    for number in 0..100 {
        let quick = quick.clone();
        let sum = in_background(move || quick.add(number, 1));
        assert_eq!(sum.recv_timeout(TEST_TIMEOUT).expect("the other call is not delayed").unwrap(), number + 1);
    }
    assert!(held.try_recv().is_err());
    gate.open();
    held.recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
}

/// A server interceptor that is slow for one operation.
struct SlowInterceptor(Arc<Gate>);

impl Interceptor for SlowInterceptor {}

impl ServerRequestInterceptor for SlowInterceptor {
    fn receive_request(&self, info: &mut ServerRequestInfo<'_>) -> Result<(), Interruption> {
        self.0.wait_if_slow(info.operation());
        Ok(())
    }
}

#[test]
fn a_slow_interceptor_delays_its_own_request() {
    for builder in strategies() {
        let gate = Gate::holding("ping");
        let server = Server::with(builder.server_request_interceptor(SlowInterceptor(Arc::clone(&gate))).unwrap());
        assert_only_one_call_is_delayed(&gate, server.client(), &server.client());
    }
}

/// A servant activator that is slow for one object.
struct SlowActivator {
    gate: Arc<Gate>,
    orb: Orb,
}

impl ServantActivator for SlowActivator {
    fn incarnate(&self, oid: &ObjectId, _adapter: &Poa) -> Result<Arc<dyn Servant>, Incarnation> {
        self.gate.wait_if_slow(&String::from_utf8_lossy(oid.as_bytes()));
        Ok(Arc::new(TargetSkeleton::new(Arc::new(Probe::new(&self.orb)))))
    }

    fn etherealize(&self, _: &ObjectId, _: &Poa, _: Arc<dyn Servant>, _: bool, _: bool) {}
}

#[test]
fn a_slow_servant_manager_delays_requests_for_its_own_object() {
    for builder in strategies() {
        let gate = Gate::holding("slow");
        let server = Server::with(builder);
        let policies = [IdAssignmentPolicy::UserId.into(), RequestProcessingPolicy::UseServantManager.into()];
        let poa = server.poa.create_poa("made", None, policies).unwrap();
        let activator = SlowActivator { gate: Arc::clone(&gate), orb: server.orb.clone() };
        poa.set_servant_manager(ServantManager::Activator(Arc::new(activator))).unwrap();
        poa.the_poa_manager().activate().unwrap();
        let [slow, quick] = ["slow", "quick"].map(|id| {
            let object = poa.create_reference_with_id(&id.into(), "IDL:Probe/Target:1.0").unwrap();
            let orb = Orb::builder().build().unwrap();
            orb.string_to_object(&object.to_string()).unwrap().unchecked_narrow::<Target>()
        });
        assert_only_one_call_is_delayed(&gate, slow, &quick);
    }
}

#[test]
fn a_single_thread_adapter_delays_no_other_adapter() {
    for builder in strategies() {
        let server = Server::with(builder);
        let poa = server.poa.create_poa("single", None, [ThreadPolicy::SingleThreadModel.into()]).unwrap();
        poa.the_poa_manager().activate().unwrap();
        let probe = Arc::new(Probe::new(&server.orb));
        let object = poa.activate(TargetSkeleton::new(Arc::clone(&probe))).unwrap();
        let single = || -> Target {
            Orb::builder().build().unwrap().string_to_object(&object.to_string()).unwrap().unchecked_narrow()
        };
        let (first, second) = (single(), single());
        let first = in_background(move || first.hold(1));
        probe.await_held(1);
        let second = in_background(move || second.ping());
        let quick = server.client();
        for number in 0..100 {
            assert_eq!(quick.add(number, 1).unwrap(), number + 1);
        }
        assert!(second.try_recv().is_err(), "the adapter runs one request at a time");
        probe.open(1);
        first.recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
        second.recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
    }
}
