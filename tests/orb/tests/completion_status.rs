//! Clients whose server is unreachable, closes the connection or answers with malformed messages: the
//! exception and its completion status.

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::{Duration, Instant},
};

use spandrel::{
    CompletionStatus, Orb, SystemException, SystemExceptionKind,
    cdr::GiopVersion,
    policy::{ConnectionTimeoutPolicy, SetOverrideType},
};
use spandrel_ipc::inet;
use spandrel_orb_tests::{
    Repeater, Server,
    probe::{Relay, RelayAsyncServant, RelayAsyncSkeleton, RelaySkeleton, Target},
    support::{self, ClosedPort, block_on, fake_server, in_background, kind_and_completion, read_message},
};

fn target_at(port: u16) -> Target {
    target_with(Orb::builder().build().unwrap(), &format!("corbaloc:iiop:1.2@127.0.0.1:{port}/no-such-key"))
}

fn target_with(orb: Orb, url: &str) -> Target {
    Target::unchecked_narrow(&orb.string_to_object(url).unwrap())
}

const TRANSIENT_NO: (SystemExceptionKind, CompletionStatus) = (SystemExceptionKind::Transient, CompletionStatus::No);
const LOST_MAYBE: (SystemExceptionKind, CompletionStatus) = (SystemExceptionKind::CommFailure, CompletionStatus::Maybe);

#[test]
fn a_refused_connection_is_transient_and_names_the_address() {
    let closed = ClosedPort::reserve();
    let port = closed.port();
    let error = target_at(port).ping().unwrap_err();
    assert_eq!(kind_and_completion(&error), TRANSIENT_NO);
    assert!(error.to_string().contains(&format!("127.0.0.1:{port}")), "{error}");
}

#[test]
fn an_unresolvable_host_is_transient_and_named() {
    let error = target_with(Orb::builder().build().unwrap(), "corbaloc::no-such-host.invalid:1/x").ping().unwrap_err();
    assert_eq!(kind_and_completion(&error), TRANSIENT_NO);
    assert!(error.to_string().contains("no-such-host.invalid"), "{error}");
}

/// An address that answers no SYN: the backlog of its listener is full.
fn full_backlog() -> ((inet::Acceptor, Vec<inet::Stream>), u16) {
    let addr = inet::Addr::loopback(0);
    let full = inet::Acceptor::open_with(&addr, &inet::AcceptorOptions::default().backlog(0)).unwrap();
    let at = full.local_addr().unwrap();
    let mut fillers = Vec::new();
    let connector = inet::Connector::new().timeout(Duration::from_millis(200));
    while let Ok(filler) = connector.open(&at) {
        fillers.push(filler);
        assert!(fillers.len() < 64, "the backlog never fills");
    }
    ((full, fillers), at.port())
}

#[test]
fn the_connect_timeout_of_the_orb_bounds_connecting() {
    let (_full, port) = full_backlog();
    let orb = Orb::builder().connect_timeout(Some(Duration::from_millis(200))).build().unwrap();
    let before = Instant::now();
    let error = target_with(orb, &format!("corbaloc::127.0.0.1:{port}/x")).ping().unwrap_err();
    assert_eq!(kind_and_completion(&error), (SystemExceptionKind::Timeout, CompletionStatus::No));
    assert!(before.elapsed() < Duration::from_secs(10));
}

