//! Retries: a request is resent only if it was certainly not executed, for every kind of call.

use spandrel::poa::{EtherealizeObjects, WaitForCompletion};
use std::{
    io::Write,
    net::{Shutdown, SocketAddr, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
};

use socket2::{Domain, Socket, Type};
use spandrel::{
    CompletionStatus, Orb, OrbBuilder, SystemException, SystemExceptionKind,
    cdr::GiopVersion,
    diagnostics::statistics::Event,
    minor,
    policy::{RebindPolicy, SetOverrideType, SyncScopePolicy},
    types::Located,
};
use spandrel_orb_tests::{
    Server,
    probe::Target,
    scripted::ior_at,
    support::{
        TEST_TIMEOUT, block_on, call_until_timeout, fake_server, in_background, kind_and_completion, read_message,
    },
};

const CLOSE_CONNECTION: &[u8] = b"GIOP\x01\x02\x01\x05\x00\x00\x00\x00";
const MESSAGE_ERROR: &[u8] = b"GIOP\x01\x02\x01\x06\x00\x00\x00\x00";

/// The end of a connection after its first reply: closed silently, or with this message instead of the second
/// reply.
#[derive(Clone, Copy, Debug)]
enum ConnectionEnd {
    Silence,
    WithMessage(&'static [u8]),
}

/// A proxy that ends its first connection when the second request has been read; returns the number of
/// requests read, too.
fn proxy_ending_first_connection(server: &Server, end: ConnectionEnd) -> (u16, Arc<AtomicUsize>) {
    let real = server.port();
    let read = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&read);
    let port = fake_server(move |connection, mut stream| {
        let read = Arc::clone(&counter);
        std::thread::spawn(move || {
            let mut upstream = TcpStream::connect(("127.0.0.1", real)).unwrap();
            for turn in 0.. {
                let Ok(request) = read_message(&mut stream) else { return };
                read.fetch_add(1, Ordering::SeqCst);
                if (connection, turn) == (0, 1) {
                    if let ConnectionEnd::WithMessage(last) = end {
                        stream.write_all(last).unwrap();
                    }
                    // All octets have been read, so the client sees an end of file and not a reset.
                    stream.shutdown(Shutdown::Write).unwrap();
                    let _ = read_message(&mut stream);
                    return;
                }
                upstream.write_all(&request).unwrap();
                stream.write_all(&read_message(&mut upstream).unwrap()).unwrap();
            }
        });
    });
    (port, read)
}

/// The server's target at the proxy's port.
fn target_at(server: &Server, port: u16, builder: OrbBuilder) -> (Orb, Target) {
    let profile = spandrel::types::IiopProfile::decode(&server.object.ior().profiles[0]).unwrap().unwrap();
    let mut ior = server.object.ior().clone();
    ior.profiles = vec![spandrel::types::IiopProfile { port, ..profile }.encode().unwrap()];
    let orb = builder.build().unwrap();
    let target = Target::unchecked_narrow(&orb.reference(ior));
    (orb, target)
}

/// A kind of call.
type CallKind = fn(&Target) -> Result<(), SystemException>;

fn one_way_with_target(target: &Target) -> Result<(), SystemException> {
    let policies = [SyncScopePolicy::WithTarget.into()];
    let object = target.as_object().set_policy_overrides(&policies, SetOverrideType::AddOverride).unwrap();
    Target::unchecked_narrow(&object).note(&[7])
}

fn locate(target: &Target) -> Result<(), SystemException> {
    target.as_object().locate().map(|located| assert!(matches!(located, Located::Here)))
}

const CALL_KINDS: [(&str, CallKind); 4] = [
    ("synchronous", |target| target.add(20, 22).map(|sum| assert_eq!(sum, 42))),
    ("asynchronous", |target| block_on(target.add_async(20, 22)).map(|sum| assert_eq!(sum, 42))),
    ("one-way", one_way_with_target),
    ("locate", locate),
];

#[test]
fn after_close_connection_the_request_is_resent_once() {
    for (kind, call) in CALL_KINDS {
        let server = Server::start();
        let (port, read) = proxy_ending_first_connection(&server, ConnectionEnd::WithMessage(CLOSE_CONNECTION));
        let (orb, target) = target_at(&server, port, Orb::builder());
        target.add(1, 1).unwrap();
        call(&target).unwrap_or_else(|error| panic!("{kind}: {error}"));
        assert_eq!(read.load(Ordering::SeqCst), 3, "{kind}: the first request, and the second one twice");
        let statistics = orb.statistics();
        assert_eq!((statistics.count(Event::Retried), statistics.count(Event::Reconnected)), (1, 1), "{kind}");
    }
}

#[test]
fn after_an_end_of_file_the_call_is_completed_maybe_and_not_resent() {
    for (kind, call) in CALL_KINDS {
        let server = Server::start();
        let (port, read) = proxy_ending_first_connection(&server, ConnectionEnd::Silence);
        let (orb, target) = target_at(&server, port, Orb::builder());
        target.add(1, 1).unwrap();
        let error = call(&target).unwrap_err();
        assert_eq!(
            kind_and_completion(&error),
            (SystemExceptionKind::CommFailure, CompletionStatus::Maybe),
            "{kind}: {error}"
        );
        assert_eq!((read.load(Ordering::SeqCst), orb.statistics().count(Event::Retried)), (2, 0), "{kind}");
        call(&target).unwrap_or_else(|error| panic!("{kind}: {error}"));
    }
}

#[test]
fn connections_closed_before_any_reply_are_reported_as_transient() {
    for (kind, call) in CALL_KINDS {
        let port = fake_server(|_, mut stream| {
            stream.write_all(CLOSE_CONNECTION).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            std::thread::spawn(move || while read_message(&mut stream).is_ok() {});
        });
        let (_orb, target) = target_at(&Server::start(), port, Orb::builder());
        let error = call(&target).unwrap_err();
        let expected = (SystemExceptionKind::Transient, CompletionStatus::No);
        assert_eq!(kind_and_completion(&error), expected, "{kind}: {error}");
        assert!(error.to_string().contains("it accepts no more, or is about to end"), "{kind}: {error}");
        let below = std::error::Error::source(&error).unwrap().to_string();
        assert!(below.contains(&format!(":{port} closed the connection in an orderly way")), "{kind}: {below}");
    }
}

#[test]
fn after_message_error_the_request_is_not_resent() {
    for (kind, call) in CALL_KINDS {
        let server = Server::start();
        let (port, read) = proxy_ending_first_connection(&server, ConnectionEnd::WithMessage(MESSAGE_ERROR));
        let (_orb, target) = target_at(&server, port, Orb::builder());
        target.add(1, 1).unwrap();
        let error = call(&target).unwrap_err();
        assert_eq!(error.completed(), CompletionStatus::Maybe, "{kind}: {error}");
        assert!(error.to_string().contains("MessageError"), "{kind}: {error}");
        assert_eq!(read.load(Ordering::SeqCst), 2, "{kind}");
    }
}

#[test]
fn a_transient_exception_of_the_only_server_goes_to_the_caller() {
    let server = Server::start();
    server.poa.the_poa_manager().discard_requests(WaitForCompletion::Yes).unwrap();
    for (kind, call) in &CALL_KINDS {
        let orb = Orb::builder().build().unwrap();
        let target = Target::unchecked_narrow(&orb.string_to_object(&server.ior()).unwrap());
        let error = call(&target).unwrap_err();
        assert_eq!(
            kind_and_completion(&error),
            (SystemExceptionKind::Transient, CompletionStatus::No),
            "{kind}: {error}"
        );
        assert_eq!(orb.statistics().count(Event::Retried), 0, "{kind}");
    }
    server.poa.the_poa_manager().activate().unwrap();
}

#[test]
fn a_server_that_closes_each_connection_gets_two_attempts() {
    let read = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&read);
    let port = fake_server(move |_, mut stream| {
        let read = Arc::clone(&counter);
        std::thread::spawn(move || {
            while read_message(&mut stream).is_ok() {
                read.fetch_add(1, Ordering::SeqCst);
                stream.write_all(CLOSE_CONNECTION).unwrap();
            }
        });
    });
    let orb = Orb::builder().build().unwrap();
    let target = Target::unchecked_narrow(&orb.string_to_object(&format!("corbaloc::127.0.0.1:{port}/x")).unwrap());
    let error = target.ping().unwrap_err();
    assert_eq!(error.completed(), CompletionStatus::No, "{error}");
    assert!((1..=2).contains(&read.load(Ordering::SeqCst)));
}

