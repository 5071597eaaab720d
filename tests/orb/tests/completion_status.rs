//! Clients whose server is absent, broken, gone or hostile: the right exception, with the right completion status.

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::{Duration, Instant},
};

use spandrel::{
    CompletionStatus, GiopVersion, Orb, SystemExceptionKind,
    policies::{ConnectionTimeoutPolicy, SetOverrideType},
};
use spandrel_ipc::inet;
use spandrel_orb_tests::{
    Server,
    probe::Target,
    support::{ClosedPort, block_on, in_background, kind_and_completion, pretend, read_message},
};

fn target_at(port: u16) -> Target {
    target_with(Orb::builder().build().unwrap(), &format!("corbaloc:iiop:1.2@127.0.0.1:{port}/nobody"))
}

fn target_with(orb: Orb, url: &str) -> Target {
    Target::unchecked_narrow(&orb.string_to_object(url).unwrap())
}

const TRANSIENT_NO: (SystemExceptionKind, CompletionStatus) = (SystemExceptionKind::Transient, CompletionStatus::No);
const LOST_MAYBE: (SystemExceptionKind, CompletionStatus) = (SystemExceptionKind::CommFailure, CompletionStatus::Maybe);

#[test]
fn a_refused_port_is_transient_and_named() {
    let closed = ClosedPort::reserve();
    let port = closed.port();
    let error = target_at(port).ping().unwrap_err();
    assert_eq!(kind_and_completion(&error), TRANSIENT_NO);
    assert!(error.to_string().contains(&format!("127.0.0.1:{port}")), "{error}");
}

#[test]
fn a_name_that_does_not_resolve_is_transient_and_named() {
    let error = target_with(Orb::builder().build().unwrap(), "corbaloc::no-such-host.invalid:1/x").ping().unwrap_err();
    assert_eq!(kind_and_completion(&error), TRANSIENT_NO);
    assert!(error.to_string().contains("no-such-host.invalid"), "{error}");
}

