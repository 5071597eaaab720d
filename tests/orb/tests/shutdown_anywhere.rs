//! Shutdown from everywhere, and with everything in its way: it ends, soon, or says that it cannot be waited for here.

use std::{
    sync::{Arc, Mutex, OnceLock, mpsc},
    task::{Context, Poll},
    time::{Duration, Instant},
};

use spandrel::{
    CompletionStatus, Concurrency, Orb, OrbBuilder, Poa, Replied, Servant, ServerCall, SystemException,
    SystemExceptionKind,
    interception::{
        ClientRequestInfo, ClientRequestInterceptor, Interceptor, Interruption, ServerRequestInfo,
        ServerRequestInterceptor,
    },
    minor,
};
use spandrel_orb_tests::{
    Repeater, Server,
    probe::{Relay, RelaySkeleton, Target},
    support::{PATIENCE, block_on, in_background, one_that_never_reads, waker_that},
};

/// Requests that run are waited for so long.
const BRIEF: Duration = Duration::from_millis(300);

/// The longest that a shutdown may take which waits for nothing but [`BRIEF`] and its own courtesies.
const SOON: Duration = Duration::from_secs(10);

fn brief() -> OrbBuilder {
    Orb::builder().shutdown_timeout(BRIEF)
}

/// All concurrency strategies, with one thread where there can be one.
fn arrangements() -> [OrbBuilder; 5] {
    [
        Concurrency::default(),
        Concurrency::LeaderFollowers { threads: None },
        Concurrency::LeaderFollowers { threads: Some(1) },
        Concurrency::Reactive,
        Concurrency::ThreadPool { threads: 1, queue: 4 },
    ]
    .map(|strategy| brief().concurrency(strategy))
}

/// Shuts down, which ends soon.
#[track_caller]
fn ends_soon(orb: &Orb) {
    let (orb, start) = (orb.clone(), Instant::now());
    in_background(move || orb.shutdown(true)).recv_timeout(SOON).expect("it ends soon").unwrap();
    assert!(start.elapsed() < SOON);
}

/// What comes of waiting for the end where that cannot be waited for, and of not waiting.
fn refused_then_begun(orb: &Orb) -> SystemException {
    let refused = orb.shutdown(true).unwrap_err();
    orb.shutdown(false).unwrap();
    refused
}

#[track_caller]
fn check_would_deadlock(refused: &SystemException) {
    let expected = (SystemExceptionKind::BadInvOrder, minor::OPERATION_WOULD_DEADLOCK);
    assert_eq!((refused.kind(), refused.minor()), expected, "{refused}");
}

/// An interceptor that shuts the ORB down which it is told.
#[derive(Default)]
struct Stopper {
    orb: OnceLock<Orb>,
    said: Mutex<Option<Result<(), SystemException>>>,
}

/// The stopper, which the test keeps hold of.
struct Shared(Arc<Stopper>);

impl Interceptor for Shared {}

impl ClientRequestInterceptor for Shared {
    fn send_request(&self, _info: &mut ClientRequestInfo<'_>) -> Result<(), Interruption> {
        *self.0.said.lock().unwrap() = self.0.orb.get().map(|orb| orb.shutdown(true));
        Ok(())
    }
}

impl ServerRequestInterceptor for Shared {
    fn receive_request_service_contexts(&self, _info: &mut ServerRequestInfo<'_>) -> Result<(), Interruption> {
        *self.0.said.lock().unwrap() = self.0.orb.get().map(|orb| Err(refused_then_begun(orb)));
        Ok(())
    }
}

#[test]
fn a_client_interceptor_may_shut_its_own_orb_down() {
    let server = Server::start();
    let stopper = Arc::new(Stopper::default());
    let orb = Orb::builder().client_request_interceptor(Shared(Arc::clone(&stopper))).unwrap().build().unwrap();
    let target: Target = orb.string_to_object(&server.ior()).unwrap().unchecked_narrow();
    stopper.orb.set(orb).unwrap();
    let called = in_background(move || target.ping());
    // Whether the request is still sent is not said; that it ends is.
    let _ = called.recv_timeout(SOON).expect("the call ends");
    assert_eq!(stopper.said.lock().unwrap().take(), Some(Ok(())));
}