/// The policy of the reference or of the thread. It limits connecting only, not the call.
#[test]
fn a_connection_timeout_policy_bounds_connecting_and_not_the_call() {
    let (_full, port) = full_backlog();
    let policies = [ConnectionTimeoutPolicy(Duration::from_millis(200)).into()];
    let add = SetOverrideType::AddOverride;
    let limited =
        |target: &Target| Target::unchecked_narrow(&target.as_object().set_policy_overrides(&policies, add).unwrap());
    let timeout = (SystemExceptionKind::Timeout, CompletionStatus::No);
    let before = Instant::now();
    let target = target_with(Orb::builder().build().unwrap(), &format!("corbaloc::127.0.0.1:{port}/x"));
    assert_eq!(kind_and_completion(&limited(&target).ping().unwrap_err()), timeout);
    assert_eq!(kind_and_completion(&block_on(limited(&target).ping_async()).unwrap_err()), timeout);
    let of_thread = Orb::builder().build().unwrap();
    of_thread.policy_current().set_policy_overrides(&policies, add).unwrap();
    let target = target_with(of_thread.clone(), &format!("corbaloc::127.0.0.1:{port}/x"));
    assert_eq!(kind_and_completion(&target.ping().unwrap_err()), timeout);
    of_thread.policy_current().set_policy_overrides(&[], SetOverrideType::SetOverride).unwrap();
    assert!(before.elapsed() < Duration::from_secs(30));
    // The timeout applies to each address of the reference separately.
    let server = Server::start();
    let profile = spandrel::types::IiopProfile::decode(&server.object.ior().profiles[0]).unwrap().unwrap();
    let mut ior = server.object.ior().clone();
    ior.profiles.insert(0, spandrel::types::IiopProfile { port, ..profile }.encode().unwrap());
    let target = limited(&Target::unchecked_narrow(&Orb::builder().build().unwrap().reference(ior)));
    let held = in_background(move || target.hold(1));
    server.probe.await_held(1);
    assert!(held.recv_timeout(Duration::from_millis(500)).is_err(), "the connect timeout must not limit the call");
    server.probe.open(1);
    held.recv().unwrap().unwrap();
}

#[test]
fn the_next_profile_is_tried_when_the_first_refuses_the_connection() {
    let server = Server::start();
    let closed = ClosedPort::reserve();
    let profile = spandrel::types::IiopProfile::decode(&server.object.ior().profiles[0]).unwrap().unwrap();
    let dead = spandrel::types::IiopProfile { port: closed.port(), ..profile };
    let mut ior = server.object.ior().clone();
    ior.profiles.insert(0, dead.encode().unwrap());
    let target = Target::unchecked_narrow(&Orb::builder().build().unwrap().reference(ior));
    assert_eq!(target.add(1, 2).unwrap(), 3);
    assert_eq!(target.add(3, 4).unwrap(), 7);
}

#[test]
fn a_connection_lost_before_the_reply_gives_completed_maybe() {
    let port = fake_server(|_, mut stream| drop(read_message(&mut stream).unwrap()));
    assert_eq!(kind_and_completion(&target_at(port).ping().unwrap_err()), LOST_MAYBE);
}

#[test]
fn a_connection_lost_within_the_reply_gives_completed_maybe() {
    let port = fake_server(|_, mut stream| {
        read_message(&mut stream).unwrap();
        stream.write_all(b"GIOP\x01\x02\x01\x01\x40\x00\x00\x00half").unwrap();
    });
    assert_eq!(kind_and_completion(&target_at(port).ping().unwrap_err()), LOST_MAYBE);
}

#[test]
fn a_close_connection_instead_of_a_reply_is_retried_on_a_new_connection() {
    let server = Server::start();
    let real = server.port();
    // The first connection is closed with CloseConnection instead of a reply; later ones reach the real server.
    let port = fake_server(move |count, mut stream| {
        let request = read_message(&mut stream).unwrap();
        if count == 0 {
            stream.write_all(b"GIOP\x01\x02\x01\x05\x00\x00\x00\x00").unwrap();
            return;
        }
        let mut upstream = TcpStream::connect(("127.0.0.1", real)).unwrap();
        upstream.write_all(&request).unwrap();
        let reply = read_message(&mut upstream).unwrap();
        stream.write_all(&reply).unwrap();
    });
    let profile = spandrel::types::IiopProfile::decode(&server.object.ior().profiles[0]).unwrap().unwrap();
    let mut ior = server.object.ior().clone();
    ior.profiles = vec![spandrel::types::IiopProfile { port, ..profile }.encode().unwrap()];
    let target = Target::unchecked_narrow(&Orb::builder().build().unwrap().reference(ior));
    // A fresh connection that is closed at once is retried once at the most.
    let outcome = target.add(20, 22);
    match outcome {
        Ok(sum) => assert_eq!(sum, 42),
        Err(error) => assert_eq!(error.completed(), CompletionStatus::No, "{error}"),
    }
}

