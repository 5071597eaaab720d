//! An idle reactor uses no processor time. The test has a process of its own, since the time of the whole
//! process is measured.
#![cfg(unix)]

use crate::scripted;

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use scripted::{Log, Scripted, echo, pair};
use spandrel_ipc::Interest;
use spandrel_reactor::{Backend, Options, Reactor, ThreadStrategy, Trigger};
use spandrel_sync::atomic::{AtomicBool, Ordering};
use spandrel_sync::time::Instant;
use spandrel_sync::{Arc, thread};
use spandrel_test_support::{alone, eventually};

/// The duration of each case.
const IDLE_TIME: Duration = Duration::from_millis(150);

fn processor_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).expect("it goes forward")
}

/// Of `IDLE_TIME`, and the system's overhead.
fn assert_quiet(case: &str) {
    let (used, start) = (processor_time(), Instant::now());
    thread::park_timeout(IDLE_TIME);
    let (used, passed) = (processor_time() - used, start.elapsed());
    assert!(used * 3 < passed, "{case}: {used:?} of processor time in {passed:?}");
}

#[test]
fn no_idle_thread_spins() {
    alone(|| {
        for backend in Backend::available() {
            for strategy in
                [ThreadStrategy::LeaderFollowers, ThreadStrategy::HalfSyncHalfAsync { workers: 2, queue: 8 }]
            {
                busy_handles_that_stay_ready(backend, strategy);
                suspended_handles_that_are_closed(backend, strategy);
            }
        }
    });
}

/// While a handler is busy, its handle stays ready; the leader must not get it again and again.
fn busy_handles_that_stay_ready(backend: Backend, strategy: ThreadStrategy) {
    let case = format!("a busy handle that stays ready, {backend}, {strategy:?}");
    let reactor = Reactor::with(&Options::default().backend(backend).threads(strategy)).expect("a reactor");
    let runs: Vec<_> = (0..2)
        .map(|_| {
            let reactor = reactor.clone();
            thread::spawn(move || reactor.run())
        })
        .collect();
    let log = Log::default();
    let (near, far) = pair();
    let goes_on = Arc::new(AtomicBool::new(false));
    let gate = Arc::clone(&goes_on);
    let handler = Scripted::new("a", &log).over(far).input(move |_, stream| {
        while !gate.load(Ordering::SeqCst) {
            std::thread::park_timeout(Duration::from_millis(5));
        }
        echo(stream)
    });
    reactor.registry().register(handler, Interest::INPUT).expect("registered");
    near.send_n(b"x").expect("sent");
    eventually(|| log.has("a input"));
    assert_quiet(&case);
    near.send_n(b"y").expect("sent");
    assert_quiet(&case);
    goes_on.store(true, Ordering::SeqCst);
    near.recv_n(&mut [0; 2]).expect("echoed, and waited for again");
    near.send_n(b"z").expect("sent");
    near.recv_n(&mut [0]).expect("echoed");
    reactor.stop();
    runs.into_iter().for_each(|run| run.join().expect("no panic").expect("runs"));
}

/// A handle that is not waited for, or whose one shot has fired, is not reported even when its peer has
/// closed.
fn suspended_handles_that_are_closed(backend: Backend, strategy: ThreadStrategy) {
    let case = format!("a suspended handle that is closed, {backend}, {strategy:?}");
    let reactor = Reactor::with(&Options::default().backend(backend).threads(strategy)).expect("a reactor");
    let registry = reactor.registry();
    let run = {
        let reactor = reactor.clone();
        thread::spawn(move || reactor.run())
    };
    let log = Log::default();
    let (near, far) = pair();
    let (other_near, other_far) = pair();
    let suspended = registry.register(Scripted::new("a", &log).over(far), Interest::INPUT).expect("registered");
    let shot = Scripted::new("b", &log).over(other_far).input(|_, _| Ok(()));
    registry.register_with(Box::new(shot), Interest::INPUT, Trigger::OneShot).expect("registered");
    assert!(registry.suspend(suspended));
    other_near.send_n(b"x").expect("sent");
    eventually(|| log.has("b input"));
    drop((near, other_near));
    assert_quiet(&case);
    assert!(!log.has("a input"));
    assert_eq!(log.count("b input"), 1);
    reactor.stop();
    run.join().expect("no panic").expect("runs");
}
