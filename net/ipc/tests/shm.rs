//! Features of connections through shared memory; the contract of all families is tested in `families`.
#![cfg(target_os = "linux")]

use std::io::{ErrorKind, IoSlice, IoSliceMut};
use std::net::Shutdown;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use spandrel_ipc::shm::{Acceptor, AcceptorOptions, Addr, Connector, Credentials, Stream, pair};
use spandrel_ipc::{Interest, Pollable, is_timeout, unix, wait_ready};
use spandrel_test_support::{TEST_TIMEOUT, pattern, within_time};

const RING: usize = 4096;
const BOTH: Interest = Interest::from_bits(Interest::INPUT.bits() | Interest::OUTPUT.bits());

/// Two ends over rings of 4,096 octets whose waits are bounded.
fn small() -> (Stream, Stream) {
    let (one, other) = pair(1).unwrap();
    for stream in [&one, &other] {
        stream.set_recv_timeout(Some(TEST_TIMEOUT)).unwrap();
        stream.set_send_timeout(Some(TEST_TIMEOUT)).unwrap();
    }
    (one, other)
}

/// Whether the handle shows input now.
fn shows_input<P: Pollable>(endpoint: &P) -> bool {
    let mut handles = [PollFd::from_borrowed_fd(endpoint.handle(), PollFlags::IN)];
    poll(&mut handles, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap() == 1
}

#[test]
fn queues_are_powers_of_two_within_bounds() {
    let acceptor = Acceptor::open(&Addr::unnamed()).unwrap();
    let connector = Connector::new().send_queue(5000).recv_queue(1);
    let client = connector.open(&acceptor.local_addr().unwrap()).unwrap();
    let (server, _) = acceptor.accept().unwrap();
    assert_eq!((client.send_queue(), client.recv_queue()), (8192, 4096));
    assert_eq!((server.send_queue(), server.recv_queue()), (4096, 8192));
    assert_eq!(pair((64 << 20) + 1).unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(pair(usize::MAX).unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(pair(64 << 20).unwrap().0.send_queue(), 64 << 20);
}

#[test]
fn each_side_has_the_credentials_of_the_other() {
    let acceptor = Acceptor::open(&Addr::unnamed()).unwrap();
    let addr = acceptor.local_addr().unwrap();
    let client = Connector::connect(&addr).unwrap();
    let (server, from) = acceptor.accept().unwrap();
    assert!(from.is_unnamed() && client.local_addr().unwrap().is_unnamed());
    assert_eq!(client.remote_addr().unwrap(), addr);
    assert_eq!(server.local_addr().unwrap(), addr);
    assert_eq!(client.peer_credentials().unwrap(), Credentials::own());
    assert_eq!(server.peer_credentials().unwrap(), Credentials::own());
}

#[test]
fn a_ring_takes_up_to_its_capacity() {
    let (one, other) = small();
    one.set_nonblocking(true).unwrap();
    let data = pattern(3 * RING);
    let mut sent = 0;
    let error = loop {
        match one.send(&data[sent..]) {
            Ok(n) => sent += n,
            Err(error) => break error,
        }
    };
    assert_eq!((sent, error.kind()), (RING, ErrorKind::WouldBlock));
    let mut received = vec![0; RING];
    other.recv_n(&mut received).unwrap();
    assert!(received == data[..RING]);
    assert_eq!(other.try_recv(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
    assert!(one.send(&data[RING..]).unwrap() > 0, "there is space again");
}

#[test]
fn pieces_are_gathered_and_scattered_across_the_edge_of_the_ring() {
    let (one, other) = small();
    let data = pattern(1500);
    for round in 0..20 {
        let (a, b) = data.split_at(round * 31);
        let mut slices = [IoSlice::new(a), IoSlice::new(&[]), IoSlice::new(b)];
        one.send_n_v(&mut slices).unwrap();
        let (mut first, mut second) = (vec![0; 700], vec![0; 800]);
        other.recv_n_v(&mut [IoSliceMut::new(&mut first), IoSliceMut::new(&mut second)]).unwrap();
        assert!([first, second].concat() == data, "in round {round}");
    }
    assert_eq!(one.send(&[]).unwrap(), 0);
    assert_eq!(other.recv(&mut []).unwrap(), 0, "nothing was asked for");
}

#[test]
fn megabytes_pass_both_ways_through_the_smallest_rings() {
    let data = pattern(3 << 20);
    let (one, other) = small();
    let exchange = |stream: &Stream| {
        thread::scope(|scope| {
            scope.spawn(|| {
                data.chunks(10_007).for_each(|piece| stream.send_n(piece).unwrap());
                stream.close_writer().unwrap();
            });
            let mut received = Vec::new();
            let mut buffer = [0; 3001];
            loop {
                match stream.recv(&mut buffer).unwrap() {
                    0 => break assert!(received == data, "octets were lost or changed"),
                    n => received.extend_from_slice(&buffer[..n]),
                }
            }
        });
    };
    thread::scope(|scope| {
        scope.spawn(|| exchange(&one));
        exchange(&other);
    });
}

#[test]
fn several_threads_may_send_and_receive() {
    let (one, other) = small();
    const EACH: usize = 20_000;
    let total: u64 = thread::scope(|scope| {
        for octet in 1..=3 {
            let one = &one;
            scope.spawn(move || one.send_n(&[octet; EACH]).unwrap());
        }
        let receivers: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    let mut octets = [0; EACH];
                    other.recv_n(&mut octets).unwrap();
                    octets.iter().map(|octet| u64::from(*octet)).sum::<u64>()
                })
            })
            .collect();
        receivers.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(total, (1 + 2 + 3) * EACH as u64);
}

#[test]
fn octets_sent_before_closing_are_received_and_then_the_end() {
    let (one, other) = small();
    one.send_n(b"last words").unwrap();
    drop(one);
    let mut octets = [0; 10];
    other.recv_n(&mut octets).unwrap();
    assert_eq!(&octets, b"last words");
    for _ in 0..3 {
        assert_eq!(other.recv(&mut octets).unwrap(), 0);
    }
    assert_eq!(other.send(b"closed").unwrap_err().kind(), ErrorKind::BrokenPipe);
    assert_eq!(other.try_send(b"closed").unwrap_err().kind(), ErrorKind::BrokenPipe);
}

#[test]
fn a_side_with_a_closed_reader_gets_no_more_octets() {
    let (one, other) = small();
    other.send_n(b"queued").unwrap();
    one.close_reader().unwrap();
    assert_eq!(other.send(b"more").unwrap_err().kind(), ErrorKind::BrokenPipe);
    let mut octets = [0; 16];
    assert_eq!(one.recv(&mut octets).unwrap(), 6, "what is queued is received");
    assert_eq!(one.recv(&mut octets).unwrap(), 0);
    one.send_n(b"still").unwrap();
    assert_eq!(other.recv(&mut octets).unwrap(), 5);
}

#[test]
fn shutting_down_ends_the_waits_of_both_sides() {
    let (one, other) = small();
    let has_begun = AtomicBool::new(false);
    thread::scope(|scope| {
        let receivers = [&one, &other].map(|stream| {
            let has_begun = &has_begun;
            scope.spawn(move || {
                let mut received = 0;
                loop {
                    match stream.recv(&mut [0; RING]).unwrap() {
                        0 => break received,
                        n => received += n,
                    }
                    has_begun.store(true, Ordering::Relaxed);
                }
            })
        });
        let sender = scope.spawn(|| {
            let mut sent = 0;
            while let Ok(n) = one.send(&[1; RING]) {
                sent += n;
            }
            sent
        });
        while !has_begun.load(Ordering::Relaxed) {
            thread::yield_now();
        }
        one.shutdown(Shutdown::Both).unwrap();
        let sent = sender.join().unwrap();
        assert_eq!(receivers.map(|thread| thread.join().unwrap()), [0, sent], "what was sent is received");
    });
    assert_eq!(one.send(b"more").unwrap_err().kind(), ErrorKind::BrokenPipe);
    assert_eq!(other.send(b"more").unwrap_err().kind(), ErrorKind::BrokenPipe);
}

#[test]
fn shutting_down_wakes_a_thread_that_waits_for_space() {
    let (one, other) = small();
    while one.try_send(&[0; RING]).is_ok() {}
    thread::scope(|scope| {
        let senders = [0, 1].map(|_| scope.spawn(|| one.send(b"more").unwrap_err().kind()));
        one.close_writer().unwrap();
        assert_eq!(senders.map(|thread| thread.join().unwrap()), [ErrorKind::BrokenPipe; 2]);
    });
    other.recv_n(&mut [0; RING]).unwrap();
    assert_eq!(other.recv(&mut [0]).unwrap(), 0);
}

#[test]
fn timeouts_are_respected() {
    let (one, other) = small();
    const TIME: Duration = Duration::from_millis(30);
    one.set_recv_timeout(Some(TIME)).unwrap();
    assert_eq!(one.recv_timeout(), Some(TIME));
    let start = Instant::now();
    assert!(is_timeout(&one.recv(&mut [0]).unwrap_err()));
    assert!(start.elapsed() >= TIME);

    one.set_send_timeout(Some(TIME)).unwrap();
    let error = one.send_n(&[0; 2 * RING]).unwrap_err();
    assert!(error.is_timeout());
    assert_eq!(error.transferred, RING);
    assert_eq!(other.recv_n_within(&mut [0; 2 * RING], TIME).unwrap_err().transferred, RING);
    assert_eq!(other.recv_within(&mut [0], TIME).unwrap_err().kind(), ErrorKind::TimedOut);
    assert_eq!(one.set_recv_timeout(Some(Duration::ZERO)).unwrap_err().kind(), ErrorKind::InvalidInput);

    // Longer than a sleeper's time slice.
    let start = Instant::now();
    assert!(other.recv_within(&mut [0], Duration::from_millis(450)).is_err());
    assert!((450..20_000).contains(&start.elapsed().as_millis()), "{:?}", start.elapsed());
}

#[test]
fn a_sleeper_is_woken_by_the_peer() {
    for spin in [Duration::ZERO, Duration::from_micros(50), Duration::from_secs(1)] {
        let acceptor = Acceptor::open_with(&Addr::unnamed(), &AcceptorOptions::default().spin(spin)).unwrap();
        let client = Connector::new().spin(spin).open(&acceptor.local_addr().unwrap()).unwrap();
        let (server, _) = acceptor.accept().unwrap();
        let echo = thread::spawn(move || {
            let mut buffer = [0; 64];
            while server.recv_n(&mut buffer).is_ok() {
                server.send_n(&buffer).unwrap();
            }
        });
        within_time(move || {
            for i in 0..2_000_u32 {
                let octets = [i as u8; 64];
                client.send_n(&octets).unwrap();
                let mut buffer = [0; 64];
                client.recv_n(&mut buffer).unwrap();
                assert_eq!(buffer, octets);
            }
        });
        echo.join().unwrap();
    }
}

#[test]
fn readiness_follows_the_rings() {
    let (one, other) = small();
    let now = Some(Duration::ZERO);
    assert_eq!(wait_ready(&one, BOTH, now).unwrap(), Interest::OUTPUT);
    assert_eq!(wait_ready(&one, Interest::INPUT, now).unwrap(), Interest::NONE);
    other.send_n(b"octets").unwrap();
    assert!(one.pending());
    assert_eq!(wait_ready(&one, BOTH, now).unwrap(), BOTH);
    while one.try_send(&[0; RING]).is_ok() {}
    assert_eq!(wait_ready(&one, BOTH, now).unwrap(), Interest::INPUT);
    one.recv(&mut [0; 16]).unwrap();
    assert!(!one.pending());
    assert_eq!(wait_ready(&one, BOTH, now).unwrap(), Interest::NONE);
    other.recv(&mut [0; RING]).unwrap();
    assert_eq!(wait_ready(&one, BOTH, Some(TEST_TIMEOUT)).unwrap(), Interest::OUTPUT);
    assert_eq!(one.prepare(Interest::NONE).wait_for, Interest::NONE);
    assert_eq!(one.prepare(Interest::OUTPUT).wait_for, Interest::INPUT);
    assert!(!one.is_plain());
}

#[test]
fn the_doorbell_rings_only_after_an_announcement() {
    let (one, other) = small();
    other.send_n(b"unannounced").unwrap();
    assert!(!shows_input(&one));
    assert_eq!(one.prepare(Interest::INPUT).ready, Interest::INPUT, "there is no need to wait, nor to ring");
    other.send_n(b"unannounced").unwrap();
    assert!(!shows_input(&one));
    one.recv_n(&mut [0; 22]).unwrap();

    assert_eq!(one.prepare(Interest::INPUT).ready, Interest::NONE);
    other.send_n(b"announced").unwrap();
    assert!(shows_input(&one));
    assert_eq!(one.interpret(Interest::INPUT, Interest::INPUT), Interest::INPUT);
    assert!(!shows_input(&one), "once is enough");
    other.send_n(b"again").unwrap();
    assert!(!shows_input(&one), "each announcement counts once");
}

/// Sends and receives on one thread, as a handler of a reactor does.
fn exchange_by_waiting(stream: &Stream, data: &[u8]) {
    let (mut sent, mut received) = (0, Vec::new());
    let mut buffer = [0; 1000];
    while received.len() < data.len() || sent < data.len() {
        let wanted = if sent < data.len() { BOTH } else { Interest::INPUT };
        let ready = wait_ready(stream, wanted, Some(TEST_TIMEOUT)).unwrap();
        assert!(!ready.is_none(), "nothing happened for long");
        if ready.contains(Interest::INPUT) {
            match stream.try_recv(&mut buffer) {
                Ok(n) => received.extend_from_slice(&buffer[..n]),
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
        }
        if ready.contains(Interest::OUTPUT) {
            match stream.try_send(&data[sent..]) {
                Ok(n) => sent += n,
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
        }
    }
    assert!(received == data, "octets were lost or changed");
}

#[test]
fn two_reactors_exchange_much_through_small_rings() {
    let (one, other) = small();
    let data = pattern(1 << 20);
    thread::scope(|scope| {
        scope.spawn(|| exchange_by_waiting(&one, &data));
        exchange_by_waiting(&other, &data);
    });
}

#[test]
fn a_reactor_and_a_blocking_peer_exchange_octets() {
    let (one, other) = small();
    let data = pattern(1 << 20);
    thread::scope(|scope| {
        scope.spawn(|| exchange_by_waiting(&one, &data));
        scope.spawn(|| other.send_n(&data).unwrap());
        let mut received = vec![0; data.len()];
        other.recv_n(&mut received).unwrap();
        assert!(received == data);
    });
}

#[test]
fn a_wait_on_the_handle_reports_the_end() {
    let (one, other) = small();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| wait_ready(&one, Interest::INPUT, Some(TEST_TIMEOUT)).unwrap());
        drop(other);
        assert_eq!(waiter.join().unwrap(), Interest::INPUT);
    });
    assert_eq!(one.try_recv(&mut [0]).unwrap(), 0);
    assert_eq!(wait_ready(&one, BOTH, Some(TEST_TIMEOUT)).unwrap(), BOTH);

    // A half-close does not end the connection: the doorbell signals it.
    let (one, other) = small();
    assert!(one.prepare(Interest::INPUT).ready.is_none());
    other.close_writer().unwrap();
    assert_eq!(wait_ready(&one, Interest::INPUT, Some(TEST_TIMEOUT)).unwrap(), Interest::INPUT);
    assert_eq!(one.try_recv(&mut [0]).unwrap(), 0);
}

#[test]
fn many_connections_are_served_at_once() {
    let acceptor = Acceptor::open(&Addr::unnamed()).unwrap();
    let addr = acceptor.local_addr().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..60 {
                let (stream, _) = acceptor.accept().unwrap();
                scope.spawn(move || {
                    let mut octets = [0; 1000];
                    stream.recv_n(&mut octets).unwrap();
                    stream.send_n(&octets).unwrap();
                });
            }
        });
        for i in 0..60 {
            let addr = &addr;
            scope.spawn(move || {
                let stream = Connector::connect(addr).unwrap();
                stream.send_n(&[i; 1000]).unwrap();
                let mut octets = [0; 1000];
                stream.recv_n_within(&mut octets, TEST_TIMEOUT).unwrap();
                assert_eq!(octets, [i; 1000]);
            });
        }
    });
    assert_eq!(acceptor.refused(), 0);
}

