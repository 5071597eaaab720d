//! Whoever is slow keeps only those waiting that want the same of it: not servants alone, but all that applications put in a request's way.

use std::{
    collections::HashSet,
    sync::{Arc, Condvar, Mutex},
};

use spandrel::{
    Concurrency, Orb, OrbBuilder, Servant,
    interception::{Interceptor, Interruption, ServerRequestInfo, ServerRequestInterceptor},
    poa::{
        IdAssignmentPolicy, Incarnation, ObjectId, Poa, RequestProcessingPolicy, ServantActivator, ServantManager,
        ThreadPolicy,
    },
};
use spandrel_orb_tests::{
    Probe, Server,
    probe::{Target, TargetSkeleton},
    support::{PATIENCE, in_background},
};

/// Holds everybody who comes and is named, until it is opened.
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

    fn pass(&self, name: &str) {
        let mut state = self.state.lock().unwrap();
        if state.slow.contains(name) {
            state.held += 1;
            self.changed.notify_all();
            drop(self.changed.wait_while(state, |state| !state.is_open).unwrap());
        }
    }

    fn await_held(&self) {
        let state = self.state.lock().unwrap();
        let (_state, waited) = self.changed.wait_timeout_while(state, PATIENCE, |state| state.held == 0).unwrap();
        assert!(!waited.timed_out(), "nobody came");
    }

    fn open(&self) {
        self.state.lock().unwrap().is_open = true;
        self.changed.notify_all();
    }
}

/// All that can have one slow servant: a thread for each connection, threads for all, two for all, and two behind a queue.
fn arrangements() -> [OrbBuilder; 4] {
    [
        Concurrency::default(),
        Concurrency::LeaderFollowers { threads: None },
        Concurrency::LeaderFollowers { threads: Some(2) },
        Concurrency::ThreadPool { threads: 2, queue: 8 },
    ]
    .map(|strategy| Orb::builder().concurrency(strategy))
}

/// One call is slow, by what `gate` holds, and another client's calls are not.
fn one_is_slow_and_others_are_not(gate: &Gate, slow: Target, quick: &Target) {
    let held = in_background(move || slow.ping());
    gate.await_held();
    for number in 0..100 {
        let quick = quick.clone();
        let sum = in_background(move || quick.add(number, 1));
        assert_eq!(sum.recv_timeout(PATIENCE).expect("nobody keeps it").unwrap(), number + 1);
    }
    assert!(held.try_recv().is_err());
    gate.open();
    held.recv_timeout(PATIENCE).unwrap().unwrap();
}

/// Is slow for one operation.
struct Slow(Arc<Gate>);

impl Interceptor for Slow {}

impl ServerRequestInterceptor for Slow {
    fn receive_request(&self, info: &mut ServerRequestInfo<'_>) -> Result<(), Interruption> {
        self.0.pass(info.operation());
        Ok(())
    }
}

#[test]
fn a_slow_interceptor_delays_its_own_request() {
    for builder in arrangements() {
        let gate = Gate::holding("ping");
        let server = Server::with(builder.server_request_interceptor(Slow(Arc::clone(&gate))).unwrap());
        one_is_slow_and_others_are_not(&gate, server.client(), &server.client());
    }
}

/// Is slow to make the servant of one object.
struct Making {
    gate: Arc<Gate>,
    orb: Orb,
}

impl ServantActivator for Making {
    fn incarnate(&self, oid: &ObjectId, _adapter: &Poa) -> Result<Arc<dyn Servant>, Incarnation> {
        self.gate.pass(&String::from_utf8_lossy(oid.as_bytes()));
        Ok(Arc::new(TargetSkeleton::new(Arc::new(Probe::new(&self.orb)))))
    }

    fn etherealize(&self, _: &ObjectId, _: &Poa, _: Arc<dyn Servant>, _: bool, _: bool) {}
}

#[test]
fn a_slow_servant_manager_delays_requests_for_its_own_object() {
    for builder in arrangements() {
        let gate = Gate::holding("slow");
        let server = Server::with(builder);
        let policies = [IdAssignmentPolicy::UserId.into(), RequestProcessingPolicy::UseServantManager.into()];
        let poa = server.poa.create_poa("made", None, policies).unwrap();
        let making = Making { gate: Arc::clone(&gate), orb: server.orb.clone() };
        poa.set_servant_manager(ServantManager::Activator(Arc::new(making))).unwrap();
        poa.the_poa_manager().activate().unwrap();
        let [slow, quick] = ["slow", "quick"].map(|id| {
            let object = poa.create_reference_with_id(&id.into(), "IDL:Probe/Target:1.0").unwrap();
            let orb = Orb::builder().build().unwrap();
            orb.string_to_object(&object.to_string()).unwrap().unchecked_narrow::<Target>()
        });
        one_is_slow_and_others_are_not(&gate, slow, &quick);
    }
}

#[test]
fn an_adapter_that_runs_one_request_at_a_time_delays_no_other_adapter() {
    for builder in arrangements() {
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
        assert!(second.try_recv().is_err(), "one request at a time");
        probe.open(1);
        first.recv_timeout(PATIENCE).unwrap().unwrap();
        second.recv_timeout(PATIENCE).unwrap().unwrap();
    }
}
