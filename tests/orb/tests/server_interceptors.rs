//! Portable interceptors of the server: interception points and their order for every outcome (CORBA 3.3 Part
//! 1, 16.3.8 to 16.3.10).

use spandrel::{CompletionStatus, Orb, SystemException, SystemExceptionKind};
use spandrel_orb_tests::{
    Server,
    probe::{Target, target::RefuseError},
    recorder::{Log, PlannedAction, server_recording},
};

/// A server with three recording interceptors, and a client.
fn server() -> (Server, Target, Log) {
    let log = Log::default();
    let server = Server::with(server_recording(Orb::builder(), &log));
    let target = server.client();
    (server, target, log)
}

/// The same interception point of the three interceptors, in this order.
fn points_of(order: [&str; 3], point: &str) -> Vec<String> {
    order.iter().map(|name| format!("{name}.{point}")).collect()
}

const IN_ORDER: [&str; 3] = ["A", "B", "C"];
const IN_REVERSE: [&str; 3] = ["C", "B", "A"];

/// The interception points of a request before its upcall.
fn arrival() -> Vec<String> {
    [points_of(IN_ORDER, "receive_request_service_contexts"), points_of(IN_ORDER, "receive_request")].concat()
}

fn refused(minor: u32) -> SystemException {
    SystemException::no_permission(minor, CompletionStatus::Maybe)
}

// 16.3.10: the list is traversed in order at the receiving points, and in reverse at the sending points.
#[test]
fn send_reply_is_called_in_reverse_order() {
    let (_server, target, log) = server();
    assert_eq!(target.add(1, 2).unwrap(), 3);
    assert_eq!(log.take(), [arrival(), points_of(IN_REVERSE, "send_reply")].concat());
}

// 16.3.9.4.
#[test]
fn send_exception_gets_user_and_system_exceptions() {
    let (server, target, log) = server();
    assert!(matches!(target.refuse(7).unwrap_err(), RefuseError::Refused(refused) if refused.code == 7));
    assert_eq!(log.take(), [arrival(), points_of(IN_REVERSE, "send_exception IDL:Probe/Refused:1.0")].concat());
    assert_eq!(target.fail(7).unwrap_err().minor(), 7);
    assert_eq!(log.take(), [arrival(), points_of(IN_REVERSE, "send_exception BAD_PARAM COMPLETED_NO")].concat());
    assert_eq!(target.panic().unwrap_err().kind(), SystemExceptionKind::Unknown);
    assert_eq!(log.take(), [arrival(), points_of(IN_REVERSE, "send_exception UNKNOWN COMPLETED_MAYBE")].concat());
    server.poa.deactivate(&server.object).unwrap();
    assert_eq!(target.ping().unwrap_err().kind(), SystemExceptionKind::ObjectNotExist);
    let raised = points_of(IN_REVERSE, "send_exception OBJECT_NOT_EXIST COMPLETED_NO");
    let expected = [points_of(IN_ORDER, "receive_request_service_contexts"), raised].concat();
    assert_eq!(log.take(), expected, "no servant was found: no receive_request");
}

// 16.3.10.2: since closure is necessary, the empty reply to a one-way is tracked, and send_reply is called.
#[test]
fn a_one_way_ends_in_send_reply() {
    let (_server, target, log) = server();
    target.note(&[7]).unwrap();
    assert_eq!(target.count().unwrap(), 1);
    let points = [arrival(), points_of(IN_REVERSE, "send_reply")].concat();
    assert_eq!(log.take(), [points.clone(), points].concat());
}

// 16.3.9.5.
#[test]
fn a_forwarding_ends_in_send_other() {
    let (server, target, log) = server();
    let new = Server::start();
    server.poa.forward(&server.object, server.orb.reference(new.object.ior().clone())).unwrap();
    target.ping().unwrap();
    let points = points_of(IN_REVERSE, "send_other LocationForward");
    assert_eq!(log.take(), [points_of(IN_ORDER, "receive_request_service_contexts"), points].concat());
}

