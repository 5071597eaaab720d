//! Collocated calls: with every strategy, they have the outcomes of remote calls.

use spandrel::poa::{EtherealizeObjects, WaitForCompletion};
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
        mpsc,
    },
    thread::{self, ThreadId},
    time::{Duration, Instant},
};

use spandrel::{
    CompletionStatus, ObjectRef, Orb, Poa, SystemException, SystemExceptionKind,
    interception::{ClientRequestInterceptor, Interceptor},
    minor,
    options::{Collocation, Concurrency},
    poa::{Current, Incarnation, ObjectId, RequestProcessingPolicy, ServantActivator, ServantManager, ThreadPolicy},
    policy::Policy,
    server::{DeferredCall, Replied, Servant, ServerCall},
    types::Located,
};
use spandrel_orb_tests::{
    Server,
    probe::{Target, TargetServant, TargetSkeleton, target::RefuseError},
    support::{TEST_TIMEOUT, block_on, in_background, kind_and_completion, retry_with_longer_timeout, wait_until},
};

const STRATEGIES: [Collocation; 3] = [Collocation::Direct, Collocation::ThroughPoa, Collocation::No];
/// The strategies with which the calling thread runs the servant.
const IN_THREAD: [Collocation; 2] = [Collocation::Direct, Collocation::ThroughPoa];

fn server(strategy: Collocation) -> (Server, Target) {
    let server = Server::with(Orb::builder().collocation(strategy));
    let target = Target::unchecked_narrow(&server.object);
    (server, target)
}

/// The parts of an exception that are compared.
fn kind_minor_completion(error: &SystemException) -> (SystemExceptionKind, u32, CompletionStatus) {
    (error.kind(), error.minor(), error.completed())
}

#[test]
fn collocated_calls_have_the_outcomes_of_remote_calls() {
    for strategy in STRATEGIES {
        let (server, target) = server(strategy);
        for target in [&target, &server.client()] {
            target.ping().unwrap();
            assert_eq!(target.add(i32::MAX, 1).unwrap(), i32::MIN);
            assert_eq!(target.echo("Grüße, Κόσμε").unwrap(), "Grüße, Κόσμε");
            assert_eq!(target.echo_octets(&[1, 2, 3]).unwrap(), [1, 2, 3]);
            let doubles: Vec<f64> = (0..100_000).map(f64::from).collect();
            assert_eq!(target.echo_doubles(&doubles).unwrap(), doubles);
            match target.refuse(5) {
                Err(RefuseError::Refused(refused)) => assert_eq!((refused.code, &*refused.why), (5, "because of 5")),
                other => panic!("{other:?}"),
            }
            let failed = (SystemExceptionKind::BadParam, 9, CompletionStatus::No);
            assert_eq!(kind_minor_completion(&target.fail(9).unwrap_err()), failed);
            assert_eq!(target.panic().unwrap_err().kind(), SystemExceptionKind::Unknown);
            assert_eq!(target.same(Some(target)).unwrap().as_ref(), Some(target));
            assert_eq!(target.same(None).unwrap(), None);
            target.call_back(Some(target)).unwrap();
            let object = target.as_object();
            assert!(object.is_a("IDL:Probe/Target:1.0").unwrap());
            assert!(!object.is_a("IDL:Probe/Nothing:1.0").unwrap());
            assert!(!object.non_existent().unwrap());
            assert_eq!(object.locate().unwrap(), Located::Here);
            let unknown: Result<(), SystemException> = object.invoke("no_such", |_| Ok(()), |_| Ok(()));
            assert_eq!(
                kind_minor_completion(&unknown.unwrap_err()),
                (SystemExceptionKind::BadOperation, minor::UNKNOWN_OPERATION, CompletionStatus::No)
            );
        }
    }
}

#[test]
fn direct_calls_marshal_nothing() {
    let (_server, target) = server(Collocation::Direct);
    // No request could carry this text.
    assert_eq!(target.echo("nul\0").unwrap(), "nul\0");
}

#[test]
fn unencodable_text_is_refused_unless_calls_are_direct() {
    for strategy in [Collocation::ThroughPoa, Collocation::No] {
        let (_server, target) = server(strategy);
        assert_eq!(target.echo("nul\0").unwrap_err().kind(), SystemExceptionKind::BadParam);
    }
}

