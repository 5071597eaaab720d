//! Adapters with the single-thread and the main-thread model.

use super::*;
use spandrel::poa::{EtherealizeObjects, WaitForCompletion};

/// Counts the threads inside its upcalls, and calls another object from there.
struct SingleThreadProbe {
    inside: AtomicUsize,
    runs: AtomicUsize,
    threads: Mutex<Vec<thread::ThreadId>>,
    other: Mutex<Option<Target>>,
    gate: Shared<bool>,
}

impl SingleThreadProbe {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            inside: AtomicUsize::new(0),
            runs: AtomicUsize::new(0),
            threads: Mutex::default(),
            other: Mutex::default(),
            gate: Shared { value: Mutex::new(true), changed: Condvar::new() },
        })
    }
}

struct SingleThreadServant(Arc<SingleThreadProbe>);

impl Servant for SingleThreadServant {
    fn repository_id(&self) -> &str {
        "IDL:Probe/Target:1.0"
    }

    fn is_a(&self, _: &str) -> bool {
        true
    }

    fn dispatch(&self, operation: &str, call: ServerCall<'_>) -> Result<Replied, SystemException> {
        self.0.threads.lock().unwrap().push(thread::current().id());
        if operation == "count" {
            // Called within an upcall of the same thread.
            return call.reply(|out| {
                out.u32(7);
                Ok(())
            });
        }
        assert_eq!(self.0.inside.fetch_add(1, Ordering::SeqCst), 0, "two at once");
        self.0.gate.change(|_| self.0.runs.fetch_add(1, Ordering::SeqCst));
        self.0.gate.await_value(|is_open| *is_open);
        let other = self.0.other.lock().unwrap().clone();
        let count = other.map(|other| other.count());
        self.0.inside.fetch_sub(1, Ordering::SeqCst);
        assert!(count.is_none_or(|count| count.unwrap() == 7));
        call.reply(|_| Ok(()))
    }
}

#[test]
fn a_single_thread_adapter_runs_one_upcall_at_a_time_and_blocks_no_other_adapter() {
    let fixture = AdapterFixture::active([ThreadPolicy::SingleThreadModel.into()]);
    let single = SingleThreadProbe::new();
    single.gate.change(|is_open| *is_open = false);
    let object = fixture.poa.activate(SingleThreadServant(Arc::clone(&single))).unwrap();
    let second = fixture.poa.activate(SingleThreadServant(Arc::clone(&single))).unwrap();
    let calls: Vec<_> = (0..40)
        .map(|number| {
            let target = client(if number % 2 == 0 { &object } else { &second });
            in_background(move || target.ping())
        })
        .collect();
    single.gate.await_value(|_| single.runs.load(Ordering::SeqCst) == 1);
    assert!(calls[7].recv_timeout(Duration::from_millis(20)).is_err());
    assert_eq!(single.runs.load(Ordering::SeqCst), 1);
    // Another adapter is not blocked.
    client(&fixture.root.activate_shared(probe(&fixture.orb).1).unwrap()).ping().unwrap();
    single.gate.change(|is_open| *is_open = true);
    for call in calls {
        call.recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
    }
    assert_eq!(single.runs.load(Ordering::SeqCst), 40);
}

#[test]
fn a_single_thread_adapter_admits_collocated_calls_within_its_upcall() {
    let fixture = AdapterFixture::active([ThreadPolicy::SingleThreadModel.into()]);
    let single = SingleThreadProbe::new();
    let object = fixture.poa.activate(SingleThreadServant(Arc::clone(&single))).unwrap();
    // Through the server's own reference: the collocated call stays in its thread.
    *single.other.lock().unwrap() = Some(object.unchecked_narrow());
    let target = client(&object);
    target.ping().unwrap();
    target.ping().unwrap();
    assert_eq!(single.runs.load(Ordering::SeqCst), 2);
}

#[test]
fn a_client_that_times_out_while_waiting_does_not_block_the_next_one() {
    let fixture = AdapterFixture::active([ThreadPolicy::SingleThreadModel.into()]);
    let single = SingleThreadProbe::new();
    single.gate.change(|is_open| *is_open = false);
    let object = fixture.poa.activate(SingleThreadServant(Arc::clone(&single))).unwrap();
    let first = in_background({
        let target = client(&object);
        move || target.ping()
    });
    single.gate.await_value(|_| single.runs.load(Ordering::SeqCst) == 1);
    let limited = Orb::builder().build().unwrap().string_to_object(&object.to_string()).unwrap();
    let limited: Target = limited.with_timeout(Some(Duration::from_millis(30))).unchecked_narrow();
    assert_eq!(limited.ping().unwrap_err().kind(), SystemExceptionKind::Timeout);
    let last = in_background({
        let target = client(&object);
        move || target.ping()
    });
    single.gate.change(|is_open| *is_open = true);
    first.recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
    last.recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
}

