//! The contract of every family of streams, tested over each of them by the same code.
//!
//! Features of a single family are tested in the module of that family.

use crate::{for_every_place, support};

use std::io::{ErrorKind, IoSlice, IoSliceMut};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use spandrel_ipc::{
    Accept, Connecting, Family, Interest, Pollable, Receive, Shutdown, Transfer, Transmit, is_timeout, wait_ready,
};
use spandrel_test_support::{TEST_TIMEOUT, pattern};
use support::test_families::*;

/// Long enough to be noticed, short enough to be waited for.
const SHORT: Duration = Duration::from_millis(30);

/// More octets than any family buffers.
fn plenty() -> Vec<u8> {
    pattern(1 << 20).repeat(PLENTY >> 20)
}

const PLENTY: usize = 32 << 20;

macro_rules! suite {
    ($($test:ident)*) => {
        macro_rules! at_place {
            ($name:ident, $TestFamily:ident) => {
                mod $name {
                    $(
                        #[test]
                        fn $test() {
                            if !<super::$TestFamily as super::TestFamily>::is_available() {
                                return eprintln!("left out: this machine has no {}", stringify!($name));
                            }
                            super::$test::<super::$TestFamily>();
                        }
                    )*
                }
            };
        }
        for_every_place!(at_place);
    };
}

suite! {
    octets_go_both_ways_in_every_form
    try_forms_would_block
    a_half_close_leaves_the_other_direction_open
    a_large_transfer_in_small_steps_is_complete
    many_slices_keep_their_order
    octets_sent_singly_are_received
    both_directions_are_full_at_once
    a_receive_timeout_leaves_the_connection_usable
    a_send_timeout_reports_the_octets_sent
    an_exact_transfer_respects_its_timeout
    a_closed_peer_is_noticed
    a_peer_that_leaves_octets_unread_is_noticed
    an_early_end_reports_the_octets_received
    shutting_down_ends_a_receive_in_another_thread
    shutting_down_ends_a_send_in_another_thread
    aborting_ends_a_send_of_the_peer
    closing_the_reader_ends_a_wait
    readiness_predicts_the_next_transfer
    a_transfer_is_bounded_by_its_buffer
    shutting_down_ends_every_waiting_accept
    a_nonblocking_acceptor_would_block
    an_acceptor_becomes_readable_for_a_connection
    connecting_without_a_listener_is_refused
    a_pending_connection_can_be_waited_for
    many_connections_are_served_at_once
    several_threads_accept
}

/// A family with its name in messages.
fn octets_go_both_ways_in_every_form<P: TestFamily>() {
    let (a, b) = connected::<P>();
    for (from, to) in [(&a, &b), (&b, &a)] {
        let mut octets = [0; 6];
        assert_eq!(from.send(b"single").unwrap(), 6);
        to.recv_n(&mut octets).unwrap();
        assert_eq!(&octets, b"single");
        assert_eq!(from.send_v(&[IoSlice::new(b"vec"), IoSlice::new(b""), IoSlice::new(b"tor")]).unwrap(), 6);
        let (mut one, mut other) = ([0; 2], [0; 4]);
        to.recv_n_v(&mut [IoSliceMut::new(&mut one), IoSliceMut::new(&mut other)]).unwrap();
        assert_eq!([&one[..], &other[..]].concat(), b"vector");
        from.send_n(b"all").unwrap();
        from.send_n_v(&mut [IoSlice::new(b"of"), IoSlice::new(b"it")]).unwrap();
        to.recv_n_within(&mut octets, TEST_TIMEOUT).unwrap();
        assert_eq!(&octets, b"allofi");
        assert_eq!(to.recv(&mut octets).unwrap(), 1);
        from.send_within(b"ti", TEST_TIMEOUT).unwrap();
        from.send_v_within(&[IoSlice::new(b"m"), IoSlice::new(b"e")], TEST_TIMEOUT).unwrap();
        from.send_n_within(b"bou", TEST_TIMEOUT).unwrap();
        from.send_n_v_within(&mut [IoSlice::new(b"nd")], TEST_TIMEOUT).unwrap();
        let mut octets = [0; 9];
        assert!(to.recv_v_within(&mut [IoSliceMut::new(&mut octets[..1])], TEST_TIMEOUT).unwrap() == 1);
        assert!(to.recv_within(&mut octets[1..2], TEST_TIMEOUT).unwrap() == 1);
        let (one, other) = octets[2..].split_at_mut(3);
        to.recv_n_v_within(&mut [IoSliceMut::new(one), IoSliceMut::new(other)], TEST_TIMEOUT).unwrap();
        assert_eq!(&octets, b"timebound");
        assert_eq!(from.try_send(b"tr").unwrap(), 2);
        assert_eq!(from.try_send_v(&[IoSlice::new(b"y"), IoSlice::new(b"!")]).unwrap(), 2);
        let mut octets = [0; 4];
        while to.try_recv(&mut octets[..1]).is_err() {}
        while to.try_recv_v(&mut [IoSliceMut::new(&mut octets[1..2])]).is_err() {}
        to.recv_n(&mut octets[2..]).unwrap();
        assert_eq!(&octets, b"try!");
    }
}