#[test]
fn under_no_reconnect_an_idle_close_raises_rebind() {
    let server = Server::start();
    let (port, read) = proxy_ending_first_connection(&server, ConnectionEnd::WithMessage(CLOSE_CONNECTION));
    let (orb, target) = target_at(&server, port, Orb::builder());
    let policies = [RebindPolicy::NoReconnect.into()];
    let object = target.as_object().set_policy_overrides(&policies, SetOverrideType::SetOverride).unwrap();
    let target = Target::unchecked_narrow(&object);
    // The first call of an unbound reference may connect.
    target.add(1, 1).unwrap();
    let error = target.add(1, 1).unwrap_err();
    assert_eq!(kind_and_completion(&error), (SystemExceptionKind::Rebind, CompletionStatus::No), "{error}");
    assert_eq!(read.load(Ordering::SeqCst), 2);
    let again = target.add(1, 1).unwrap_err();
    assert_eq!(again.kind(), SystemExceptionKind::Rebind, "{again}");
    // validate_connection may reconnect explicitly.
    assert!(object.validate_connection().unwrap().0);
    target.add(1, 1).unwrap();
    assert_eq!(orb.statistics().count(Event::Retried), 0);
}

#[test]
fn a_connection_closed_for_another_calls_timeout_is_replaced() {
    let server = Server::start();
    let orb = Orb::builder().connections_per_peer(1).build().unwrap();
    let object = orb.string_to_object(&server.ior()).unwrap();
    let (send, encoding) = mpsc::channel();
    let (release, released) = mpsc::channel();
    let first = {
        let object = object.clone();
        in_background(move || {
            // The arguments are encoded once a connection is leased, before anything is sent.
            let write = |_: &mut spandrel_cdr::Encoder<'static>| {
                send.send(()).unwrap();
                released.recv().unwrap();
                Ok(())
            };
            object.invoke::<(), SystemException>("ping", write, |_| Ok(()))
        })
    };
    encoding.recv_timeout(TEST_TIMEOUT).unwrap();
    let error = call_until_timeout(&Target::unchecked_narrow(&object), |limited| limited.hold(1));
    assert_eq!(kind_and_completion(&error), (SystemExceptionKind::Timeout, CompletionStatus::Maybe), "{error}");
    // Once for each connection.
    release.send(()).unwrap();
    release.send(()).unwrap();
    first.recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
    assert_eq!(orb.statistics().count(Event::Retried), 1);
    server.probe.open(1);
}

