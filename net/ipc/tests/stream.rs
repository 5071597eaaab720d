//! Streams of the Internet family, over the loopback interface.

use crate::support;

use std::io::{ErrorKind, IoSlice, IoSliceMut};
use std::net::{Shutdown, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use spandrel_ipc::inet::{Acceptor, AcceptorOptions, Addr, Connector, Inet};
use spandrel_ipc::{Accept, Family, Pollable, Receive, Transfer, Transmit, is_timeout};
use spandrel_test_support::{TEST_TIMEOUT, pattern, within_time};
use support::{pair, pair_from, pair_over};

/// The loopback addresses that this machine has.
fn loopbacks() -> Vec<Addr> {
    let mut addrs = vec![Addr::loopback(0)];
    match UdpSocket::bind("[::1]:0") {
        Ok(_) => addrs.push(Addr::loopback_v6(0)),
        Err(e) => eprintln!("IPv6 is left out, as this machine has none: {e}"),
    }
    addrs
}

#[test]
fn both_ip_versions_carry_octets_both_ways() {
    for addr in loopbacks() {
        let (client, server) = pair_over(&addr);
        assert_eq!(client.local_addr().unwrap(), server.remote_addr().unwrap());
        assert_eq!(client.remote_addr().unwrap(), server.local_addr().unwrap());
        assert_eq!(client.local_addr().unwrap().ip(), addr.ip());

        client.send_n(b"request").unwrap();
        let mut octets = [0; 7];
        server.recv_n(&mut octets).unwrap();
        assert_eq!(&octets, b"request");
        server.send_n(b"reply").unwrap();
        assert_eq!(client.recv(&mut octets).unwrap(), 5);
        assert_eq!(&octets[..5], b"reply");
    }
}

/// Code generic over the family.
fn echo_once<F: Family>(family: &F, addr: &F::Addr) -> Vec<u8> {
    let acceptor = family.open(addr).unwrap();
    let client = family.connect(&acceptor.local_addr().unwrap(), Some(TEST_TIMEOUT)).unwrap();
    let (server, _) = acceptor.accept().unwrap();
    assert!(!server.pending() && !acceptor.pending());
    client.send_n_v(&mut [IoSlice::new(b"ge"), IoSlice::new(b"neric")]).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    let mut octets = [0; 7];
    server.recv_n(&mut octets).unwrap();
    assert_eq!(server.recv(&mut [0; 1]).unwrap(), 0);
    acceptor.shutdown().unwrap();
    assert_eq!(acceptor.accept().unwrap_err().kind(), ErrorKind::NotConnected);
    octets.to_vec()
}

#[test]
fn the_family_serves_generic_code() {
    assert_eq!(echo_once(&Inet::default(), &Addr::loopback(0)), b"generic");
}

#[test]
fn a_send_cut_short_by_its_timeout_is_completed_by_the_next() {
    let options = AcceptorOptions::default().recv_queue(16_384);
    let acceptor = Acceptor::open_with(&Addr::loopback(0), &options).unwrap();
    let (client, server) = pair_from(&acceptor, &Connector::new().send_queue(16_384));
    client.set_send_timeout(Some(Duration::from_millis(30))).unwrap();
    let data = pattern(1 << 20);
    // Without a receiver, the octets beyond the queues are not sent.
    let first = client.send(&data).unwrap();
    assert!(0 < first && first < data.len(), "{first} octets were sent");

    client.set_send_timeout(None).unwrap();
    let expected = data.clone();
    let reader = thread::spawn(move || {
        let mut received = Vec::new();
        let mut buffer = [0; 10_007];
        while received.len() < expected.len() {
            let n = server.recv(&mut buffer).unwrap();
            assert_ne!(n, 0, "the stream ended early");
            received.extend_from_slice(&buffer[..n]);
        }
        assert!(received == expected, "the octets arrived in another order");
    });
    client.send_n(&data[first..]).unwrap();
    reader.join().unwrap();
}

#[test]
fn a_nonblocking_send_reports_the_octets_sent() {
    let (client, server) = pair();
    client.set_nonblocking(true).unwrap();
    let data = pattern(32 << 20);
    let error = client.send_n(&data).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    assert!(0 < error.transferred && error.transferred < data.len());

    client.close_writer().unwrap();
    let mut received = vec![0; error.transferred];
    server.recv_n(&mut received).unwrap();
    assert!(received == data[..error.transferred], "the octets arrived in another order");
    assert_eq!(server.recv(&mut [0; 1]).unwrap(), 0, "more was sent than was said");
}

#[test]
fn a_send_timeout_reports_the_octets_sent() {
    let (client, server) = pair();
    client.set_send_timeout(Some(Duration::from_millis(30))).unwrap();
    let data = pattern(32 << 20);
    let error = client.send_n(&data).unwrap_err();
    assert!(error.is_timeout(), "{error:?}");
    client.close_writer().unwrap();
    let mut received = vec![0; error.transferred];
    server.recv_n(&mut received).unwrap();
    assert_eq!(server.recv(&mut [0; 1]).unwrap(), 0, "more was sent than was said");
}

#[test]
fn vectored_transfers_keep_the_order() {
    let (client, server) = pair();
    let data = pattern(300_000);
    // More slices than one call takes, some of them empty.
    let mut slices: Vec<_> = data.chunks(100).flat_map(|c| [IoSlice::new(&[]), IoSlice::new(c)]).collect();
    assert!(slices.len() > 2 * 1024);
    let sender = thread::spawn({
        let client = client.try_clone().unwrap();
        let data = data.clone();
        move || {
            let mut slices: Vec<_> = data.chunks(100).flat_map(|c| [IoSlice::new(&[]), IoSlice::new(c)]).collect();
            client.send_n_v(&mut slices).unwrap();
        }
    });
    let mut received = vec![0; data.len()];
    let mut parts: Vec<_> = received.chunks_mut(77).map(IoSliceMut::new).collect();
    server.recv_n_v(&mut parts).unwrap();
    sender.join().unwrap();
    assert!(received == data);

    // One call each.
    assert_eq!(client.send_v(&slices[..4]).unwrap(), 200);
    let (mut a, mut b) = ([0; 150], [0; 150]);
    let mut into = [IoSliceMut::new(&mut a), IoSliceMut::new(&mut b)];
    assert_eq!(server.recv_v(&mut into).unwrap(), 200);
    assert_eq!([&a[..], &b[..50]].concat(), data[..200]);

    // Nothing to transfer is done at once.
    slices.truncate(1);
    client.send_n_v(&mut slices).unwrap();
    server.recv_n_v(&mut []).unwrap();
}

#[test]
fn a_receive_timeout_leaves_the_connection_usable() {
    let (client, server) = pair();
    let limit = Duration::from_millis(30);
    server.set_recv_timeout(Some(limit)).unwrap();
    assert!(server.recv_timeout().unwrap().is_some_and(|set| set >= limit));
    let start = Instant::now();
    let error = server.recv(&mut [0; 4]).unwrap_err();
    assert!(is_timeout(&error), "{error:?}");
    assert!(start.elapsed() >= Duration::from_millis(25), "it waited {:?}", start.elapsed());

    client.send_n(b"ab").unwrap();
    let mut octets = [0; 4];
    let error = server.recv_n(&mut octets).unwrap_err();
    assert!(error.is_timeout());
    assert_eq!((error.transferred, &octets[..2]), (2, &b"ab"[..]));

    client.send_n(b"cd").unwrap();
    server.set_recv_timeout(None).unwrap();
    server.recv_n(&mut octets[2..]).unwrap();
    assert_eq!(&octets, b"abcd");
}

#[test]
fn receives_that_time_out_lose_no_octets() {
    let (client, server) = pair();
    server.set_recv_timeout(Some(Duration::from_millis(1))).unwrap();
    let expected = pattern(20_000);
    thread::scope(|scope| {
        scope.spawn(|| {
            for octets in expected.chunks(7) {
                client.send_n(octets).unwrap();
                thread::yield_now();
            }
            client.close_writer().unwrap();
        });
        let (mut received, mut one, mut other) = (Vec::new(), [0; 3], [0; 2]);
        loop {
            match server.recv_v(&mut [IoSliceMut::new(&mut one), IoSliceMut::new(&mut other)]) {
                Ok(0) => break,
                Ok(count) => received.extend_from_slice(&[&one[..], &other[..]].concat()[..count]),
                Err(error) => assert!(is_timeout(&error), "{error}"),
            }
        }
        assert!(received == expected, "{} octets were received", received.len());
    });
}

#[test]
fn a_half_close_leaves_the_other_direction_open() {
    let (client, server) = pair();
    client.send_n(b"question").unwrap();
    client.close_writer().unwrap();
    assert_eq!(client.send(b"more").unwrap_err().kind(), ErrorKind::BrokenPipe);

    let mut octets = [0; 64];
    assert_eq!(server.recv(&mut octets).unwrap(), 8);
    assert_eq!(server.recv(&mut octets).unwrap(), 0);
    server.send_n(b"answer").unwrap();
    drop(server);
    assert_eq!(client.recv(&mut octets).unwrap(), 6);
    assert_eq!(client.recv(&mut octets).unwrap(), 0);
}

#[test]
fn closing_the_reader_ends_a_wait_in_another_thread() {
    let (client, _server) = pair();
    let waiting = client.try_clone().unwrap();
    let thread = thread::spawn(move || waiting.recv(&mut [0; 1]));
    client.close_reader().unwrap();
    assert_eq!(within_time(move || thread.join().unwrap()).unwrap(), 0);
}

#[test]
fn an_early_end_reports_the_octets_received() {
    let (client, server) = pair();
    client.send_n(b"half").unwrap();
    drop(client);
    let mut octets = [0; 8];
    let error = server.recv_n(&mut octets).unwrap_err();
    assert_eq!((error.kind(), error.transferred), (ErrorKind::UnexpectedEof, 4));
    assert_eq!(&octets[..4], b"half");
    assert_eq!(error.to_string(), "transfer stopped after 4 octets");
    assert_eq!(std::io::Error::from(error).kind(), ErrorKind::UnexpectedEof);
}

#[test]
fn peeking_leaves_octets_queued() {
    let (client, server) = pair();
    client.send_n(b"once").unwrap();
    let mut octets = [0; 4];
    assert_eq!(server.peek(&mut octets[..2]).unwrap(), 2);
    assert_eq!(&octets[..2], b"on");
    server.recv_n(&mut octets).unwrap();
    assert_eq!(&octets, b"once");
}

#[test]
fn a_reset_is_an_error_and_not_an_end() {
    let (client, server) = pair();
    client.set_linger(Some(Duration::ZERO)).unwrap();
    assert_eq!(client.linger().unwrap(), Some(Duration::ZERO));
    drop(client);
    assert_eq!(server.recv(&mut [0; 1]).unwrap_err().kind(), ErrorKind::ConnectionReset);
}

#[test]
fn options_are_stored() {
    let (client, _server) = pair();
    for on in [true, false] {
        client.set_no_delay(on).unwrap();
        assert_eq!(client.no_delay().unwrap(), on);
        client.set_keep_alive(on).unwrap();
        assert_eq!(client.keep_alive().unwrap(), on);
    }
    client.set_send_timeout(Some(TEST_TIMEOUT)).unwrap();
    assert_eq!(client.send_timeout().unwrap(), Some(TEST_TIMEOUT));
    assert_eq!(client.set_recv_timeout(Some(Duration::ZERO)).unwrap_err().kind(), ErrorKind::InvalidInput);
    assert!(client.take_error().unwrap().is_none());
}

#[test]
fn queue_sizes_set_before_connecting_hold_on_both_sides() {
    let (small, large) = (16_384, 131_072);
    let options = AcceptorOptions::default().send_queue(small).recv_queue(large);
    let acceptor = Acceptor::open_with(&Addr::loopback(0), &options).unwrap();
    let connector = Connector::new().send_queue(small).recv_queue(large).no_delay(true);
    let (client, server) = pair_from(&acceptor, &connector);
    for stream in [&client, &server] {
        assert_eq!(stream.send_queue().unwrap() * large, stream.recv_queue().unwrap() * small, "the ratio asked for");
        assert!(stream.send_queue().unwrap() >= small);
    }
    assert!(client.no_delay().unwrap());
    server.set_send_queue(large).unwrap();
    assert!(server.send_queue().unwrap() >= large);
    server.set_recv_queue(small).unwrap();
    assert!(server.recv_queue().unwrap() < client.recv_queue().unwrap());
}

#[test]
fn a_stream_is_shared_between_threads() {
    fn shared<T: Send + Sync>(_: &T) {}
    let (client, server) = pair();
    shared(&client);
    thread::scope(|scope| {
        scope.spawn(|| client.send_n(&pattern(1 << 20)).unwrap());
        scope.spawn(|| server.send_n(&pattern(1 << 20)).unwrap());
        for stream in [&client, &server] {
            let mut octets = vec![0; 1 << 20];
            stream.recv_n(&mut octets).unwrap();
            assert!(octets == pattern(1 << 20));
        }
    });
}

#[cfg(unix)]
#[test]
fn a_stream_converts_to_a_handle_and_back() {
    use std::os::fd::{AsFd, AsRawFd, OwnedFd};
    let (client, server) = pair();
    assert_eq!(client.handle().as_raw_fd(), client.as_fd().as_raw_fd());
    let client = spandrel_ipc::inet::Stream::try_from(OwnedFd::from(client)).unwrap();
    client.send_n(b"still there").unwrap();
    let mut octets = [0; 11];
    server.recv_n(&mut octets).unwrap();
    assert_eq!(&octets, b"still there");
}
