//! Adapters that are served by one thread at a time, or by the main thread.

use super::*;

/// Counts how many threads are inside of it at once, and calls another object from there.
struct Single {
    inside: AtomicUsize,
    runs: AtomicUsize,
    threads: Mutex<Vec<thread::ThreadId>>,
    other: Mutex<Option<Target>>,
    gate: Board<bool>,
}

impl Single {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            inside: AtomicUsize::new(0),
            runs: AtomicUsize::new(0),
            threads: Mutex::default(),
            other: Mutex::default(),
            gate: Board { value: Mutex::new(true), changed: Condvar::new() },
        })
    }
}

struct SingleServant(Arc<Single>);

impl Servant for SingleServant {
    fn repository_id(&self) -> &str {
        "IDL:Probe/Target:1.0"
    }

    fn is_a(&self, _: &str) -> bool {
        true
    }

    fn dispatch(&self, operation: &str, call: ServerCall<'_>) -> Result<Replied, SystemException> {
        self.0.threads.lock().unwrap().push(thread::current().id());
        if operation == "count" {
            // From inside of an upcall of the same thread.
            return call.reply(|out| {
                out.u32(7);
                Ok(())
            });
        }
        assert_eq!(self.0.inside.fetch_add(1, Ordering::SeqCst), 0, "two at once");
        self.0.gate.change(|_| self.0.runs.fetch_add(1, Ordering::SeqCst));
        self.0.gate.await_that(|is_open| *is_open);
        let other = self.0.other.lock().unwrap().clone();
        let count = other.map(|other| other.count());
        self.0.inside.fetch_sub(1, Ordering::SeqCst);
        assert!(count.is_none_or(|count| count.unwrap() == 7));
        call.reply(|_| Ok(()))
    }
}

#[test]
fn one_thread_at_a_time_is_inside_and_others_keep_no_thread() {
    let stage = Stage::active([ThreadPolicy::SingleThreadModel.into()]);
    let single = Single::new();
    single.gate.change(|is_open| *is_open = false);
    let object = stage.poa.activate(SingleServant(Arc::clone(&single))).unwrap();
    let second = stage.poa.activate(SingleServant(Arc::clone(&single))).unwrap();
    let calls: Vec<_> = (0..40)
        .map(|number| {
            let target = client(if number % 2 == 0 { &object } else { &second });
            in_background(move || target.ping())
        })
        .collect();
    single.gate.await_that(|_| single.runs.load(Ordering::SeqCst) == 1);
    assert!(calls[7].recv_timeout(Duration::from_millis(20)).is_err());
    assert_eq!(single.runs.load(Ordering::SeqCst), 1);
    // An adapter beside it is not concerned.
    client(&stage.root.activate_shared(probe(&stage.orb).1).unwrap()).ping().unwrap();
    single.gate.change(|is_open| *is_open = true);
    for call in calls {
        call.recv_timeout(PATIENCE).unwrap().unwrap();
    }
    assert_eq!(single.runs.load(Ordering::SeqCst), 40);
}

#[test]
fn a_thread_that_has_the_turn_may_come_again() {
    let stage = Stage::active([ThreadPolicy::SingleThreadModel.into()]);
    let single = Single::new();
    let object = stage.poa.activate(SingleServant(Arc::clone(&single))).unwrap();
    // By the reference that the server itself has: the call stays in its thread.
    *single.other.lock().unwrap() = Some(object.unchecked_narrow());
    let target = client(&object);
    target.ping().unwrap();
    target.ping().unwrap();
    assert_eq!(single.runs.load(Ordering::SeqCst), 2);
}

#[test]
fn a_client_that_leaves_while_it_waits_gives_its_place_to_the_next() {
    let stage = Stage::active([ThreadPolicy::SingleThreadModel.into()]);
    let single = Single::new();
    single.gate.change(|is_open| *is_open = false);
    let object = stage.poa.activate(SingleServant(Arc::clone(&single))).unwrap();
    let first = in_background({
        let target = client(&object);
        move || target.ping()
    });
    single.gate.await_that(|_| single.runs.load(Ordering::SeqCst) == 1);
    let impatient = Orb::builder().build().unwrap().string_to_object(&object.to_string()).unwrap();
    let impatient: Target = impatient.with_timeout(Some(Duration::from_millis(30))).unchecked_narrow();
    assert_eq!(impatient.ping().unwrap_err().kind(), SystemExceptionKind::Timeout);
    let last = in_background({
        let target = client(&object);
        move || target.ping()
    });
    single.gate.change(|is_open| *is_open = true);
    first.recv_timeout(PATIENCE).unwrap().unwrap();
    last.recv_timeout(PATIENCE).unwrap().unwrap();
}

#[test]
fn all_adapters_with_the_main_thread_are_served_by_that_and_by_no_other() {
    let stage = Stage::active([ThreadPolicy::MainThreadModel.into()]);
    let other = stage.root.create_poa("other", Some(&stage.manager), [ThreadPolicy::MainThreadModel.into()]).unwrap();
    let single = Single::new();
    let objects = [&stage.poa, &other].map(|poa| poa.activate(SingleServant(Arc::clone(&single))).unwrap());
    *single.other.lock().unwrap() = Some(objects[1].unchecked_narrow());
    let calls: Vec<_> = (0..10)
        .map(|number| {
            let target = client(&objects[number % 2]);
            in_background(move || target.ping())
        })
        .collect();
    let orb = stage.orb.clone();
    let finished = in_background(move || {
        let outcomes: Vec<_> = calls.into_iter().map(|call| call.recv_timeout(PATIENCE).unwrap()).collect();
        orb.shutdown(false).unwrap();
        outcomes
    });
    stage.orb.run();
    assert!(finished.recv_timeout(PATIENCE).unwrap().iter().all(Result::is_ok));
    let me = thread::current().id();
    assert!(single.threads.lock().unwrap().iter().all(|thread| *thread == me));
    assert_eq!(single.runs.load(Ordering::SeqCst), 10);
}

