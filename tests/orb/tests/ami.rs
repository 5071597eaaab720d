//! Asynchronous Method Invocation: the callback and polling models over real sockets.

use std::{
    sync::{Arc, Mutex, mpsc},
    thread,
};

use spandrel::{
    CompletionStatus, SystemException, SystemExceptionKind,
    messaging::{ExceptionHolder, PollableSet, PollableSetError},
};
use spandrel_orb_tests::{
    Server,
    probe::{AmiTargetHandler, AmiTargetPoller, Target, target::RefuseError},
    support::{TEST_TIMEOUT, kind_and_completion},
};

/// A reply handler that sends a line for each of its upcalls.
struct RecordingHandler(Mutex<mpsc::Sender<String>>);

impl RecordingHandler {
    fn new() -> (Arc<Self>, mpsc::Receiver<String>) {
        let (send, receive) = mpsc::channel();
        (Arc::new(Self(Mutex::new(send))), receive)
    }

    fn record(&self, line: impl Into<String>) {
        let thread = thread::current().name().unwrap_or_default().to_owned();
        assert_eq!(thread, "spandrel-async", "handlers are called by the ORB");
        // The receiver may be gone at the end of a test.
        let _ = self.0.lock().unwrap().send(line.into());
    }
}

macro_rules! failures {
    ($($name:ident: $error:ty),* $(,)?) => {
        $(
            fn $name(&self, holder: ExceptionHolder<$error>) {
                self.record(format!("{} {}", stringify!($name), holder.exception()));
            }
        )*
    };
}

impl AmiTargetHandler for RecordingHandler {
    fn ping(&self) {
        self.record("ping");
    }

    fn add(&self, sum: i32) {
        self.record(format!("add {sum}"));
    }

    fn echo(&self, text: String) {
        self.record(format!("echo {text}"));
    }

    fn echo_octets(&self, data: Vec<u8>) {
        self.record(format!("echo_octets {}", data.len()));
    }

    fn echo_doubles(&self, data: Vec<f64>) {
        self.record(format!("echo_doubles {data:?}"));
    }

    fn refuse(&self) {
        self.record("refuse");
    }

    fn refuse_excep(&self, holder: ExceptionHolder<RefuseError>) {
        match holder.raise_exception::<()>() {
            Err(RefuseError::Refused(refused)) => self.record(format!("refused {}", refused.code)),
            other => self.record(format!("{other:?}")),
        }
    }

    fn fail(&self) {
        self.record("fail");
    }

    fn panic(&self) {
        self.record("panic");
    }

    fn count(&self, count: u32) {
        self.record(format!("count {count}"));
        panic!("handlers may panic");
    }

    fn hold(&self) {
        self.record("hold");
    }

    fn release(&self) {
        self.record("release");
    }

    fn same(&self, other: Option<Target>) {
        self.record(format!("same {}", other.is_some()));
    }

    fn call_back(&self) {
        self.record("call_back");
    }

    fn stop(&self, _refused: bool) {
        self.record("stop");
    }

    failures! {
        ping_excep: SystemException,
        add_excep: SystemException,
        echo_excep: SystemException,
        echo_octets_excep: SystemException,
        echo_doubles_excep: SystemException,
        fail_excep: SystemException,
        panic_excep: SystemException,
        count_excep: SystemException,
        hold_excep: SystemException,
        release_excep: SystemException,
        same_excep: SystemException,
        call_back_excep: SystemException,
        stop_excep: SystemException,
    }
}

#[test]
fn handlers_receive_replies_and_exceptions() {
    let server = Server::start();
    let target = server.client();
    let (handler, lines) = RecordingHandler::new();
    let next = || lines.recv_timeout(TEST_TIMEOUT).expect("the handler is called");
    target.sendc_add(Some(handler.clone()), 2, 3).unwrap();
    assert_eq!(next(), "add 5");
    target.sendc_echo(Some(handler.clone()), "text").unwrap();
    assert_eq!(next(), "echo text");
    target.sendc_refuse(Some(handler.clone()), 9).unwrap();
    assert_eq!(next(), "refused 9");
    target.sendc_refuse(Some(handler.clone()), 0).unwrap();
    assert_eq!(next(), "refuse");
    target.sendc_fail(Some(handler.clone()), 1).unwrap();
    assert!(next().starts_with("fail_excep CORBA::BAD_PARAM"));
    target.sendc_same(Some(handler.clone()), Some(&target)).unwrap();
    assert_eq!(next(), "same true");
}

#[test]
fn a_panicking_handler_does_not_affect_later_calls() {
    let server = Server::start();
    let target = server.client();
    let (handler, lines) = RecordingHandler::new();
    target.sendc_count(Some(handler.clone())).unwrap();
    assert_eq!(lines.recv_timeout(TEST_TIMEOUT).unwrap(), "count 0");
    target.sendc_ping(Some(handler)).unwrap();
    assert_eq!(lines.recv_timeout(TEST_TIMEOUT).unwrap(), "ping");
}

