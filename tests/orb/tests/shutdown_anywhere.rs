//! Shutdown from any thread and under any load: it ends in time, or is refused where waiting would deadlock.

use spandrel::poa::WaitForCompletion;
use std::{
    sync::{Arc, Mutex, OnceLock, mpsc},
    task::{Context, Poll},
    time::{Duration, Instant},
};

use spandrel::{
    CompletionStatus, Orb, OrbBuilder, Poa, SystemException, SystemExceptionKind,
    interception::{
        ClientRequestInfo, ClientRequestInterceptor, Interceptor, Interruption, ServerRequestInfo,
        ServerRequestInterceptor,
    },
    minor,
    options::Concurrency,
    server::{Replied, Servant, ServerCall},
};
use spandrel_orb_tests::{
    Repeater, Server,
    probe::{Relay, RelaySkeleton, Target},
    support::{TEST_TIMEOUT, block_on, client_that_never_reads, in_background, waker_that},
};

/// The shutdown timeout: how long running requests are waited for.
const BRIEF: Duration = Duration::from_millis(300);

/// The longest accepted duration of a shutdown with the timeout [`BRIEF`].
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(10);

fn brief() -> OrbBuilder {
    Orb::builder().shutdown_timeout(BRIEF)
}

/// All concurrency strategies, with one thread where there can be one.
fn strategies() -> [OrbBuilder; 5] {
    [
        Concurrency::default(),
        Concurrency::LeaderFollowers { threads: None },
        Concurrency::LeaderFollowers { threads: Some(1) },
        Concurrency::Reactive,
        Concurrency::ThreadPool { threads: 1, queue: 4 },
    ]
    .map(|strategy| brief().concurrency(strategy))
}

/// Shuts down and waits for completion, within [`SHUTDOWN_LIMIT`].
#[track_caller]
fn shut_down_in_time(orb: &Orb) {
    let (orb, start) = (orb.clone(), Instant::now());
    in_background(move || orb.shutdown()).recv_timeout(SHUTDOWN_LIMIT).expect("the shutdown completes").unwrap();
    assert!(start.elapsed() < SHUTDOWN_LIMIT);
}

/// Begins a shutdown after the one with waiting was refused; returns the refusal.
fn refused_with_waiting(orb: &Orb) -> SystemException {
    let refused = orb.shutdown().unwrap_err();
    orb.begin_shutdown().unwrap();
    refused
}

#[track_caller]
fn assert_would_deadlock(refused: &SystemException) {
    let expected = (SystemExceptionKind::BadInvOrder, minor::OPERATION_WOULD_DEADLOCK);
    assert_eq!((refused.kind(), refused.minor()), expected, "{refused}");
}

/// An interceptor that shuts an ORB down.
#[derive(Default)]
struct ShutdownInterceptor {
    orb: OnceLock<Orb>,
    outcome: Mutex<Option<Result<(), SystemException>>>,
}

/// The interceptor as shared with the test.
struct Shared(Arc<ShutdownInterceptor>);

impl Interceptor for Shared {}

impl ClientRequestInterceptor for Shared {
    fn send_request(&self, _info: &mut ClientRequestInfo<'_>) -> Result<(), Interruption> {
        *self.0.outcome.lock().unwrap() = self.0.orb.get().map(|orb| orb.shutdown());
        Ok(())
    }
}

impl ServerRequestInterceptor for Shared {
    fn receive_request_service_contexts(&self, _info: &mut ServerRequestInfo<'_>) -> Result<(), Interruption> {
        *self.0.outcome.lock().unwrap() = self.0.orb.get().map(|orb| Err(refused_with_waiting(orb)));
        Ok(())
    }
}

#[test]
fn a_client_interceptor_may_shut_its_own_orb_down() {
    let server = Server::start();
    let interceptor = Arc::new(ShutdownInterceptor::default());
    let orb = Orb::builder().client_request_interceptor(Shared(Arc::clone(&interceptor))).unwrap().build().unwrap();
    let target: Target = orb.string_to_object(&server.ior()).unwrap().unchecked_narrow();
    interceptor.orb.set(orb).unwrap();
    let called = in_background(move || target.ping());
    // Whether the request is still sent is not specified, but the call must end.
    let _ = called.recv_timeout(SHUTDOWN_LIMIT).expect("the call ends");
    assert_eq!(interceptor.outcome.lock().unwrap().take(), Some(Ok(())));
}

