//! Declared times of requests in thread pools.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};

use spandrel_giop::{SystemException, SystemExceptionKind};
use spandrel_orb::interception::{Interceptor, Interruption, ServerRequestInfo, ServerRequestInterceptor};
use spandrel_orb::{Orb, Policy};
use spandrel_poa::{Poa, Servant};
use spandrel_server::{Replied, ServerCall};
use spandrel_sync::Arc;
use spandrel_test_support::{TEST_TIMEOUT, wait_until};

use crate::policies::{PriorityModel, PriorityModelPolicy, ThreadpoolPolicy};
use crate::{
    BoxedJob, ExecutionTimes, LaneSettings, LinearMapping, Overrun, OverrunAction, PoolSettings, Priority,
    RtPoaBuilder, RtServerOrb, Scheduling, SchedulingClass, ThreadPool, Work,
};

const LONG: Duration = TEST_TIMEOUT;

fn priority(number: i16) -> Priority {
    Priority::new(number).unwrap()
}

fn lanes() -> PoolSettings {
    let lane = |number| LaneSettings { priority: priority(number), static_threads: 1, dynamic_threads: 0 };
    // The linear mapping: 0 is 1, 670 is 3.
    PoolSettings { buffering: Some((64, 0)), ..PoolSettings::with_lanes(vec![lane(0), lane(670)]) }
}

fn scheduling(class: SchedulingClass) -> Scheduling {
    Scheduling::new(class, Arc::new(LinearMapping))
}

/// Times whose observer sends each overrun.
fn observed(times: ExecutionTimes) -> (ExecutionTimes, mpsc::Receiver<Overrun>) {
    let (send, overruns) = mpsc::channel();
    (times.observer(move |overrun: &Overrun| send.send(overrun.clone()).unwrap()), overruns)
}

fn submit(pool: &ThreadPool<BoxedJob>, number: i16, job: impl FnOnce() + Send + 'static) {
    let job = move |discarded| {
        assert_eq!(discarded, None);
        job();
    };
    pool.submit(Work::new(priority(number), 0, Box::new(job))).unwrap();
}

#[test]
fn a_request_that_exceeds_its_time_is_reported_once_and_others_are_not() {
    let times = ExecutionTimes::new(OverrunAction::Report).lane(priority(670), Duration::from_millis(20));
    let (times, overruns) = observed(times);
    let settings = PoolSettings { execution_times: Some(times), ..lanes() };
    let pool = ThreadPool::<BoxedJob>::new(settings, scheduling(SchedulingClass::Unchanged)).unwrap();
    let (end, ended) = mpsc::channel::<()>();
    submit(&pool, 0, || std::thread::sleep(Duration::from_millis(60))); // its lane has no limit
    submit(&pool, 700, move || _ = ended.recv());
    let overrun = overruns.recv_timeout(LONG).unwrap();
    assert!(overrun.elapsed >= overrun.limit, "{overrun:?}");
    assert_eq!(
        (overrun.priority, overrun.lane, overrun.limit),
        (priority(700), priority(670), Duration::from_millis(20))
    );
    assert_eq!(
        (overrun.adapter, overrun.operation, overrun.is_demoted, overrun.is_cancelled),
        (None, None, false, false)
    );
    drop(end);
    wait_until("the threads are idle", || pool.statistics().iter().all(|lane| lane.idle == 1));
    assert_eq!(pool.statistics().iter().map(|lane| lane.overruns).collect::<Vec<_>>(), [0, 1]);
    drop(pool);
    // The watching thread ends with the pool, and its observer with it.
    assert_eq!(overruns.recv_timeout(LONG).unwrap_err(), mpsc::RecvTimeoutError::Disconnected);
}

#[test]
fn an_observer_that_panics_costs_no_watching_thread() {
    let (send, overruns) = mpsc::channel();
    let observer = move |_: &Overrun| {
        send.send(()).unwrap();
        panic!("intended");
    };
    let times = ExecutionTimes::new(OverrunAction::Report).all_lanes(Duration::from_millis(1)).observer(observer);
    let settings = PoolSettings { execution_times: Some(times), ..lanes() };
    let pool = ThreadPool::<BoxedJob>::new(settings, scheduling(SchedulingClass::Unchanged)).unwrap();
    for _ in 0..2 {
        let (end, ended) = mpsc::channel::<()>();
        submit(&pool, 0, move || _ = ended.recv());
        overruns.recv_timeout(LONG).unwrap();
        drop(end);
    }
}

#[test]
fn times_of_zero_and_of_lanes_that_do_not_exist_are_refused() {
    let times = || ExecutionTimes::new(OverrunAction::Report);
    let second = Duration::from_secs(1);
    for wrong in [times().all_lanes(Duration::ZERO), times().all_lanes(second).lane(priority(671), second)] {
        let settings = PoolSettings { execution_times: Some(wrong), ..lanes() };
        let refused = ThreadPool::<BoxedJob>::new(settings, scheduling(SchedulingClass::Unchanged)).unwrap_err();
        assert_eq!(refused.kind(), SystemExceptionKind::BadParam);
    }
}

/// The longest time between the end of a request's time and the demotion of its thread.
#[cfg(target_os = "linux")]
const DEMOTION: Duration = Duration::from_millis(10);

