//! A peer that does not read: each kind of call waits as long as it says, and what waits takes no more memory than it may.

use std::{
    net::TcpStream,
    pin::Pin,
    sync::mpsc,
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use spandrel::{
    CompletionStatus, Orb, OrbBuilder, SystemExceptionKind,
    policies::{SetOverrideType, SyncScopePolicy},
};
use spandrel_orb_tests::{
    Server,
    probe::Target,
    support::{PATIENCE, in_background, is_ready, kind_and_completion, pretend, read_message},
};

const LIMIT: usize = 64 * 1024;

/// A peer that accepts and reads nothing, and a target there.
fn deaf(builder: OrbBuilder) -> (Orb, Target, mpsc::Receiver<TcpStream>) {
    let (send, accepted) = mpsc::channel();
    let port = pretend(move |_, stream| drop(send.send(stream)));
    let orb = builder.socket_queues(Some(8192), Some(8192)).connections_per_peer(1).build().unwrap();
    let target = Target::unchecked_narrow(&orb.string_to_object(&format!("corbaloc::127.0.0.1:{port}/x")).unwrap());
    (orb, target, accepted)
}

fn scoped(target: &Target, scope: SyncScopePolicy, timeout: Duration) -> Target {
    let object = target.as_object().with_timeout(Some(timeout));
    Target::unchecked_narrow(&object.set_policy_overrides(&[scope.into()], SetOverrideType::AddOverride).unwrap())
}

#[test]
fn a_one_way_waits_for_the_transport_and_no_longer_than_its_time() {
    let (_orb, target, _accepted) = deaf(Orb::builder());
    let timeout = Duration::from_millis(150);
    let target = scoped(&target, SyncScopePolicy::WithTransport, timeout);
    let begun = Instant::now();
    let (full, before) = loop {
        let before = Instant::now();
        if let Err(error) = target.note(&[7; 50_000]) {
            break (error, before);
        }
        assert!(begun.elapsed() < PATIENCE, "everything was taken");
    };
    assert_eq!(kind_and_completion(&full), (SystemExceptionKind::Timeout, CompletionStatus::No), "{full}");
    assert!(before.elapsed() >= timeout);
}

#[test]
fn one_that_waits_for_the_server_or_its_target_waits_for_the_answer() {
    let server = Server::start();
    let orb = Orb::builder().build().unwrap();
    let target = Target::unchecked_narrow(&orb.string_to_object(&server.ior()).unwrap());
    for (round, scope) in [(1, SyncScopePolicy::WithServer), (2, SyncScopePolicy::WithTarget)] {
        scoped(&target, scope, PATIENCE).note(&[7]).unwrap();
        if scope == SyncScopePolicy::WithTarget {
            assert_eq!(server.probe.counted(), round);
        }
    }
    let (_orb, deaf, _accepted) = deaf(Orb::builder());
    for scope in [SyncScopePolicy::WithServer, SyncScopePolicy::WithTarget] {
        let error = scoped(&deaf, scope, Duration::from_millis(100)).note(&[7]).unwrap_err();
        assert_eq!(kind_and_completion(&error), (SystemExceptionKind::Timeout, CompletionStatus::Maybe), "{error}");
    }
}

#[test]
fn asynchronous_calls_are_refused_when_too_much_waits_to_be_written() {
    let (_orb, target, accepted) = deaf(Orb::builder().buffer_limit(LIMIT));
    // One request is always taken, however long it is.
    let mut first = target.echo_octets_async(&vec![7; 2 << 20]);
    assert!(!is_ready(&mut first));
    let mut stream = accepted.recv_timeout(PATIENCE).unwrap();
    // Once it is begun, nothing waits for the connection to be opened.
    stream.peek(&mut [0]).unwrap();
    let mut waiting = Vec::new();
    let refused = loop {
        let mut call = target.echo_octets_async(&[7; 10_000]);
        if let Poll::Ready(outcome) = Pin::new(&mut call).poll(&mut Context::from_waker(Waker::noop())) {
            break outcome.unwrap_err();
        }
        waiting.push(call);
        assert!(waiting.len() < 1000, "there is no limit");
    };
    assert_eq!(kind_and_completion(&refused), (SystemExceptionKind::Transient, CompletionStatus::No), "{refused}");
    let words = refused.to_string();
    assert!(words.contains("does not read") && words.contains("65536 (`-ORBBufferLimit`)"), "{words}");
    assert!(waiting.len() <= 8, "{} of 10,000 octets wait", waiting.len());
    // It reads on, and all that was taken comes.
    let count = waiting.len() + 1;
    for _ in 0..count {
        read_message(&mut stream).unwrap();
    }
    assert!(waiting.iter_mut().all(|call| !is_ready(call)), "nobody has answered");
}

#[test]
fn two_ways_behind_a_full_connection_end_in_time() {
    let (_orb, target, accepted) = deaf(Orb::builder());
    let long = {
        let target = scoped(&target, SyncScopePolicy::WithTransport, Duration::from_millis(600));
        in_background(move || target.note(&vec![7; 8 << 20]))
    };
    // It has the connection, and writes.
    let stream = accepted.recv_timeout(PATIENCE).unwrap();
    stream.peek(&mut [0]).unwrap();
    let hurried = scoped(&target, SyncScopePolicy::WithTransport, Duration::from_millis(100));
    let before = Instant::now();
    let error = hurried.ping().unwrap_err();
    assert_eq!(error.kind(), SystemExceptionKind::Timeout, "{error}");
    assert!(before.elapsed() < PATIENCE);
    assert_eq!(long.recv_timeout(PATIENCE).unwrap().unwrap_err().kind(), SystemExceptionKind::Timeout);
}