#[test]
fn a_server_that_closes_after_each_reply_is_called_over_new_connections() {
    let server = Server::start();
    let real = server.port();
    let port = fake_server(move |_, mut stream| {
        // One request per connection, then an orderly close.
        let request = read_message(&mut stream).unwrap();
        let mut upstream = TcpStream::connect(("127.0.0.1", real)).unwrap();
        upstream.write_all(&request).unwrap();
        let reply = read_message(&mut upstream).unwrap();
        stream.write_all(&reply).unwrap();
        stream.write_all(b"GIOP\x01\x02\x01\x05\x00\x00\x00\x00").unwrap();
    });
    let profile = spandrel::types::IiopProfile::decode(&server.object.ior().profiles[0]).unwrap().unwrap();
    let mut ior = server.object.ior().clone();
    ior.profiles = vec![spandrel::types::IiopProfile { port, ..profile }.encode().unwrap()];
    let target = Target::unchecked_narrow(&Orb::builder().build().unwrap().reference(ior));
    for i in 0..20 {
        assert_eq!(target.add(i, 1).unwrap(), i + 1);
    }
}

#[test]
fn an_invalid_answer_ends_the_call_with_an_exception() {
    let answers: &[(&str, &[u8])] = &[
        ("wrong magic", b"HTTP/1.1 400 Bad Request\r\n\r\n"),
        ("unknown version", b"GIOP\x02\x00\x01\x01\x04\x00\x00\x00abcd"),
        ("unknown type", b"GIOP\x01\x02\x01\x63\x00\x00\x00\x00"),
        ("four gigabytes", b"GIOP\x01\x02\x01\x01\xff\xff\xff\xffabcd"),
        ("a request", b"GIOP\x01\x02\x01\x00\x04\x00\x00\x00abcd"),
        ("an empty reply", b"GIOP\x01\x02\x01\x01\x00\x00\x00\x00"),
        ("a message error", b"GIOP\x01\x02\x01\x06\x00\x00\x00\x00"),
        ("a stray fragment", b"GIOP\x01\x02\x01\x07\x04\x00\x00\x00\x09\x00\x00\x00"),
    ];
    for (what, answer) in answers {
        let port = fake_server(move |_, mut stream| {
            read_message(&mut stream).unwrap();
            stream.write_all(answer).unwrap();
            // The client closes the connection; until then the fake server sends no more.
            let _ = stream.read_exact(&mut [0]);
        });
        let before = Instant::now();
        let error = target_at(port).ping().unwrap_err();
        let expected = match *what {
            "four gigabytes" => SystemExceptionKind::ImpLimit,
            _ => SystemExceptionKind::CommFailure,
        };
        assert_eq!(error.kind(), expected, "{what}: {error}");
        assert!(before.elapsed() < Duration::from_secs(10), "{what}");
    }
}

#[test]
fn a_timeout_before_the_request_is_written_gives_completed_no() {
    let port = fake_server(|_, stream| std::mem::forget(stream));
    let orb = Orb::builder().request_timeout(Some(Duration::from_millis(300))).build().unwrap();
    let target = target_with(orb, &format!("corbaloc:iiop:1.2@127.0.0.1:{port}/x"));
    let error = target.echo_octets(&vec![0; 32 << 20]).unwrap_err();
    assert_eq!(kind_and_completion(&error), (SystemExceptionKind::Timeout, CompletionStatus::No), "{error}");
}