/// A servant that records its thread.
struct ThreadRecorder;

impl Servant for ThreadRecorder {
    fn repository_id(&self) -> &str {
        "IDL:Here:1.0"
    }

    fn is_a(&self, _repository_id: &str) -> bool {
        false
    }

    fn dispatch(&self, _operation: &str, call: ServerCall<'_>) -> Result<Replied, SystemException> {
        *LAST_THREAD.lock().unwrap() = Some(thread::current().id());
        call.reply(|_| Ok(()))
    }
}

static LAST_THREAD: Mutex<Option<ThreadId>> = Mutex::new(None);

fn void(object: &ObjectRef) -> Result<(), SystemException> {
    object.invoke("void", |_| Ok(()), |_| Ok(()))
}

#[test]
fn the_calling_thread_runs_the_servant_unless_collocation_is_off() {
    for strategy in STRATEGIES {
        let orb = Orb::builder().collocation(strategy).build().unwrap();
        let object = Poa::root(&orb).unwrap().activate(ThreadRecorder).unwrap();
        void(&object).unwrap();
        let ran_here = *LAST_THREAD.lock().unwrap() == Some(thread::current().id());
        assert_eq!(ran_here, strategy != Collocation::No, "{strategy:?}");
        // A call to another ORB of this process is remote.
        void(&Orb::builder().collocation(strategy).build().unwrap().string_to_object(&object.to_string()).unwrap())
            .unwrap();
        assert_ne!(*LAST_THREAD.lock().unwrap(), Some(thread::current().id()), "{strategy:?}");
        // A reference made from text is collocated, too.
        void(&orb.string_to_object(&object.to_string()).unwrap()).unwrap();
        let ran_here = *LAST_THREAD.lock().unwrap() == Some(thread::current().id());
        assert_eq!(ran_here, strategy != Collocation::No, "{strategy:?}");
        orb.shutdown().unwrap();
    }
}

#[test]
fn asynchronous_calls_and_one_ways_do_not_block() {
    for strategy in STRATEGIES {
        let (server, target) = server(strategy);
        let held = target.hold_async(1);
        server.probe.await_held(1);
        target.note(&[7; 10]).unwrap();
        let counted = block_on(async {
            loop {
                if target.count_async().await.unwrap() == 1 {
                    break 1;
                }
            }
        });
        assert_eq!(counted, 1);
        target.release(1).unwrap();
        block_on(held).unwrap();
    }
}

#[test]
fn one_ways_run_before_later_calls() {
    for strategy in STRATEGIES {
        let (_server, target) = server(strategy);
        let other = self::server(strategy);
        for sent in 1..=100 {
            target.note(&[7; 100]).unwrap();
            other.1.note(&[7; 100]).unwrap();
            if sent % 2 == 0 {
                block_on(target.note_async(&[7; 100])).unwrap();
            }
            assert_eq!(target.count().unwrap(), sent + sent / 2, "{strategy:?}");
            assert_eq!(other.1.count().unwrap(), sent, "{strategy:?}");
        }
    }
}

/// An interceptor that does nothing.
struct Passive;

impl Interceptor for Passive {}

impl ClientRequestInterceptor for Passive {}

#[test]
fn one_ways_run_before_later_intercepted_calls() {
    for strategy in STRATEGIES {
        let builder = Orb::builder().collocation(strategy).client_request_interceptor(Passive).unwrap();
        let server = Server::with(builder);
        let target = Target::unchecked_narrow(&server.object);
        for sent in 1..=100 {
            target.note(&[7; 100]).unwrap();
            assert_eq!(target.count().unwrap(), sent, "{strategy:?}");
        }
    }
}

/// A servant that passes each deferred request to the test.
struct DeferringServant(mpsc::Sender<DeferredCall>);

impl Servant for DeferringServant {
    fn repository_id(&self) -> &str {
        "IDL:Deferring:1.0"
    }

    fn is_a(&self, _repository_id: &str) -> bool {
        false
    }

    fn dispatch(&self, _operation: &str, call: ServerCall<'_>) -> Result<Replied, SystemException> {
        let (deferred, replied) = call.defer()?;
        self.0.send(deferred).unwrap();
        Ok(replied)
    }
}

