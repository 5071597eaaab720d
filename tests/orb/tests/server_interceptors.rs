//! Server interceptors: which points are called, in which order, for every outcome (CORBA 3.3 Part 1, 16.3.8 to 16.3.10).

use spandrel::{CompletionStatus, Orb, SystemException, SystemExceptionKind};
use spandrel_orb_tests::{
    Server,
    probe::{Target, target::RefuseError},
    recorder::{Act, Log, server_recording},
};

/// A server with three interceptors, and a client.
fn server() -> (Server, Target, Log) {
    let log = Log::default();
    let server = Server::with(server_recording(Orb::builder(), &log));
    let target = server.client();
    (server, target, log)
}

/// The same point of the three, in this order.
fn all(order: [&str; 3], point: &str) -> Vec<String> {
    order.iter().map(|name| format!("{name}.{point}")).collect()
}

const UP: [&str; 3] = ["A", "B", "C"];
const DOWN: [&str; 3] = ["C", "B", "A"];

/// The points of a request until its servant is called.
fn arrival() -> Vec<String> {
    [all(UP, "receive_request_service_contexts"), all(UP, "receive_request")].concat()
}

fn refused(minor: u32) -> SystemException {
    SystemException::no_permission(minor, CompletionStatus::Maybe)
}

// 16.3.10: the list is traversed in order at the receiving points, and in reverse at the sending points.
#[test]
fn a_reply_is_sent_past_all_of_them() {
    let (_server, target, log) = server();
    assert_eq!(target.add(1, 2).unwrap(), 3);
    assert_eq!(log.take(), [arrival(), all(DOWN, "send_reply")].concat());
}

// 16.3.9.4.
#[test]
fn exceptions_are_seen_as_what_they_are() {
    let (server, target, log) = server();
    assert!(matches!(target.refuse(7).unwrap_err(), RefuseError::Refused(refused) if refused.code == 7));
    assert_eq!(log.take(), [arrival(), all(DOWN, "send_exception IDL:Probe/Refused:1.0")].concat());
    assert_eq!(target.fail(7).unwrap_err().minor(), 7);
    assert_eq!(log.take(), [arrival(), all(DOWN, "send_exception BAD_PARAM COMPLETED_NO")].concat());
    assert_eq!(target.panic().unwrap_err().kind(), SystemExceptionKind::Unknown);
    assert_eq!(log.take(), [arrival(), all(DOWN, "send_exception UNKNOWN COMPLETED_MAYBE")].concat());
    server.poa.deactivate(&server.object).unwrap();
    assert_eq!(target.ping().unwrap_err().kind(), SystemExceptionKind::ObjectNotExist);
    let raised = all(DOWN, "send_exception OBJECT_NOT_EXIST COMPLETED_NO");
    let expected = [all(UP, "receive_request_service_contexts"), raised].concat();
    assert_eq!(log.take(), expected, "no servant was found: no receive_request");
}

// 16.3.10.2: since closure is necessary, the empty reply to a one-way is tracked, and send_reply is called.
#[test]
fn a_one_way_ends_in_send_reply() {
    let (_server, target, log) = server();
    target.note(&[7]).unwrap();
    assert_eq!(target.count().unwrap(), 1);
    let seen = [arrival(), all(DOWN, "send_reply")].concat();
    assert_eq!(log.take(), [seen.clone(), seen].concat());
}

// 16.3.9.5.
#[test]
fn a_forwarding_ends_in_send_other() {
    let (server, target, log) = server();
    let new = Server::start();
    server.poa.forward(&server.object, server.orb.reference(new.object.ior().clone())).unwrap();
    target.ping().unwrap();
    let told = all(DOWN, "send_other LocationForward");
    assert_eq!(log.take(), [all(UP, "receive_request_service_contexts"), told].concat());
}

// 16.3.9.1: those before it are on the flow stack.
#[test]
fn an_exception_at_the_start_is_told_to_those_before() {
    let (_server, target, log) = server();
    log.plan("C.receive_request_service_contexts", Act::Raise(refused(5)));
    let raised = target.ping().unwrap_err();
    assert_eq!((raised.minor(), raised.completed()), (5, CompletionStatus::No), "COMPLETED_NO, whatever was said");
    let told = ["B", "A"].map(|name| format!("{name}.send_exception NO_PERMISSION COMPLETED_NO"));
    assert_eq!(log.take(), [all(UP, "receive_request_service_contexts"), told.to_vec()].concat());
    log.plan("A.receive_request_service_contexts", Act::Panic);
    assert_eq!(target.ping().unwrap_err().kind(), SystemExceptionKind::Unknown);
    assert_eq!(log.take(), ["A.receive_request_service_contexts"]);
    target.ping().unwrap();
}

// 16.3.9.2: no other receive_request is called, but all are on the flow stack since their starting points have completed.
#[test]
fn an_exception_before_the_servant_is_told_to_all() {
    let (_server, target, log) = server();
    log.plan("B.receive_request", Act::Raise(refused(6)));
    assert_eq!(target.ping().unwrap_err().minor(), 6);
    let expected = [
        all(UP, "receive_request_service_contexts"),
        vec!["A.receive_request".to_owned(), "B.receive_request".to_owned()],
        all(DOWN, "send_exception NO_PERMISSION COMPLETED_NO"),
    ];
    assert_eq!(log.take(), expected.concat());
}

// 16.3.9.1, 16.3.9.2, 16.3.15.
#[test]
fn a_client_is_sent_where_an_interceptor_says() {
    for (point, told) in [
        ("B.receive_request_service_contexts", vec!["A.send_other LocationForward".to_owned()]),
        ("C.receive_request", all(DOWN, "send_other LocationForward")),
    ] {
        let (server, target, log) = server();
        let new = Server::start();
        log.plan(point, Act::Forward(new.object.clone()));
        assert_eq!(target.add(1, 2).unwrap(), 3);
        let seen = log.take();
        assert_eq!(seen[seen.len() - told.len()..], told);
        target.note(&[7]).unwrap();
        target.ping().unwrap();
        assert_eq!((new.client().count().unwrap(), server.client().count().unwrap()), (1, 0));
    }
}

// 16.3.9.3 to 16.3.9.5: those below see what those above have raised.
#[test]
fn what_is_raised_at_the_end_is_what_those_below_see() {
    let (_server, target, log) = server();
    log.plan("C.send_reply", Act::Raise(refused(1)));
    log.plan("B.send_exception", Act::Raise(SystemException::bad_param(2, CompletionStatus::No)));
    let raised = target.ping().unwrap_err();
    assert_eq!((raised.minor(), raised.completed()), (2, CompletionStatus::Yes));
    let told = [
        "C.send_reply".to_owned(),
        "B.send_exception NO_PERMISSION COMPLETED_YES".to_owned(),
        "A.send_exception BAD_PARAM COMPLETED_YES".to_owned(),
    ];
    assert_eq!(log.take(), [arrival(), told.to_vec()].concat());

    let new = Server::start();
    log.plan("B.send_exception", Act::Forward(new.object.clone()));
    assert_eq!(target.fail(3).unwrap_err().minor(), 3, "of the other server's");
    let told = [
        "C.send_exception BAD_PARAM COMPLETED_NO".to_owned(),
        "B.send_exception BAD_PARAM COMPLETED_NO".to_owned(),
        "A.send_other LocationForward".to_owned(),
    ];
    assert_eq!(log.take(), [arrival(), told.to_vec()].concat());
}
