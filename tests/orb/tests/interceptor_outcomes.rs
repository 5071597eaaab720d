//! Interceptors when requests do not take the usual way: other profiles, lost connections, time-outs, asynchronous calls that are
//! forwarded or given up, servants that answer later (CORBA 3.3 Part 1, 16.3.6, 16.3.7, 16.3.10).

use std::{io::Write, net::TcpStream, sync::Arc};

use spandrel::{IiopProfile, Ior, ObjectRef, Orb, Poa, SystemException, SystemExceptionKind};
use spandrel_orb_tests::{
    Probe, Server,
    probe::{Target, TargetSkeleton},
    recorder::{Act, Log, client_recording, server_recording},
    support::{ClosedPort, block_on, comes, deferring, in_background, is_ready, late, pretend, read_message, servant},
};

const UP: [&str; 3] = ["A", "B", "C"];
const DOWN: [&str; 3] = ["C", "B", "A"];

/// The same point of the three, in this order.
fn all(order: [&str; 3], point: &str) -> Vec<String> {
    order.iter().map(|name| format!("{name}.{point}")).collect()
}

/// A client with three interceptors.
fn client(object: Ior) -> (Target, Log) {
    let log = Log::default();
    let orb = client_recording(Orb::builder(), &log);
    (orb.reference(object).unchecked_narrow(), log)
}

/// The reference with its server's port replaced, or preceded, by another.
fn at_port(object: &ObjectRef, port: u16, keeps: bool) -> Ior {
    let mut ior = object.ior().clone();
    let profile = spandrel_orb_tests::support::iiop_alone(&ior.profiles[0]);
    let other = IiopProfile { port, ..profile }.encode().unwrap();
    ior.profiles = if keeps { vec![other, ior.profiles.remove(0)] } else { vec![other] };
    ior
}

/// The points of a try that comes to this.
fn tried(ending: &str) -> Vec<String> {
    [all(UP, "send_request"), all(DOWN, ending)].concat()
}

/// The points of an asynchronous try that comes to this.
fn tried_async(ending: &str) -> Vec<String> {
    [tried("receive_other Successful"), all(UP, "send_poll"), all(DOWN, ending)].concat()
}

// 16.3.6.5, 16.3.12.10: a try at another profile is a new request; the first one ends in TRANSPORT_RETRY.
#[test]
fn each_profile_is_tried_by_a_request_of_its_own() {
    let server = Server::start();
    let closed = ClosedPort::reserve();
    let (target, log) = client(at_port(&server.object, closed.port(), true));
    assert_eq!(target.add(1, 2).unwrap(), 3);
    assert_eq!(log.take(), [tried("receive_other TransportRetry"), tried("receive_reply")].concat());
    let (target, log) = client(at_port(&server.object, closed.port(), true));
    assert_eq!(block_on(target.add_async(1, 2)).unwrap(), 3);
    let expected = [tried_async("receive_other TransportRetry"), tried_async("receive_reply")].concat();
    assert_eq!(log.take(), expected);
}

#[test]
fn a_server_that_is_not_there_is_an_exception() {
    let server = Server::start();
    let closed = ClosedPort::reserve();
    let (target, log) = client(at_port(&server.object, closed.port(), false));
    assert_eq!(target.ping().unwrap_err().kind(), SystemExceptionKind::Transient);
    assert_eq!(log.take(), tried("receive_exception TRANSIENT COMPLETED_NO"));
    assert_eq!(block_on(target.ping_async()).unwrap_err().kind(), SystemExceptionKind::Transient);
    assert_eq!(log.take(), tried_async("receive_exception TRANSIENT COMPLETED_NO"));
}

// 16.3.6.4: where the request certainly was not carried out it may go elsewhere.
#[test]
fn an_interceptor_finds_another_server() {
    let server = Server::start();
    let closed = ClosedPort::reserve();
    let (target, log) = client(at_port(&server.object, closed.port(), false));
    log.plan("A.receive_exception", Act::Forward(server.object.clone()));
    assert_eq!(target.add(1, 2).unwrap(), 3);
    assert_eq!(log.take(), [tried("receive_exception TRANSIENT COMPLETED_NO"), tried("receive_reply")].concat());
    let (target, log) = client(at_port(&server.object, closed.port(), false));
    log.plan("A.receive_exception", Act::Forward(server.object.clone()));
    assert_eq!(block_on(target.add_async(1, 2)).unwrap(), 3);
    let expected = [tried_async("receive_exception TRANSIENT COMPLETED_NO"), tried_async("receive_reply")].concat();
    assert_eq!(log.take(), expected);
}

