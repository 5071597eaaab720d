//! The writes of a client with many calls in flight on one connection.

use std::{
    env,
    future::poll_fn,
    io::Write as _,
    pin::Pin,
    task::{Context, Poll},
};

use spandrel::Orb;
use spandrel_cdr::{Encoder, Wire};
use spandrel_giop::{ReplyStatus, begin_reply};
use spandrel_orb_tests::{
    probe::Target,
    support::{block_on, fake_server, read_message},
    system_calls::{self, SENDS},
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