#[test]
fn a_silent_connection_does_not_delay_others() {
    let acceptor = Acceptor::open(&Addr::unnamed()).unwrap();
    let addr = acceptor.local_addr().unwrap();
    let silent: Vec<_> = (0..3).map(|_| unix::Connector::connect(&addr).unwrap()).collect();
    acceptor.set_nonblocking(true).unwrap();
    assert_eq!(acceptor.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    assert!(!shows_input(&acceptor), "they are pending, without an event");

    let client = Connector::connect(&addr).unwrap();
    assert_eq!(wait_ready(&acceptor, Interest::INPUT, Some(TEST_TIMEOUT)).unwrap(), Interest::INPUT);
    let (server, _) = acceptor.accept().unwrap();
    client.send_n(b"served").unwrap();
    server.recv_n(&mut [0; 6]).unwrap();

    // Closed connections are removed.
    drop(silent);
    assert_eq!(wait_ready(&acceptor, Interest::INPUT, Some(TEST_TIMEOUT)).unwrap(), Interest::INPUT);
    assert_eq!(acceptor.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    assert_eq!(acceptor.refused(), 3);
}

#[test]
fn the_number_of_pending_connections_is_limited() {
    let acceptor = Acceptor::open(&Addr::unnamed()).unwrap();
    acceptor.set_nonblocking(true).unwrap();
    let addr = acceptor.local_addr().unwrap();
    let silent: Vec<_> = (0..70).map(|_| unix::Connector::connect(&addr).unwrap()).collect();
    assert_eq!(acceptor.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    assert_eq!(acceptor.refused(), 6, "the oldest");
    assert_eq!(silent[0].recv_within(&mut [0], TEST_TIMEOUT).unwrap(), 0, "it was closed");
    assert_eq!(silent[69].try_recv(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
}

#[test]
fn shutting_down_ends_spinning() {
    let acceptor = Acceptor::open(&Addr::unnamed()).unwrap();
    let client = Connector::new().spin(10 * TEST_TIMEOUT).open(&acceptor.local_addr().unwrap()).unwrap();
    let (_server, _) = acceptor.accept().unwrap();
    within_time(move || {
        thread::scope(|scope| {
            let receiver = scope.spawn(|| client.recv(&mut [0]).unwrap());
            client.close_reader().unwrap();
            assert_eq!(receiver.join().unwrap(), 0);
        });
    });
}