/// A server before the real one: it closes its first connection in an orderly way instead of answering the second request.
fn closing_once(real: u16) -> u16 {
    pretend(move |count, mut stream| {
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
fn a_connection_that_is_closed_under_a_request_is_a_retry() {
    let server = Server::start();
    let (target, log) = client(at_port(&server.object, closing_once(server.port()), false));
    target.ping().unwrap();
    assert_eq!(log.take(), tried("receive_reply"));
    assert_eq!(target.add(1, 2).unwrap(), 3);
    assert_eq!(log.take(), [tried("receive_other TransportRetry"), tried("receive_reply")].concat());
}

#[test]
fn a_time_out_is_an_exception() {
    let server = Server::start();
    let (target, log) = client(server.object.ior().clone());
    // Connected before time counts.
    target.ping().unwrap();
    block_on(target.ping_async()).unwrap();
    log.take();
    let error = late(&target, |short| {
        log.take();
        short.hold(1)
    });
    assert_eq!(error.kind(), SystemExceptionKind::Timeout);
    assert_eq!(log.take(), tried("receive_exception TIMEOUT COMPLETED_MAYBE"));
    let error = late(&target, |short| {
        log.take();
        block_on(short.hold_async(1))
    });
    assert_eq!(error.kind(), SystemExceptionKind::Timeout);
    assert_eq!(log.take(), tried_async("receive_exception TIMEOUT COMPLETED_MAYBE"));
    server.probe.open(1);
}

#[test]
fn an_asynchronous_request_is_forwarded_by_another() {
    let (old, new) = (Server::start(), Server::start());
    let (target, log) = client(old.object.ior().clone());
    old.poa.forward(&old.object, old.orb.reference(new.object.ior().clone())).unwrap();
    assert_eq!(block_on(target.add_async(1, 2)).unwrap(), 3);
    let expected = [tried_async("receive_other LocationForward"), tried_async("receive_reply")].concat();
    assert_eq!(log.take(), expected);
    log.plan("B.send_request", Act::Forward(old.client().as_object().clone()));
    assert_eq!(block_on(target.add_async(1, 2)).unwrap(), 3);
    let diverted = ["A.send_request", "B.send_request", "A.receive_other LocationForward"].map(str::to_owned).to_vec();
    let expected = [diverted, tried_async("receive_other LocationForward"), tried_async("receive_reply")].concat();
    assert_eq!(log.take(), expected);
}

// 16.3.7.2: canceled because of the ORB's shutdown, BAD_INV_ORDER; for any other reason, TRANSIENT.
#[test]
fn a_request_that_is_given_up_ends_in_an_exception() {
    let server = Server::start();
    let (target, log) = client(server.object.ior().clone());
    let mut answer = target.hold_async(1);
    assert!(!is_ready(&mut answer));
    server.probe.await_held(1);
    drop(answer);
    assert_eq!(log.take(), tried_async("receive_exception TRANSIENT COMPLETED_MAYBE"));
    let answer = target.hold_async(1);
    server.probe.await_held(2);
    log.take();
    target.as_object().orb().shutdown(true).unwrap();
    assert_eq!(block_on(answer).unwrap_err().kind(), SystemExceptionKind::BadInvOrder);
    let told = [all(UP, "send_poll"), all(DOWN, "receive_exception BAD_INV_ORDER COMPLETED_MAYBE")].concat();
    assert_eq!(log.take(), [told, all(UP, "destroy")].concat());
    server.probe.open(1);
}

// 16.3.7.2: one-ways are over when they are sent, whoever waits for that.
#[test]
fn an_asynchronous_one_way_ends_when_control_returns() {
    let server = Server::start();
    let (target, log) = client(server.object.ior().clone());
    block_on(target.note_async(&[7])).unwrap();
    assert_eq!(log.take(), tried("receive_other Successful"));
    assert_eq!(target.count().unwrap(), 1);
}

/// The points of a request until its servant is called.
fn arrival() -> Vec<String> {
    [all(UP, "receive_request_service_contexts"), all(UP, "receive_request")].concat()
}

#[test]
fn a_request_that_is_answered_later_ends_then() {
    let log = Log::default();
    let server = Server::with(server_recording(Orb::builder(), &log));
    let (servant, deferred) = deferring();
    let object = server.poa.activate(servant).unwrap();
    let orb = Orb::builder().build().unwrap();
    let target: Target = orb.reference(object.ior().clone()).unchecked_narrow();
    let ask = |target: &Target| {
        let target = target.clone();
        in_background(move || target.ping())
    };

    let outcome = ask(&target);
    let call = deferred.recv().unwrap();
    assert_eq!(log.take(), arrival());
    let _replied = call.answer(|call| call.reply(|_| Ok(()))).unwrap();
    outcome.recv().unwrap().unwrap();
    assert_eq!(log.take(), all(DOWN, "send_reply"));
    drop(call);

    let outcome = ask(&target);
    drop(deferred.recv().unwrap());
    assert_eq!(outcome.recv().unwrap().unwrap_err().kind(), SystemExceptionKind::NoResponse);
    assert_eq!(log.take(), [arrival(), all(DOWN, "send_exception NO_RESPONSE COMPLETED_MAYBE")].concat());

    let outcome = ask(&target);
    let call = deferred.recv().unwrap();
    log.plan("C.send_reply", Act::Raise(SystemException::no_permission(1, spandrel::CompletionStatus::No)));
    let _replied = call.answer(|call| call.reply(|_| Ok(()))).unwrap();
    assert_eq!(outcome.recv().unwrap().unwrap_err().minor(), 1);
    let told = ["B", "A"].map(|name| format!("{name}.send_exception NO_PERMISSION COMPLETED_YES")).to_vec();
    assert_eq!(log.take(), [arrival(), vec!["C.send_reply".to_owned()], told].concat());
}

// 16.3.10.2: canceled (a GIOP cancel message), TRANSIENT with minor code 3.
#[test]
fn a_request_that_the_client_cancels_ends_in_an_exception() {
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
    comes("the cancellation", || call.is_cancelled());
    log.take();
    drop(call);
    assert_eq!(log.take(), all(DOWN, "send_exception TRANSIENT COMPLETED_MAYBE"));
}

// 16.3.9.1, 16.3.9.2: what an adapter holds back has arrived, and its servant has not been found yet.
#[test]
fn a_request_that_is_held_back_has_arrived() {
    let log = Log::default();
    let server = Server::with(server_recording(Orb::builder(), &log));
    let held = server.poa.create_poa("Held", None, []).unwrap();
    let object = held.activate(TargetSkeleton::new(Arc::new(Probe::new(&server.orb)))).unwrap();
    let orb = Orb::builder().build().unwrap();
    let target: Target = orb.reference(object.ior().clone()).unchecked_narrow();
    let outcome = in_background(move || target.add(1, 2));
    assert_eq!(log.take_all(3), all(UP, "receive_request_service_contexts"));
    held.the_poa_manager().activate().unwrap();
    assert_eq!(outcome.recv().unwrap().unwrap(), 3);
    assert_eq!(log.take(), [all(UP, "receive_request"), all(DOWN, "send_reply")].concat());
    let root = Poa::root(&server.orb).unwrap();
    assert_eq!(root.the_children().len(), 1);
}

#[test]
fn a_servant_that_forwards_ends_in_send_other() {
    let (log, new) = (Log::default(), Server::start());
    let server = Server::with(server_recording(Orb::builder(), &log));
    let other = new.object.clone();
    let object = server.poa.activate(servant(move |_, call| call.forward(&other))).unwrap();
    let (target, sent) = client(object.ior().clone());
    assert_eq!(target.add(1, 2).unwrap(), 3);
    assert_eq!(log.take(), [arrival(), all(DOWN, "send_other LocationForward")].concat());
    assert_eq!(sent.take(), [tried("receive_other LocationForward"), tried("receive_reply")].concat());
}
