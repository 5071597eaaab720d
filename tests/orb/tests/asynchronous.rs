//! Asynchronous invocation: futures that share connections and rules with synchronous calls.

use std::{
    io::{Read, Write},
    net::TcpStream,
    sync::{
        Arc, Barrier,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
};

use spandrel::{
    CompletionStatus, Orb, SystemException, SystemExceptionKind,
    cdr::GiopVersion,
    messaging::SharedArguments,
    types::{IiopProfile, Ior},
};
use spandrel_cdr::{ByteOrder, Decode as _, Encode, Encoder, Wire};
use spandrel_giop::{MessageType, ReplyStatus, bare_message, begin_reply};
use spandrel_orb_tests::{
    Server,
    probe::{Target, target::RefuseError},
    support::{
        ClosedPort, ReservedPort, TEST_TIMEOUT, block_on, call_until_timeout, fake_server, in_background, is_ready,
        kind_and_completion, read_message, wait_until,
    },
};

/// A reference to an object with the key `key` at this port.
fn target_at(port: u16, builder: spandrel::OrbBuilder) -> Target {
    let url = format!("corbaloc:iiop:1.2@127.0.0.1:{port}/key");
    Target::unchecked_narrow(&builder.build().unwrap().string_to_object(&url).unwrap())
}

fn message_type(message: &[u8]) -> u8 {
    message[7]
}

/// The id in a GIOP 1.2 request.
fn request_id(message: &[u8]) -> u32 {
    u32::from_ne_bytes(message[12..16].try_into().unwrap())
}

#[test]
fn a_future_yields_the_result_of_the_call() {
    let server = Server::start();
    let target = block_on(server.client().as_object().narrow_async::<Target>()).unwrap();
    block_on(target.ping_async()).unwrap();
    assert_eq!(block_on(target.add_async(1, 2)).unwrap(), 3);
    let text = String::from("a copy");
    let echo = target.echo_async(&text);
    drop(text);
    assert_eq!(block_on(echo).unwrap(), "a copy");
    assert_eq!(block_on(target.echo_doubles_async(&[1.5, -2.0])).unwrap(), [1.5, -2.0]);
    match block_on(target.refuse_async(7)) {
        Err(RefuseError::Refused(refused)) => assert_eq!((refused.code, &*refused.why), (7, "because of 7")),
        other => panic!("{other:?}"),
    }
    assert_eq!(block_on(target.fail_async(5)).unwrap_err().kind(), SystemExceptionKind::BadParam);
    assert_eq!(block_on(target.panic_async()).unwrap_err().kind(), SystemExceptionKind::Unknown);
    block_on(target.note_async(&[7; 10])).unwrap();
    assert_eq!(block_on(target.count_async()).unwrap(), 1);
    assert_eq!(block_on(target.same_async(Some(&target))).unwrap().as_ref(), Some(&target));
}

/// Only requests in another form, here that of GIOP 1.1 or other code sets, marshal the shared arguments again.
#[test]
fn shared_arguments_are_marshaled_once_for_several_objects() {
    let servers = [Server::start(), Server::start()];
    let (arguments, marshaled) = (SharedArguments::new(), AtomicUsize::new(0));
    let send = |target: &Target, arguments: &SharedArguments, text: &str| {
        let text = text.to_owned();
        let encode = |out: &mut Encoder<'_>| {
            marshaled.fetch_add(1, Ordering::SeqCst);
            out.short_str(&text)
        };
        let reply = target.as_object().invoke_shared_async::<String, SystemException>(
            "echo",
            arguments,
            encode,
            String::decode,
        );
        assert_eq!(block_on(reply).unwrap(), text);
        marshaled.load(Ordering::SeqCst)
    };
    let targets: Vec<Target> = servers.iter().map(Server::client).collect();
    for target in targets.iter().chain(&targets) {
        assert_eq!(send(target, &arguments, "shared"), 1);
    }
    let profile = IiopProfile { version: GiopVersion::V1_1, ..profile_of(&servers[0]) };
    let ior = Ior { profiles: vec![profile.encode().unwrap()], ..servers[0].object.ior().clone() };
    let client = Orb::builder().build().unwrap();
    let old = Target::unchecked_narrow(&client.string_to_object(&spandrel::types::ior_to_string(&ior)).unwrap());
    assert_eq!(send(&old, &arguments, "shared"), 2);
    // Text beyond ASCII depends on the code sets of each server.
    let arguments = SharedArguments::new();
    assert_eq!(send(&targets[0], &arguments, "d\u{e9}j\u{e0}"), 3);
    assert_eq!(send(&targets[1], &arguments, "d\u{e9}j\u{e0}"), 3);
}