fn try_forms_would_block<P: TestFamily>() {
    let (a, b) = connected::<P>();
    let mut octet = [0];
    assert_eq!(a.try_recv(&mut octet).unwrap_err().kind(), ErrorKind::WouldBlock);
    assert_eq!(a.try_recv_v(&mut [IoSliceMut::new(&mut octet)]).unwrap_err().kind(), ErrorKind::WouldBlock);
    a.set_nonblocking(true).unwrap();
    assert_eq!(a.recv(&mut octet).unwrap_err().kind(), ErrorKind::WouldBlock);
    let error = a.send_n(&plenty()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    assert!(error.transferred > 0);
    // Some octets may be sent meanwhile, but not without end.
    let more: usize = std::iter::from_fn(|| a.try_send(&[0; 4096]).ok()).sum();
    assert!(more < PLENTY);
    a.set_nonblocking(false).unwrap();
    b.send_n(b"x").unwrap();
    assert_eq!(a.recv(&mut octet).unwrap(), 1, "it waits again");
}

fn a_half_close_leaves_the_other_direction_open<P: TestFamily>() {
    let (a, b) = connected::<P>();
    a.send_n(b"question").unwrap();
    a.close_writer().unwrap();
    assert_eq!(a.send(b"more").unwrap_err().kind(), ErrorKind::BrokenPipe);
    let mut octets = [0; 64];
    b.recv_n(&mut octets[..8]).unwrap();
    assert_eq!(b.recv(&mut octets).unwrap(), 0);
    assert_eq!(b.recv(&mut octets).unwrap(), 0, "the end stays");
    b.send_n(b"answer").unwrap();
    drop(b);
    a.recv_n(&mut octets[..6]).unwrap();
    assert_eq!(&octets[..6], b"answer");
    assert_eq!(a.recv(&mut octets).unwrap(), 0);
}

fn a_large_transfer_in_small_steps_is_complete<P: TestFamily>() {
    let (a, b) = connected::<P>();
    let data = pattern(1 << 20);
    let expected = data.clone();
    let sender = thread::spawn(move || a.send_n(&data).unwrap());
    let mut received = Vec::new();
    let mut buffer = [0; 61];
    loop {
        let step = received.len() % buffer.len() + 1;
        match b.recv(&mut buffer[..step]).unwrap() {
            0 => break,
            octets => received.extend_from_slice(&buffer[..octets]),
        }
    }
    sender.join().unwrap();
    assert!(received == expected);
}

fn many_slices_keep_their_order<P: TestFamily>() {
    let (a, b) = connected::<P>();
    let data = pattern(300_000);
    let expected = data.clone();
    let sender = thread::spawn(move || {
        // More slices than one call takes, some of them empty.
        let slices = data.chunks(100).flat_map(|chunk| [IoSlice::new(&[]), IoSlice::new(chunk)]);
        a.send_n_v(&mut slices.collect::<Vec<_>>()).unwrap();
    });
    let mut received = vec![0; expected.len()];
    b.recv_n_v(&mut received.chunks_mut(77).map(IoSliceMut::new).collect::<Vec<_>>()).unwrap();
    sender.join().unwrap();
    assert!(received == expected);
    assert_eq!(b.recv(&mut [0; 1]).unwrap(), 0);
}

fn octets_sent_singly_are_received<P: TestFamily>() {
    let (a, b) = connected::<P>();
    let data = pattern(3_000);
    let expected = data.clone();
    let sender = thread::spawn(move || data.iter().for_each(|octet| assert_eq!(a.send(&[*octet]).unwrap(), 1)));
    let mut received = vec![0; expected.len()];
    b.recv_n(&mut received).unwrap();
    sender.join().unwrap();
    assert!(received == expected);
}

fn both_directions_are_full_at_once<P: TestFamily>() {
    let (a, b) = connected::<P>();
    let data = pattern(2 << 20);
    thread::scope(|scope| {
        for stream in [&a, &b] {
            scope.spawn(|| stream.send_n(&data).unwrap());
            scope.spawn(|| {
                let mut received = vec![0; data.len()];
                stream.recv_n(&mut received).unwrap();
                assert!(received == data);
            });
        }
    });
}

fn a_receive_timeout_leaves_the_connection_usable<P: TestFamily>() {
    let (a, b) = connected::<P>();
    assert_eq!(b.set_recv_timeout(Some(Duration::ZERO)).unwrap_err().kind(), ErrorKind::InvalidInput);
    b.set_recv_timeout(Some(SHORT)).unwrap();
    let start = std::time::Instant::now();
    assert!(is_timeout(&b.recv(&mut [0; 4]).unwrap_err()));
    assert!(start.elapsed() >= SHORT - Duration::from_millis(5), "it waited {:?}", start.elapsed());
    a.send_n(b"ab").unwrap();
    let mut octets = [0; 4];
    let error = b.recv_n(&mut octets).unwrap_err();
    assert!(error.is_timeout());
    assert_eq!((error.transferred, &octets[..2]), (2, &b"ab"[..]));
    a.send_n(b"cd").unwrap();
    b.set_recv_timeout(None).unwrap();
    b.recv_n(&mut octets[2..]).unwrap();
    assert_eq!(&octets, b"abcd");
}

fn a_send_timeout_reports_the_octets_sent<P: TestFamily>() {
    let (a, b) = connected::<P>();
    assert_eq!(a.set_send_timeout(Some(Duration::ZERO)).unwrap_err().kind(), ErrorKind::InvalidInput);
    a.set_send_timeout(Some(SHORT)).unwrap();
    let data = plenty();
    let error = a.send_n(&data).unwrap_err();
    assert!(error.is_timeout() && error.transferred > 0, "{error:?}");
    a.close_writer().unwrap();
    let mut received = vec![0; error.transferred];
    b.recv_n(&mut received).unwrap();
    assert!(received == data[..error.transferred]);
    assert_eq!(b.recv(&mut [0; 1]).unwrap(), 0, "more was sent than was said");
}

fn an_exact_transfer_respects_its_timeout<P: TestFamily>() {
    let (a, b) = connected::<P>();
    assert_eq!(b.recv_within(&mut [0; 4], SHORT).unwrap_err().kind(), ErrorKind::TimedOut);
    a.send_n(b"ab").unwrap();
    let mut octets = [0; 4];
    let error = b.recv_n_within(&mut octets, SHORT).unwrap_err();
    assert_eq!((error.kind(), error.transferred), (ErrorKind::TimedOut, 2));
    let data = plenty();
    let error = a.send_n_within(&data, SHORT).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    let mut received = vec![0; error.transferred];
    b.recv_n_within(&mut received, TEST_TIMEOUT).unwrap();
    assert!(received == data[..error.transferred]);
}

fn a_closed_peer_is_noticed<P: TestFamily>() {
    let (a, b) = connected::<P>();
    let waiting = thread::spawn(move || {
        let end = b.recv(&mut [0; 4]);
        (end, b)
    });
    drop(a);
    let (end, b) = waiting.join().unwrap();
    assert_eq!(end.unwrap(), 0);
    let error = std::iter::repeat_with(|| b.send(b"to no one")).take(1_000_000).find_map(Result::err).unwrap();
    assert!(matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted));
    assert!(wait_ready(&b, Interest::INPUT, Some(TEST_TIMEOUT)).unwrap().contains(Interest::INPUT));
}