fn deferring(strategy: Collocation) -> (Orb, ObjectRef, mpsc::Receiver<DeferredCall>) {
    let orb = Orb::builder().collocation(strategy).build().unwrap();
    let (send, receive) = mpsc::channel();
    let object = Poa::root(&orb).unwrap().activate(DeferringServant(send)).unwrap();
    (orb, object, receive)
}

fn echo(object: &ObjectRef, text: &str) -> Result<String, SystemException> {
    object.invoke("echo", |out| out.short_str(text), |input| input.str().map(|text| text.to_string()))
}

fn answer(deferred: DeferredCall) {
    let text = deferred.arguments().unwrap().str().unwrap().to_string();
    let answered = deferred.answer(|call| call.reply(|out| out.short_str(&text)));
    deferred.end(answered);
}

#[test]
fn a_servant_may_answer_later_from_another_thread() {
    for strategy in STRATEGIES {
        let (orb, object, requests) = deferring(strategy);
        let called = in_background(move || echo(&object, "später"));
        let deferred = requests.recv_timeout(TEST_TIMEOUT).unwrap();
        assert!(!deferred.is_cancelled());
        answer(deferred);
        assert_eq!(called.recv_timeout(TEST_TIMEOUT).unwrap().unwrap(), "später");
        orb.shutdown().unwrap();
    }
}

#[test]
fn a_request_deferred_twice_waits_for_the_second_answer() {
    for strategy in STRATEGIES {
        let (orb, object, requests) = deferring(strategy);
        let called = in_background(move || echo(&object, "twice"));
        let first = requests.recv_timeout(TEST_TIMEOUT).unwrap();
        let mut second = None;
        let again = first.answer(|call| {
            let (deferred, replied) = call.defer()?;
            second = Some(deferred);
            Ok(replied)
        });
        again.map(drop).unwrap();
        drop(first);
        assert!(called.try_recv().is_err());
        let second = second.unwrap();
        second.answer(|call| call.reply(|out| out.short_str("twice"))).map(drop).unwrap();
        assert_eq!(called.recv_timeout(TEST_TIMEOUT).unwrap().unwrap(), "twice");
        drop(second);
        orb.shutdown().unwrap();
    }
}

#[test]
fn a_dropped_deferred_call_raises_no_response() {
    for strategy in STRATEGIES {
        let (orb, object, requests) = deferring(strategy);
        let called = in_background(move || echo(&object, ""));
        drop(requests.recv_timeout(TEST_TIMEOUT).unwrap());
        let error = called.recv_timeout(TEST_TIMEOUT).unwrap().unwrap_err();
        assert_eq!(kind_and_completion(&error), (SystemExceptionKind::NoResponse, CompletionStatus::Maybe));
        orb.shutdown().unwrap();
    }
}

#[test]
fn a_timeout_ends_the_call_and_cancels_the_deferred_request() {
    for strategy in STRATEGIES {
        let (orb, object, requests) = deferring(strategy);
        let (error, deferred) = retry_with_longer_timeout(Duration::from_millis(30), |time| {
            let error = echo(&object.with_timeout(Some(time)), "late").unwrap_err();
            // Without a deferred call, the request did not arrive in time.
            Some((error, requests.try_recv().ok()?))
        });
        assert_eq!(kind_and_completion(&error), (SystemExceptionKind::Timeout, CompletionStatus::Maybe));
        wait_until("the cancellation", || deferred.is_cancelled());
        answer(deferred);
        orb.shutdown().unwrap();
    }
}

#[test]
fn a_slow_servant_ends_its_call_in_a_timeout() {
    for strategy in STRATEGIES {
        let (server, target) = server(strategy);
        let error = thread::scope(|scope| {
            let (begin, begun) = mpsc::channel();
            let server = &server;
            // The gate opens only after the caller's timeout.
            scope.spawn(move || {
                for (gate, end) in begun {
                    while Instant::now() < end {
                        thread::yield_now();
                    }
                    server.probe.open(gate);
                }
            });
            let attempts = AtomicU32::new(0);
            retry_with_longer_timeout(Duration::from_millis(50), |time| {
                let gate = attempts.fetch_add(1, Ordering::SeqCst);
                begin.send((gate, Instant::now() + time * 2)).unwrap();
                let limited = Target::unchecked_narrow(&target.as_object().with_timeout(Some(time)));
                // Otherwise the call began after the gate was open, or did not arrive in time.
                limited.hold(gate).err().filter(|error| error.completed() != CompletionStatus::No)
            })
        });
        assert_eq!(
            kind_and_completion(&error),
            (SystemExceptionKind::Timeout, CompletionStatus::Maybe),
            "{strategy:?}"
        );
    }
}

