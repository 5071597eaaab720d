//! The contract of a TLS stream over streams of every family, also over TLS itself.
//!
//! The contract is that of `spandrel-ipc`'s own families, with two differences: a handshake needs both sides,
//! and the sent part of an interrupted record cannot be received before the rest follows.

use crate::tests::support;

use std::io::{ErrorKind, IoSlice, IoSliceMut};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use spandrel_ipc::{
    Connecting, Family, Interest, Pollable, Receive, Shutdown, Transfer, Transmit, inet, is_timeout, wait_ready,
};
use spandrel_test_support::pattern;
use spandrel_tls::{Stream, Tls};
use support::{SHORT, TEST_TIMEOUT, pair_of, tls};

/// An underlying family under test.
trait TestFamily {
    type Below: Family;
    fn below() -> Self::Below;
    /// An address to listen at, and the resources that must live as long.
    fn fresh() -> (<Self::Below as Family>::Addr, Option<tempfile::TempDir>);
}

type StreamOver<P> = Stream<<<P as TestFamily>::Below as Family>::Stream>;

fn family<P: TestFamily>() -> Tls<P::Below> {
    tls(P::below())
}

fn connected<P: TestFamily>() -> (StreamOver<P>, StreamOver<P>) {
    let (addr, _folder) = P::fresh();
    pair_of(&family::<P>(), &addr)
}

struct Inet;
impl TestFamily for Inet {
    type Below = inet::Inet;
    fn below() -> inet::Inet {
        inet::Inet::default()
    }
    fn fresh() -> (inet::Addr, Option<tempfile::TempDir>) {
        (inet::Addr::loopback(0), None)
    }
}

#[cfg(unix)]
struct Unix;
#[cfg(unix)]
impl TestFamily for Unix {
    type Below = spandrel_ipc::unix::Unix;
    fn below() -> Self::Below {
        Self::Below::default()
    }
    fn fresh() -> (spandrel_ipc::unix::Addr, Option<tempfile::TempDir>) {
        let folder = tempfile::tempdir().unwrap();
        (spandrel_ipc::unix::Addr::path(folder.path().join("socket")).unwrap(), Some(folder))
    }
}

/// A family whose handle does not show all events either.
#[cfg(target_os = "linux")]
struct Memory;
#[cfg(target_os = "linux")]
impl TestFamily for Memory {
    type Below = spandrel_ipc::shm::Shm;
    fn below() -> Self::Below {
        Self::Below::default()
    }
    fn fresh() -> (spandrel_ipc::shm::Addr, Option<tempfile::TempDir>) {
        (spandrel_ipc::shm::Addr::unnamed(), None)
    }
}

