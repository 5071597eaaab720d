//! The writes and reads of a client, and of its server, with many calls in flight on one connection.

use crate::certificates;

use std::{
    env,
    future::poll_fn,
    io::Write as _,
    pin::Pin,
    task::{Context, Poll},
    thread,
};

use spandrel::{Endpoint, Orb, OrbBuilder};
use spandrel_cdr::{Encoder, Wire};
use spandrel_giop::{ReplyStatus, begin_reply};
use spandrel_orb_tests::{
    Server, listen_beside_iiop,
    probe::Target,
    support::{block_on, fake_server, read_message},
    system_calls::{self, RECEIVES, SENDS},
};

/// The environment variable with the reference, for the client that is counted.
const TARGET: &str = "SPANDREL_CALLS_IN_FLIGHT";

/// Calls of one sequence, each begun after the reply to the one before.
const ROUNDS: u16 = 100;

/// The calls in flight.
const IN_FLIGHT: usize = 100;

/// A reply with the number 3.
fn sum_of_three(request_id: u32) -> Vec<u8> {
    let mut out = Encoder::new(Wire::default());
    let body = begin_reply(&mut out, request_id, ReplyStatus::NoException, &[]);
    out.i32(3);
    body.end(&mut out).unwrap();
    out.to_vec()
}

/// Keeps so many calls in flight.
fn call(target: &Target, in_flight: usize) {
    let sequence = async || {
        for _ in 0..ROUNDS {
            assert_eq!(target.add_async(1, 2).await.unwrap(), 3);
        }
    };
    let mut sequences: Vec<_> = (0..in_flight).map(|_| Box::pin(sequence())).collect();
    let mut poll_all = |context: &mut Context<'_>| {
        sequences.retain_mut(|sequence| Pin::as_mut(sequence).poll(context).is_pending());
        if sequences.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    };
    block_on(poll_fn(|context| poll_all(context)));
}

/// Counts the writes to sockets of a process that keeps so many calls in flight, in lockstep with its server.
fn writes(in_flight: usize) -> u32 {
    // The server answers when as many requests have arrived as can be in flight, in one write.
    let port = fake_server(move |_, mut stream| {
        let mut replies = Vec::new();
        for count in 1.. {
            let Ok(request) = read_message(&mut stream) else { return };
            replies.extend(sum_of_three(u32::from_ne_bytes(request[12..16].try_into().unwrap())));
            if count % in_flight == 0 {
                stream.write_all(&replies).unwrap();
                replies.clear();
            }
        }
    });
    let target = format!("{in_flight} corbaloc:iiop:1.2@127.0.0.1:{port}/key");
    system_calls::count("calls_in_flight::many_calls_in_flight_share_writes", SENDS, (TARGET, &target))
}

#[test]
fn many_calls_in_flight_share_writes() {
    if let Ok(target) = env::var(TARGET) {
        let (in_flight, ior) = target.split_once(' ').unwrap();
        let orb = Orb::builder().connections_per_peer(1).build().unwrap();
        let target = Target::unchecked_narrow(&orb.string_to_object(ior).unwrap());
        return call(&target, in_flight.parse().unwrap());
    }
    assert_eq!(writes(1), u32::from(ROUNDS), "a call alone is written at once");
    let per_call = f64::from(writes(IN_FLIGHT)) / (IN_FLIGHT as f64 * f64::from(ROUNDS));
    assert!(per_call < 0.2, "{per_call} writes for each call");
}

/// The environment variable with the calls in flight, for the client and server that are counted together.
const BOTH_SIDES: &str = "SPANDREL_BOTH_SIDES_IN_FLIGHT";

/// The most writes, and the most reads, of both sides for each call if calls share them. If only one side's were shared,
/// there would be more than one. Counting disturbs a process: the server finds some operations slow then, and sends their
/// replies by themselves.
const MOST_SHARED: f64 = 0.8;

/// The calls in flight, if this process is one that is counted.
fn counted() -> Option<usize> {
    Some(env::var(BOTH_SIDES).ok()?.parse().unwrap())
}

/// A client with one connection to a server.
fn pair(server: OrbBuilder) -> (Server, Target) {
    let server = Server::with(server);
    let target = server.client_with(Orb::builder().connections_per_peer(1));
    (server, target)
}