#[test]
fn a_server_interceptor_may_shut_down_and_not_wait() {
    let stopper = Arc::new(Stopper::default());
    let server = Server::with(brief().server_request_interceptor(Shared(Arc::clone(&stopper))).unwrap());
    stopper.orb.set(server.orb.clone()).unwrap();
    server.client().ping().expect("a request that runs is answered");
    server.orb.run();
    check_would_deadlock(&stopper.said.lock().unwrap().take().unwrap().unwrap_err());
}

#[test]
fn a_task_may_shut_down_and_wait() {
    let server = Server::with(brief());
    let (send, receive) = mpsc::channel();
    let orb = server.orb.clone();
    server.orb.spawn(async move { send.send(orb.shutdown(true)).unwrap() }).unwrap();
    receive.recv_timeout(SOON).expect("it ends").unwrap();
}

#[test]
fn a_waker_that_the_end_wakes_cannot_wait_for_it() {
    let server = Server::start();
    let orb = Orb::builder().build().unwrap();
    let target: Target = orb.string_to_object(&server.ior()).unwrap().unchecked_narrow();
    let (send, receive) = mpsc::channel();
    let stopped = orb.clone();
    let act = move || {
        let refused = stopped.shutdown(true).unwrap_err();
        stopped.run();
        send.send(refused).unwrap();
    };
    let waker = waker_that(act);
    let mut held = Box::pin(target.hold_async(1));
    assert!(matches!(held.as_mut().poll(&mut Context::from_waker(&waker)), Poll::Pending));
    server.probe.await_held(1);
    ends_soon(&orb);
    check_would_deadlock(&receive.recv_timeout(SOON).unwrap());
    server.probe.open(1);
}

/// A servant whose end shuts its ORB down.
struct Parting(Orb, mpsc::Sender<SystemException>);