/// A reference with the profiles of both servers.
fn target_of_both(first: &Server, second: &Server, orb: &Orb) -> Target {
    let mut ior = first.object.ior().clone();
    ior.profiles.extend(second.object.ior().profiles.iter().cloned());
    Target::unchecked_narrow(&orb.reference(ior))
}

#[test]
fn a_refused_request_is_tried_once_at_the_next_address() {
    for (kind, call) in &CALL_KINDS {
        let (first, second) = (Server::start(), Server::start());
        first.poa.the_poa_manager().discard_requests(WaitForCompletion::Yes).unwrap();
        let orb = Orb::builder().build().unwrap();
        let target = target_of_both(&first, &second, &orb);
        call(&target).unwrap_or_else(|error| panic!("{kind}: {error}"));
        assert_eq!(orb.statistics().count(Event::Retried), 1, "{kind}");
        target.ping().unwrap();
        let before = orb.statistics().count(Event::Retried);
        call(&target).unwrap_or_else(|error| panic!("{kind}: {error}"));
        // One-ways use a reference of their own here.
        let is_known = *kind != "one-way";
        let retried = orb.statistics().count(Event::Retried) - before;
        assert_eq!(retried, u64::from(!is_known), "{kind}: the server that answered before is tried first");
        let before = before + retried;
        second.poa.the_poa_manager().discard_requests(WaitForCompletion::Yes).unwrap();
        let error = call(&target).unwrap_err();
        assert_eq!(
            kind_and_completion(&error),
            (SystemExceptionKind::Transient, CompletionStatus::No),
            "{kind}: {error}"
        );
        assert_eq!(orb.statistics().count(Event::Retried), before + 1, "{kind}: one attempt at each server");
    }
}