#[derive(Default)]
struct Gate {
    is_reached: bool,
    is_open: bool,
}

/// An asynchronous servant that waits for a gate.
struct Patient(Arc<Board<Gate>>);

impl TargetAsyncServant for Patient {
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
        self.0.await_that(|gate| gate.is_open);
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
fn destroying_waits_for_asynchronous_servants_too() {
    let stage = Stage::active([]);
    let gate = Arc::<Board<Gate>>::default();
    let object = stage.poa.activate(TargetAsyncSkeleton::new(Patient(Arc::clone(&gate)))).unwrap();
    let target = client(&object);
    target.ping().unwrap();
    let running = in_background(move || target.hold(1));
    gate.await_that(|gate| gate.is_reached);
    let poa = stage.poa.clone();
    let destroying = in_background(move || poa.destroy(true, true));
    assert!(destroying.recv_timeout(Duration::from_millis(20)).is_err(), "a request runs");
    gate.change(|gate| gate.is_open = true);
    destroying.recv_timeout(PATIENCE).unwrap().unwrap();
    running.recv_timeout(PATIENCE).unwrap().unwrap();
}

/// A servant manager that notes in which threads it is called, and whether alone.
struct Alone {
    servant: Arc<dyn Servant>,
    inside: AtomicUsize,
    ended: Board<Vec<thread::ThreadId>>,
}

impl Alone {
    fn new(servant: Arc<dyn Servant>) -> Arc<Self> {
        Arc::new(Self { servant, inside: AtomicUsize::new(0), ended: Board::default() })
    }

    fn pass(&self) {
        assert_eq!(self.inside.fetch_add(1, Ordering::SeqCst), 0, "two at once");
        thread::yield_now();
        self.inside.fetch_sub(1, Ordering::SeqCst);
    }
}

impl ServantLocator for Alone {
    fn preinvoke(&self, _: &ObjectId, _: &Poa, _: &str) -> Result<(Arc<dyn Servant>, Cookie), Incarnation> {
        self.pass();
        Ok((Arc::clone(&self.servant), Box::new(())))
    }

    fn postinvoke(&self, _: &ObjectId, _: &Poa, _: &str, _: Cookie, _: Arc<dyn Servant>) {
        self.pass();
        self.ended.change(|ended| ended.push(thread::current().id()));
    }
}

impl ServantActivator for Alone {
    fn incarnate(&self, _: &ObjectId, _: &Poa) -> Result<Arc<dyn Servant>, Incarnation> {
        self.pass();
        Ok(Arc::clone(&self.servant))
    }

    fn etherealize(&self, _: &ObjectId, _: &Poa, _: Arc<dyn Servant>, _: bool, _: bool) {
        self.pass();
        self.ended.change(|ended| ended.push(thread::current().id()));
    }
}

#[test]
fn a_servant_manager_of_one_thread_is_alone_also_when_requests_are_answered_elsewhere() {
    let gate = Arc::<Board<Gate>>::default();
    gate.change(|gate| gate.is_open = true);
    let policies: [Policy; 4] = [
        ThreadPolicy::SingleThreadModel.into(),
        SERVANT_MANAGER.into(),
        ServantRetentionPolicy::NonRetain.into(),
        USER_ID.into(),
    ];
    let stage = Stage::active(policies);
    let alone = Alone::new(Arc::new(TargetAsyncSkeleton::new(Patient(gate))));
    stage.poa.set_servant_manager(ServantManager::Locator(Arc::clone(&alone) as _)).unwrap();
    let calls: Vec<_> = (0..20)
        .map(|number| {
            let target = client(&stage.reference("any"));
            in_background(move || target.add(number, 1))
        })
        .collect();
    for (number, call) in (0..).zip(calls) {
        assert_eq!(call.recv_timeout(PATIENCE).unwrap().unwrap(), number + 1);
    }
    alone.ended.await_that(|ended| ended.len() == 20);
}

#[test]
fn the_main_thread_tells_servant_activators_too() {
    let policies: [Policy; 3] = [ThreadPolicy::MainThreadModel.into(), SERVANT_MANAGER.into(), USER_ID.into()];
    let stage = Stage::active(policies);
    let alone = Alone::new(probe(&stage.orb).1);
    stage.poa.set_servant_manager(ServantManager::Activator(Arc::clone(&alone) as _)).unwrap();
    let (target, poa, orb) = (client(&stage.reference("any")), stage.poa.clone(), stage.orb.clone());
    let told = Arc::clone(&alone);
    let finished = in_background(move || {
        target.ping().unwrap();
        poa.deactivate_object(&"any".into()).unwrap();
        told.ended.await_that(|ended| ended.len() == 1);
        target.ping().unwrap();
        orb.shutdown(false).unwrap();
    });
    stage.orb.run();
    finished.recv_timeout(PATIENCE).unwrap();
    assert_eq!(alone.ended.see(|ended| ended[0]), thread::current().id());
}