impl Servant for Parting {
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

impl Drop for Parting {
    fn drop(&mut self) {
        self.0.run();
        self.1.send(refused_then_begun(&self.0)).unwrap();
    }
}

#[test]
fn a_servant_that_is_let_go_at_the_end_cannot_wait_for_it() {
    let orb = brief().build().unwrap();
    let (send, receive) = mpsc::channel();
    Poa::root(&orb).unwrap().activate(Parting(orb.clone(), send)).unwrap();
    ends_soon(&orb);
    check_would_deadlock(&receive.recv_timeout(SOON).unwrap());
}

#[test]
fn many_threads_shut_down_at_once_and_twice() {
    for builder in arrangements() {
        let server = Server::with(builder);
        let target = server.client();
        let caller = in_background(move || while target.ping().is_ok() {});
        let threads: Vec<_> = (0..8)
            .map(|_| {
                let orb = server.orb.clone();
                in_background(move || (orb.shutdown(true), orb.shutdown(true), orb.shutdown(false)))
            })
            .collect();
        for thread in threads {
            assert_eq!(thread.recv_timeout(SOON).expect("it ends"), (Ok(()), Ok(()), Ok(())));
        }
        caller.recv_timeout(SOON).expect("the client learns of it");
    }
}

#[test]
fn a_slow_servant_is_waited_for_a_bounded_time() {
    for builder in arrangements() {
        let server = Server::with(builder);
        let target = server.client();
        let held = in_background(move || target.hold(1));
        server.probe.await_held(1);
        ends_soon(&server.orb);
        let error = held.recv_timeout(SOON).expect("the client is told").unwrap_err();
        assert_eq!((error.kind(), error.completed()), (SystemExceptionKind::CommFailure, CompletionStatus::Maybe));
        server.probe.open(1);
    }
}

#[test]
fn requests_that_are_held_are_answered_at_the_end() {
    // For one that is held the end would wait for ever, or so long.
    let server = Server::with(Orb::builder().shutdown_timeout(PATIENCE * 4));
    let other = server.poa.create_poa("other", None, []).unwrap();
    other.the_poa_manager().activate().unwrap();
    let quick = other.activate(RelaySkeleton::new(Repeater)).unwrap();
    server.poa.the_poa_manager().hold_requests(false).unwrap();
    let orb = Orb::builder().connections_per_peer(1).build().unwrap();
    let target: Target = orb.string_to_object(&server.ior()).unwrap().unchecked_narrow();
    let quick: Relay = orb.string_to_object(&quick.to_string()).unwrap().unchecked_narrow();
    // Sent before it returns, and over the same connection as what follows, by which it has been read.
    let calls: Vec<_> = (0..3).map(|_| target.ping_async()).collect();
    assert_eq!(quick.recurse(None, None, 0).unwrap(), 0);
    ends_soon(&server.orb);
    for call in calls {
        let error = block_on(call).expect_err("it was never run");
        assert_eq!(error.completed(), CompletionStatus::No, "{error}");
    }
}

#[test]
fn clients_that_never_read_do_not_delay_the_end() {
    for builder in arrangements() {
        let server = Server::with(builder);
        let stream = one_that_never_reads(&server, 16 << 20);
        ends_soon(&server.orb);
        drop(stream);
    }
}

#[test]
fn servants_that_wait_for_others_for_ever_do_not_delay_the_end() {
    for builder in arrangements() {
        let (left, right) = (Server::with(builder), Server::start());
        let relay = left.poa.activate(RelaySkeleton::new(Repeater)).unwrap();
        let orb = Orb::builder().build().unwrap();
        let relay: Relay = orb.string_to_object(&relay.to_string()).unwrap().unchecked_narrow();
        let target: Target = orb.string_to_object(&right.ior()).unwrap().unchecked_narrow();
        let waiting = in_background(move || relay.hold(Some(&target), 1));
        right.probe.await_held(1);
        ends_soon(&left.orb);
        waiting.recv_timeout(SOON).expect("the client is told").unwrap_err();
        right.probe.open(1);
    }
}

#[test]
fn work_in_the_main_thread_is_waited_for_and_cannot_wait() {
    let orb = brief().build().unwrap();
    let (send, receive) = mpsc::channel();
    let stopped = orb.clone();
    orb.run_in_main(Box::new(move || send.send(refused_then_begun(&stopped)).unwrap())).unwrap();
    let running = orb.clone();
    let running = in_background(move || running.run());
    running.recv_timeout(SOON).expect("it ends");
    check_would_deadlock(&receive.recv_timeout(SOON).unwrap());
}

#[test]
fn an_orb_that_is_not_used_any_more_says_so() {
    let server = Server::start();
    let target = server.client();
    let orb = target.as_object().orb().clone();
    target.ping().unwrap();
    orb.shutdown(true).unwrap();
    let shut_down = |error: SystemException| (error.kind(), error.minor());
    let has_shut_down = (SystemExceptionKind::BadInvOrder, minor::ORB_HAS_SHUTDOWN);
    assert_eq!(shut_down(target.ping().unwrap_err()), has_shut_down);
    assert_eq!(shut_down(orb.perform_work().unwrap_err()), has_shut_down);
    assert_eq!(shut_down(orb.listen().unwrap_err()), has_shut_down);
    orb.destroy().unwrap();
    // 8.2.3: OBJECT_NOT_EXIST from the ORB; calls end as before.
    assert_eq!(orb.perform_work().unwrap_err().kind(), SystemExceptionKind::ObjectNotExist);
    assert_eq!(orb.string_to_object(&server.ior()).unwrap_err().kind(), SystemExceptionKind::ObjectNotExist);
    assert_eq!(orb.shutdown(true).unwrap_err().kind(), SystemExceptionKind::ObjectNotExist);
    assert_eq!(shut_down(target.ping().unwrap_err()), has_shut_down);
    assert_eq!(shut_down(orb.destroy().unwrap_err()), has_shut_down);
    orb.run();
}

#[test]
fn an_orb_that_runs_is_destroyed_with_its_end() {
    let server = Server::start();
    let target = server.client();
    target.ping().unwrap();
    let orb = server.orb.clone();
    let running = in_background(move || orb.run());
    server.orb.destroy().unwrap();
    running.recv_timeout(SOON).expect("it ends");
    assert_eq!(target.ping().unwrap_err().completed(), CompletionStatus::No);
    let other = Server::start();
    other.client().ping().expect("another one has nothing to do with it");
    // The first one's end shuts it down once more, which is none of its concern.
    std::mem::forget(server);
}