#[test]
fn unencodable_text_is_refused_before_sending() {
    let server = Server::start();
    let target = server.client();
    let nul = target.echo("a\0b").unwrap_err();
    assert_eq!(kind_and_completion(&nul), (SystemExceptionKind::BadParam, CompletionStatus::No));
    // A reference that names code sets could carry the euro sign.
    let without_code_sets = server.client_with(Orb::builder().giop_version(GiopVersion::V1_0));
    let euro = without_code_sets.echo("5 \u{20ac}").unwrap_err();
    assert_eq!(kind_and_completion(&euro), (SystemExceptionKind::DataConversion, CompletionStatus::No));
    target.ping().unwrap();
    without_code_sets.ping().unwrap();
}

#[test]
fn malformed_references_are_refused_with_a_reason() {
    let orb = Orb::builder().build().unwrap();
    for text in ["", "IOR:", "IOR:0", "IOR:00zz", "corbaloc:", "corbaloc:iiop:host:port/x", "http://x", "IOR:00000000"]
    {
        let error = orb.string_to_object(text).unwrap_err();
        assert_eq!(kind_and_completion(&error), (SystemExceptionKind::BadParam, CompletionStatus::No), "{text}");
        assert!(error.detail().is_some(), "{text}");
    }
}

/// An asynchronous servant of `Relay`, as [`Repeater`].
struct AsynchronousRepeater;

impl RelayAsyncServant for AsynchronousRepeater {
    async fn recurse(&self, _: Option<&Relay>, _: Option<&Relay>, _: i32) -> Result<i32, SystemException> {
        Ok(0)
    }

    async fn hold(&self, other: Option<&Target>, gate: u32) -> Result<(), SystemException> {
        other.unwrap().hold_async(gate).await
    }
}

#[test]
fn a_received_completed_no_that_a_servant_passes_on_is_maybe() {
    let closed = ClosedPort::reserve();
    let server = Server::start();
    let client = Orb::builder().build().unwrap();
    let unreachable = target_with(client.clone(), &format!("corbaloc:iiop:1.2@127.0.0.1:{}/x", closed.port()));
    // The nested server raises COMPLETED_NO itself: it has no such object.
    let missing = target_with(client.clone(), &format!("corbaloc:iiop:1.2@127.0.0.1:{}/none", server.port()));
    let relays = [
        server.poa.activate(RelaySkeleton::new(Repeater)).unwrap(),
        server.poa.activate(RelayAsyncSkeleton::new(AsynchronousRepeater)).unwrap(),
    ];
    for relay in relays {
        let remote = client.string_to_object(&relay.to_string()).unwrap();
        // The other caller is in the same ORB.
        for relay in [remote, relay].map(|relay| Relay::unchecked_narrow(&relay)) {
            for (nested, kind) in
                [(&unreachable, SystemExceptionKind::Transient), (&missing, SystemExceptionKind::ObjectNotExist)]
            {
                let direct = nested.hold(1).unwrap_err();
                assert_eq!(kind_and_completion(&direct), (kind, CompletionStatus::No), "{direct}");
                let passed_on = relay.hold(Some(nested), 1).unwrap_err();
                assert_eq!(kind_and_completion(&passed_on), (kind, CompletionStatus::Maybe), "{passed_on}");
            }
        }
    }
}

#[test]
fn an_exception_that_a_servant_creates_and_one_of_a_dynamic_relay_keep_their_status() {
    let closed = ClosedPort::reserve();
    let server = Server::start();
    let created = server.client().fail(5).unwrap_err();
    assert_eq!(kind_and_completion(&created), (SystemExceptionKind::BadParam, CompletionStatus::No));
    let nested = target_at(closed.port());
    let relay = support::servant(move |_, call| {
        nested.ping()?;
        call.reply(|_| Ok(()))
    });
    let relay = server.poa.activate(relay).unwrap();
    let relay =
        Target::unchecked_narrow(&Orb::builder().build().unwrap().string_to_object(&relay.to_string()).unwrap());
    assert_eq!(kind_and_completion(&relay.ping().unwrap_err()), TRANSIENT_NO);
}
