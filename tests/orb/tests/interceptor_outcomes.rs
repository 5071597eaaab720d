//! Interception points for unusual outcomes: other profiles, lost connections, timeouts, forwarded or dropped
//! asynchronous calls, deferred replies (CORBA 3.3 Part 1, 16.3.6, 16.3.7, 16.3.10).

use std::{io::Write, net::TcpStream, sync::Arc};

use spandrel::{
    ObjectRef, Orb, Poa, SystemException, SystemExceptionKind,
    types::{IiopProfile, Ior},
};
use spandrel_orb_tests::{
    Probe, Server,
    probe::{Target, TargetSkeleton},
    recorder::{Log, PlannedAction, client_recording, server_recording},
    support::{
        ClosedPort, block_on, call_until_timeout, deferring, fake_server, in_background, is_ready, read_message,
        servant, wait_until,
    },
};

const IN_ORDER: [&str; 3] = ["A", "B", "C"];
const IN_REVERSE: [&str; 3] = ["C", "B", "A"];

/// The same interception point of the three interceptors, in this order.
fn points_of(order: [&str; 3], point: &str) -> Vec<String> {
    order.iter().map(|name| format!("{name}.{point}")).collect()
}

/// A client with three recording interceptors.
fn client(object: Ior) -> (Target, Log) {
    let log = Log::default();
    let orb = client_recording(Orb::builder(), &log);
    (orb.reference(object).unchecked_narrow(), log)
}

/// The reference with another port, as its only profile or (`keeps`) before the original one.
fn at_port(object: &ObjectRef, port: u16, keeps: bool) -> Ior {
    let mut ior = object.ior().clone();
    let profile = spandrel_orb_tests::support::without_local_addresses(&ior.profiles[0]);
    let other = IiopProfile { port, ..profile }.encode().unwrap();
    ior.profiles = if keeps { vec![other, ior.profiles.remove(0)] } else { vec![other] };
    ior
}

/// The interception points of an attempt with this outcome.
fn attempt(ending: &str) -> Vec<String> {
    [points_of(IN_ORDER, "send_request"), points_of(IN_REVERSE, ending)].concat()
}

/// The interception points of an asynchronous attempt with this outcome.
fn asynchronous_attempt(ending: &str) -> Vec<String> {
    [attempt("receive_other Successful"), points_of(IN_ORDER, "send_poll"), points_of(IN_REVERSE, ending)].concat()
}

// 16.3.6.5, 16.3.12.10: an attempt at another profile is a new request; the first one ends in
// TRANSPORT_RETRY.
#[test]
fn an_attempt_at_the_next_profile_is_a_new_request() {
    let server = Server::start();
    let closed = ClosedPort::reserve();
    let (target, log) = client(at_port(&server.object, closed.port(), true));
    assert_eq!(target.add(1, 2).unwrap(), 3);
    assert_eq!(log.take(), [attempt("receive_other TransportRetry"), attempt("receive_reply")].concat());
    let (target, log) = client(at_port(&server.object, closed.port(), true));
    assert_eq!(block_on(target.add_async(1, 2)).unwrap(), 3);
    let expected =
        [asynchronous_attempt("receive_other TransportRetry"), asynchronous_attempt("receive_reply")].concat();
    assert_eq!(log.take(), expected);
}

#[test]
fn an_unreachable_server_ends_in_receive_exception() {
    let server = Server::start();
    let closed = ClosedPort::reserve();
    let (target, log) = client(at_port(&server.object, closed.port(), false));
    assert_eq!(target.ping().unwrap_err().kind(), SystemExceptionKind::Transient);
    assert_eq!(log.take(), attempt("receive_exception TRANSIENT COMPLETED_NO"));
    assert_eq!(block_on(target.ping_async()).unwrap_err().kind(), SystemExceptionKind::Transient);
    assert_eq!(log.take(), asynchronous_attempt("receive_exception TRANSIENT COMPLETED_NO"));
}

// 16.3.6.4: a request that was certainly not executed may be forwarded.
#[test]
fn forward_request_in_receive_exception_redirects_to_another_server() {
    let server = Server::start();
    let closed = ClosedPort::reserve();
    let (target, log) = client(at_port(&server.object, closed.port(), false));
    log.plan("A.receive_exception", PlannedAction::Forward(server.object.clone()));
    assert_eq!(target.add(1, 2).unwrap(), 3);
    assert_eq!(log.take(), [attempt("receive_exception TRANSIENT COMPLETED_NO"), attempt("receive_reply")].concat());
    let (target, log) = client(at_port(&server.object, closed.port(), false));
    log.plan("A.receive_exception", PlannedAction::Forward(server.object.clone()));
    assert_eq!(block_on(target.add_async(1, 2)).unwrap(), 3);
    let expected =
        [asynchronous_attempt("receive_exception TRANSIENT COMPLETED_NO"), asynchronous_attempt("receive_reply")]
            .concat();
    assert_eq!(log.take(), expected);
}

