//! Several whole requests of one read: their replies, and what a reply never waits for.

#[cfg(target_os = "linux")]
use std::env;
use std::{
    collections::BTreeSet,
    io::Write as _,
    net::{Shutdown, TcpStream},
};

use spandrel::{Orb, diagnostics::statistics::Level};
use spandrel_cdr::{ByteOrder, Encode as _, Encoder, GiopVersion, Ior, Limits, Wire};
use spandrel_giop::{CancelRequest, Message, MessageType, ReplyHeader, ReplyStatus};
#[cfg(target_os = "linux")]
use spandrel_orb_tests::system_calls::{self, SENDS};
use spandrel_orb_tests::{
    Repeater, Server, configured_servers,
    pipelined::{connect, echo, hold, read_reply, request, request_to},
    probe::RelaySkeleton,
    support::{TEST_TIMEOUT, in_background, read_message, read_some, wait_until},
};

fn start() -> Server {
    Server::with(configured_servers(Orb::builder()))
}

/// Makes this operation, which is called without a wait, one that is known to be quick.
fn learn(server: &Server, mut encoded: impl FnMut(u32) -> Vec<u8>) {
    let mut stream = connect(server);
    for _ in 0..8 {
        stream.write_all(&(0..32).flat_map(&mut encoded).collect::<Vec<u8>>()).unwrap();
        (0..32).for_each(|_| assert!(read_reply(&mut stream).1 > 0));
    }
}

/// The ids of so many replies, in order of the ids: a request that is found to be slow is overtaken.
fn read_replies(stream: &mut TcpStream, count: u32) -> Vec<u32> {
    let ids: BTreeSet<u32> = (0..count).map(|_| read_reply(stream).0).collect();
    ids.into_iter().collect()
}

#[test]
fn each_request_has_its_whole_reply_whatever_lies_between_them() {
    let server = start();
    learn(&server, |id| echo(&server, id, &[7]));
    let mut stream = connect(&server);
    let lengths = [0, 1, 100, 5_000, 20_000, 100_000];
    let cancel = |id| {
        let mut out = Encoder::new(Wire::new(ByteOrder::Little, GiopVersion::V1_2));
        CancelRequest { request_id: id }.encode(&mut out).unwrap();
        out.to_vec()
    };
    let mut all = Vec::new();
    for id in 0..300_u32 {
        all.extend(match id % 7 {
            3 => request(&server, id, "refuse", |out| out.i32(id as i32)),
            5 => [cancel(id + 1000), request(&server, id, "no_such_operation", |_| {})].concat(),
            _ => echo(&server, id, &vec![id as u8; lengths[id as usize % lengths.len()]]),
        });
    }
    let mut sending = stream.try_clone().unwrap();
    let sent = in_background(move || sending.write_all(&all).unwrap());
    let mut missing: BTreeSet<u32> = (0..300).collect();
    while !missing.is_empty() {
        let octets = read_message(&mut stream).unwrap();
        let message = Message::whole(octets.as_slice().into()).unwrap();
        assert_eq!(message.header.message_type, MessageType::Reply);
        let mut input = message.decoder(Limits::default());
        let header = ReplyHeader::decode(&mut input).unwrap();
        let id = header.request_id;
        assert!(missing.remove(&id), "request {id}");
        let expected = match id % 7 {
            3 => ReplyStatus::UserException,
            5 => ReplyStatus::SystemException,
            _ => ReplyStatus::NoException,
        };
        assert_eq!(header.status, expected, "request {id}");
        if expected == ReplyStatus::NoException {
            let len = lengths[id as usize % lengths.len()];
            assert!(octets.len() >= len && octets.ends_with(&vec![id as u8; len]), "request {id}");
        }
    }
    sent.recv_timeout(TEST_TIMEOUT).unwrap();
    wait_until("the release of the memory", || server.orb.statistics().level(Level::OctetsReceived) == 0);
}

#[test]
fn a_reply_does_not_wait_for_an_operation_that_is_new() {
    let server = start();
    learn(&server, |id| echo(&server, id, &[7]));
    let mut stream = connect(&server);
    stream.write_all(&[echo(&server, 8, &[7]), echo(&server, 9, &[7]), hold(&server, 1)].concat()).unwrap();
    assert_eq!(read_replies(&mut stream, 2), [8, 9]);
    server.probe.await_held(1);
    server.probe.open(1);
    assert_eq!(read_reply(&mut stream).0, 1);
}

#[test]
fn a_reply_waits_for_an_operation_that_is_slow_for_the_first_time_until_the_monitor_finds_it() {
    let server = start();
    server.probe.open(1);
    learn(&server, |id| echo(&server, id, &[7]));
    learn(&server, |_| hold(&server, 1));
    let mut stream = connect(&server);
    for gate in 2..6 {
        stream.write_all(&[echo(&server, 8, &[7]), echo(&server, 9, &[7]), hold(&server, gate)].concat()).unwrap();
        assert_eq!(read_replies(&mut stream, 2), [8, 9], "while the third one is held");
        server.probe.await_held(1);
        server.probe.open(gate);
        assert_eq!(read_reply(&mut stream).0, gate);
    }
}