/// All threads of the pool have one processor. Without the demotion, no request of the low lane would begin before the
/// servant of the high lane ends by itself, after `SPIN`.
#[cfg(target_os = "linux")]
#[test]
fn a_servant_that_spins_is_demoted_and_the_lower_lane_keeps_its_deadlines() {
    use spandrel_sync::{Priority as ThreadPriority, ThreadManager, ThreadOptions, allowed_cpus, current_priority};

    const SPIN: Duration = LONG;
    const LIMIT: Duration = Duration::from_millis(5);

    let scheduling = scheduling(SchedulingClass::Fifo);
    if scheduling.class() != SchedulingClass::Fifo {
        println!("not shown: SCHED_FIFO is not permitted here, {} is used", scheduling.class());
        return;
    }
    let (times, overruns) = observed(ExecutionTimes::new(OverrunAction::Demote).lane(priority(670), LIMIT));
    let settings = PoolSettings { execution_times: Some(times), ..lanes() };
    let (send, pool) = mpsc::channel();
    let manager = ThreadManager::new();
    let options = ThreadOptions::named("creator").affinity([allowed_cpus().unwrap()[0]]);
    // The threads of the pool have the processor of the one that creates it.
    manager
        .spawn(options, move |_| send.send(ThreadPool::<BoxedJob>::new(settings, scheduling).unwrap()).unwrap())
        .unwrap();
    let pool = pool.recv_timeout(LONG).unwrap();

    let mut shortest = Duration::MAX;
    for round in 1.. {
        let (send, begun) = mpsc::channel();
        let (end, ended) = mpsc::channel();
        let is_over = Arc::new(AtomicBool::new(false));
        let has_ended = Arc::clone(&is_over);
        submit(&pool, 670, move || {
            let start = Instant::now();
            send.send(start.elapsed()).unwrap();
            let mut is_native = true;
            while (is_native || !has_ended.load(SeqCst)) && start.elapsed() < SPIN {
                if is_native && current_priority().unwrap() != ThreadPriority::Fifo(3) {
                    is_native = false;
                    send.send(start.elapsed()).unwrap();
                }
            }
            end.send(start.elapsed() < SPIN).unwrap();
        });
        begun.recv_timeout(LONG).unwrap();
        let (send, low) = mpsc::channel();
        for _ in 0..10 {
            let send = send.clone();
            submit(&pool, 0, move || send.send(()).unwrap());
            low.recv_timeout(2 * LONG).unwrap();
        }
        is_over.store(true, SeqCst);
        assert!(ended.recv_timeout(LONG).unwrap(), "requests of the low lane have waited for the end of the servant");
        shortest = shortest.min(begun.recv_timeout(LONG).unwrap().saturating_sub(LIMIT));
        let overrun = overruns.recv_timeout(LONG).unwrap();
        assert!(overrun.is_demoted && !overrun.is_cancelled && overrun.elapsed >= LIMIT, "{overrun}");
        // The next request of the high lane has the native priority again.
        let (send, native) = mpsc::channel();
        submit(&pool, 670, move || send.send(current_priority().unwrap()).unwrap());
        assert_eq!(native.recv_timeout(LONG).unwrap(), ThreadPriority::Fifo(3));
        assert!(pool.statistics()[1].overruns >= round);
        // One of many: other programs may have the processors for longer.
        if round >= 5 && shortest <= DEMOTION {
            return;
        }
        assert!(round < 200, "demoted {shortest:?} after the end of its time");
    }
}

/// Records the ending points of requests.
#[derive(Clone, Default)]
struct Endings(Arc<Mutex<Vec<&'static str>>>);

impl Interceptor for Endings {}

impl ServerRequestInterceptor for Endings {
    fn send_reply(&self, _: &mut ServerRequestInfo<'_>) -> Result<(), SystemException> {
        self.0.lock().unwrap().push("send_reply");
        Ok(())
    }

    fn send_exception(&self, _: &mut ServerRequestInfo<'_>) -> Result<(), Interruption> {
        self.0.lock().unwrap().push("send_exception");
        Ok(())
    }
}

/// A servant that waits in `_is_a`.
struct Slow(Mutex<mpsc::Receiver<()>>);

impl Servant for Slow {
    fn repository_id(&self) -> &str {
        "IDL:Slow:1.0"
    }

    fn is_a(&self, _: &str) -> bool {
        self.0.lock().unwrap().recv_timeout(LONG).is_ok()
    }

    fn dispatch(&self, _: &str, call: ServerCall<'_>) -> Result<Replied, SystemException> {
        call.implicit(self)
    }
}

#[test]
fn a_collocated_caller_gets_the_timeout_at_once_and_interceptors_see_the_outcome_of_the_servant() {
    let endings = Endings::default();
    let orb = Orb::builder().server_request_interceptor(endings.clone()).unwrap().build().unwrap();
    let rt_orb = RtServerOrb::new(scheduling(SchedulingClass::Unchanged));
    let times =
        ExecutionTimes::new(OverrunAction::Cancel).all_lanes(Duration::from_millis(10)).observer(|_: &Overrun| {});
    let pool = rt_orb.create(PoolSettings { execution_times: Some(times), ..lanes() }).unwrap();
    let model = PriorityModelPolicy { model: PriorityModel::ClientPropagated, server_priority: priority(0) };
    let policies: [Policy; 2] = [model.into(), ThreadpoolPolicy(pool).into()];
    let poa = Poa::root(&orb).unwrap().child("slow").real_time(&rt_orb, policies).unwrap().create().unwrap();
    let (end, ended) = mpsc::channel();
    let id = poa.activate_object(Arc::new(Slow(Mutex::new(ended)))).unwrap();
    let object = poa.id_to_reference(&id).unwrap();
    let exception = object.is_a("IDL:Other:1.0").unwrap_err();
    assert_eq!(exception.kind(), SystemExceptionKind::Timeout);
    assert!(endings.0.lock().unwrap().is_empty(), "the servant runs still");
    end.send(()).unwrap();
    wait_until("the end of the servant", || !endings.0.lock().unwrap().is_empty());
    assert_eq!(*endings.0.lock().unwrap(), ["send_reply"]);
    orb.shutdown().unwrap();
}