#[test]
fn a_forwarding_to_another_orb_is_followed() {
    for strategy in STRATEGIES {
        let (server, target) = server(strategy);
        let elsewhere = Server::start();
        target.ping().unwrap();
        server.poa.forward(&server.object, elsewhere.object.clone()).unwrap();
        assert_eq!(target.as_object().locate().unwrap(), Located::Forward(elsewhere.object.ior().clone()));
        elsewhere.probe.open(1);
        // Only the other server's gate is open.
        target.hold(1).unwrap();
        assert_eq!(target.as_object().locate().unwrap(), Located::Here, "{strategy:?}");
    }
}

#[test]
fn a_deactivated_object_does_not_exist_for_collocated_calls() {
    for strategy in STRATEGIES {
        let (server, target) = server(strategy);
        target.ping().unwrap();
        server.poa.deactivate(&server.object).unwrap();
        let error = target.ping().unwrap_err();
        assert_eq!(kind_and_completion(&error), (SystemExceptionKind::ObjectNotExist, CompletionStatus::No));
        assert!(target.as_object().non_existent().unwrap());
    }
}

#[test]
fn a_collocated_upcall_may_shut_down_without_waiting() {
    for strategy in STRATEGIES {
        let (server, target) = server(strategy);
        assert!(target.stop().unwrap(), "{strategy:?}");
        server.orb.shutdown().unwrap();
        assert_eq!(kind_minor_completion(&target.ping().unwrap_err()).0, SystemExceptionKind::BadInvOrder);
    }
}

#[test]
fn shutdown_waits_for_running_collocated_calls() {
    for strategy in IN_THREAD {
        let (server, target) = server(strategy);
        let called = in_background(move || target.hold(1));
        server.probe.await_held(1);
        server.orb.begin_shutdown().unwrap();
        let orb = server.orb.clone();
        let ended = in_background(move || orb.shutdown());
        assert!(ended.try_recv().is_err());
        server.probe.open(1);
        called.recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
        ended.recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
    }
}

#[test]
fn shutdown_ends_unanswered_collocated_calls_after_its_timeout() {
    for strategy in STRATEGIES {
        let brief = Duration::from_millis(50);
        let orb = Orb::builder().collocation(strategy).shutdown_timeout(brief).build().unwrap();
        let (send, requests) = mpsc::channel();
        let object = Poa::root(&orb).unwrap().activate(DeferringServant(send)).unwrap();
        let called = in_background(move || echo(&object, ""));
        let deferred = requests.recv_timeout(TEST_TIMEOUT).unwrap();
        orb.begin_shutdown().unwrap();
        let error = called.recv_timeout(TEST_TIMEOUT).unwrap().unwrap_err();
        assert_eq!(
            kind_and_completion(&error),
            (SystemExceptionKind::CommFailure, CompletionStatus::Maybe),
            "{strategy:?}"
        );
        // The client may observe the end a little earlier.
        wait_until("the cancellation", || deferred.is_cancelled());
        drop(deferred);
        orb.shutdown().unwrap();
    }
}

/// A servant that calls itself.
struct Recursive {
    deepest: Arc<AtomicU32>,
    own: Mutex<Option<ObjectRef>>,
}

impl Servant for Recursive {
    fn repository_id(&self) -> &str {
        "IDL:Recursive:1.0"
    }

    fn is_a(&self, _repository_id: &str) -> bool {
        false
    }

    fn dispatch(&self, _operation: &str, mut call: ServerCall<'_>) -> Result<Replied, SystemException> {
        let left = call.arguments()?.u32()?;
        self.deepest.fetch_add(1, Ordering::Relaxed);
        let own = self.own.lock().unwrap().clone().unwrap();
        let below = if left == 0 { 0 } else { descend(&own, left - 1)? };
        call.reply(|out| {
            out.u32(below + left);
            Ok(())
        })
    }
}

fn descend(object: &ObjectRef, depth: u32) -> Result<u32, SystemException> {
    object.invoke(
        "descend",
        |out| {
            out.u32(depth);
            Ok(())
        },
        |input| input.u32(),
    )
}