#[test]
fn a_server_interceptor_may_shut_down_without_waiting() {
    let interceptor = Arc::new(ShutdownInterceptor::default());
    let server = Server::with(brief().server_request_interceptor(Shared(Arc::clone(&interceptor))).unwrap());
    interceptor.orb.set(server.orb.clone()).unwrap();
    server.client().ping().expect("a running request is answered");
    server.orb.run();
    assert_would_deadlock(&interceptor.outcome.lock().unwrap().take().unwrap().unwrap_err());
}

#[test]
fn a_task_may_shut_down_and_wait() {
    let server = Server::with(brief());
    let (send, receive) = mpsc::channel();
    let orb = server.orb.clone();
    server.orb.spawn(async move { send.send(orb.shutdown()).unwrap() }).unwrap();
    receive.recv_timeout(SHUTDOWN_LIMIT).expect("the shutdown completes").unwrap();
}

#[test]
fn waiting_in_a_waker_that_the_shutdown_wakes_is_refused() {
    let server = Server::start();
    let orb = Orb::builder().build().unwrap();
    let target: Target = orb.string_to_object(&server.ior()).unwrap().unchecked_narrow();
    let (send, receive) = mpsc::channel();
    let stopped = orb.clone();
    let act = move || {
        let refused = stopped.shutdown().unwrap_err();
        stopped.run();
        send.send(refused).unwrap();
    };
    let waker = waker_that(act);
    let mut held = Box::pin(target.hold_async(1));
    assert!(matches!(held.as_mut().poll(&mut Context::from_waker(&waker)), Poll::Pending));
    server.probe.await_held(1);
    shut_down_in_time(&orb);
    assert_would_deadlock(&receive.recv_timeout(SHUTDOWN_LIMIT).unwrap());
    server.probe.open(1);
}

/// A servant that shuts its ORB down when it is dropped.
struct ShutdownOnDrop(Orb, mpsc::Sender<SystemException>);

impl Servant for ShutdownOnDrop {
    fn repository_id(&self) -> &str {
        "IDL:Parting:1.0"
    }

    fn is_a(&self, repository_id: &str) -> bool {
        repository_id == self.repository_id()
    }

    fn dispatch(&self, _operation: &str, call: ServerCall<'_>) -> Result<Replied, SystemException> {
        Ok(call.finish_oneway())
    }
}

impl Drop for ShutdownOnDrop {
    fn drop(&mut self) {
        self.0.run();
        self.1.send(refused_with_waiting(&self.0)).unwrap();
    }
}

#[test]
fn waiting_in_a_servants_drop_during_shutdown_is_refused() {
    let orb = brief().build().unwrap();
    let (send, receive) = mpsc::channel();
    Poa::root(&orb).unwrap().activate(ShutdownOnDrop(orb.clone(), send)).unwrap();
    shut_down_in_time(&orb);
    assert_would_deadlock(&receive.recv_timeout(SHUTDOWN_LIMIT).unwrap());
}

#[test]
fn several_threads_may_shut_down_concurrently_and_repeatedly() {
    for builder in strategies() {
        let server = Server::with(builder);
        let target = server.client();
        let caller = in_background(move || while target.ping().is_ok() {});
        let threads: Vec<_> = (0..8)
            .map(|_| {
                let orb = server.orb.clone();
                in_background(move || (orb.shutdown(), orb.shutdown(), orb.begin_shutdown()))
            })
            .collect();
        for thread in threads {
            assert_eq!(thread.recv_timeout(SHUTDOWN_LIMIT).expect("the shutdowns complete"), (Ok(()), Ok(()), Ok(())));
        }
        caller.recv_timeout(SHUTDOWN_LIMIT).expect("the client's calls end");
    }
}

#[test]
fn shutdown_waits_for_a_slow_servant_until_its_timeout() {
    for builder in strategies() {
        let server = Server::with(builder);
        let target = server.client();
        let held = in_background(move || target.hold(1));
        server.probe.await_held(1);
        shut_down_in_time(&server.orb);
        let error = held.recv_timeout(SHUTDOWN_LIMIT).expect("the client's call ends").unwrap_err();
        assert_eq!((error.kind(), error.completed()), (SystemExceptionKind::CommFailure, CompletionStatus::Maybe));
        server.probe.open(1);
    }
}