#[test]
fn main_thread_adapters_are_served_by_the_main_thread_only() {
    let fixture = AdapterFixture::active([ThreadPolicy::MainThreadModel.into()]);
    let other =
        fixture.root.create_poa("other", Some(&fixture.manager), [ThreadPolicy::MainThreadModel.into()]).unwrap();
    let single = SingleThreadProbe::new();
    let objects = [&fixture.poa, &other].map(|poa| poa.activate(SingleThreadServant(Arc::clone(&single))).unwrap());
    *single.other.lock().unwrap() = Some(objects[1].unchecked_narrow());
    let calls: Vec<_> = (0..10)
        .map(|number| {
            let target = client(&objects[number % 2]);
            in_background(move || target.ping())
        })
        .collect();
    let orb = fixture.orb.clone();
    let finished = in_background(move || {
        let outcomes: Vec<_> = calls.into_iter().map(|call| call.recv_timeout(TEST_TIMEOUT).unwrap()).collect();
        orb.begin_shutdown().unwrap();
        outcomes
    });
    fixture.orb.run();
    assert!(finished.recv_timeout(TEST_TIMEOUT).unwrap().iter().all(Result::is_ok));
    let me = thread::current().id();
    assert!(single.threads.lock().unwrap().iter().all(|thread| *thread == me));
    assert_eq!(single.runs.load(Ordering::SeqCst), 10);
}

#[derive(Default)]
struct Gate {
    is_reached: bool,
    is_open: bool,
}

/// An asynchronous servant whose `hold` blocks until a gate is open.
struct GatedServant(Arc<Shared<Gate>>);

impl TargetAsyncServant for GatedServant {
    async fn ping(&self) -> Result<(), SystemException> {
        Ok(())
    }
    async fn add(&self, a: i32, b: i32) -> Result<i32, SystemException> {
        Ok(a + b)
    }
    async fn echo(&self, text: &str) -> Result<String, SystemException> {
        Ok(text.to_owned())
    }
    async fn echo_octets(&self, data: &[u8]) -> Result<Vec<u8>, SystemException> {
        Ok(data.to_vec())
    }
    async fn echo_doubles(&self, data: &[f64]) -> Result<Vec<f64>, SystemException> {
        Ok(data.to_vec())
    }
    async fn refuse(&self, _: i32) -> Result<(), RefuseError> {
        Ok(())
    }
    async fn fail(&self, _: u32) -> Result<(), SystemException> {
        Ok(())
    }
    async fn panic(&self) -> Result<(), SystemException> {
        Ok(())
    }
    async fn note(&self, _: &[u8]) -> Result<(), SystemException> {
        Ok(())
    }
    async fn count(&self) -> Result<u32, SystemException> {
        Ok(0)
    }
    async fn hold(&self, _: u32) -> Result<(), SystemException> {
        self.0.change(|gate| gate.is_reached = true);
        self.0.await_value(|gate| gate.is_open);
        Ok(())
    }
    async fn release(&self, _: u32) -> Result<(), SystemException> {
        Ok(())
    }
    async fn same(&self, other: Option<&Target>) -> Result<Option<Target>, SystemException> {
        Ok(other.cloned())
    }
    async fn call_back(&self, _: Option<&Target>) -> Result<(), SystemException> {
        Ok(())
    }
    async fn stop(&self) -> Result<bool, SystemException> {
        Ok(true)
    }
}

#[test]
fn destroy_waits_for_asynchronous_upcalls() {
    let fixture = AdapterFixture::active([]);
    let gate = Arc::<Shared<Gate>>::default();
    let object = fixture.poa.activate(TargetAsyncSkeleton::new(GatedServant(Arc::clone(&gate)))).unwrap();
    let target = client(&object);
    target.ping().unwrap();
    let running = in_background(move || target.hold(1));
    gate.await_value(|gate| gate.is_reached);
    let poa = fixture.poa.clone();
    let destroying = in_background(move || poa.destroy(EtherealizeObjects::Yes, WaitForCompletion::Yes));
    assert!(destroying.recv_timeout(Duration::from_millis(20)).is_err(), "a request runs");
    gate.change(|gate| gate.is_open = true);
    destroying.recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
    running.recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
}