#[test]
fn narrowing_an_untyped_reference_asks_the_server() {
    let server = Server::start();
    let untyped =
        server.client().as_object().orb().reference(Ior { type_id: String::new(), ..server.object.ior().clone() });
    block_on(untyped.narrow_async::<Target>()).expect("the server confirms the type");
    let answer = block_on(untyped.is_a_async("IDL:Other:1.0")).unwrap();
    assert!(!answer);
}

#[test]
fn hundreds_of_calls_can_be_pending_at_once() {
    let server = Server::start();
    let target = server.client();
    let calls: Vec<_> = (0..500).map(|number| (number, target.add_async(number, 1))).collect();
    for (number, call) in calls.into_iter().rev() {
        assert_eq!(block_on(call).unwrap(), number + 1);
    }
}

#[test]
fn threads_and_the_reactor_read_replies_for_each_other() {
    let server = Server::start();
    let target = server.client_with(Orb::builder().connections_per_peer(1));
    // A thread reads, and passes the reply to the future.
    let leader = target.clone();
    let held = in_background(move || leader.hold(1));
    server.probe.await_held(1);
    assert_eq!(block_on(target.add_async(2, 3)).unwrap(), 5);
    // The reactor reads, and leaves reading to a thread that calls.
    let pending = target.hold_async(2);
    target.release(1).unwrap();
    held.recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
    assert_eq!(target.add(4, 5).unwrap(), 9);
    block_on(target.release_async(2)).unwrap();
    block_on(pending).unwrap();
}