#[test]
fn collocated_calls_may_recur() {
    for strategy in STRATEGIES {
        let orb = Orb::builder().collocation(strategy).build().unwrap();
        let deepest = Arc::<AtomicU32>::default();
        let recursive = Arc::new(Recursive { deepest: Arc::clone(&deepest), own: Mutex::default() });
        let object = Poa::root(&orb).unwrap().activate_shared(recursive.clone()).unwrap();
        *recursive.own.lock().unwrap() = Some(object.clone());
        assert_eq!(descend(&object, 20).unwrap(), 20 * 21 / 2);
        assert_eq!(deepest.load(Ordering::Relaxed), 21);
        *recursive.own.lock().unwrap() = None;
        orb.shutdown().unwrap();
    }
}

/// A servant that runs a closure in `add`.
struct ClosureServant<F>(F);

impl<F: Fn() -> Result<i32, SystemException> + Send + Sync> TargetServant for ClosureServant<F> {
    fn add(&self, _a: i32, _b: i32) -> Result<i32, SystemException> {
        (self.0)()
    }

    fn ping(&self) -> Result<(), SystemException> {
        Ok(())
    }

    fn echo(&self, text: &str) -> Result<String, SystemException> {
        Ok(text.to_owned())
    }

    fn echo_octets(&self, data: &[u8]) -> Result<Vec<u8>, SystemException> {
        Ok(data.to_vec())
    }

    fn echo_doubles(&self, data: &[f64]) -> Result<Vec<f64>, SystemException> {
        Ok(data.to_vec())
    }

    fn refuse(&self, _code: i32) -> Result<(), RefuseError> {
        Ok(())
    }

    fn fail(&self, _minor: u32) -> Result<(), SystemException> {
        Ok(())
    }

    fn panic(&self) -> Result<(), SystemException> {
        Ok(())
    }

    fn note(&self, _data: &[u8]) -> Result<(), SystemException> {
        Ok(())
    }

    fn count(&self) -> Result<u32, SystemException> {
        Ok(0)
    }

    fn hold(&self, _gate: u32) -> Result<(), SystemException> {
        Ok(())
    }

    fn release(&self, _gate: u32) -> Result<(), SystemException> {
        Ok(())
    }

    fn same(&self, other: Option<&Target>) -> Result<Option<Target>, SystemException> {
        Ok(other.cloned())
    }

    fn call_back(&self, _other: Option<&Target>) -> Result<(), SystemException> {
        Ok(())
    }

    fn stop(&self) -> Result<bool, SystemException> {
        Ok(false)
    }
}

type Action = Box<dyn Fn() -> Result<i32, SystemException> + Send + Sync>;

/// An adapter with its own manager, and an object that runs a given action.
struct AdapterFixture {
    orb: Orb,
    poa: Poa,
    target: Target,
    action: Arc<Mutex<Option<Action>>>,
}

impl AdapterFixture {
    fn new(strategy: Collocation, policies: Vec<Policy>) -> Self {
        let orb = Orb::builder().collocation(strategy).build().unwrap();
        let poa = Poa::root(&orb).unwrap().create_poa("stage", None, policies).unwrap();
        poa.the_poa_manager().activate().unwrap();
        let action = Arc::<Mutex<Option<Action>>>::default();
        let next = Arc::clone(&action);
        let servant = ClosureServant(move || {
            let action = next.lock().unwrap().take();
            action.map_or(Ok(0), |action| action())
        });
        let target = Target::unchecked_narrow(&poa.activate(TargetSkeleton::new(servant)).unwrap());
        Self { orb, poa, target, action }
    }

    /// Calls the object, which runs this action within the upcall.
    fn call_within(
        &self,
        action: impl Fn() -> Result<i32, SystemException> + Send + Sync + 'static,
    ) -> Result<i32, SystemException> {
        *self.action.lock().unwrap() = Some(Box::new(action));
        self.target.add(1, 1)
    }
}

impl Drop for AdapterFixture {
    fn drop(&mut self) {
        self.orb.shutdown().unwrap();
    }
}