/// A servant manager that records its threads and asserts that it is never entered twice at once.
struct ExclusiveManager {
    servant: Arc<dyn Servant>,
    inside: AtomicUsize,
    ended: Shared<Vec<thread::ThreadId>>,
}

impl ExclusiveManager {
    fn new(servant: Arc<dyn Servant>) -> Arc<Self> {
        Arc::new(Self { servant, inside: AtomicUsize::new(0), ended: Shared::default() })
    }

    fn enter_and_leave(&self) {
        assert_eq!(self.inside.fetch_add(1, Ordering::SeqCst), 0, "two at once");
        thread::yield_now();
        self.inside.fetch_sub(1, Ordering::SeqCst);
    }
}

impl ServantLocator for ExclusiveManager {
    fn preinvoke(&self, _: &ObjectId, _: &Poa, _: &str) -> Result<(Arc<dyn Servant>, Cookie), Incarnation> {
        self.enter_and_leave();
        Ok((Arc::clone(&self.servant), Box::new(())))
    }

    fn postinvoke(
        &self,
        _: &ObjectId,
        _: &Poa,
        _: &str,
        _: Cookie,
        _: Arc<dyn Servant>,
    ) -> Result<(), SystemException> {
        self.enter_and_leave();
        self.ended.change(|ended| ended.push(thread::current().id()));
        Ok(())
    }
}

impl ServantActivator for ExclusiveManager {
    fn incarnate(&self, _: &ObjectId, _: &Poa) -> Result<Arc<dyn Servant>, Incarnation> {
        self.enter_and_leave();
        Ok(Arc::clone(&self.servant))
    }

    fn etherealize(&self, _: &ObjectId, _: &Poa, _: Arc<dyn Servant>, _: bool, _: bool) {
        self.enter_and_leave();
        self.ended.change(|ended| ended.push(thread::current().id()));
    }
}

#[test]
fn a_single_thread_servant_locator_is_never_entered_twice_with_asynchronous_servants() {
    let gate = Arc::<Shared<Gate>>::default();
    gate.change(|gate| gate.is_open = true);
    let policies: [Policy; 4] = [
        ThreadPolicy::SingleThreadModel.into(),
        SERVANT_MANAGER.into(),
        ServantRetentionPolicy::NonRetain.into(),
        USER_ID.into(),
    ];
    let fixture = AdapterFixture::active(policies);
    let manager = ExclusiveManager::new(Arc::new(TargetAsyncSkeleton::new(GatedServant(gate))));
    fixture.poa.set_servant_manager(ServantManager::Locator(Arc::clone(&manager) as _)).unwrap();
    let calls: Vec<_> = (0..20)
        .map(|number| {
            let target = client(&fixture.reference("any"));
            in_background(move || target.add(number, 1))
        })
        .collect();
    for (number, call) in (0..).zip(calls) {
        assert_eq!(call.recv_timeout(TEST_TIMEOUT).unwrap().unwrap(), number + 1);
    }
    manager.ended.await_value(|ended| ended.len() == 20);
}

#[test]
fn the_main_thread_calls_servant_activators() {
    let policies: [Policy; 3] = [ThreadPolicy::MainThreadModel.into(), SERVANT_MANAGER.into(), USER_ID.into()];
    let fixture = AdapterFixture::active(policies);
    let manager = ExclusiveManager::new(probe(&fixture.orb).1);
    fixture.poa.set_servant_manager(ServantManager::Activator(Arc::clone(&manager) as _)).unwrap();
    let (target, poa, orb) = (client(&fixture.reference("any")), fixture.poa.clone(), fixture.orb.clone());
    let recorder = Arc::clone(&manager);
    let finished = in_background(move || {
        target.ping().unwrap();
        poa.deactivate_object(&"any".into()).unwrap();
        recorder.ended.await_value(|ended| ended.len() == 1);
        target.ping().unwrap();
        orb.begin_shutdown().unwrap();
    });
    fixture.orb.run();
    finished.recv_timeout(TEST_TIMEOUT).unwrap();
    assert_eq!(manager.ended.see(|ended| ended[0]), thread::current().id());
}
