//! Asynchronous invocation: futures instead of threads that wait, over the same connections and under the same rules.

use std::{
    io::{Read, Write},
    net::TcpStream,
    sync::{Arc, Barrier, mpsc},
};

use spandrel::{CompletionStatus, GiopVersion, IiopProfile, Ior, Orb, SystemExceptionKind};
use spandrel_cdr::{ByteOrder, Encode, Encoder, Wire};
use spandrel_giop::{MessageType, ReplyStatus, bare_message, begin_reply};
use spandrel_orb_tests::{
    Server,
    probe::{Target, target::RefuseError},
    support::{
        ClosedPort, KeptPort, PATIENCE, block_on, in_background, is_ready, kind_and_completion, late, pretend,
        read_message,
    },
};

/// A reference to nobody in particular there.
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
fn a_future_is_what_the_call_would_return() {
    let server = Server::start();
    let target = block_on(Target::narrow_async(server.client().as_object())).unwrap();
    block_on(target.ping_async()).unwrap();
    assert_eq!(block_on(target.add_async(1, 2)).unwrap(), 3);
    let text = String::from("of its own");
    let echo = target.echo_async(&text);
    drop(text);
    assert_eq!(block_on(echo).unwrap(), "of its own");
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

#[test]
fn what_does_not_support_an_interface_is_not_narrowed_to_it() {
    let server = Server::start();
    let stranger =
        server.client().as_object().orb().reference(Ior { type_id: String::new(), ..server.object.ior().clone() });
    block_on(Target::narrow_async(&stranger)).expect("the object says so");
    let answer = block_on(stranger.is_a_async("IDL:Other:1.0")).unwrap();
    assert!(!answer);
}

#[test]
fn hundreds_of_calls_wait_at_once_over_a_handful_of_connections() {
    let server = Server::start();
    let target = server.client();
    let calls: Vec<_> = (0..500).map(|number| (number, target.add_async(number, 1))).collect();
    for (number, call) in calls.into_iter().rev() {
        assert_eq!(block_on(call).unwrap(), number + 1);
    }
}

#[test]
fn threads_and_futures_read_for_each_other() {
    let server = Server::start();
    let target = server.client_with(Orb::builder().connections_per_peer(1));
    // A thread leads: it hands the future its reply.
    let leader = target.clone();
    let held = in_background(move || leader.hold(1));
    server.probe.await_held(1);
    assert_eq!(block_on(target.add_async(2, 3)).unwrap(), 5);
    // The reactor reads: it leaves the reading to the thread that calls.
    let waits = target.hold_async(2);
    target.release(1).unwrap();
    held.recv_timeout(PATIENCE).unwrap().unwrap();
    assert_eq!(target.add(4, 5).unwrap(), 9);
    block_on(target.release_async(2)).unwrap();
    block_on(waits).unwrap();
}

#[test]
fn many_threads_mix_both_forms_on_one_connection() {
    let server = Server::start();
    let target = server.client_with(Orb::builder().connections_per_peer(1));
    let begin = Arc::new(Barrier::new(4));
    let callers = (0..4).map(|caller| {
        let (target, begin) = (target.clone(), Arc::clone(&begin));
        in_background(move || {
            begin.wait();
            for turn in 0..200 {
                let pending = target.add_async(caller, turn);
                let dropped = target.echo_async("nobody waits for this");
                if turn % 2 == 0 {
                    assert_eq!(target.add(turn, caller).unwrap(), caller + turn);
                }
                drop(dropped);
                assert_eq!(block_on(pending).unwrap(), caller + turn);
            }
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.recv_timeout(PATIENCE).expect("it came through");
    }
}

#[test]
fn what_the_transport_does_not_take_at_once_is_written_later() {
    let server = Server::start();
    let target = server.client_with(Orb::builder().connections_per_peer(1).buffer_limit(64 << 20));
    let long: Vec<u8> = (0..6 << 20).map(|at: u32| at.to_le_bytes()[1]).collect();
    let calls: Vec<_> = (0..4).map(|_| target.echo_octets_async(&long)).collect();
    let between = target.add_async(1, 1);
    assert_eq!(target.add(2, 2).unwrap(), 4, "a thread writes what is left before its own");
    assert_eq!(block_on(between).unwrap(), 2);
    for call in calls {
        assert!(block_on(call).unwrap() == long);
    }
}

#[test]
fn a_one_way_is_done_when_it_is_sent() {
    let server = Server::start();
    let target = server.client_with(Orb::builder().connections_per_peer(1));
    let notes: Vec<_> = (0..20).map(|_| target.note_async(&[7; 1 << 19])).collect();
    notes.into_iter().for_each(|note| block_on(note).unwrap());
    assert_eq!(target.count().unwrap(), 20);
}

#[test]
fn a_dropped_future_abandons_its_request_and_nothing_else() {
    let (told, messages) = mpsc::channel();
    let port = pretend(move |_, mut stream| {
        while let Ok(message) = read_message(&mut stream) {
            let is_over = message_type(&message) == 0 && told.send((message, stream.try_clone().unwrap())).is_err();
            if is_over {
                return;
            }
            let next = read_message(&mut stream).unwrap();
            told.send((next, stream.try_clone().unwrap())).unwrap();
        }
    });
    // A server whose reference says that it is one of ours.
    let ours = Server::start();
    let profile = IiopProfile { port, ..profile_of(&ours) };
    let ior = Ior { type_id: String::new(), profiles: vec![profile.encode().unwrap()] };
    let orb = Orb::builder().connections_per_peer(1).build().unwrap();
    let target = Target::unchecked_narrow(&orb.reference(ior));
    let mut call = target.add_async(1, 2);
    assert!(!is_ready(&mut call));
    let (request, mut stream) = messages.recv_timeout(PATIENCE).unwrap();
    drop(call);
    let (cancel, _) = messages.recv_timeout(PATIENCE).unwrap();
    assert_eq!(message_type(&cancel), 2, "CancelRequest");
    assert_eq!(request_id(&cancel), request_id(&request));
    // The connection is used further, and the late reply finds nobody.
    let further = target.add_async(3, 4);
    let (request_2, _) = messages.recv_timeout(PATIENCE).unwrap();
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
fn time_outs_hold() {
    let server = Server::start();
    let target = server.client();
    let error = late(&target, |limited| block_on(limited.hold_async(1)));
    assert_eq!(kind_and_completion(&error), (SystemExceptionKind::Timeout, CompletionStatus::Maybe), "{error}");
    assert_eq!(block_on(target.add_async(1, 1)).unwrap(), 2, "on another connection");
    server.probe.open(1);
}

#[test]
fn a_lost_connection_ends_all_who_wait_on_it() {
    let (told, streams) = mpsc::channel();
    let port = pretend(move |_, stream| told.send(stream).unwrap());
    let target = target_at(port, Orb::builder().connections_per_peer(1));
    let calls: Vec<_> = (0..10).map(|_| target.ping_async()).collect();
    let mut stream: TcpStream = streams.recv_timeout(PATIENCE).unwrap();
    (0..10).for_each(|_| drop(read_message(&mut stream).unwrap()));
    drop(stream);
    for call in calls {
        let error = block_on(call).unwrap_err();
        assert_eq!(kind_and_completion(&error), (SystemExceptionKind::CommFailure, CompletionStatus::Maybe), "{error}");
    }
}

#[test]
fn what_was_not_acted_on_is_sent_again_on_another_connection() {
    let (told, counts) = mpsc::channel();
    let port = pretend(move |count, mut stream| {
        let request = read_message(&mut stream).unwrap();
        if count == 0 {
            // Once more on this connection, so that it is not a new one that is closed.
            answer(&mut stream, request_id(&request), 1);
            read_message(&mut stream).unwrap();
            stream
                .write_all(&bare_message(GiopVersion::V1_2, ByteOrder::NATIVE, MessageType::CloseConnection))
                .unwrap();
        } else {
            answer(&mut stream, request_id(&request), 2);
        }
        told.send(count).unwrap();
        // Until the client closes.
        let _ = stream.read(&mut [0; 64]);
    });
    let target = target_at(port, Orb::builder());
    assert_eq!(block_on(target.add_async(0, 0)).unwrap(), 1);
    assert_eq!(block_on(target.add_async(0, 0)).unwrap(), 2);
    assert_eq!((counts.recv_timeout(PATIENCE), counts.recv_timeout(PATIENCE)), (Ok(0), Ok(1)));
}

fn answer(stream: &mut TcpStream, id: u32, value: i32) {
    let mut out = Encoder::new(Wire::default());
    let body = begin_reply(&mut out, id, ReplyStatus::NoException, &[]);
    out.i32(value);
    body.end(&mut out).unwrap();
    stream.write_all(&out.to_vec()).unwrap();
}

#[test]
fn nobody_there_is_told_by_the_future() {
    let closed = ClosedPort::reserve();
    let target = target_at(closed.port(), Orb::builder());
    let calls: Vec<_> = (0..20).map(|_| target.ping_async()).collect();
    for call in calls {
        let error = block_on(call).unwrap_err();
        assert_eq!(kind_and_completion(&error), (SystemExceptionKind::Transient, CompletionStatus::No), "{error}");
    }
}

#[test]
fn a_dead_address_is_passed_over() {
    let server = Server::start();
    let dead = ClosedPort::reserve();
    let profile = |port| IiopProfile { port, ..profile_of(&server) }.encode().unwrap();
    let ior = Ior { type_id: String::new(), profiles: vec![profile(dead.port()), profile(server.port())] };
    let target = Target::unchecked_narrow(&Orb::builder().build().unwrap().reference(ior));
    assert_eq!(block_on(target.add_async(1, 2)).unwrap(), 3);
    assert_eq!(block_on(target.add_async(3, 4)).unwrap(), 7);
}

fn profile_of(server: &Server) -> IiopProfile {
    spandrel_orb_tests::support::iiop_alone(&server.object.ior().profiles[0])
}

#[test]
fn forwardings_are_followed_whatever_the_lengths_of_keys() {
    for version in [GiopVersion::V1_0, GiopVersion::V1_1, GiopVersion::V1_2] {
        let server = Server::start();
        let profile = IiopProfile { version, ..profile_of(&server) };
        let there = Ior { type_id: String::new(), profiles: vec![profile.encode().unwrap()] };
        let port = pretend(move |_, mut stream| {
            let request = read_message(&mut stream).unwrap();
            let id_at = if version == GiopVersion::V1_2 { 12 } else { 16 };
            let id = u32::from_ne_bytes(request[id_at..id_at + 4].try_into().unwrap());
            let mut out = Encoder::new(Wire::new(ByteOrder::NATIVE, version));
            let body = begin_reply(&mut out, id, ReplyStatus::LocationForward, &[]);
            there.encode(&mut out).unwrap();
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
            assert_eq!(block_on(target.add_async(1, 2)).unwrap(), 3, "it is remembered");
        }
    }
}

#[test]
fn the_table_of_those_who_wait_is_bounded() {
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
fn shutdown_ends_all_who_wait() {
    let server = Server::start();
    let target = server.client();
    let waits = target.hold_async(1);
    server.probe.await_held(1);
    let orb = target.as_object().orb().clone();
    orb.shutdown(true).unwrap();
    let error = block_on(waits).unwrap_err();
    assert_eq!(kind_and_completion(&error), (SystemExceptionKind::BadInvOrder, CompletionStatus::Maybe), "{error}");
    let error = block_on(target.ping_async()).unwrap_err();
    assert_eq!(kind_and_completion(&error), (SystemExceptionKind::BadInvOrder, CompletionStatus::No), "{error}");
    server.probe.open(1);
}

#[test]
fn a_server_that_restarts_is_found_again() {
    let kept = KeptPort::reserve();
    let server = Server::with(kept.listening(Orb::builder()));
    let target = server.client();
    block_on(target.ping_async()).unwrap();
    drop(server);
    let again = Server::with(kept.listening(Orb::builder()));
    assert_eq!(again.port(), kept.port);
    assert_eq!(block_on(target.ping_async()).unwrap_err().kind(), SystemExceptionKind::ObjectNotExist);
}
