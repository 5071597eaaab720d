//! The standard's callback and polling models over real sockets.

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
    support::{PATIENCE, kind_and_completion},
};

/// Writes down what it is told.
struct Diary(Mutex<mpsc::Sender<String>>);

impl Diary {
    fn new() -> (Arc<Self>, mpsc::Receiver<String>) {
        let (send, receive) = mpsc::channel();
        (Arc::new(Self(Mutex::new(send))), receive)
    }

    fn note(&self, line: impl Into<String>) {
        let thread = thread::current().name().unwrap_or_default().to_owned();
        assert_eq!(thread, "spandrel-async", "handlers are called by the ORB");
        // Whoever does not listen any more does not want to know.
        let _ = self.0.lock().unwrap().send(line.into());
    }
}

macro_rules! failures {
    ($($name:ident: $error:ty),* $(,)?) => {
        $(
            fn $name(&self, holder: ExceptionHolder<$error>) {
                self.note(format!("{} {}", stringify!($name), holder.exception()));
            }
        )*
    };
}

impl AmiTargetHandler for Diary {
    fn ping(&self) {
        self.note("ping");
    }

    fn add(&self, sum: i32) {
        self.note(format!("add {sum}"));
    }

    fn echo(&self, text: String) {
        self.note(format!("echo {text}"));
    }

    fn echo_octets(&self, data: Vec<u8>) {
        self.note(format!("echo_octets {}", data.len()));
    }

    fn echo_doubles(&self, data: Vec<f64>) {
        self.note(format!("echo_doubles {data:?}"));
    }

    fn refuse(&self) {
        self.note("refuse");
    }

    fn refuse_excep(&self, holder: ExceptionHolder<RefuseError>) {
        match holder.raise_exception::<()>() {
            Err(RefuseError::Refused(refused)) => self.note(format!("refused {}", refused.code)),
            other => self.note(format!("{other:?}")),
        }
    }

    fn fail(&self) {
        self.note("fail");
    }

    fn panic(&self) {
        self.note("panic");
    }

    fn count(&self, count: u32) {
        self.note(format!("count {count}"));
        panic!("handlers may panic");
    }

    fn hold(&self) {
        self.note("hold");
    }

    fn release(&self) {
        self.note("release");
    }

    fn same(&self, other: Option<Target>) {
        self.note(format!("same {}", other.is_some()));
    }

    fn call_back(&self) {
        self.note("call_back");
    }

    fn stop(&self, _refused: bool) {
        self.note("stop");
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
fn handlers_are_told_of_each_end() {
    let server = Server::start();
    let target = server.client();
    let (diary, told) = Diary::new();
    let next = || told.recv_timeout(PATIENCE).expect("the handler is told");
    target.sendc_add(Some(diary.clone()), 2, 3).unwrap();
    assert_eq!(next(), "add 5");
    target.sendc_echo(Some(diary.clone()), "text").unwrap();
    assert_eq!(next(), "echo text");
    target.sendc_refuse(Some(diary.clone()), 9).unwrap();
    assert_eq!(next(), "refused 9");
    target.sendc_refuse(Some(diary.clone()), 0).unwrap();
    assert_eq!(next(), "refuse");
    target.sendc_fail(Some(diary.clone()), 1).unwrap();
    assert!(next().starts_with("fail_excep CORBA::BAD_PARAM"));
    target.sendc_same(Some(diary.clone()), Some(&target)).unwrap();
    assert_eq!(next(), "same true");
}

#[test]
fn a_handler_that_panics_concerns_nobody_else() {
    let server = Server::start();
    let target = server.client();
    let (diary, told) = Diary::new();
    target.sendc_count(Some(diary.clone())).unwrap();
    assert_eq!(told.recv_timeout(PATIENCE).unwrap(), "count 0");
    target.sendc_ping(Some(diary)).unwrap();
    assert_eq!(told.recv_timeout(PATIENCE).unwrap(), "ping");
}

#[test]
fn without_a_handler_the_request_is_sent_all_the_same() {
    let server = Server::start();
    let target = server.client();
    target.sendc_release(None, 5).unwrap();
    // Held until that has been received.
    target.hold(5).unwrap();
}

#[test]
fn handlers_learn_of_the_end_of_the_orb() {
    let server = Server::start();
    let target = server.client();
    let (diary, told) = Diary::new();
    target.sendc_hold(Some(diary.clone()), 1).unwrap();
    server.probe.await_held(1);
    target.as_object().orb().shutdown(true).unwrap();
    assert!(told.recv_timeout(PATIENCE).unwrap().starts_with("hold_excep CORBA::BAD_INV_ORDER"));
    assert_eq!(target.sendc_ping(Some(diary)).unwrap_err().kind(), SystemExceptionKind::BadInvOrder);
    server.probe.open(1);
}

#[test]
fn a_poller_is_asked_until_the_reply_is_there() {
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
    assert_eq!(poller.ping(0).unwrap_err().kind(), SystemExceptionKind::BadOperation, "that is not what was asked");
    server.probe.open(1);
    assert!(poller.is_ready(u32::MAX).unwrap());
    poller.hold(0).unwrap();
    assert_eq!(poller.hold(0).unwrap_err().kind(), SystemExceptionKind::ObjectNotExist, "it was taken");
    assert_eq!(poller.is_ready(0).unwrap_err().kind(), SystemExceptionKind::ObjectNotExist);
}

#[test]
fn pollers_give_results_and_exceptions() {
    let server = Server::start();
    let target = server.client();
    assert_eq!(target.sendp_add(4, 5).add(u32::MAX).unwrap(), 9);
    match target.sendp_refuse(3).refuse(u32::MAX) {
        Err(RefuseError::Refused(refused)) => assert_eq!(refused.code, 3),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_set_gives_what_is_ready_first() {
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
    assert!(Arc::ptr_eq(&set.get_ready_pollable(0).unwrap(), &done.pollable()), "it was ready before");
}

/// Calls from inside: not to be done, since others wait meanwhile, and no reason to wait for ever.
struct Impatient {
    target: Target,
    told: Mutex<mpsc::Sender<i32>>,
}

impl Impatient {
    fn ask(&self) {
        let sum = self.target.add(20, 3).unwrap();
        self.told.lock().unwrap().send(sum).unwrap();
    }
}

#[test]
fn a_handler_that_calls_waits_for_nobody_but_its_answer() {
    let server = Server::start();
    let target = server.client_with(spandrel::Orb::builder().connections_per_peer(1));
    let (send, told) = mpsc::channel();
    let impatient = Arc::new(Impatient { target: target.clone(), told: Mutex::new(send) });
    let waits = target.sendp_hold(1);
    let orb = target.as_object().orb().clone();
    // What `sendc_` does with its handler.
    let asked = target.ping_async();
    orb.spawn(async move {
        asked.await.unwrap();
        impatient.ask();
    })
    .unwrap();
    assert_eq!(told.recv_timeout(PATIENCE).unwrap(), 23);
    server.probe.open(1);
    waits.hold(u32::MAX).unwrap();
}