#[test]
fn threads_mix_synchronous_and_asynchronous_calls_on_one_connection() {
    let server = Server::start();
    let target = server.client_with(Orb::builder().connections_per_peer(1));
    let begin = Arc::new(Barrier::new(4));
    let callers = (0..4).map(|caller| {
        let (target, begin) = (target.clone(), Arc::clone(&begin));
        in_background(move || {
            begin.wait();
            for turn in 0..200 {
                let pending = target.add_async(caller, turn);
                let dropped = target.echo_async("dropped before its reply");
                if turn % 2 == 0 {
                    assert_eq!(target.add(turn, caller).unwrap(), caller + turn);
                }
                drop(dropped);
                assert_eq!(block_on(pending).unwrap(), caller + turn);
            }
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.recv_timeout(TEST_TIMEOUT).expect("the caller ends");
    }
}

#[test]
fn a_partial_write_keeps_the_rest_queued() {
    let server = Server::start();
    let target = server.client_with(Orb::builder().connections_per_peer(1).buffer_limit(64 << 20));
    let long: Vec<u8> = (0..6 << 20).map(|at: u32| at.to_le_bytes()[1]).collect();
    let calls: Vec<_> = (0..4).map(|_| target.echo_octets_async(&long)).collect();
    let between = target.add_async(1, 1);
    assert_eq!(target.add(2, 2).unwrap(), 4, "a thread writes the queued requests before its own");
    assert_eq!(block_on(between).unwrap(), 2);
    for call in calls {
        assert!(block_on(call).unwrap() == long);
    }
}

#[test]
fn a_one_way_future_completes_when_the_request_is_sent() {
    let server = Server::start();
    let target = server.client_with(Orb::builder().connections_per_peer(1));
    let notes: Vec<_> = (0..20).map(|_| target.note_async(&[7; 1 << 19])).collect();
    notes.into_iter().for_each(|note| block_on(note).unwrap());
    // On a loaded machine the last one-way may last, and is overtaken then.
    wait_until("the last one-way", || target.count().unwrap() == 20);
}

#[test]
fn a_dropped_future_cancels_its_request_only() {
    let (send, messages) = mpsc::channel();
    let port = fake_server(move |_, mut stream| {
        while let Ok(message) = read_message(&mut stream) {
            let is_over = message_type(&message) == 0 && send.send((message, stream.try_clone().unwrap())).is_err();
            if is_over {
                return;
            }
            let next = read_message(&mut stream).unwrap();
            send.send((next, stream.try_clone().unwrap())).unwrap();
        }
    });
    // CancelRequest is sent only to servers whose reference names Spandrel as the ORB.
    let ours = Server::start();
    let profile = IiopProfile { port, ..profile_of(&ours) };
    let ior = Ior { type_id: String::new(), profiles: vec![profile.encode().unwrap()] };
    let orb = Orb::builder().connections_per_peer(1).build().unwrap();
    let target = Target::unchecked_narrow(&orb.reference(ior));
    let mut call = target.add_async(1, 2);
    assert!(!is_ready(&mut call));
    let (request, mut stream) = messages.recv_timeout(TEST_TIMEOUT).unwrap();
    drop(call);
    let (cancel, _) = messages.recv_timeout(TEST_TIMEOUT).unwrap();
    assert_eq!(message_type(&cancel), 2, "CancelRequest");
    assert_eq!(request_id(&cancel), request_id(&request));
    // The connection stays in use, and the late reply is dropped.
    let further = target.add_async(3, 4);
    let (request_2, _) = messages.recv_timeout(TEST_TIMEOUT).unwrap();
    for (id, answer) in [(request_id(&request), 3), (request_id(&request_2), 7)] {
        let mut out = Encoder::new(Wire::default());
        let body = begin_reply(&mut out, id, ReplyStatus::NoException, &[]);
        out.i32(answer);
        body.end(&mut out).unwrap();
        stream.write_all(&out.to_vec()).unwrap();
    }
    assert_eq!(block_on(further).unwrap(), 7);
}

#[test]
fn a_timeout_ends_an_asynchronous_call() {
    let server = Server::start();
    let target = server.client();
    let error = call_until_timeout(&target, |limited| block_on(limited.hold_async(1)));
    assert_eq!(kind_and_completion(&error), (SystemExceptionKind::Timeout, CompletionStatus::Maybe), "{error}");
    assert_eq!(block_on(target.add_async(1, 1)).unwrap(), 2, "on another connection");
    server.probe.open(1);
}

#[test]
fn a_lost_connection_ends_all_its_pending_calls() {
    let (send, streams) = mpsc::channel();
    let port = fake_server(move |_, stream| send.send(stream).unwrap());
    let target = target_at(port, Orb::builder().connections_per_peer(1));
    let calls: Vec<_> = (0..10).map(|_| target.ping_async()).collect();
    let mut stream: TcpStream = streams.recv_timeout(TEST_TIMEOUT).unwrap();
    (0..10).for_each(|_| drop(read_message(&mut stream).unwrap()));
    drop(stream);
    for call in calls {
        let error = block_on(call).unwrap_err();
        assert_eq!(kind_and_completion(&error), (SystemExceptionKind::CommFailure, CompletionStatus::Maybe), "{error}");
    }
}

#[test]
fn a_request_met_by_close_connection_is_resent_on_another_connection() {
    let (send, counts) = mpsc::channel();
    let port = fake_server(move |count, mut stream| {
        let request = read_message(&mut stream).unwrap();
        if count == 0 {
            // The first request is answered, so that the closed connection is not a new one.
            answer(&mut stream, request_id(&request), 1);
            read_message(&mut stream).unwrap();
            stream
                .write_all(&bare_message(GiopVersion::V1_2, ByteOrder::NATIVE, MessageType::CloseConnection))
                .unwrap();
        } else {
            answer(&mut stream, request_id(&request), 2);
        }
        send.send(count).unwrap();
        // Returns when the client closes the connection.
        let _ = stream.read_exact(&mut [0]);
    });
    let target = target_at(port, Orb::builder());
    assert_eq!(block_on(target.add_async(0, 0)).unwrap(), 1);
    assert_eq!(block_on(target.add_async(0, 0)).unwrap(), 2);
    assert_eq!((counts.recv_timeout(TEST_TIMEOUT), counts.recv_timeout(TEST_TIMEOUT)), (Ok(0), Ok(1)));
}

fn answer(stream: &mut TcpStream, id: u32, value: i32) {
    let mut out = Encoder::new(Wire::default());
    let body = begin_reply(&mut out, id, ReplyStatus::NoException, &[]);
    out.i32(value);
    body.end(&mut out).unwrap();
    stream.write_all(&out.to_vec()).unwrap();
}

#[test]
fn a_refused_connection_ends_the_future_with_transient() {
    let closed = ClosedPort::reserve();
    let target = target_at(closed.port(), Orb::builder());
    let calls: Vec<_> = (0..20).map(|_| target.ping_async()).collect();
    for call in calls {
        let error = block_on(call).unwrap_err();
        assert_eq!(kind_and_completion(&error), (SystemExceptionKind::Transient, CompletionStatus::No), "{error}");
    }
}

#[test]
fn a_refusing_address_is_skipped() {
    let server = Server::start();
    let closed = ClosedPort::reserve();
    let profile = |port| IiopProfile { port, ..profile_of(&server) }.encode().unwrap();
    let ior = Ior { type_id: String::new(), profiles: vec![profile(closed.port()), profile(server.port())] };
    let target = Target::unchecked_narrow(&Orb::builder().build().unwrap().reference(ior));
    assert_eq!(block_on(target.add_async(1, 2)).unwrap(), 3);
    assert_eq!(block_on(target.add_async(3, 4)).unwrap(), 7);
}

fn profile_of(server: &Server) -> IiopProfile {
    spandrel_orb_tests::support::without_local_addresses(&server.object.ior().profiles[0])
}

#[test]
fn a_forwarding_is_followed_for_keys_of_any_length() {
    let (old, new) = (GiopVersion::V1_0, GiopVersion::V1_2);
    // Services that are known by a URL of GIOP 1.0 forward to their references of GIOP 1.2.
    for (version, of_forwarded) in [(old, old), (old, new), (GiopVersion::V1_1, GiopVersion::V1_1), (new, new)] {
        let server = Server::start();
        let profile = IiopProfile { version: of_forwarded, ..profile_of(&server) };
        let forwarded = Ior { type_id: String::new(), profiles: vec![profile.encode().unwrap()] };
        let port = fake_server(move |_, mut stream| {
            let request = read_message(&mut stream).unwrap();
            let number = |at: usize| u32::from_ne_bytes(request[at..at + 4].try_into().unwrap());
            let id = match (version == GiopVersion::V1_2, number(12)) {
                (true, id) => id,
                (false, 0) => number(16),
                // Behind a service context of four octets.
                (false, _) => number(28),
            };
            let mut out = Encoder::new(Wire::new(ByteOrder::NATIVE, version));
            let body = begin_reply(&mut out, id, ReplyStatus::LocationForward, &[]);
            forwarded.encode(&mut out).unwrap();
            body.end(&mut out).unwrap();
            stream.write_all(&out.to_vec()).unwrap();
        });
        for key in ["k", "longer", "longer than that"] {
            let minor = version.minor;
            let url = format!("corbaloc:iiop:1.{minor}@127.0.0.1:{port}/{key}");
            let orb = Orb::builder().giop_version(version).build().unwrap();
            let target = Target::unchecked_narrow(&orb.string_to_object(&url).unwrap());
            let numbers = [1.0, 2.5, -3.0];
            assert_eq!(block_on(target.echo_doubles_async(&numbers)).unwrap(), numbers, "GIOP {version}, {key}");
            assert_eq!(block_on(target.add_async(1, 2)).unwrap(), 3, "the forwarding is cached");
        }
    }
}

#[test]
fn the_number_of_pending_requests_is_bounded() {
    let server = Server::start();
    let target = server.client_with(Orb::builder().connections_per_peer(1).pending_requests(3));
    let held: Vec<_> = (0..3).map(|_| target.hold_async(1)).collect();
    server.probe.await_held(3);
    let error = block_on(target.ping_async()).unwrap_err();
    assert_eq!(kind_and_completion(&error), (SystemExceptionKind::Transient, CompletionStatus::No), "{error}");
    server.probe.open(1);
    held.into_iter().for_each(|held| block_on(held).unwrap());
    block_on(target.ping_async()).unwrap();
}

#[test]
fn shutdown_ends_pending_calls() {
    let server = Server::start();
    let target = server.client();
    let pending = target.hold_async(1);
    server.probe.await_held(1);
    let orb = target.as_object().orb().clone();
    orb.shutdown().unwrap();
    let error = block_on(pending).unwrap_err();
    assert_eq!(kind_and_completion(&error), (SystemExceptionKind::BadInvOrder, CompletionStatus::Maybe), "{error}");
    let error = block_on(target.ping_async()).unwrap_err();
    assert_eq!(kind_and_completion(&error), (SystemExceptionKind::BadInvOrder, CompletionStatus::No), "{error}");
    server.probe.open(1);
}

#[test]
fn a_restarted_server_is_reconnected() {
    let reserved = ReservedPort::reserve();
    let server = Server::with(reserved.listening(Orb::builder()));
    let target = server.client();
    block_on(target.ping_async()).unwrap();
    drop(server);
    let again = Server::with(reserved.listening(Orb::builder()));
    assert_eq!(again.port(), reserved.port);
    assert_eq!(block_on(target.ping_async()).unwrap_err().kind(), SystemExceptionKind::ObjectNotExist);
}