fn a_peer_that_leaves_octets_unread_is_noticed<P: TestFamily>() {
    let (a, b) = connected::<P>();
    a.send_n(b"never read").unwrap();
    b.recv_n(&mut [0; 1]).unwrap(); // it has come
    drop(b);
    match a.recv(&mut [0; 1]) {
        Ok(octets) => assert_eq!(octets, 0),
        Err(error) => {
            assert!(matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted), "{error:?}");
        }
    }
}

fn an_early_end_reports_the_octets_received<P: TestFamily>() {
    let (a, b) = connected::<P>();
    a.send_n(b"half").unwrap();
    drop(a);
    let mut octets = [0; 8];
    let error = b.recv_n(&mut octets).unwrap_err();
    assert_eq!((error.kind(), error.transferred, &octets[..4]), (ErrorKind::UnexpectedEof, 4, &b"half"[..]));
}

fn shutting_down_ends_a_receive_in_another_thread<P: TestFamily>() {
    let (a, _b) = connected::<P>();
    thread::scope(|scope| {
        let (outcome_sender, outcome) = mpsc::channel();
        let a = &a;
        scope.spawn(move || {
            outcome_sender.send(None).unwrap();
            outcome_sender.send(Some(a.recv(&mut [0; 1]))).unwrap();
        });
        assert!(outcome.recv().unwrap().is_none());
        a.shutdown(Shutdown::Both).unwrap();
        let end = outcome.recv_timeout(TEST_TIMEOUT).expect("the wait ends").unwrap();
        assert!(!matches!(end, Ok(1..)), "{end:?}");
    });
    assert_eq!(a.send(b"x").unwrap_err().kind(), ErrorKind::BrokenPipe);
}

