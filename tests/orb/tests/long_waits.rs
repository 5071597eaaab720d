//! Warnings of requests that wait for the application: what they name, and that they come once.

use std::{
    sync::{Mutex, OnceLock, mpsc},
    time::Duration,
};

use spandrel::{
    Orb, OrbBuilder, Poa, SystemException,
    options::{Spawn, Task},
    poa::ThreadPolicy,
    policy::Policy,
    server::{Replied, ServerCall},
};
use spandrel_orb_tests::{
    Probe,
    probe::{Target, TargetSkeleton},
    support::{TEST_TIMEOUT, block_on, in_background, servant, wait_until},
};
use tracing::{Event, Level, Subscriber, field::Visit};
use tracing_subscriber::{Layer, Registry, filter::LevelFilter, layer::Context, prelude::*};

/// The time after which these tests expect a warning.
const LIMIT: Duration = Duration::from_millis(50);

/// The messages of this process, with their fields: a warning comes from a thread of the ORB.
#[derive(Default)]
struct Log(Mutex<Vec<(Level, String)>>);

struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
        self.0 += &format!("{field}={value:?} ");
    }
}

impl<S: Subscriber> Layer<S> for &'static Log {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut fields = Fields(String::new());
        event.record(&mut fields);
        self.0.lock().unwrap().push((*event.metadata().level(), fields.0));
    }
}

impl Log {
    fn get() -> &'static Self {
        static LOG: OnceLock<Log> = OnceLock::new();
        static INSTALLED: OnceLock<()> = OnceLock::new();
        let log = LOG.get_or_init(Self::default);
        INSTALLED.get_or_init(|| {
            let layer = log.with_filter(LevelFilter::INFO);
            tracing::subscriber::set_global_default(Registry::default().with(layer)).unwrap();
        });
        log
    }

    /// The messages of this level with all of these texts.
    fn with(&self, level: Level, texts: &[&str]) -> Vec<String> {
        let lines = self.0.lock().unwrap();
        let is_meant = |(line_level, line): &&(Level, String)| {
            *line_level == level && texts.iter().all(|text| line.contains(text))
        };
        lines.iter().filter(is_meant).map(|(_, line)| line.clone()).collect()
    }
}

/// An ORB with a child adapter of this name, whose manager is holding requests.
fn adapter(builder: OrbBuilder, name: &str, policies: impl IntoIterator<Item = Policy>) -> (Orb, Poa) {
    Log::get();
    let orb = builder.build().unwrap();
    let poa = Poa::root(&orb).unwrap().create_poa(name, None, policies).unwrap();
    (orb, poa)
}

fn warned() -> OrbBuilder {
    Orb::builder().long_wait_warning(Some(LIMIT))
}

/// The object as referred to by a client with its own ORB.
fn client(object: &spandrel::ObjectRef) -> Target {
    Orb::builder().build().unwrap().string_to_object(&object.to_string()).unwrap().unchecked_narrow()
}

#[test]
fn a_request_for_a_holding_manager_names_adapter_and_manager_once() {
    let (silent_orb, silent) = adapter(Orb::builder().long_wait_warning(None), "silent holding", []);
    let (orb, poa) = adapter(warned(), "holding", []);
    let skeleton = |orb: &Orb| TargetSkeleton::new(Probe::new(orb));
    let targets =
        [(&silent, &silent_orb), (&poa, &orb)].map(|(poa, orb)| client(&poa.activate(skeleton(orb)).unwrap()));
    let hint =
        Log::get().with(Level::INFO, &["adapter=\"RootPOA/holding\"", "manager=\"POAManager1\"", "the_poa_manager"]);
    assert_eq!(hint.len(), 1, "at the first activation");
    let calls: Vec<_> = targets
        .into_iter()
        .flat_map(|target| [target.clone(), target])
        .map(|target| in_background(move || target.ping()))
        .collect();
    let warnings =
        || Log::get().with(Level::WARN, &["adapter=\"RootPOA/holding\"", "manager=\"POAManager1\"", "holding state"]);
    wait_until("a warning", || !warnings().is_empty());
    for poa in [silent, poa] {
        poa.the_poa_manager().activate().unwrap();
    }
    for call in calls {
        call.recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
    }
    assert_eq!(warnings().len(), 1, "{:?}", warnings());
    assert!(Log::get().with(Level::WARN, &["silent holding"]).is_empty(), "no warning was wanted");
    orb.shutdown().unwrap();
    silent_orb.shutdown().unwrap();
}