/// A proxy that closes its first connection with CloseConnection instead of answering the second request.
fn closing_once(real: u16) -> u16 {
    fake_server(move |count, mut stream| {
        let mut upstream = TcpStream::connect(("127.0.0.1", real)).unwrap();
        let requests = if count == 0 { 1 } else { usize::MAX };
        for _ in 0..requests {
            let Ok(request) = read_message(&mut stream) else { return };
            upstream.write_all(&request).unwrap();
            stream.write_all(&read_message(&mut upstream).unwrap()).unwrap();
        }
        read_message(&mut stream).unwrap();
        stream.write_all(b"GIOP\x01\x02\x01\x05\x00\x00\x00\x00").unwrap();
    })
}

#[test]
fn a_resend_after_close_connection_is_a_transport_retry() {
    let server = Server::start();
    let (target, log) = client(at_port(&server.object, closing_once(server.port()), false));
    target.ping().unwrap();
    assert_eq!(log.take(), attempt("receive_reply"));
    assert_eq!(target.add(1, 2).unwrap(), 3);
    assert_eq!(log.take(), [attempt("receive_other TransportRetry"), attempt("receive_reply")].concat());
}

#[test]
fn a_timeout_ends_in_receive_exception() {
    let server = Server::start();
    let (target, log) = client(server.object.ior().clone());
    // Connects before the timeout starts.
    target.ping().unwrap();
    block_on(target.ping_async()).unwrap();
    log.take();
    let error = call_until_timeout(&target, |short| {
        log.take();
        short.hold(1)
    });
    assert_eq!(error.kind(), SystemExceptionKind::Timeout);
    assert_eq!(log.take(), attempt("receive_exception TIMEOUT COMPLETED_MAYBE"));
    let error = call_until_timeout(&target, |short| {
        log.take();
        block_on(short.hold_async(1))
    });
    assert_eq!(error.kind(), SystemExceptionKind::Timeout);
    assert_eq!(log.take(), asynchronous_attempt("receive_exception TIMEOUT COMPLETED_MAYBE"));
    server.probe.open(1);
}

#[test]
fn a_forwarding_of_an_asynchronous_request_is_a_new_request() {
    let (old, new) = (Server::start(), Server::start());
    let (target, log) = client(old.object.ior().clone());
    old.poa.forward(&old.object, old.orb.reference(new.object.ior().clone())).unwrap();
    assert_eq!(block_on(target.add_async(1, 2)).unwrap(), 3);
    let expected =
        [asynchronous_attempt("receive_other LocationForward"), asynchronous_attempt("receive_reply")].concat();
    assert_eq!(log.take(), expected);
    log.plan("B.send_request", PlannedAction::Forward(old.client().as_object().clone()));
    assert_eq!(block_on(target.add_async(1, 2)).unwrap(), 3);
    let diverted = ["A.send_request", "B.send_request", "A.receive_other LocationForward"].map(str::to_owned).to_vec();
    let expected =
        [diverted, asynchronous_attempt("receive_other LocationForward"), asynchronous_attempt("receive_reply")]
            .concat();
    assert_eq!(log.take(), expected);
}

// 16.3.7.2: canceled because of the ORB's shutdown, BAD_INV_ORDER; for any other reason, TRANSIENT.
#[test]
fn a_dropped_or_shut_down_request_ends_in_receive_exception() {
    let server = Server::start();
    let (target, log) = client(server.object.ior().clone());
    let mut answer = target.hold_async(1);
    assert!(!is_ready(&mut answer));
    server.probe.await_held(1);
    drop(answer);
    assert_eq!(log.take(), asynchronous_attempt("receive_exception TRANSIENT COMPLETED_MAYBE"));
    let answer = target.hold_async(1);
    server.probe.await_held(2);
    log.take();
    target.as_object().orb().shutdown().unwrap();
    assert_eq!(block_on(answer).unwrap_err().kind(), SystemExceptionKind::BadInvOrder);
    let points =
        [points_of(IN_ORDER, "send_poll"), points_of(IN_REVERSE, "receive_exception BAD_INV_ORDER COMPLETED_MAYBE")]
            .concat();
    assert_eq!(log.take(), [points, points_of(IN_ORDER, "destroy")].concat());
    server.probe.open(1);
}

// 16.3.7.2: a one-way request ends when it is sent, also if it is awaited.
#[test]
fn an_asynchronous_one_way_ends_when_control_returns() {
    let server = Server::start();
    let (target, log) = client(server.object.ior().clone());
    block_on(target.note_async(&[7])).unwrap();
    assert_eq!(log.take(), attempt("receive_other Successful"));
    assert_eq!(target.count().unwrap(), 1);
}