fn shutting_down_ends_a_send_in_another_thread<P: TestFamily>() {
    let (a, _b) = connected::<P>();
    thread::scope(|scope| {
        let (outcome_sender, outcome) = mpsc::channel();
        let a = &a;
        scope.spawn(move || {
            outcome_sender.send(None).unwrap();
            outcome_sender.send(Some(a.send_n(&plenty()))).unwrap();
        });
        assert!(outcome.recv().unwrap().is_none());
        a.shutdown(Shutdown::Both).unwrap();
        outcome.recv_timeout(TEST_TIMEOUT).expect("the wait ends").unwrap().unwrap_err();
    });
}

fn aborting_ends_a_send_of_the_peer<P: TestFamily>() {
    let (a, b) = connected::<P>();
    let (outcome_sender, outcome) = mpsc::channel();
    b.set_send_timeout(Some(SHORT)).unwrap();
    let mut sent = 0;
    while let Ok(count) = b.send(&plenty()) {
        sent += count;
    }
    b.set_send_timeout(None).unwrap();
    thread::spawn(move || outcome_sender.send(b.send_n(&plenty())));
    a.abort().unwrap();
    // As a thread that reads on until the end.
    let mut octets = vec![0; 1 << 20];
    while a.recv(&mut octets).is_ok_and(|count| count > 0) {}
    drop(a);
    outcome.recv_timeout(TEST_TIMEOUT).expect("the send ends").unwrap_err();
    assert!(sent > 0);
}

fn closing_the_reader_ends_a_wait<P: TestFamily>() {
    let (a, b) = connected::<P>();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| a.recv_within(&mut [0; 1], TEST_TIMEOUT));
        a.close_reader().unwrap();
        assert_eq!(waiting.join().unwrap().unwrap(), 0);
    });
    a.send_n(b"the other way").unwrap();
    b.recv_n(&mut [0; 13]).unwrap();
}

fn readiness_predicts_the_next_transfer<P: TestFamily>() {
    let (a, b) = connected::<P>();
    let now = Some(Duration::ZERO);
    assert!(wait_ready(&b, Interest::INPUT, now).unwrap().is_none());
    assert!(wait_ready(&b, Interest::INPUT, Some(SHORT)).unwrap().is_none());
    assert_eq!(wait_ready(&b, Interest::INPUT | Interest::OUTPUT, Some(TEST_TIMEOUT)).unwrap(), Interest::OUTPUT);
    thread::scope(|scope| {
        scope.spawn(|| a.send_n(b"xy").unwrap());
        assert_eq!(wait_ready(&b, Interest::INPUT, Some(TEST_TIMEOUT)).unwrap(), Interest::INPUT);
    });
    b.recv_n(&mut [0; 1]).unwrap();
    assert_eq!(wait_ready(&b, Interest::INPUT, Some(TEST_TIMEOUT)).unwrap(), Interest::INPUT, "there is more");
    b.recv_n(&mut [0; 1]).unwrap();
    assert!(wait_ready(&b, Interest::INPUT, now).unwrap().is_none() && !b.pending());

    // Full, and then no more.
    let mut sent = 0;
    while !wait_ready(&a, Interest::OUTPUT, Some(SHORT)).unwrap().is_none() {
        sent += std::iter::from_fn(|| a.try_send(&[7; 65_536]).ok()).sum::<usize>();
    }
    thread::scope(|scope| {
        let waiting = scope.spawn(|| wait_ready(&a, Interest::OUTPUT, Some(TEST_TIMEOUT)).unwrap());
        b.recv_n(&mut vec![0; sent]).unwrap();
        assert_eq!(waiting.join().unwrap(), Interest::OUTPUT);
    });
    drop(a);
    assert_eq!(wait_ready(&b, Interest::INPUT, Some(TEST_TIMEOUT)).unwrap(), Interest::INPUT, "the end");
    assert_eq!(b.recv(&mut [0; 1]).unwrap(), 0);
}