#[test]
fn a_request_whose_turn_does_not_come_names_the_adapter() {
    let (orb, poa) = adapter(warned(), "single", [ThreadPolicy::SingleThreadModel.into()]);
    poa.the_poa_manager().activate().unwrap();
    let ((open, gate), (begin, begun)) = (mpsc::channel::<()>(), mpsc::channel());
    let gate = Mutex::new((gate, begin));
    let object = poa.activate(servant(move |operation, call: ServerCall<'_>| {
        if operation == "hold" {
            let (gate, begin) = &*gate.lock().unwrap();
            begin.send(()).unwrap();
            gate.recv().unwrap();
        }
        call.reply(|_| Ok(()))
    }));
    let target = client(&object.unwrap());
    let another = target.clone();
    let first = in_background(move || target.hold(1));
    begun.recv_timeout(TEST_TIMEOUT).unwrap();
    let second = in_background(move || another.ping());
    let warnings = || Log::get().with(Level::WARN, &["adapter=\"RootPOA/single\"", "SINGLE_THREAD_MODEL"]);
    wait_until("a warning", || !warnings().is_empty());
    open.send(()).unwrap();
    for call in [first, second] {
        call.recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
    }
    orb.shutdown().unwrap();
}

#[test]
fn requests_for_a_main_thread_that_does_not_come_name_orb_run() {
    let (orb, poa) = adapter(warned(), "main", [ThreadPolicy::MainThreadModel.into()]);
    poa.the_poa_manager().activate().unwrap();
    let target = client(&poa.activate(TargetSkeleton::new(Probe::new(&orb))).unwrap());
    let call = in_background(move || target.ping());
    wait_until("a warning", || !Log::get().with(Level::WARN, &["requests=1", "`Orb::run`"]).is_empty());
    orb.perform_work().unwrap();
    call.recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
    orb.shutdown().unwrap();
}

#[test]
fn requests_for_an_executor_that_polls_none_say_that_its_threads_are_blocked() {
    let (send, tasks) = mpsc::channel::<Task>();
    let (orb, poa) = adapter(warned().spawner(move |task| send.send(task).unwrap()), "spawned", []);
    poa.the_poa_manager().activate().unwrap();
    let reply = |_: &str, call: ServerCall<'_>| -> Result<Replied, SystemException> {
        call.spawn(|call| async move {
            let outcome = call.answer(|call| call.reply(|_| Ok(())));
            call.end(outcome);
        })
    };
    let target = client(&poa.activate(servant(reply)).unwrap());
    let call = in_background(move || target.ping());
    wait_until("a warning", || !Log::get().with(Level::WARN, &["requests=1", "OrbBuilder::spawner"]).is_empty());
    block_on(tasks.recv_timeout(TEST_TIMEOUT).unwrap());
    call.recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
    orb.shutdown().unwrap();
}

/// An executor with a thread, or with a thread for each task.
struct Threads {
    tasks: mpsc::SyncSender<Task>,
    is_worker: bool,
}

impl Spawn for Threads {
    fn spawn(&self, task: Task) {
        self.tasks.send(task).unwrap();
    }

    fn is_worker(&self) -> bool {
        self.is_worker
    }
}

#[test]
fn a_synchronous_call_in_a_polled_request_is_one_warning_if_it_blocks_a_worker() {
    let (answering, answers) = adapter(Orb::builder(), "answers", []);
    answers.the_poa_manager().activate().unwrap();
    let answer = client(&answers.activate(TargetSkeleton::new(Probe::new(&answering))).unwrap());
    // The second is quiet as its threads may block, the third by its option.
    let cases = [(true, Some(LIMIT), 1), (false, Some(LIMIT), 0), (true, None, 0)];
    for (number, (is_worker, limit, expected)) in cases.into_iter().enumerate() {
        let (send, tasks) = mpsc::sync_channel(16);
        let builder = Orb::builder().long_wait_warning(limit).spawner(Threads { tasks: send, is_worker });
        let (orb, poa) = adapter(builder, &format!("polled {number}"), []);
        poa.the_poa_manager().activate().unwrap();
        let answer = answer.clone();
        let ask = move |_: &str, call: ServerCall<'_>| -> Result<Replied, SystemException> {
            let answer = answer.clone();
            call.spawn(|call| async move {
                let outcome = answer.ping().and_then(|()| call.answer(|call| call.reply(|_| Ok(()))));
                call.end(outcome);
            })
        };
        let target = client(&poa.activate(servant(ask)).unwrap());
        let warnings = || Log::get().with(Level::WARN, &["operation=\"ping\"", "a synchronous call blocks a thread"]);
        let before = warnings().len();
        for _ in 0..2 {
            let target = target.clone();
            let call = in_background(move || target.ping());
            block_on(tasks.recv_timeout(TEST_TIMEOUT).unwrap());
            call.recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
        }
        assert_eq!(warnings().len() - before, expected, "case {number}: {:?}", warnings());
        orb.shutdown().unwrap();
    }
    answering.shutdown().unwrap();
}
