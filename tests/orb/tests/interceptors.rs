//! Portable interceptors: which points are called, in which order, for every outcome (CORBA 3.3 Part 1, clause 16).

use spandrel::{CompletionStatus, Orb, SystemException, SystemExceptionKind};
use spandrel_orb_tests::{
    Server,
    probe::{Target, target::RefuseError},
    recorder::{Act, Log, client_recording},
    support::block_on,
};

/// A client with three interceptors.
fn client(server: &Server) -> (Target, Log) {
    let log = Log::default();
    let orb = client_recording(Orb::builder(), &log);
    (orb.string_to_object(&server.ior()).unwrap().unchecked_narrow(), log)
}

/// The same point of the three, in this order.
fn all(order: [&str; 3], point: &str) -> Vec<String> {
    order.iter().map(|name| format!("{name}.{point}")).collect()
}

const UP: [&str; 3] = ["A", "B", "C"];
const DOWN: [&str; 3] = ["C", "B", "A"];

fn refused(minor: u32) -> SystemException {
    SystemException::no_permission(minor, CompletionStatus::Maybe)
}

// 16.3.7: the list is traversed in order at the sending points, and in reverse at the receiving points.
#[test]
fn a_reply_is_seen_in_reverse() {
    let server = Server::start();
    let (target, log) = client(&server);
    assert_eq!(target.add(1, 2).unwrap(), 3);
    assert_eq!(log.take(), [all(UP, "send_request"), all(DOWN, "receive_reply")].concat());
}

// 16.3.6.4.
#[test]
fn exceptions_are_seen_as_what_they_are() {
    let server = Server::start();
    let (target, log) = client(&server);
    assert!(matches!(target.refuse(7).unwrap_err(), RefuseError::Refused(refused) if refused.code == 7));
    let raised = all(DOWN, "receive_exception IDL:Probe/Refused:1.0");
    assert_eq!(log.take(), [all(UP, "send_request"), raised].concat());
    assert_eq!(target.fail(7).unwrap_err().minor(), 7);
    let raised = all(DOWN, "receive_exception BAD_PARAM COMPLETED_NO");
    assert_eq!(log.take(), [all(UP, "send_request"), raised].concat());
}

// 16.3.7.2: regardless of the sync scope, receive_other is called before control returns.
#[test]
fn a_one_way_ends_in_receive_other() {
    let server = Server::start();
    let (target, log) = client(&server);
    target.note(&[7]).unwrap();
    assert_eq!(log.take(), [all(UP, "send_request"), all(DOWN, "receive_other Successful")].concat());
}

// 16.3.6.5: a retry is a new request; the first one ends in receive_other.
#[test]
fn a_forwarding_ends_one_request_and_begins_another() {
    let (old, new) = (Server::start(), Server::start());
    let (target, log) = client(&old);
    old.poa.forward(&old.object, old.orb.reference(new.object.ior().clone())).unwrap();
    target.ping().unwrap();
    let expected = [
        all(UP, "send_request"),
        all(DOWN, "receive_other LocationForward"),
        all(UP, "send_request"),
        all(DOWN, "receive_reply"),
    ];
    assert_eq!(log.take(), expected.concat());
}

// 16.3.6.1: no other send_request is called; those on the flow stack are told.
#[test]
fn an_exception_at_the_start_is_told_to_those_before() {
    let server = Server::start();
    let (target, log) = client(&server);
    log.plan("C.send_request", Act::Raise(refused(5)));
    let raised = target.ping().unwrap_err();
    assert_eq!((raised.minor(), raised.completed()), (5, CompletionStatus::No), "COMPLETED_NO, whatever was said");
    let told = ["B", "A"].map(|name| format!("{name}.receive_exception NO_PERMISSION COMPLETED_NO"));
    assert_eq!(log.take(), [all(UP, "send_request"), told.to_vec()].concat());
    log.plan("A.send_request", Act::Panic);
    assert_eq!(target.ping().unwrap_err().kind(), SystemExceptionKind::Unknown);
    assert_eq!(log.take(), ["A.send_request"]);
    target.ping().unwrap();
}

// 16.3.6.1, 16.3.15.
#[test]
fn a_request_goes_where_send_request_says() {
    let (old, new) = (Server::start(), Server::start());
    let (target, log) = client(&old);
    log.plan("B.send_request", Act::Forward(new.object.clone()));
    target.note(&[7]).unwrap();
    let expected = [
        vec!["A.send_request".to_owned(), "B.send_request".to_owned(), "A.receive_other LocationForward".to_owned()],
        all(UP, "send_request"),
        all(DOWN, "receive_other Successful"),
    ];
    assert_eq!(log.take(), expected.concat());
    assert_eq!(target.count().unwrap(), 1);
    assert_eq!((old.client().count().unwrap(), new.client().count().unwrap()), (0, 1));
}