#[test]
fn shutdown_answers_held_requests() {
    // Waiting for held requests would exhaust this timeout.
    let server = Server::with(Orb::builder().shutdown_timeout(TEST_TIMEOUT * 4));
    let other = server.poa.create_poa("other", None, []).unwrap();
    other.the_poa_manager().activate().unwrap();
    let quick = other.activate(RelaySkeleton::new(Repeater)).unwrap();
    server.poa.the_poa_manager().hold_requests(WaitForCompletion::No).unwrap();
    let orb = Orb::builder().connections_per_peer(1).build().unwrap();
    let target: Target = orb.string_to_object(&server.ior()).unwrap().unchecked_narrow();
    let quick: Relay = orb.string_to_object(&quick.to_string()).unwrap().unchecked_narrow();
    // The calls are sent before the futures are returned, over the connection of the following call, so they
    // have been read by its end.
    let calls: Vec<_> = (0..3).map(|_| target.ping_async()).collect();
    assert_eq!(quick.recurse(None, None, 0).unwrap(), 0);
    shut_down_in_time(&server.orb);
    for call in calls {
        let error = block_on(call).expect_err("the request was not run");
        assert_eq!(error.completed(), CompletionStatus::No, "{error}");
    }
}

#[test]
fn clients_that_never_read_do_not_delay_shutdown() {
    for builder in strategies() {
        let server = Server::with(builder);
        let stream = client_that_never_reads(&server, 16 << 20);
        shut_down_in_time(&server.orb);
        drop(stream);
    }
}

#[test]
fn servants_blocked_in_calls_do_not_delay_shutdown() {
    for builder in strategies() {
        let (left, right) = (Server::with(builder), Server::start());
        let relay = left.poa.activate(RelaySkeleton::new(Repeater)).unwrap();
        let orb = Orb::builder().build().unwrap();
        let relay: Relay = orb.string_to_object(&relay.to_string()).unwrap().unchecked_narrow();
        let target: Target = orb.string_to_object(&right.ior()).unwrap().unchecked_narrow();
        let waiting = in_background(move || relay.hold(Some(&target), 1));
        right.probe.await_held(1);
        shut_down_in_time(&left.orb);
        waiting.recv_timeout(SHUTDOWN_LIMIT).expect("the client's call ends").unwrap_err();
        right.probe.open(1);
    }
}

#[test]
fn waiting_in_work_of_the_main_thread_is_refused() {
    let orb = brief().build().unwrap();
    let (send, receive) = mpsc::channel();
    let stopped = orb.clone();
    orb.run_in_main(Box::new(move || send.send(refused_with_waiting(&stopped)).unwrap())).unwrap();
    let running = orb.clone();
    let running = in_background(move || running.run());
    running.recv_timeout(SHUTDOWN_LIMIT).expect("`run` returns");
    assert_would_deadlock(&receive.recv_timeout(SHUTDOWN_LIMIT).unwrap());
}

#[test]
fn a_shut_down_or_destroyed_orb_refuses_operations() {
    let server = Server::start();
    let target = server.client();
    let orb = target.as_object().orb().clone();
    target.ping().unwrap();
    orb.shutdown().unwrap();
    let shut_down = |error: SystemException| (error.kind(), error.minor());
    let has_shut_down = (SystemExceptionKind::BadInvOrder, minor::ORB_HAS_SHUTDOWN);
    assert_eq!(shut_down(target.ping().unwrap_err()), has_shut_down);
    assert_eq!(shut_down(orb.perform_work().unwrap_err()), has_shut_down);
    assert_eq!(shut_down(orb.listen().unwrap_err()), has_shut_down);
    orb.destroy().unwrap();
    // 8.2.3: OBJECT_NOT_EXIST from the ORB; calls on references end as before.
    assert_eq!(orb.perform_work().unwrap_err().kind(), SystemExceptionKind::ObjectNotExist);
    assert_eq!(orb.string_to_object(&server.ior()).unwrap_err().kind(), SystemExceptionKind::ObjectNotExist);
    assert_eq!(orb.shutdown().unwrap_err().kind(), SystemExceptionKind::ObjectNotExist);
    assert_eq!(shut_down(target.ping().unwrap_err()), has_shut_down);
    assert_eq!(shut_down(orb.destroy().unwrap_err()), has_shut_down);
    orb.run();
}

#[test]
fn destroying_a_running_orb_shuts_it_down() {
    let server = Server::start();
    let target = server.client();
    target.ping().unwrap();
    let orb = server.orb.clone();
    let running = in_background(move || orb.run());
    server.orb.destroy().unwrap();
    running.recv_timeout(SHUTDOWN_LIMIT).expect("`run` returns");
    assert_eq!(target.ping().unwrap_err().completed(), CompletionStatus::No);
    let other = Server::start();
    other.client().ping().expect("other ORBs are not affected");
    // Dropping the server would shut its ORB down again, which is refused after destroy.
    std::mem::forget(server);
}
