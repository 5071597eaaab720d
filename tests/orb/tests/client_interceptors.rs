//! Portable interceptors of the client: interception points and their order for every outcome (CORBA 3.3 Part
//! 1, clause 16).

use spandrel::{CompletionStatus, Orb, SystemException, SystemExceptionKind};
use spandrel_orb_tests::{
    Server,
    probe::{Target, target::RefuseError},
    recorder::{Log, PlannedAction, client_recording},
    support::block_on,
};

/// A client with three recording interceptors.
fn client(server: &Server) -> (Target, Log) {
    let log = Log::default();
    let orb = client_recording(Orb::builder(), &log);
    (orb.string_to_object(&server.ior()).unwrap().unchecked_narrow(), log)
}

/// The same interception point of the three interceptors, in this order.
fn points_of(order: [&str; 3], point: &str) -> Vec<String> {
    order.iter().map(|name| format!("{name}.{point}")).collect()
}

const IN_ORDER: [&str; 3] = ["A", "B", "C"];
const IN_REVERSE: [&str; 3] = ["C", "B", "A"];

fn refused(minor: u32) -> SystemException {
    SystemException::no_permission(minor, CompletionStatus::Maybe)
}

// 16.3.7: the list is traversed in order at the sending points, and in reverse at the receiving points.
#[test]
fn receive_reply_is_called_in_reverse_order() {
    let server = Server::start();
    let (target, log) = client(&server);
    assert_eq!(target.add(1, 2).unwrap(), 3);
    assert_eq!(log.take(), [points_of(IN_ORDER, "send_request"), points_of(IN_REVERSE, "receive_reply")].concat());
}

// 16.3.6.4.
#[test]
fn receive_exception_gets_user_and_system_exceptions() {
    let server = Server::start();
    let (target, log) = client(&server);
    assert!(matches!(target.refuse(7).unwrap_err(), RefuseError::Refused(refused) if refused.code == 7));
    let raised = points_of(IN_REVERSE, "receive_exception IDL:Probe/Refused:1.0");
    assert_eq!(log.take(), [points_of(IN_ORDER, "send_request"), raised].concat());
    assert_eq!(target.fail(7).unwrap_err().minor(), 7);
    let raised = points_of(IN_REVERSE, "receive_exception BAD_PARAM COMPLETED_NO");
    assert_eq!(log.take(), [points_of(IN_ORDER, "send_request"), raised].concat());
}

// 16.3.7.2: regardless of the sync scope, receive_other is called before control returns.
#[test]
fn a_one_way_ends_in_receive_other() {
    let server = Server::start();
    let (target, log) = client(&server);
    target.note(&[7]).unwrap();
    assert_eq!(
        log.take(),
        [points_of(IN_ORDER, "send_request"), points_of(IN_REVERSE, "receive_other Successful")].concat()
    );
}

// 16.3.6.5: a retry is a new request; the first one ends in receive_other.
#[test]
fn a_forwarding_ends_one_request_and_begins_another() {
    let (old, new) = (Server::start(), Server::start());
    let (target, log) = client(&old);
    old.poa.forward(&old.object, old.orb.reference(new.object.ior().clone())).unwrap();
    target.ping().unwrap();
    let expected = [
        points_of(IN_ORDER, "send_request"),
        points_of(IN_REVERSE, "receive_other LocationForward"),
        points_of(IN_ORDER, "send_request"),
        points_of(IN_REVERSE, "receive_reply"),
    ];
    assert_eq!(log.take(), expected.concat());
}

// 16.3.6.1: no further send_request is called; the interceptors on the flow stack get receive_exception.
#[test]
fn an_exception_in_send_request_reaches_the_earlier_interceptors() {
    let server = Server::start();
    let (target, log) = client(&server);
    log.plan("C.send_request", PlannedAction::Raise(refused(5)));
    let raised = target.ping().unwrap_err();
    assert_eq!((raised.minor(), raised.completed()), (5, CompletionStatus::No), "always COMPLETED_NO here");
    let notified = ["B", "A"].map(|name| format!("{name}.receive_exception NO_PERMISSION COMPLETED_NO"));
    assert_eq!(log.take(), [points_of(IN_ORDER, "send_request"), notified.to_vec()].concat());
    log.plan("A.send_request", PlannedAction::Panic);
    assert_eq!(target.ping().unwrap_err().kind(), SystemExceptionKind::Unknown);
    assert_eq!(log.take(), ["A.send_request"]);
    target.ping().unwrap();
}

// 16.3.6.1, 16.3.15.
#[test]
fn forward_request_in_send_request_redirects_the_request() {
    let (old, new) = (Server::start(), Server::start());
    let (target, log) = client(&old);
    log.plan("B.send_request", PlannedAction::Forward(new.object.clone()));
    target.note(&[7]).unwrap();
    let expected = [
        vec!["A.send_request".to_owned(), "B.send_request".to_owned(), "A.receive_other LocationForward".to_owned()],
        points_of(IN_ORDER, "send_request"),
        points_of(IN_REVERSE, "receive_other Successful"),
    ];
    assert_eq!(log.take(), expected.concat());
    assert_eq!(target.count().unwrap(), 1);
    assert_eq!((old.client().count().unwrap(), new.client().count().unwrap()), (0, 1));
}