#[test]
fn a_servant_whose_call_waits_for_the_client_of_a_reply_lets_the_reply_go() {
    let (server, other) = (start(), start());
    let relay = server.poa.activate(RelaySkeleton::new(Repeater)).unwrap();
    // The encoder borrows what it writes for longer than the servers live.
    let target: &'static Ior = Box::leak(Box::new(other.object.ior().clone()));
    let hold_there = |gate| {
        request_to(&relay, gate, "hold", |out| {
            target.encode(out).unwrap();
            out.u32(gate);
        })
    };
    learn(&server, |id| echo(&server, id, &[7]));
    other.probe.open(1);
    learn(&server, |_| hold_there(1));
    let mut stream = connect(&server);
    stream.write_all(&[echo(&server, 8, &[7]), hold_there(2), echo(&server, 9, &[7])].concat()).unwrap();
    assert_eq!(read_reply(&mut stream).0, 8, "before the call that its client ends");
    other.probe.await_held(1);
    other.probe.open(2);
    assert_eq!(read_replies(&mut stream, 2), [2, 9]);
}

#[test]
fn a_client_that_ends_its_side_gets_all_replies_before_the_end() {
    let server = start();
    learn(&server, |id| echo(&server, id, &[7]));
    for requests in [1, 2, 100] {
        let mut stream = connect(&server);
        stream.write_all(&(0..requests).flat_map(|id| echo(&server, id, &[7])).collect::<Vec<u8>>()).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        assert_eq!(read_replies(&mut stream, requests), (0..requests).collect::<Vec<_>>());
        assert_eq!(read_some(&stream, &mut [0]).unwrap(), 0);
    }
}

#[test]
fn replies_before_a_message_that_is_cut_or_wrong_are_sent() {
    let server = start();
    learn(&server, |id| echo(&server, id, &[7]));
    let last = echo(&server, 9, &[7; 100]);
    for rest in [&last[..5], &last[..40], b"GIOP", b"no GIOP at all"] {
        let mut stream = connect(&server);
        stream
            .write_all(&[&(0..3).flat_map(|id| echo(&server, id, &[7])).collect::<Vec<u8>>(), rest].concat())
            .unwrap();
        assert_eq!(read_replies(&mut stream, 3), [0, 1, 2], "before {rest:?}");
    }
}

#[test]
fn replies_that_a_client_does_not_take_are_charged_and_none_is_lost() {
    const REQUESTS: u32 = 3_000;
    let server = Server::with(configured_servers(Orb::builder()).socket_queues(Some(16 * 1024), None));
    learn(&server, |id| echo(&server, id, &[7]));
    let mut stalled = connect(&server);
    let mut stream = stalled.try_clone().unwrap();
    let all: Vec<u8> = (0..REQUESTS).flat_map(|id| echo(&server, id, &vec![7; id as usize])).collect();
    let sending = in_background(move || stream.write_all(&all).unwrap());
    assert!(sending.recv_timeout(std::time::Duration::from_millis(300)).is_err(), "the server stops reading");
    let mut missing: BTreeSet<u32> = (0..REQUESTS).collect();
    while !missing.is_empty() {
        let (id, len) = read_reply(&mut stalled);
        assert!(missing.remove(&id) && len >= id as usize);
    }
    sending.recv_timeout(TEST_TIMEOUT).unwrap();
    wait_until("the release of the memory", || server.orb.statistics().level(Level::OctetsReceived) == 0);
}

#[test]
fn a_shutdown_sends_the_replies_before_close_connection() {
    for _ in 0..20 {
        let server = start();
        learn(&server, |id| echo(&server, id, &[7]));
        let mut stream = connect(&server);
        stream.write_all(&(0..200).flat_map(|id| echo(&server, id, &[7])).collect::<Vec<u8>>()).unwrap();
        let _ = read_message(&mut stream).unwrap();
        server.orb.shutdown().unwrap();
        let mut replied = BTreeSet::new();
        loop {
            let message = read_message(&mut stream).unwrap();
            if message[7] == 5 {
                break;
            }
            let message = Message::whole(message.as_slice().into()).unwrap();
            let header = ReplyHeader::decode(&mut message.decoder(Limits::default())).unwrap();
            assert!(replied.insert(header.request_id));
        }
    }
}

/// Set for the process whose system calls are counted.
#[cfg(target_os = "linux")]
const IS_COUNTED: &str = "SPANDREL_COUNTS_WRITES";

#[test]
#[cfg(target_os = "linux")]
fn replies_to_the_requests_of_one_segment_share_writes() {
    const SEGMENTS: u32 = 100;
    const REQUESTS: u32 = 100;
    if env::var_os(IS_COUNTED).is_some() {
        let server = start();
        let segment: Vec<u8> = (0..REQUESTS).flat_map(|id| echo(&server, id, &[7])).collect();
        let mut stream = connect(&server);
        for _ in 0..SEGMENTS {
            stream.write_all(&segment).unwrap();
            read_replies(&mut stream, REQUESTS);
        }
        return;
    }
    // The client writes each segment by one call. On a busy machine some operations are not quick.
    let most = SEGMENTS * REQUESTS / 5;
    let mut writes = Vec::new();
    while writes.last().is_none_or(|writes| *writes > most) {
        assert!(writes.len() < 5, "{writes:?} of at most {most}");
        let test = "pipelining::replies_to_the_requests_of_one_segment_share_writes";
        writes.push(system_calls::count(test, &format!("{SENDS},write"), (IS_COUNTED, "1")));
    }
}