/// The interception points of a request before its upcall.
fn arrival() -> Vec<String> {
    [points_of(IN_ORDER, "receive_request_service_contexts"), points_of(IN_ORDER, "receive_request")].concat()
}

#[test]
fn a_deferred_request_reaches_its_ending_point_with_the_answer() {
    let log = Log::default();
    let server = Server::with(server_recording(Orb::builder(), &log));
    let (servant, deferred) = deferring();
    let object = server.poa.activate(servant).unwrap();
    let orb = Orb::builder().build().unwrap();
    let target: Target = orb.reference(object.ior().clone()).unchecked_narrow();
    let ping = |target: &Target| {
        let target = target.clone();
        in_background(move || target.ping())
    };

    let outcome = ping(&target);
    let call = deferred.recv().unwrap();
    assert_eq!(log.take(), arrival());
    let _replied = call.answer(|call| call.reply(|_| Ok(()))).unwrap();
    outcome.recv().unwrap().unwrap();
    assert_eq!(log.take(), points_of(IN_REVERSE, "send_reply"));
    drop(call);

    let outcome = ping(&target);
    drop(deferred.recv().unwrap());
    assert_eq!(outcome.recv().unwrap().unwrap_err().kind(), SystemExceptionKind::NoResponse);
    assert_eq!(log.take(), [arrival(), points_of(IN_REVERSE, "send_exception NO_RESPONSE COMPLETED_MAYBE")].concat());

    let outcome = ping(&target);
    let call = deferred.recv().unwrap();
    log.plan("C.send_reply", PlannedAction::Raise(SystemException::no_permission(1, spandrel::CompletionStatus::No)));
    let _replied = call.answer(|call| call.reply(|_| Ok(()))).unwrap();
    assert_eq!(outcome.recv().unwrap().unwrap_err().minor(), 1);
    let points = ["B", "A"].map(|name| format!("{name}.send_exception NO_PERMISSION COMPLETED_YES")).to_vec();
    assert_eq!(log.take(), [arrival(), vec!["C.send_reply".to_owned()], points].concat());
}

// 16.3.10.2: cancelled by a CancelRequest, TRANSIENT with minor code 3.
#[test]
fn a_cancelled_request_ends_in_send_exception() {
    let log = Log::default();
    let server = Server::with(server_recording(Orb::builder(), &log));
    let (servant, deferred) = deferring();
    let object = server.poa.activate(servant).unwrap();
    let orb = Orb::builder().build().unwrap();
    let target: Target = orb.reference(object.ior().clone()).unchecked_narrow();
    let mut answer = target.ping_async();
    assert!(!is_ready(&mut answer));
    let call = deferred.recv().unwrap();
    drop(answer);
    wait_until("the cancellation", || call.is_cancelled());
    log.take();
    drop(call);
    assert_eq!(log.take(), points_of(IN_REVERSE, "send_exception TRANSIENT COMPLETED_MAYBE"));
}

// 16.3.9.1, 16.3.9.2: a held request has passed receive_request_service_contexts only.
#[test]
fn a_held_request_has_passed_its_starting_point_only() {
    let log = Log::default();
    let server = Server::with(server_recording(Orb::builder(), &log));
    let held = server.poa.create_poa("Held", None, []).unwrap();
    let object = held.activate(TargetSkeleton::new(Arc::new(Probe::new(&server.orb)))).unwrap();
    let orb = Orb::builder().build().unwrap();
    let target: Target = orb.reference(object.ior().clone()).unchecked_narrow();
    let outcome = in_background(move || target.add(1, 2));
    assert_eq!(log.take_all(3), points_of(IN_ORDER, "receive_request_service_contexts"));
    held.the_poa_manager().activate().unwrap();
    assert_eq!(outcome.recv().unwrap().unwrap(), 3);
    assert_eq!(log.take(), [points_of(IN_ORDER, "receive_request"), points_of(IN_REVERSE, "send_reply")].concat());
    let root = Poa::root(&server.orb).unwrap();
    assert_eq!(root.the_children().len(), 1);
}

#[test]
fn a_forwarding_by_the_servant_ends_in_send_other() {
    let (log, new) = (Log::default(), Server::start());
    let server = Server::with(server_recording(Orb::builder(), &log));
    let other = new.object.clone();
    let object = server.poa.activate(servant(move |_, call| call.forward(&other))).unwrap();
    let (target, sent) = client(object.ior().clone());
    assert_eq!(target.add(1, 2).unwrap(), 3);
    assert_eq!(log.take(), [arrival(), points_of(IN_REVERSE, "send_other LocationForward")].concat());
    assert_eq!(sent.take(), [attempt("receive_other LocationForward"), attempt("receive_reply")].concat());
}
