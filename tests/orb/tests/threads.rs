//! Client threads: sharing connections, slow servants, leadership in reading.

use std::{
    thread,
    time::{Duration, Instant},
};

use spandrel::{CompletionStatus, Orb, SystemExceptionKind};
use spandrel_orb_tests::{
    Server,
    probe::Target,
    support::{TEST_TIMEOUT, call_until_timeout, in_background},
};

#[test]
fn a_held_call_does_not_block_the_next_on_the_same_connection() {
    let server = Server::start();
    let target = server.client_with(Orb::builder().connections_per_peer(1));
    let held = target.clone();
    let first = in_background(move || held.hold(1));
    // Answered over the same connection while call 1 is in its upcall; only then can call 1 end.
    let second = target.clone();
    let second = in_background(move || second.release(1));
    second.recv_timeout(TEST_TIMEOUT).expect("call 2 is answered while call 1 is held").unwrap();
    first.recv_timeout(TEST_TIMEOUT).expect("call 1 ends").unwrap();
    assert_eq!(target.add(1, 1).unwrap(), 2);
}

#[test]
fn many_calls_may_be_held_on_one_connection() {
    const HELD: u32 = 40;
    let server = Server::start();
    let target = server.client_with(Orb::builder().connections_per_peer(1));
    let held: Vec<_> = (0..HELD)
        .map(|gate| {
            let target = target.clone();
            in_background(move || target.hold(gate))
        })
        .collect();
    for gate in (0..HELD).rev() {
        target.release(gate).unwrap();
    }
    for call in held {
        call.recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
    }
}

#[test]
fn a_slow_servant_blocks_no_other_client() {
    let server = Server::start();
    let (slow, quick) = (server.client(), server.client());
    let held = in_background(move || slow.hold(1));
    for i in 0..1000 {
        assert_eq!(quick.add(i, 1).unwrap(), i + 1);
    }
    assert!(held.try_recv().is_err());
    quick.release(1).unwrap();
    held.recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
}

#[test]
fn threads_that_share_connections_get_their_own_replies() {
    for connections in [1, 2, 5] {
        let server = Server::start();
        let target = server.client_with(Orb::builder().connections_per_peer(connections));
        thread::scope(|scope| {
            for id in 0..12 {
                let target = target.clone();
                scope.spawn(move || call_at_random(&target, id));
            }
        });
    }
}

fn call_at_random(target: &Target, id: i32) {
    let mut random = fastrand::Rng::with_seed(u64::from(id.unsigned_abs()));
    for round in 0..150 {
        match random.u8(..4) {
            0 => assert_eq!(target.add(id, round).unwrap(), id + round),
            1 => assert_eq!(target.echo(&format!("{id}/{round}")).unwrap(), format!("{id}/{round}")),
            2 => target.note(&[7; 100]).unwrap(),
            _ => {
                let data = vec![random.u8(..); random.usize(..200_000)];
                assert_eq!(target.echo_octets(&data).unwrap(), data);
            }
        }
    }
}

#[test]
fn a_leader_that_times_out_hands_over_reading() {
    let server = Server::start();
    let target = server.client_with(Orb::builder().connections_per_peer(1));
    let first = target.clone();
    let timed_out = in_background(move || call_until_timeout(&first, |limited| limited.hold(1)));
    let second = target.clone();
    let held = in_background(move || second.hold(2));
    let error = timed_out.recv_timeout(TEST_TIMEOUT).unwrap();
    assert_eq!((error.kind(), error.completed()), (SystemExceptionKind::Timeout, CompletionStatus::Maybe));
    server.probe.open(2);
    held.recv_timeout(TEST_TIMEOUT).expect("another thread reads").unwrap();
    server.probe.open(1);
    assert_eq!(target.add(2, 2).unwrap(), 4);
}

#[test]
fn a_timed_out_call_does_not_affect_later_calls() {
    let server = Server::start();
    let target = server.client();
    for _ in 0..5 {
        let error = call_until_timeout(&target, |limited| {
            let (time, before) = (limited.as_object().timeout().unwrap(), Instant::now());
            let outcome = limited.hold(1);
            assert!(before.elapsed() >= time);
            assert!(before.elapsed() < time + Duration::from_secs(10));
            outcome
        });
        assert_eq!((error.kind(), error.completed()), (SystemExceptionKind::Timeout, CompletionStatus::Maybe));
        assert_eq!(target.add(3, 4).unwrap(), 7);
    }
    server.probe.open(1);
}

#[test]
fn callbacks_between_two_servers_do_not_deadlock() {
    let (left, right) = (Server::start(), Server::start());
    let orb = Orb::builder().connections_per_peer(1).build().unwrap();
    let to_left = Target::narrow(&orb.string_to_object(&left.ior()).unwrap()).unwrap();
    let to_right = Target::narrow(&orb.string_to_object(&right.ior()).unwrap()).unwrap();
    for _ in 0..100 {
        to_left.call_back(Some(&to_right)).unwrap();
        to_right.call_back(Some(&to_left)).unwrap();
        to_left.call_back(Some(&to_left)).unwrap();
    }
}