#[test]
fn current_identifies_the_called_object_in_nested_calls() {
    for strategy in STRATEGIES {
        let fixture = AdapterFixture::new(strategy, Vec::new());
        let object = fixture.target.as_object().clone();
        let id = fixture.poa.reference_to_id(&object).unwrap();
        let other = AdapterFixture::new(strategy, Vec::new());
        let (inner, own) = (other.target.clone(), id.clone());
        let same = fixture.call_within(move || {
            let is_current =
                || Current::new().object_id().unwrap() == own && Current::new().reference().unwrap() == object;
            let before = is_current();
            inner.add(1, 1)?;
            Ok(i32::from(before && is_current()))
        });
        assert_eq!(same.unwrap(), 1, "{strategy:?}");
        assert!(Current::new().poa().is_err());
    }
}

#[test]
fn an_object_deactivated_within_its_upcall_is_etherealized_after_it() {
    for strategy in STRATEGIES {
        let policies = vec![RequestProcessingPolicy::UseServantManager.into()];
        let fixture = AdapterFixture::with_activator(strategy, policies);
        let (poa, target, etherealized) = (fixture.0.poa.clone(), fixture.0.target.clone(), Arc::clone(&fixture.1));
        let etherealized = fixture.0.call_within(move || {
            let id = poa.reference_to_id(target.as_object()).unwrap();
            poa.deactivate_object(&id).map_err(SystemException::from)?;
            Ok(i32::try_from(etherealized.load(Ordering::SeqCst)).unwrap())
        });
        assert_eq!(etherealized.unwrap(), 0, "{strategy:?}: the servant was etherealized during its upcall");
        wait_until("the etherealization", || fixture.1.load(Ordering::SeqCst) > 0);
    }
}

/// Counts etherealized servants.
struct EtherealizationCounter(Arc<AtomicU32>);

impl ServantActivator for EtherealizationCounter {
    fn incarnate(&self, _oid: &ObjectId, _adapter: &Poa) -> Result<Arc<dyn Servant>, Incarnation> {
        Err(Incarnation::System(SystemException::object_not_exist(0, CompletionStatus::No)))
    }