/// A server with one connection to a client, which that client has opened, and the client's object.
fn bidirectional_pair() -> (Server, Server, Target) {
    let builder = || Orb::builder().bidirectional(true).connections_per_peer(1);
    let (client, server) = (Server::with(builder().listen(Endpoint::nowhere())), Server::with(builder()));
    // After this call, the server has processed the client's listen points.
    Target::narrow(&client.orb.string_to_object(&server.ior()).unwrap()).unwrap().ping().unwrap();
    let target = Target::unchecked_narrow(&server.orb.string_to_object(&client.ior()).unwrap());
    (client, server, target)
}

/// Counts the system calls of both sides for each call, until there are at most so many.
#[track_caller]
fn expect_of_both_sides(test: &str, names: &str, in_flight: usize, most: f64) {
    let count = |in_flight: usize| {
        let test = format!("calls_in_flight::{test}");
        let counted = system_calls::count(&test, names, (BOTH_SIDES, &in_flight.to_string()));
        f64::from(counted) / (in_flight as f64 * f64::from(ROUNDS))
    };
    let alone = count(1);
    assert!(alone >= 2.0, "{alone} of {names} for a call by itself");
    let mut counts = Vec::new();
    while counts.last().is_none_or(|count| *count > most) {
        assert!(counts.len() < 5, "{counts:?} of {names} for each call, and {alone} for one by itself");
        counts.push(count(in_flight));
    }
    println!("{names}: {counts:?} for each call with {in_flight} in flight, {alone} for one by itself");
}

#[test]
fn both_sides_share_writes_and_reads() {
    if let Some(in_flight) = counted() {
        let (_server, target) = pair(Orb::builder());
        return call(&target, in_flight);
    }
    for names in [SENDS, RECEIVES] {
        expect_of_both_sides("both_sides_share_writes_and_reads", names, IN_FLIGHT, MOST_SHARED);
    }
}

#[test]
fn both_sides_of_the_unix_domain_share_writes_and_reads() {
    if let Some(in_flight) = counted() {
        let (_server, target) = pair(listen_beside_iiop(Orb::builder(), "uds"));
        return call(&target, in_flight);
    }
    for names in [SENDS, RECEIVES] {
        expect_of_both_sides("both_sides_of_the_unix_domain_share_writes_and_reads", names, IN_FLIGHT, MOST_SHARED);
    }
}

#[test]
fn both_sides_of_tls_share_writes_and_reads() {
    if let Some(in_flight) = counted() {
        let server = certificates::server();
        let target = server.client_with(certificates::client().connections_per_peer(1));
        return call(&target, in_flight);
    }
    for names in [SENDS, RECEIVES] {
        expect_of_both_sides("both_sides_of_tls_share_writes_and_reads", names, IN_FLIGHT, MOST_SHARED);
    }
}

#[test]
fn callbacks_over_one_connection_share_writes_and_reads() {
    if let Some(in_flight) = counted() {
        let (_client, _server, target) = bidirectional_pair();
        return call(&target, in_flight);
    }
    for names in [SENDS, RECEIVES] {
        expect_of_both_sides("callbacks_over_one_connection_share_writes_and_reads", names, IN_FLIGHT, MOST_SHARED);
    }
}

#[test]
fn both_sides_of_shared_memory_share_wake_ups() {
    if let Some(in_flight) = counted() {
        let (_server, target) = pair(listen_beside_iiop(Orb::builder(), "shm"));
        return call(&target, in_flight);
    }
    // Of the rings, of the reactors and of threads that wait for locks.
    let names = "futex,write,sendto,sendmsg,read,recvfrom,recvmsg,epoll_wait,epoll_pwait,poll,ppoll";
    expect_of_both_sides("both_sides_of_shared_memory_share_wake_ups", names, IN_FLIGHT, 1.0);
}

#[test]
fn threads_on_one_connection_share_writes_and_reads() {
    if let Some(threads) = counted() {
        let (_server, target) = pair(Orb::builder());
        let call = || (0..ROUNDS).for_each(|_| assert_eq!(target.add(1, 2).unwrap(), 3));
        return thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(call))));
    }
    // System calls take long when they are counted, so that further threads begin during each write. Otherwise there are 1.8
    // writes and 1.0 reads.
    for (names, most) in [(SENDS, 1.4), (RECEIVES, 0.8)] {
        expect_of_both_sides("threads_on_one_connection_share_writes_and_reads", names, 32, most);
    }
}