// 16.3.9.1: the earlier interceptors are on the flow stack.
#[test]
fn an_exception_at_the_starting_point_reaches_the_earlier_interceptors() {
    let (_server, target, log) = server();
    log.plan("C.receive_request_service_contexts", PlannedAction::Raise(refused(5)));
    let raised = target.ping().unwrap_err();
    assert_eq!((raised.minor(), raised.completed()), (5, CompletionStatus::No), "always COMPLETED_NO here");
    let points = ["B", "A"].map(|name| format!("{name}.send_exception NO_PERMISSION COMPLETED_NO"));
    assert_eq!(log.take(), [points_of(IN_ORDER, "receive_request_service_contexts"), points.to_vec()].concat());
    log.plan("A.receive_request_service_contexts", PlannedAction::Panic);
    assert_eq!(target.ping().unwrap_err().kind(), SystemExceptionKind::Unknown);
    assert_eq!(log.take(), ["A.receive_request_service_contexts"]);
    target.ping().unwrap();
}

// 16.3.9.2: no further receive_request is called; all are on the flow stack since their starting points have
// completed.
#[test]
fn an_exception_in_receive_request_reaches_all_interceptors() {
    let (_server, target, log) = server();
    log.plan("B.receive_request", PlannedAction::Raise(refused(6)));
    assert_eq!(target.ping().unwrap_err().minor(), 6);
    let expected = [
        points_of(IN_ORDER, "receive_request_service_contexts"),
        vec!["A.receive_request".to_owned(), "B.receive_request".to_owned()],
        points_of(IN_REVERSE, "send_exception NO_PERMISSION COMPLETED_NO"),
    ];
    assert_eq!(log.take(), expected.concat());
}

// 16.3.9.1, 16.3.9.2, 16.3.15.
#[test]
fn forward_request_of_an_interceptor_redirects_the_client() {
    for (point, expected) in [
        ("B.receive_request_service_contexts", vec!["A.send_other LocationForward".to_owned()]),
        ("C.receive_request", points_of(IN_REVERSE, "send_other LocationForward")),
    ] {
        let (server, target, log) = server();
        let new = Server::start();
        log.plan(point, PlannedAction::Forward(new.object.clone()));
        assert_eq!(target.add(1, 2).unwrap(), 3);
        let points = log.take();
        assert_eq!(points[points.len() - expected.len()..], expected);
        target.note(&[7]).unwrap();
        target.ping().unwrap();
        assert_eq!((new.client().count().unwrap(), server.client().count().unwrap()), (1, 0));
    }
}

// 16.3.9.3 to 16.3.9.5: later interceptors get the exception of the earlier ones.
#[test]
fn an_exception_in_send_reply_reaches_the_later_interceptors() {
    let (_server, target, log) = server();
    log.plan("C.send_reply", PlannedAction::Raise(refused(1)));
    log.plan("B.send_exception", PlannedAction::Raise(SystemException::bad_param(2, CompletionStatus::No)));
    let raised = target.ping().unwrap_err();
    assert_eq!((raised.minor(), raised.completed()), (2, CompletionStatus::Yes));
    let points = [
        "C.send_reply".to_owned(),
        "B.send_exception NO_PERMISSION COMPLETED_YES".to_owned(),
        "A.send_exception BAD_PARAM COMPLETED_YES".to_owned(),
    ];
    assert_eq!(log.take(), [arrival(), points.to_vec()].concat());

    let new = Server::start();
    log.plan("B.send_exception", PlannedAction::Forward(new.object.clone()));
    assert_eq!(target.fail(3).unwrap_err().minor(), 3, "the exception of the other server");
    let points = [
        "C.send_exception BAD_PARAM COMPLETED_NO".to_owned(),
        "B.send_exception BAD_PARAM COMPLETED_NO".to_owned(),
        "A.send_other LocationForward".to_owned(),
    ];
    assert_eq!(log.take(), [arrival(), points.to_vec()].concat());
}