// 16.3.6.3: those below learn of the exception; it is COMPLETED_YES. 16.3.6.4: its completion status is kept.
#[test]
fn what_is_raised_at_the_end_is_what_those_below_see() {
    let server = Server::start();
    let (target, log) = client(&server);
    log.plan("C.receive_reply", Act::Raise(refused(1)));
    log.plan("B.receive_exception", Act::Raise(SystemException::bad_param(2, CompletionStatus::No)));
    let raised = target.ping().unwrap_err();
    assert_eq!((raised.minor(), raised.completed()), (2, CompletionStatus::Yes));
    let told = [
        "C.receive_reply".to_owned(),
        "B.receive_exception NO_PERMISSION COMPLETED_YES".to_owned(),
        "A.receive_exception BAD_PARAM COMPLETED_YES".to_owned(),
    ];
    assert_eq!(log.take(), [all(UP, "send_request"), told.to_vec()].concat());
}

// 16.3.6.4: ForwardRequest is inappropriate if the request may have been carried out; at-most-once would be lost.
#[test]
fn an_exception_is_tried_elsewhere_only_if_nothing_was_done() {
    let (old, new) = (Server::start(), Server::start());
    let (target, log) = client(&old);
    log.plan("C.receive_exception", Act::Forward(new.object.clone()));
    assert!(matches!(target.refuse(7).unwrap_err(), RefuseError::Refused(_)), "as it was");
    assert_eq!(log.take(), [all(UP, "send_request"), all(DOWN, "receive_exception IDL:Probe/Refused:1.0")].concat());
    old.poa.deactivate(&old.object).unwrap();
    log.plan("B.receive_exception", Act::Forward(new.object.clone()));
    target.ping().unwrap();
    let expected = [
        all(UP, "send_request"),
        vec![
            "C.receive_exception OBJECT_NOT_EXIST COMPLETED_NO".to_owned(),
            "B.receive_exception OBJECT_NOT_EXIST COMPLETED_NO".to_owned(),
            "A.receive_other LocationForward".to_owned(),
        ],
        all(UP, "send_request"),
        all(DOWN, "receive_reply"),
    ];
    assert_eq!(log.take(), expected.concat());
}

// 16.3.7.2: asynchronous requests are two separate requests. The second begins with send_poll (16.3.6.2).
#[test]
fn an_asynchronous_request_is_two() {
    let server = Server::start();
    let (target, log) = client(&server);
    let answer = target.add_async(1, 2);
    let sent = [all(UP, "send_request"), all(DOWN, "receive_other Successful")].concat();
    let before: Vec<String> = log.take();
    assert_eq!(before[..6], sent, "before control returns to the client");
    assert_eq!(block_on(answer).unwrap(), 3);
    let after = [before[6..].to_vec(), log.take()].concat();
    assert_eq!(after, [all(UP, "send_poll"), all(DOWN, "receive_reply")].concat());

    assert_eq!(block_on(target.fail_async(7)).unwrap_err().minor(), 7);
    let raised = all(DOWN, "receive_exception BAD_PARAM COMPLETED_NO");
    assert_eq!(log.take(), [sent.clone(), all(UP, "send_poll"), raised].concat());

    log.plan("A.receive_reply", Act::Raise(refused(3)));
    assert_eq!(block_on(target.ping_async()).unwrap_err().minor(), 3);
    log.take();
    log.plan("B.send_request", Act::Raise(refused(4)));
    assert_eq!(block_on(target.ping_async()).unwrap_err().minor(), 4);
    let told = ["A.send_request", "B.send_request", "A.receive_exception NO_PERMISSION COMPLETED_NO"];
    assert_eq!(log.take(), told);
}

#[test]
fn interceptors_are_destroyed_with_their_orb() {
    let log = Log::default();
    let orb = client_recording(Orb::builder(), &log);
    orb.shutdown(true).unwrap();
    assert_eq!(log.take(), all(UP, "destroy"));
}

// 16.7.2.1.
#[test]
fn a_name_is_taken_once_but_nobody_needs_one() {
    let recorder = |name| spandrel_orb_tests::recorder::Recorder { name, log: Log::default() };
    let builder = Orb::builder().client_request_interceptor(recorder("A")).unwrap();
    let builder = builder.client_request_interceptor(recorder("")).unwrap();
    let builder = builder.client_request_interceptor(recorder("")).unwrap();
    assert_eq!(builder.client_request_interceptor(recorder("A")).unwrap_err().0, "A");
}