/// An address where nobody answers: a backlog that is full takes no further SYN.
fn unanswering() -> ((inet::Acceptor, Vec<inet::Stream>), u16) {
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
fn connecting_is_bounded_by_its_time_out() {
    let (_full, port) = unanswering();
    let orb = Orb::builder().connect_timeout(Some(Duration::from_millis(200))).build().unwrap();
    let before = Instant::now();
    let error = target_with(orb, &format!("corbaloc::127.0.0.1:{port}/x")).ping().unwrap_err();
    assert_eq!(kind_and_completion(&error), (SystemExceptionKind::Timeout, CompletionStatus::No));
    assert!(before.elapsed() < Duration::from_secs(10));
}

/// Of the reference and of the thread; and it is for connecting only, however long the call itself takes.
#[test]
fn connecting_is_bounded_by_the_time_out_of_a_reference() {
    let (_full, port) = unanswering();
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
    // The next address of the reference has its own time.
    let server = Server::start();
    let profile = spandrel::IiopProfile::decode(&server.object.ior().profiles[0]).unwrap().unwrap();
    let mut ior = server.object.ior().clone();
    ior.profiles.insert(0, spandrel::IiopProfile { port, ..profile }.encode().unwrap());
    let target = limited(&Target::unchecked_narrow(&Orb::builder().build().unwrap().reference(ior)));
    let held = in_background(move || target.hold(1));
    server.probe.await_held(1);
    assert!(held.recv_timeout(Duration::from_millis(500)).is_err(), "longer than connecting may take");
    server.probe.open(1);
    held.recv().unwrap().unwrap();
}

#[test]
fn the_next_profile_is_tried_when_the_first_does_not_answer() {
    let server = Server::start();
    let closed = ClosedPort::reserve();
    let profile = spandrel::IiopProfile::decode(&server.object.ior().profiles[0]).unwrap().unwrap();
    let dead = spandrel::IiopProfile { port: closed.port(), ..profile };
    let mut ior = server.object.ior().clone();
    ior.profiles.insert(0, dead.encode().unwrap());
    let target = Target::unchecked_narrow(&Orb::builder().build().unwrap().reference(ior));
    assert_eq!(target.add(1, 2).unwrap(), 3);
    assert_eq!(target.add(3, 4).unwrap(), 7);
}

#[test]
fn a_server_that_dies_between_request_and_reply_leaves_it_open() {
    let port = pretend(|_, mut stream| drop(read_message(&mut stream).unwrap()));
    assert_eq!(kind_and_completion(&target_at(port).ping().unwrap_err()), LOST_MAYBE);
}

#[test]
fn a_server_that_dies_inside_a_reply_leaves_it_open() {
    let port = pretend(|_, mut stream| {
        read_message(&mut stream).unwrap();
        stream.write_all(b"GIOP\x01\x02\x01\x01\x40\x00\x00\x00half").unwrap();
    });
    assert_eq!(kind_and_completion(&target_at(port).ping().unwrap_err()), LOST_MAYBE);
}

#[test]
fn an_orderly_close_is_met_with_another_connection() {
    let server = Server::start();
    let real = server.port();
    // The first connection is closed with CloseConnection instead of a reply; later ones reach the real server.
    let port = pretend(move |count, mut stream| {
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
    let profile = spandrel::IiopProfile::decode(&server.object.ior().profiles[0]).unwrap().unwrap();
    let mut ior = server.object.ior().clone();
    ior.profiles = vec![spandrel::IiopProfile { port, ..profile }.encode().unwrap()];
    let target = Target::unchecked_narrow(&Orb::builder().build().unwrap().reference(ior));
    // A fresh connection that is closed at once is not tried again for ever: one attempt more at the most.
    let outcome = target.add(20, 22);
    match outcome {
        Ok(sum) => assert_eq!(sum, 42),
        Err(error) => assert_eq!(error.completed(), CompletionStatus::No, "{error}"),
    }
}

#[test]
fn an_idle_connection_that_the_server_closed_goes_unnoticed() {
    let server = Server::start();
    let real = server.port();
    let port = pretend(move |_, mut stream| {
        // One request per connection, then an orderly close.
        let request = read_message(&mut stream).unwrap();
        let mut upstream = TcpStream::connect(("127.0.0.1", real)).unwrap();
        upstream.write_all(&request).unwrap();
        let reply = read_message(&mut upstream).unwrap();
        stream.write_all(&reply).unwrap();
        stream.write_all(b"GIOP\x01\x02\x01\x05\x00\x00\x00\x00").unwrap();
    });
    let profile = spandrel::IiopProfile::decode(&server.object.ior().profiles[0]).unwrap().unwrap();
    let mut ior = server.object.ior().clone();
    ior.profiles = vec![spandrel::IiopProfile { port, ..profile }.encode().unwrap()];
    let target = Target::unchecked_narrow(&Orb::builder().build().unwrap().reference(ior));
    for i in 0..20 {
        assert_eq!(target.add(i, 1).unwrap(), i + 1);
    }
}

#[test]
fn what_is_no_reply_ends_the_call_and_not_the_client() {
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
        let port = pretend(move |_, mut stream| {
            read_message(&mut stream).unwrap();
            stream.write_all(answer).unwrap();
            // The client closes; until then nothing more is said.
            let _ = stream.read(&mut [0; 64]);
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
fn a_request_that_nobody_reads_times_out_as_not_completed() {
    let port = pretend(|_, stream| std::mem::forget(stream));
    let orb = Orb::builder().request_timeout(Some(Duration::from_millis(300))).build().unwrap();
    let target = target_with(orb, &format!("corbaloc:iiop:1.2@127.0.0.1:{port}/x"));
    let error = target.echo_octets(&vec![0; 32 << 20]).unwrap_err();
    assert_eq!(kind_and_completion(&error), (SystemExceptionKind::Timeout, CompletionStatus::No), "{error}");
}

#[test]
fn values_that_the_wire_cannot_say_are_refused_before_anything_is_sent() {
    let server = Server::start();
    let target = server.client();
    let nul = target.echo("a\0b").unwrap_err();
    assert_eq!(kind_and_completion(&nul), (SystemExceptionKind::BadParam, CompletionStatus::No));
    // Over a reference that names code sets it could be said.
    let silent = server.client_with(Orb::builder().giop_version(GiopVersion::V1_0));
    let euro = silent.echo("5 \u{20ac}").unwrap_err();
    assert_eq!(kind_and_completion(&euro), (SystemExceptionKind::DataConversion, CompletionStatus::No));
    target.ping().unwrap();
    silent.ping().unwrap();
}

#[test]
fn references_that_lead_nowhere_are_refused_with_a_reason() {
    let orb = Orb::builder().build().unwrap();
    for text in ["", "IOR:", "IOR:0", "IOR:00zz", "corbaloc:", "corbaloc:iiop:host:port/x", "http://x", "IOR:00000000"]
    {
        let error = orb.string_to_object(text).unwrap_err();
        assert_eq!(kind_and_completion(&error), (SystemExceptionKind::BadParam, CompletionStatus::No), "{text}");
        assert!(error.detail().is_some(), "{text}");
    }
}
