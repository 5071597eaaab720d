//! Peers that do not read: each kind of call waits according to its policy, and unsent data stays within the
//! buffer limit.

use std::{
    net::TcpStream,
    pin::Pin,
    sync::mpsc,
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use spandrel::{
    CompletionStatus, Orb, OrbBuilder, SystemExceptionKind,
    policy::{SetOverrideType, SyncScopePolicy},
};
use spandrel_orb_tests::{
    Server,
    probe::Target,
    support::{
        TEST_TIMEOUT, block_on, fake_server, in_background, is_ready, kind_and_completion, read_message,
        retry_interrupted,
    },
};

const LIMIT: usize = 64 * 1024;

/// A server that accepts connections and reads nothing, and a target there.
fn server_that_never_reads(builder: OrbBuilder) -> (Orb, Target, mpsc::Receiver<TcpStream>) {
    let (send, accepted) = mpsc::channel();
    let port = fake_server(move |_, stream| drop(send.send(stream)));
    let orb = builder.socket_queues(Some(8192), Some(8192)).connections_per_peer(1).build().unwrap();
    let target = Target::unchecked_narrow(&orb.string_to_object(&format!("corbaloc::127.0.0.1:{port}/x")).unwrap());
    (orb, target, accepted)
}

fn with_sync_scope(target: &Target, scope: SyncScopePolicy, timeout: Duration) -> Target {
    let object = target.as_object().with_timeout(Some(timeout));
    Target::unchecked_narrow(&object.set_policy_overrides(&[scope.into()], SetOverrideType::AddOverride).unwrap())
}

#[test]
fn a_one_way_with_transport_waits_until_its_timeout() {
    let (_orb, target, _accepted) = server_that_never_reads(Orb::builder());
    let timeout = Duration::from_millis(150);
    let target = with_sync_scope(&target, SyncScopePolicy::WithTransport, timeout);
    let begun = Instant::now();
    let (full, before) = loop {
        let before = Instant::now();
        if let Err(error) = target.note(&[7; 50_000]) {
            break (error, before);
        }
        assert!(begun.elapsed() < TEST_TIMEOUT, "the transport accepted all data");
    };
    assert_eq!(kind_and_completion(&full), (SystemExceptionKind::Timeout, CompletionStatus::No), "{full}");
    assert!(before.elapsed() >= timeout);
}

#[test]
fn a_one_way_with_server_or_with_target_waits_for_the_reply() {
    let server = Server::start();
    let orb = Orb::builder().build().unwrap();
    let target = Target::unchecked_narrow(&orb.string_to_object(&server.ior()).unwrap());
    for (round, scope) in [(1, SyncScopePolicy::WithServer), (2, SyncScopePolicy::WithTarget)] {
        with_sync_scope(&target, scope, TEST_TIMEOUT).note(&[7]).unwrap();
        if scope == SyncScopePolicy::WithTarget {
            assert_eq!(server.probe.counted(), round);
        }
    }
    let (_orb, server_that_never_reads, _accepted) = server_that_never_reads(Orb::builder());
    for scope in [SyncScopePolicy::WithServer, SyncScopePolicy::WithTarget] {
        let error =
            with_sync_scope(&server_that_never_reads, scope, Duration::from_millis(100)).note(&[7]).unwrap_err();
        assert_eq!(kind_and_completion(&error), (SystemExceptionKind::Timeout, CompletionStatus::Maybe), "{error}");
    }
}

#[test]
fn asynchronous_calls_beyond_the_buffer_limit_are_refused() {
    let (_orb, target, accepted) = server_that_never_reads(Orb::builder().buffer_limit(LIMIT));
    // One request is always accepted, whatever its length.
    let mut first = target.echo_octets_async(&vec![7; 2 << 20]);
    assert!(!is_ready(&mut first));
    let mut stream = accepted.recv_timeout(TEST_TIMEOUT).unwrap();
    // Once the first octet has arrived, no request waits for the connection.
    retry_interrupted(|| stream.peek(&mut [0])).unwrap();
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
    let text = refused.to_string();
    assert!(text.contains("does not read") && text.contains("65536 (`-ORBBufferLimit`)"), "{text}");
    assert!(waiting.len() <= 8, "{} requests of 10,000 octets wait", waiting.len());
    // Once the server reads again, all accepted requests arrive.
    let count = waiting.len() + 1;
    for _ in 0..count {
        read_message(&mut stream).unwrap();
    }
    assert!(waiting.iter_mut().all(|call| !is_ready(call)), "no call was answered");
}

#[test]
fn two_way_calls_behind_a_full_connection_time_out() {
    let (_orb, target, accepted) = server_that_never_reads(Orb::builder());
    let long = {
        let target = with_sync_scope(&target, SyncScopePolicy::WithTransport, Duration::from_millis(600));
        in_background(move || target.note(&vec![7; 8 << 20]))
    };
    // The one-way request holds the connection and is writing.
    let stream = accepted.recv_timeout(TEST_TIMEOUT).unwrap();
    retry_interrupted(|| stream.peek(&mut [0])).unwrap();
    let limited = with_sync_scope(&target, SyncScopePolicy::WithTransport, Duration::from_millis(100));
    let before = Instant::now();
    let error = limited.ping().unwrap_err();
    assert_eq!(error.kind(), SystemExceptionKind::Timeout, "{error}");
    assert!(before.elapsed() < TEST_TIMEOUT);
    assert_eq!(long.recv_timeout(TEST_TIMEOUT).unwrap().unwrap_err().kind(), SystemExceptionKind::Timeout);
}

/// Sends one-ways without waiting until the server takes no more data. Behind those that the system has taken, the ORB
/// holds a megabyte: on a loaded machine the system may have room again a moment later.
fn fill(target: &Target) -> usize {
    let object = target.as_object();
    let buffered = object.set_policy_overrides(&[SyncScopePolicy::None.into()], SetOverrideType::AddOverride).unwrap();
    let buffered = Target::unchecked_narrow(&buffered);
    let begun = Instant::now();
    let mut sent = 0;
    while !object.is_flow_controlled().unwrap() {
        buffered.note(&[7; 4_000]).unwrap();
        sent += 1;
        assert!(begun.elapsed() < TEST_TIMEOUT, "the transport accepts all data");
    }
    for _ in 0..250 {
        buffered.note(&[7; 4_000]).unwrap();
    }
    sent + 250
}

#[test]
fn a_caller_learns_that_its_server_does_not_read_and_when_it_reads_again() {
    let (orb, target, accepted) = server_that_never_reads(Orb::builder());
    let object = target.as_object();
    assert!(!object.is_flow_controlled().unwrap(), "nothing was sent yet");
    block_on(object.flow_resumed()).unwrap();
    let sent = fill(&target);
    // An asynchronous call is queued behind the one-ways.
    let queued = target.echo_octets_async(&[7; 100]);
    let (called, callback) = mpsc::channel();
    object.on_flow_resumed(move |outcome| called.send(outcome).unwrap()).unwrap();
    let mut resumed = Box::pin(object.flow_resumed());
    assert!(!is_ready(&mut resumed));
    assert!(callback.try_recv().is_err(), "the server has read nothing");
    let mut stream = accepted.recv_timeout(TEST_TIMEOUT).unwrap();
    let reader = in_background(move || {
        let messages = sent + 1;
        (0..messages).for_each(|_| drop(read_message(&mut stream).unwrap()));
        stream
    });
    block_on(resumed).unwrap();
    callback.recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
    // Not one message is lost.
    let stream = reader.recv_timeout(TEST_TIMEOUT).unwrap();
    assert!(!object.is_flow_controlled().unwrap());
    drop((queued, stream, orb));
}

#[test]
fn the_end_of_the_connection_ends_the_wait_for_its_server() {
    let (_orb, target, accepted) = server_that_never_reads(Orb::builder());
    let object = target.as_object();
    fill(&target);
    let mut resumed = Box::pin(object.flow_resumed());
    assert!(!is_ready(&mut resumed));
    drop(accepted.recv_timeout(TEST_TIMEOUT).unwrap());
    block_on(resumed).unwrap();
    assert!(!object.is_flow_controlled().unwrap(), "the next call opens a connection");
}

#[test]
fn shutdown_ends_the_wait_for_a_server() {
    let (orb, target, _accepted) = server_that_never_reads(Orb::builder());
    let object = target.as_object().clone();
    fill(&target);
    let mut resumed = Box::pin(object.flow_resumed());
    assert!(!is_ready(&mut resumed));
    orb.shutdown().unwrap();
    let error = block_on(resumed).unwrap_err();
    assert_eq!(error.kind(), SystemExceptionKind::BadInvOrder, "{error}");
    assert_eq!(object.is_flow_controlled().unwrap_err().kind(), SystemExceptionKind::BadInvOrder);
}