macro_rules! suite {
    ($($test:ident)*) => {
        mod over_inet { $(#[test] fn $test() { super::$test::<super::Inet>(); })* }
        #[cfg(unix)]
        mod over_unix { $(#[test] fn $test() { super::$test::<super::Unix>(); })* }
        #[cfg(target_os = "linux")]
        mod over_shared_memory { $(#[test] fn $test() { super::$test::<super::Memory>(); })* }
    };
}

suite! {
    octets_go_both_ways_in_every_form
    a_half_close_leaves_the_other_direction_open
    a_large_transfer_in_small_steps_is_complete
    many_slices_keep_their_order
    octets_sent_singly_are_received
    both_directions_are_full_at_once
    try_forms_would_block
    a_receive_timeout_leaves_the_connection_usable
    a_send_timeout_reports_the_octets_sent_and_the_rest_may_follow
    an_exact_transfer_respects_its_timeout
    a_closed_peer_is_noticed
    an_early_end_reports_the_octets_received
    shutting_down_ends_waits_in_other_threads
    closing_the_reader_ends_a_wait
    readiness_predicts_the_next_transfer
    empty_transfers_return_at_once
    an_acceptor_becomes_readable_and_can_be_nonblocking
    shutting_down_ends_a_waiting_accept
    a_pending_connection_can_be_waited_for
}

fn octets_go_both_ways_in_every_form<P: TestFamily>() {
    let (a, b) = connected::<P>();
    for (from, to) in [(&a, &b), (&b, &a)] {
        let mut octets = [0; 6];
        assert_eq!(from.send(b"single").unwrap(), 6);
        to.recv_n(&mut octets).unwrap();
        assert_eq!(&octets, b"single");
        assert_eq!(from.send_v(&[IoSlice::new(b""), IoSlice::new(b"vec"), IoSlice::new(b"tor")]).unwrap(), 6);
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
        assert_eq!(to.recv_v_within(&mut [IoSliceMut::new(&mut octets[..1])], TEST_TIMEOUT).unwrap(), 1);
        assert_eq!(to.recv_within(&mut octets[1..2], TEST_TIMEOUT).unwrap(), 1);
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

fn a_half_close_leaves_the_other_direction_open<P: TestFamily>() {
    let (a, b) = connected::<P>();
    a.send_n(b"question").unwrap();
    a.close_writer().unwrap();
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
    let data = pattern(1 << 18);
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
    let data = pattern(2_000);
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

/// More octets than any family buffers.
const PLENTY: usize = 24 << 20;

fn try_forms_would_block<P: TestFamily>() {
    let (a, b) = connected::<P>();
    let mut octet = [0];
    assert_eq!(a.try_recv(&mut octet).unwrap_err().kind(), ErrorKind::WouldBlock);
    assert_eq!(a.try_recv_v(&mut [IoSliceMut::new(&mut octet)]).unwrap_err().kind(), ErrorKind::WouldBlock);
    a.set_nonblocking(true).unwrap();
    assert_eq!(a.recv(&mut octet).unwrap_err().kind(), ErrorKind::WouldBlock);
    let error = a.send_n(&vec![7; PLENTY]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    assert!(0 < error.transferred && error.transferred < PLENTY);
    a.set_nonblocking(false).unwrap();
    b.send_n(b"x").unwrap();
    assert_eq!(a.recv(&mut octet).unwrap(), 1, "it waits again");
}

fn a_receive_timeout_leaves_the_connection_usable<P: TestFamily>() {
    let (a, b) = connected::<P>();
    assert_eq!(b.set_recv_timeout(Some(Duration::ZERO)).unwrap_err().kind(), ErrorKind::InvalidInput);
    b.set_recv_timeout(Some(SHORT)).unwrap();
    let start = Instant::now();
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

fn a_send_timeout_reports_the_octets_sent_and_the_rest_may_follow<P: TestFamily>() {
    let (a, b) = connected::<P>();
    assert_eq!(a.set_send_timeout(Some(Duration::ZERO)).unwrap_err().kind(), ErrorKind::InvalidInput);
    a.set_send_timeout(Some(SHORT)).unwrap();
    let data = pattern(1 << 20).repeat(PLENTY >> 20);
    let error = a.send_n(&data).unwrap_err();
    assert!(error.is_timeout() && error.transferred > 0, "{error:?}");
    a.set_send_timeout(None).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            a.send_n(&data[error.transferred..]).unwrap();
            a.close_writer().unwrap();
        });
        let mut received = vec![0; data.len()];
        b.recv_n(&mut received).unwrap();
        assert!(received == data);
        assert_eq!(b.recv(&mut [0; 1]).unwrap(), 0);
    });
}

fn an_exact_transfer_respects_its_timeout<P: TestFamily>() {
    let (a, b) = connected::<P>();
    assert_eq!(b.recv_within(&mut [0; 4], SHORT).unwrap_err().kind(), ErrorKind::TimedOut);
    a.send_n(b"ab").unwrap();
    let mut octets = [0; 4];
    let error = b.recv_n_within(&mut octets, SHORT).unwrap_err();
    assert_eq!((error.kind(), error.transferred), (ErrorKind::TimedOut, 2));
    let data = pattern(1 << 20).repeat(PLENTY >> 20);
    let error = a.send_n_within(&data, SHORT).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    thread::scope(|scope| {
        scope.spawn(|| a.send_n_within(&data[error.transferred..], TEST_TIMEOUT).unwrap());
        let mut received = vec![0; data.len()];
        b.recv_n_within(&mut received, TEST_TIMEOUT).unwrap();
        assert!(received == data);
    });
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
    let error = std::iter::repeat_with(|| b.send(b"to a closed peer")).take(1_000_000).find_map(Result::err).unwrap();
    assert!(matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted));
    assert_eq!(b.send(b"to a closed peer").unwrap_err().kind(), error.kind(), "the error stays");
    assert!(wait_ready(&b, Interest::INPUT, Some(TEST_TIMEOUT)).unwrap().contains(Interest::INPUT));
}

fn an_early_end_reports_the_octets_received<P: TestFamily>() {
    let (a, b) = connected::<P>();
    a.send_n(b"half").unwrap();
    drop(a);
    let mut octets = [0; 8];
    let error = b.recv_n(&mut octets).unwrap_err();
    assert_eq!((error.kind(), error.transferred, &octets[..4]), (ErrorKind::UnexpectedEof, 4, &b"half"[..]));
}

fn shutting_down_ends_waits_in_other_threads<P: TestFamily>() {
    let (a, _b) = connected::<P>();
    a.set_nonblocking(true).unwrap();
    a.send_n(&vec![7; PLENTY]).unwrap_err();
    a.set_nonblocking(false).unwrap();
    thread::scope(|scope| {
        let (tell, outcomes) = mpsc::channel();
        let a = &a;
        let teller = tell.clone();
        scope.spawn(move || {
            teller.send(None).unwrap();
            let end = a.recv(&mut [0; 1]);
            teller.send(Some(!matches!(end, Ok(1..)))).unwrap();
        });
        scope.spawn(move || {
            tell.send(None).unwrap();
            tell.send(Some(a.send(&[7; 2]).is_err())).unwrap();
        });
        assert!(outcomes.recv().unwrap().is_none() && outcomes.recv().unwrap().is_none());
        a.shutdown(Shutdown::Both).unwrap();
        for _ in 0..2 {
            assert_eq!(outcomes.recv_timeout(TEST_TIMEOUT).expect("the wait ends"), Some(true));
        }
    });
    assert_eq!(a.send(b"x").unwrap_err().kind(), ErrorKind::BrokenPipe);
    assert_eq!(a.recv(&mut [0; 1]).unwrap(), 0);
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
    assert!(!b.is_plain());
    assert!(wait_ready(&b, Interest::INPUT, now).unwrap().is_none());
    assert!(wait_ready(&b, Interest::INPUT, Some(SHORT)).unwrap().is_none());
    assert_eq!(wait_ready(&b, Interest::INPUT | Interest::OUTPUT, Some(TEST_TIMEOUT)).unwrap(), Interest::OUTPUT);
    thread::scope(|scope| {
        scope.spawn(|| a.send_n(b"xy").unwrap());
        assert_eq!(wait_ready(&b, Interest::INPUT, Some(TEST_TIMEOUT)).unwrap(), Interest::INPUT);
    });
    b.recv_n(&mut [0; 1]).unwrap();
    assert_eq!(wait_ready(&b, Interest::INPUT, Some(TEST_TIMEOUT)).unwrap(), Interest::INPUT, "there is more");
    assert!(b.pending());
    b.recv_n(&mut [0; 1]).unwrap();
    assert!(wait_ready(&b, Interest::INPUT, now).unwrap().is_none() && !b.pending());

    // Full, and then no more.
    let mut sent = 0;
    while !wait_ready(&a, Interest::OUTPUT, Some(SHORT)).unwrap().is_none() {
        sent += std::iter::from_fn(|| a.try_send(&[7; 65_536]).ok()).sum::<usize>();
    }
    thread::scope(|scope| {
        scope.spawn(|| {
            assert_eq!(wait_ready(&a, Interest::OUTPUT, Some(TEST_TIMEOUT)).unwrap(), Interest::OUTPUT);
            assert_eq!(a.try_send(&[7]).unwrap(), 1);
        });
        b.recv_n(&mut vec![0; sent + 1]).unwrap();
    });
    assert!(!a.has_unsent());
    drop(a);
    assert_eq!(wait_ready(&b, Interest::INPUT, Some(TEST_TIMEOUT)).unwrap(), Interest::INPUT, "the end");
    assert_eq!(b.recv(&mut [0; 1]).unwrap(), 0);
    assert!(b.pending(), "the end stays");
}

fn empty_transfers_return_at_once<P: TestFamily>() {
    let (a, b) = connected::<P>();
    assert_eq!(a.send(b"").unwrap(), 0);
    a.send_n(b"").unwrap();
    b.recv_n(&mut []).unwrap();
    b.recv_n_v(&mut []).unwrap();
    assert_eq!(b.recv(&mut []).unwrap(), 0);
    a.send_n_v(&mut [IoSlice::new(b"")]).unwrap();
    a.send_n(b"abc").unwrap();
    let mut octets = *b"......";
    b.recv_n(&mut octets[1..3]).unwrap();
    assert_eq!(b.recv(&mut octets[4..]).unwrap(), 1);
    assert_eq!(&octets, b".ab.c.");
}

fn an_acceptor_becomes_readable_and_can_be_nonblocking<P: TestFamily>() {
    let (addr, _folder) = P::fresh();
    let family = family::<P>();
    let acceptor = family.open(&addr).unwrap();
    let addr = acceptor.local_addr().unwrap();
    acceptor.set_nonblocking(true).unwrap();
    assert_eq!(acceptor.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    thread::scope(|scope| {
        let client = scope.spawn(|| family.connect(&addr, Some(TEST_TIMEOUT)).unwrap());
        let server = loop {
            assert_eq!(wait_ready(&acceptor, Interest::INPUT, Some(TEST_TIMEOUT)).unwrap(), Interest::INPUT);
            match acceptor.accept() {
                Ok((server, _)) => break server,
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
        };
        // The stream waits all the same.
        scope.spawn(move || client.join().unwrap().send_n(b"x").unwrap());
        server.recv_n(&mut [0; 1]).unwrap();
    });
}

fn shutting_down_ends_a_waiting_accept<P: TestFamily>() {
    let (addr, _folder) = P::fresh();
    let acceptor = family::<P>().open(&addr).unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| acceptor.accept().unwrap_err().kind());
        acceptor.shutdown().unwrap();
        assert_eq!(waiting.join().unwrap(), ErrorKind::NotConnected);
    });
}

fn a_pending_connection_can_be_waited_for<P: TestFamily>() {
    let (addr, _folder) = P::fresh();
    let family = family::<P>();
    let acceptor = family.open(&addr).unwrap();
    let addr = acceptor.local_addr().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| acceptor.accept().unwrap().0.send_n(b"x").unwrap());
        let mut connecting = family.start(&addr).unwrap();
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
        assert!(!client.is_handshaking());
        client.recv_n(&mut [0; 1]).unwrap();
    });
}

#[test]
fn tls_goes_over_tls() {
    let below = tls(inet::Inet::default());
    let acceptor = tls(below.clone()).open(&inet::Addr::loopback(0)).unwrap();
    let addr = acceptor.local_addr().unwrap();
    let data = pattern(1 << 20);
    thread::scope(|scope| {
        let server = scope.spawn(|| {
            let (server, _) = acceptor.accept().unwrap();
            let mut received = vec![0; data.len()];
            server.recv_n(&mut received).unwrap();
            assert!(received == data);
            wait_ready(&server, Interest::OUTPUT, Some(TEST_TIMEOUT)).unwrap();
            server.send_n(&received).unwrap();
        });
        let client = tls(below).start(&addr).unwrap().complete(Some(TEST_TIMEOUT)).unwrap();
        client.send_n(&data).unwrap();
        let mut received = vec![0; data.len()];
        let mut at = 0;
        while at < received.len() {
            assert_eq!(wait_ready(&client, Interest::INPUT, Some(TEST_TIMEOUT)).unwrap(), Interest::INPUT);
            at += client.try_recv(&mut received[at..][..1000.min(data.len() - at)]).expect("it was announced");
        }
        assert!(received == data);
        server.join().unwrap();
        assert_eq!(client.recv(&mut [0; 1]).unwrap(), 0);
    });
}