#[test]
fn without_a_handler_the_request_is_sent() {
    let server = Server::start();
    let target = server.client();
    target.sendc_release(None, 5).unwrap();
    // This call is held until the release arrives.
    target.hold(5).unwrap();
}

#[test]
fn shutdown_calls_the_exception_operation_of_pending_handlers() {
    let server = Server::start();
    let target = server.client();
    let (handler, lines) = RecordingHandler::new();
    target.sendc_hold(Some(handler.clone()), 1).unwrap();
    server.probe.await_held(1);
    target.as_object().orb().shutdown().unwrap();
    assert!(lines.recv_timeout(TEST_TIMEOUT).unwrap().starts_with("hold_excep CORBA::BAD_INV_ORDER"));
    assert_eq!(target.sendc_ping(Some(handler)).unwrap_err().kind(), SystemExceptionKind::BadInvOrder);
    server.probe.open(1);
}

#[test]
fn a_poller_is_polled_until_the_reply_arrives() {
    let server = Server::start();
    let target = server.client();
    let poller: AmiTargetPoller = target.sendp_hold(1);
    server.probe.await_held(1);
    assert_eq!((poller.operation_name(), poller.operation_target()), ("hold", target.as_object()));
    assert!(!poller.is_ready(0).unwrap());
    assert!(!poller.is_ready(10).unwrap());
    let error = poller.hold(0).unwrap_err();
    assert_eq!(kind_and_completion(&error), (SystemExceptionKind::NoResponse, CompletionStatus::Maybe), "{error}");
    assert_eq!(poller.hold(10).unwrap_err().kind(), SystemExceptionKind::Timeout);
    assert_eq!(poller.ping(0).unwrap_err().kind(), SystemExceptionKind::BadOperation, "the operation differs");
    server.probe.open(1);
    assert!(poller.is_ready(u32::MAX).unwrap());
    poller.hold(0).unwrap();
    assert_eq!(poller.hold(0).unwrap_err().kind(), SystemExceptionKind::ObjectNotExist, "the reply was taken before");
    assert_eq!(poller.is_ready(0).unwrap_err().kind(), SystemExceptionKind::ObjectNotExist);
}

#[test]
fn pollers_return_results_and_exceptions() {
    let server = Server::start();
    let target = server.client();
    assert_eq!(target.sendp_add(4, 5).add(u32::MAX).unwrap(), 9);
    match target.sendp_refuse(3).refuse(u32::MAX) {
        Err(RefuseError::Refused(refused)) => assert_eq!(refused.code, 3),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_pollable_set_returns_ready_pollers_in_order_of_completion() {
    let server = Server::start();
    let target = server.client();
    let set = PollableSet::new();
    assert_eq!(set.get_ready_pollable(0).unwrap_err(), PollableSetError::NoPossiblePollable);
    let held: Vec<_> = (1..=3).map(|gate| target.sendp_hold(gate)).collect();
    held.iter().for_each(|poller| set.add_pollable(poller.pollable()));
    assert_eq!(set.number_left(), 3);
    match set.get_ready_pollable(0).unwrap_err() {
        PollableSetError::System(exception) => assert_eq!(exception.kind(), SystemExceptionKind::NoResponse),
        other => panic!("{other}"),
    }
    for gate in [2, 3, 1] {
        server.probe.open(gate as u32);
        let ready = set.get_ready_pollable(u32::MAX).unwrap();
        assert!(Arc::ptr_eq(&ready, &held[gate - 1].pollable()), "gate {gate}");
        held[gate - 1].hold(0).unwrap();
    }
    let done = target.sendp_ping();
    assert!(done.is_ready(u32::MAX).unwrap());
    set.add_pollable(done.pollable());
    set.remove(&done.pollable()).unwrap();
    assert_eq!(set.remove(&done.pollable()).unwrap_err(), PollableSetError::UnknownPollable);
    set.add_pollable(done.pollable());
    assert!(Arc::ptr_eq(&set.get_ready_pollable(0).unwrap(), &done.pollable()), "the poller was ready before");
}

/// A handler that makes a blocking call: discouraged, but it must not deadlock.
struct CallingHandler {
    target: Target,
    sums: Mutex<mpsc::Sender<i32>>,
}

impl CallingHandler {
    fn call(&self) {
        let sum = self.target.add(20, 3).unwrap();
        self.sums.lock().unwrap().send(sum).unwrap();
    }
}

#[test]
fn a_blocking_call_within_a_handler_does_not_deadlock() {
    let server = Server::start();
    let target = server.client_with(spandrel::Orb::builder().connections_per_peer(1));
    let (send, sums) = mpsc::channel();
    let handler = Arc::new(CallingHandler { target: target.clone(), sums: Mutex::new(send) });
    let waiting = target.sendp_hold(1);
    let orb = target.as_object().orb().clone();
    // As `sendc_` does with its handler.
    let ping = target.ping_async();
    orb.spawn(async move {
        ping.await.unwrap();
        handler.call();
    })
    .unwrap();
    assert_eq!(sums.recv_timeout(TEST_TIMEOUT).unwrap(), 23);
    server.probe.open(1);
    waiting.hold(u32::MAX).unwrap();
}