fn a_transfer_is_bounded_by_its_buffer<P: TestFamily>() {
    let (a, b) = connected::<P>();
    a.send_n(b"").unwrap();
    b.recv_n(&mut []).unwrap();
    b.recv_n_v(&mut []).unwrap();
    a.send_n_v(&mut [IoSlice::new(b"")]).unwrap();
    a.send_n(b"abc").unwrap();
    let mut octets = *b"......";
    b.recv_n(&mut octets[1..3]).unwrap();
    assert_eq!(&octets, b".ab...");
    assert_eq!(b.recv(&mut octets[4..]).unwrap(), 1);
    assert_eq!(&octets, b".ab.c.");
}

fn shutting_down_ends_every_waiting_accept<P: TestFamily>() {
    for waiting in [0, 1, 3] {
        let (acceptor, _fresh) = listening::<P>();
        let (outcome_sender, outcome) = mpsc::channel();
        thread::scope(|scope| {
            for _ in 0..waiting {
                let outcome_sender = outcome_sender.clone();
                let acceptor = &acceptor;
                scope.spawn(move || outcome_sender.send(acceptor.accept().unwrap_err().kind()).unwrap());
            }
            acceptor.shutdown().unwrap();
            acceptor.shutdown().unwrap();
            for _ in 0..waiting {
                assert_eq!(outcome.recv_timeout(TEST_TIMEOUT).expect("the wait ends"), ErrorKind::NotConnected);
            }
        });
        assert_eq!(acceptor.accept().unwrap_err().kind(), ErrorKind::NotConnected);
    }
}

