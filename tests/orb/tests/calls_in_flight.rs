//! The writes of a client with many calls in flight on one connection.

use std::{
    env, fs,
    future::poll_fn,
    io::Write as _,
    pin::Pin,
    process::{Command, Stdio},
    task::{Context, Poll},
};

use spandrel::Orb;
use spandrel_cdr::{Encoder, Wire};
use spandrel_giop::{ReplyStatus, begin_reply};
use spandrel_orb_tests::{
    probe::Target,
    support::{block_on, fake_server, read_message},
};
use spandrel_test_support::{ChildProcess, this_program};

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
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("counts");
    let mut command = Command::new("strace");
    command.args(["-f", "-c", "-U", "name,calls", "-e", "trace=sendto,sendmsg,writev", "-o"]).arg(&log);
    command.arg(this_program().get_program());
    command.args(["--exact", "calls_in_flight::many_calls_in_flight_share_writes"]);
    command.env(TARGET, format!("{in_flight} corbaloc:iiop:1.2@127.0.0.1:{port}/key")).stdout(Stdio::piped());
    let output = ChildProcess::start(&mut command).wait_with_output();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let counts = fs::read_to_string(log).unwrap();
    // The last line is the total.
    let calls = |line: &str| line.strip_prefix("total")?.trim().parse().ok();
    counts.lines().find_map(calls).unwrap_or_else(|| panic!("{counts}"))
}

#[test]
fn many_calls_in_flight_share_writes() {
    if let Ok(target) = env::var(TARGET) {
        let (in_flight, ior) = target.split_once(' ').unwrap();
        let orb = Orb::builder().connections_per_peer(1).build().unwrap();
        let target = Target::unchecked_narrow(&orb.string_to_object(ior).unwrap());
        return call(&target, in_flight.parse().unwrap());
    }
    let there = Command::new("strace").arg("-V").output();
    assert!(there.is_ok_and(|output| output.status.success()), "this test needs strace: apt-get install strace");
    assert_eq!(writes(1), u32::from(ROUNDS), "a call alone is written at once");
    let per_call = f64::from(writes(IN_FLIGHT)) / (IN_FLIGHT as f64 * f64::from(ROUNDS));
    assert!(per_call < 0.2, "{per_call} writes for each call");
}