#[test]
fn a_servers_exception_precedes_the_next_addresss_connection_failure() {
    let first = Server::start();
    first.poa.the_poa_manager().discard_requests(WaitForCompletion::Yes).unwrap();
    // Its port refuses connections, and no other program can take it.
    let bound = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    bound.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    let port = bound.local_addr().unwrap().as_socket().unwrap().port();
    let mut ior = first.object.ior().clone();
    ior.profiles.extend(ior_at(port, GiopVersion::V1_2, "key").profiles);
    let orb = Orb::builder().build().unwrap();
    let target = Target::unchecked_narrow(&orb.reference(ior));
    for (kind, call) in &CALL_KINDS {
        let error = call(&target).unwrap_err();
        assert_eq!(error.minor(), minor::REQUEST_DISCARDED, "{kind}: {error}");
    }
}

#[test]
fn object_not_exist_is_not_retried_at_other_addresses() {
    let (first, second) = (Server::start(), Server::start());
    let orb = Orb::builder().build().unwrap();
    first.poa.deactivate_object(&first.poa.reference_to_id(&first.object).unwrap()).unwrap();
    let target = target_of_both(&first, &second, &orb);
    for (kind, call) in &CALL_KINDS[..3] {
        let error = call(&target).unwrap_err();
        assert_eq!(error.kind(), SystemExceptionKind::ObjectNotExist, "{kind}: {error}");
    }
    assert_eq!(orb.statistics().count(Event::Retried), 0);
}

/// As of GIOP 1.2, a LocateReply has the exception of a refusing adapter; before, it has none (9.4.6.1).
#[test]
fn a_locate_reply_has_the_exception_of_a_refusing_adapter_as_of_giop_1_2() {
    let server = Server::start();
    let manager = server.poa.the_poa_manager();
    let call = |version| {
        Orb::builder().giop_version(version).build().unwrap().string_to_object(&server.ior()).unwrap().locate()
    };
    let refusal = |version| match call(version) {
        Err(exception) => Some((exception.kind(), exception.minor(), exception.completed())),
        Ok(located) => {
            assert_eq!(located, Located::Here, "GIOP {version}");
            None
        }
    };
    let (old, new) = ([GiopVersion::V1_0, GiopVersion::V1_1], GiopVersion::V1_2);
    manager.hold_requests(WaitForCompletion::No).unwrap();
    assert_eq!(refusal(new), None, "held requests are served later");
    manager.discard_requests(WaitForCompletion::No).unwrap();
    let discarded = (SystemExceptionKind::Transient, minor::REQUEST_DISCARDED, CompletionStatus::No);
    assert_eq!(refusal(new), Some(discarded));
    assert_eq!(old.map(refusal), [None; 2]);
    manager.activate().unwrap();
    assert_eq!(refusal(new), None);
    manager.deactivate(EtherealizeObjects::No, WaitForCompletion::No).unwrap();
    let inactive = (SystemExceptionKind::ObjAdapter, minor::UNKNOWN_ADAPTER_FAILED, CompletionStatus::No);
    assert_eq!(refusal(new), Some(inactive));
}