fn a_nonblocking_acceptor_would_block<P: TestFamily>() {
    let (acceptor, fresh) = listening::<P>();
    acceptor.set_nonblocking(true).unwrap();
    assert_eq!(acceptor.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    let client =
        thread::spawn(move || P::family().connect(&fresh.addr, Some(TEST_TIMEOUT)).map(|client| (client, fresh)));
    let server = loop {
        assert!(!wait_ready(&acceptor, Interest::INPUT, Some(TEST_TIMEOUT)).unwrap().is_none(), "a client connects");
        match acceptor.accept() {
            Ok((server, _)) => break server,
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
    };
    let (client, _fresh) = client.join().unwrap().unwrap();
    // The stream waits all the same.
    let waiting = thread::spawn(move || server.recv_n(&mut [0; 1]).unwrap());
    client.send_n(b"x").unwrap();
    waiting.join().unwrap();
}

fn an_acceptor_becomes_readable_for_a_connection<P: TestFamily>() {
    let (acceptor, fresh) = listening::<P>();
    assert!(wait_ready(&acceptor, Interest::INPUT, Some(Duration::ZERO)).unwrap().is_none());
    thread::scope(|scope| {
        let client = scope.spawn(|| P::family().connect(&fresh.addr, Some(TEST_TIMEOUT)).unwrap());
        assert_eq!(wait_ready(&acceptor, Interest::INPUT, Some(TEST_TIMEOUT)).unwrap(), Interest::INPUT);
        let (server, _) = acceptor.accept().unwrap();
        client.join().unwrap().send_n(b"x").unwrap();
        server.recv_n(&mut [0; 1]).unwrap();
    });
}

fn connecting_without_a_listener_is_refused<P: TestFamily>() {
    let (acceptor, fresh) = listening::<P>();
    drop(acceptor);
    let refused = |kind| matches!(kind, ErrorKind::ConnectionRefused | ErrorKind::NotFound);
    for timeout in [None, Some(TEST_TIMEOUT)] {
        let error = P::family().connect(&fresh.addr, timeout).unwrap_err();
        assert!(refused(error.kind()), "{error:?}");
    }
    let result = P::family().start(&fresh.addr).and_then(|connecting| connecting.complete(Some(TEST_TIMEOUT)));
    let error = result.unwrap_err();
    assert!(refused(error.kind()), "{error:?}");
    // A client that waits while the acceptor closes gets an error, with or without an established connection.
    let (acceptor, fresh) = listening::<P>();
    let connecting = P::family().start(&fresh.addr).unwrap();
    drop(acceptor);
    let end = connecting.complete(Some(TEST_TIMEOUT)).map(|stream| stream.recv(&mut [0; 1]));
    assert!(!matches!(end, Ok(Ok(1..))), "{end:?}");
    assert!(!end.is_err_and(|error| error.kind() == ErrorKind::TimedOut));
}

fn a_pending_connection_can_be_waited_for<P: TestFamily>() {
    let (acceptor, fresh) = listening::<P>();
    thread::scope(|scope| {
        let server = scope.spawn(|| acceptor.accept().unwrap().0);
        let mut connecting = P::family().start(&fresh.addr).unwrap();
        let client = loop {
            if let Some(client) = connecting.try_complete().unwrap() {
                break client;
            }
            assert!(
                !wait_ready(&connecting, Interest::OUTPUT, Some(TEST_TIMEOUT)).unwrap().is_none(),
                "it ends in time"
            );
        };
        connecting.try_complete().expect_err("a connection is made only once");
        let server = server.join().unwrap();
        server.send_n(b"x").unwrap();
        client.recv_n(&mut [0; 1]).unwrap();
    });
}

/// Families whose streams can be cloned.
macro_rules! clones {
    ($($name:ident, $TestFamily:ident);*) => {$(
        #[test]
        fn $name() {
            if $TestFamily::is_available() {
                two_clones_are_one_connection::<$TestFamily>(|stream| stream.try_clone().unwrap());
            }
        }
    )*};
}

clones!(clones_of_inet_v4, InetV4; clones_of_inet_v6, InetV6);
#[cfg(unix)]
clones!(clones_of_unix, UnixPath; clones_of_spipe, Pipe);

fn two_clones_are_one_connection<P: TestFamily>(clone: fn(&StreamOf<P>) -> StreamOf<P>) {
    let (a, b) = connected::<P>();
    let other = clone(&a);
    a.send_n(b"one, ").unwrap();
    other.send_n(b"other").unwrap();
    let mut octets = [0; 10];
    b.recv_n(&mut octets).unwrap();
    assert_eq!(&octets, b"one, other");
    drop(a);
    b.send_n(b"still open").unwrap();
    other.recv_n(&mut octets).unwrap();
    let third = clone(&other);
    third.set_recv_timeout(Some(SHORT)).unwrap();
    assert!(is_timeout(&other.recv(&mut octets).unwrap_err()), "settings are the connection's");
    third.set_recv_timeout(None).unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| other.recv(&mut [0; 1]));
        third.shutdown(Shutdown::Both).unwrap();
        assert_eq!(waiting.join().unwrap().unwrap(), 0);
    });
    assert_eq!(b.recv(&mut octets).unwrap(), 0);
}

fn many_connections_are_served_at_once<P: TestFamily>() {
    let (acceptor, fresh) = listening::<P>();
    let pairs: Vec<_> = (0..100).map(|_| join::<P>(&acceptor, &fresh.addr)).collect();
    for (i, (client, _)) in pairs.iter().enumerate() {
        client.send_n(&[i as u8]).unwrap();
    }
    for (i, (_, server)) in pairs.iter().enumerate().rev() {
        let mut octet = [0];
        server.recv_n(&mut octet).unwrap();
        assert_eq!(octet[0], i as u8);
    }
}

fn several_threads_accept<P: TestFamily>() {
    let (acceptor, fresh) = listening::<P>();
    thread::scope(|scope| {
        let accepting: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut served = 0;
                    while let Ok((stream, _)) = acceptor.accept() {
                        let mut octet = [0];
                        stream.recv_n_within(&mut octet, TEST_TIMEOUT).unwrap();
                        stream.send_n(&octet).unwrap();
                        served += 1;
                    }
                    served
                })
            })
            .collect();
        for i in 0..40 {
            let client = P::family().connect(&fresh.addr, Some(TEST_TIMEOUT)).unwrap();
            client.send_n(&[i]).unwrap();
            let mut octet = [0];
            client.recv_n_within(&mut octet, TEST_TIMEOUT).unwrap();
            assert_eq!(octet[0], i);
        }
        acceptor.shutdown().unwrap();
        assert_eq!(accepting.into_iter().map(|thread| thread.join().unwrap()).sum::<usize>(), 40);
    });
}