    fn etherealize(&self, _: &ObjectId, _: &Poa, _servant: Arc<dyn Servant>, _: bool, _: bool) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl AdapterFixture {
    fn with_activator(strategy: Collocation, policies: Vec<Policy>) -> (Self, Arc<AtomicU32>) {
        let fixture = Self::new(strategy, policies);
        let etherealized = Arc::<AtomicU32>::default();
        fixture
            .poa
            .set_servant_manager(ServantManager::Activator(Arc::new(EtherealizationCounter(Arc::clone(&etherealized)))))
            .unwrap();
        (fixture, etherealized)
    }
}

#[test]
fn the_manager_state_holds_or_refuses_collocated_calls() {
    for strategy in STRATEGIES {
        let fixture = AdapterFixture::new(strategy, Vec::new());
        let manager = fixture.poa.the_poa_manager();
        fixture.target.ping().unwrap();
        manager.discard_requests(WaitForCompletion::No).unwrap();
        let refused = fixture.target.ping().unwrap_err();
        assert_eq!(kind_and_completion(&refused), (SystemExceptionKind::Transient, CompletionStatus::No));
        manager.hold_requests(WaitForCompletion::No).unwrap();
        let limited =
            Target::unchecked_narrow(&fixture.target.as_object().with_timeout(Some(Duration::from_millis(30))));
        assert_eq!(limited.ping().unwrap_err().kind(), SystemExceptionKind::Timeout, "{strategy:?}");
        let target = fixture.target.clone();
        let held = in_background(move || target.add(1, 2));
        assert!(held.recv_timeout(Duration::from_millis(20)).is_err(), "{strategy:?}: the call was not held");
        manager.activate().unwrap();
        held.recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
        manager.deactivate(EtherealizeObjects::No, WaitForCompletion::No).unwrap();
        assert_eq!(fixture.target.ping().unwrap_err().kind(), SystemExceptionKind::ObjAdapter);
    }
}

#[test]
fn a_single_thread_adapter_runs_one_call_at_a_time() {
    for strategy in STRATEGIES {
        let fixture = AdapterFixture::new(strategy, vec![ThreadPolicy::SingleThreadModel.into()]);
        let call_within = Arc::<AtomicU32>::default();
        let (send, entered) = mpsc::channel();
        let (gate, opened) = mpsc::channel::<()>();
        let (count, opened) = (Arc::clone(&call_within), Mutex::new(opened));
        *fixture.action.lock().unwrap() = Some(Box::new(move || {
            count.fetch_add(1, Ordering::SeqCst);
            send.send(()).unwrap();
            opened.lock().unwrap().recv().unwrap();
            count.fetch_sub(1, Ordering::SeqCst);
            Ok(0)
        }));
        let target = fixture.target.clone();
        let first = in_background(move || target.add(1, 1));
        entered.recv_timeout(TEST_TIMEOUT).unwrap();
        let count = Arc::clone(&call_within);
        *fixture.action.lock().unwrap() =
            Some(Box::new(move || Ok(i32::try_from(count.load(Ordering::SeqCst)).unwrap())));
        let target = fixture.target.clone();
        let second = in_background(move || target.add(1, 1));
        assert!(second.recv_timeout(Duration::from_millis(20)).is_err(), "{strategy:?}: two at once");
        gate.send(()).unwrap();
        first.recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
        assert_eq!(second.recv_timeout(TEST_TIMEOUT).unwrap().unwrap(), 0, "{strategy:?}");
    }
}

#[test]
fn a_single_thread_adapter_admits_calls_within_its_own_upcall() {
    for strategy in IN_THREAD {
        let fixture = AdapterFixture::new(strategy, vec![ThreadPolicy::SingleThreadModel.into()]);
        let target = fixture.target.clone();
        assert_eq!(fixture.call_within(move || target.add(0, 0).map(|sum| sum + 1)).unwrap(), 1, "{strategy:?}");
    }
}

#[test]
fn plain_object_keys_are_resolved_for_collocated_calls() {
    for strategy in STRATEGIES {
        let (server, target) = server(strategy);
        server.orb.set_object_key_alias("Probe", &server.object).unwrap();
        let url = format!("corbaloc:iiop:127.0.0.1:{}/Probe", server.port());
        let named = Target::unchecked_narrow(&server.orb.string_to_object(&url).unwrap());
        assert_eq!(named.add(1, 2).unwrap(), 3, "{strategy:?}");
        assert_eq!(named.add(3, 4).unwrap(), 7, "{strategy:?}");
        assert_eq!(target.add(1, 2).unwrap(), 3);
        let unknown =
            server.orb.string_to_object(&format!("corbaloc:iiop:127.0.0.1:{}/no-such-key", server.port())).unwrap();
        assert!(unknown.non_existent().unwrap());
        let error = Target::unchecked_narrow(&unknown).ping().unwrap_err();
        assert_eq!(kind_and_completion(&error), (SystemExceptionKind::ObjectNotExist, CompletionStatus::No));
    }
}

#[test]
fn a_pool_of_one_thread_serves_requests_while_it_waits_for_a_collocated_reply() {
    for strategy in IN_THREAD {
        let orb = Orb::builder()
            .collocation(strategy)
            .concurrency(Concurrency::LeaderFollowers { threads: Some(1) })
            .build()
            .unwrap();
        let poa = Poa::root(&orb).unwrap();
        let (send, requests) = mpsc::channel();
        let deferring = poa.activate(DeferringServant(send)).unwrap();
        let requests = Mutex::new(requests);
        // The first call, in the pool's only thread, waits for the second, which the same thread must serve.
        let is_first = AtomicU32::new(1);
        let servant = ClosureServant(move || {
            if is_first.swap(0, Ordering::SeqCst) == 1 {
                return echo(&deferring, "within").map(|text| i32::try_from(text.len()).unwrap());
            }
            answer(requests.lock().unwrap().recv_timeout(TEST_TIMEOUT).unwrap());
            Ok(0)
        });
        let object = poa.activate(TargetSkeleton::new(servant)).unwrap();
        let there = |timeout| {
            let client = Orb::builder().request_timeout(Some(timeout)).build().unwrap();
            Target::unchecked_narrow(&client.string_to_object(&object.to_string()).unwrap())
        };
        let first = there(TEST_TIMEOUT);
        let called = in_background(move || first.add(1, 1));
        let second = there(TEST_TIMEOUT);
        // The call that arrives first waits for the other.
        assert!(matches!(second.add(1, 1), Ok(0 | 6)), "{strategy:?}");
        assert!(matches!(called.recv_timeout(TEST_TIMEOUT).unwrap(), Ok(0 | 6)), "{strategy:?}");
        orb.shutdown().unwrap();
    }
}