// 16.3.6.3: later interceptors get the exception as COMPLETED_YES. 16.3.6.4: its completion status is kept.
#[test]
fn an_exception_in_receive_reply_reaches_the_later_interceptors() {
    let server = Server::start();
    let (target, log) = client(&server);
    log.plan("C.receive_reply", PlannedAction::Raise(refused(1)));
    log.plan("B.receive_exception", PlannedAction::Raise(SystemException::bad_param(2, CompletionStatus::No)));
    let raised = target.ping().unwrap_err();
    assert_eq!((raised.minor(), raised.completed()), (2, CompletionStatus::Yes));
    let points = [
        "C.receive_reply".to_owned(),
        "B.receive_exception NO_PERMISSION COMPLETED_YES".to_owned(),
        "A.receive_exception BAD_PARAM COMPLETED_YES".to_owned(),
    ];
    assert_eq!(log.take(), [points_of(IN_ORDER, "send_request"), points.to_vec()].concat());
}

// 16.3.6.4: ForwardRequest is refused if the request may have been executed, because of at-most-once
// semantics.
#[test]
fn forward_request_in_receive_exception_needs_completed_no() {
    let (old, new) = (Server::start(), Server::start());
    let (target, log) = client(&old);
    log.plan("C.receive_exception", PlannedAction::Forward(new.object.clone()));
    assert!(matches!(target.refuse(7).unwrap_err(), RefuseError::Refused(_)), "the exception is unchanged");
    assert_eq!(
        log.take(),
        [points_of(IN_ORDER, "send_request"), points_of(IN_REVERSE, "receive_exception IDL:Probe/Refused:1.0")]
            .concat()
    );
    old.poa.deactivate(&old.object).unwrap();
    log.plan("B.receive_exception", PlannedAction::Forward(new.object.clone()));
    target.ping().unwrap();
    let expected = [
        points_of(IN_ORDER, "send_request"),
        vec![
            "C.receive_exception OBJECT_NOT_EXIST COMPLETED_NO".to_owned(),
            "B.receive_exception OBJECT_NOT_EXIST COMPLETED_NO".to_owned(),
            "A.receive_other LocationForward".to_owned(),
        ],
        points_of(IN_ORDER, "send_request"),
        points_of(IN_REVERSE, "receive_reply"),
    ];
    assert_eq!(log.take(), expected.concat());
}

// 16.3.7.2: an asynchronous request is two separate requests. The second begins with send_poll (16.3.6.2).
#[test]
fn an_asynchronous_request_is_intercepted_as_two_requests() {
    let server = Server::start();
    let (target, log) = client(&server);
    let answer = target.add_async(1, 2);
    let sent = [points_of(IN_ORDER, "send_request"), points_of(IN_REVERSE, "receive_other Successful")].concat();
    let before: Vec<String> = log.take();
    assert_eq!(before[..6], sent, "before control returns to the client");
    assert_eq!(block_on(answer).unwrap(), 3);
    let after = [before[6..].to_vec(), log.take()].concat();
    assert_eq!(after, [points_of(IN_ORDER, "send_poll"), points_of(IN_REVERSE, "receive_reply")].concat());

    assert_eq!(block_on(target.fail_async(7)).unwrap_err().minor(), 7);
    let raised = points_of(IN_REVERSE, "receive_exception BAD_PARAM COMPLETED_NO");
    assert_eq!(log.take(), [sent.clone(), points_of(IN_ORDER, "send_poll"), raised].concat());

    log.plan("A.receive_reply", PlannedAction::Raise(refused(3)));
    assert_eq!(block_on(target.ping_async()).unwrap_err().minor(), 3);
    log.take();
    log.plan("B.send_request", PlannedAction::Raise(refused(4)));
    assert_eq!(block_on(target.ping_async()).unwrap_err().minor(), 4);
    let points = ["A.send_request", "B.send_request", "A.receive_exception NO_PERMISSION COMPLETED_NO"];
    assert_eq!(log.take(), points);
}

#[test]
fn interceptors_are_destroyed_with_their_orb() {
    let log = Log::default();
    let orb = client_recording(Orb::builder(), &log);
    orb.shutdown().unwrap();
    assert_eq!(log.take(), points_of(IN_ORDER, "destroy"));
}

// 16.7.2.1.
#[test]
fn interceptor_names_are_unique_unless_empty() {
    let recorder = |name| spandrel_orb_tests::recorder::Recorder { name, log: Log::default() };
    let builder = Orb::builder().client_request_interceptor(recorder("A")).unwrap();
    let builder = builder.client_request_interceptor(recorder("")).unwrap();
    let builder = builder.client_request_interceptor(recorder("")).unwrap();
    assert_eq!(builder.client_request_interceptor(recorder("A")).unwrap_err().0, "A");
}
