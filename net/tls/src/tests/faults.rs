//! Failures after the handshake, real and apparent.

use crate::tests::support;

use std::io::ErrorKind;
use std::thread;
use std::time::Duration;

use rustls::Error;
use spandrel_ipc::{Family, Interest, Pollable, Shutdown, inet, wait_ready};
use spandrel_test_support::{pattern, wait_until};
use spandrel_tls::tls_error;
use support::*;

/// A connection whose octets the test transfers from one side to the other.
struct Wire {
    client: TcpStream,
    server: TcpStream,
    to_client: inet::Stream,
    to_server: inet::Stream,
}

impl Wire {
    fn new() -> Self {
        let family = tcp();
        let (client, to_client) = plain_pair();
        let (server, to_server) = plain_pair();
        let wire =
            Self { client: family.join(client).unwrap(), server: family.serve(server).unwrap(), to_client, to_server };
        wait_until("the handshake", || {
            let _ = (wire.client.try_handshake(), wire.server.try_handshake());
            wire.to_server.send_n(&drained(&wire.to_client)).unwrap();
            wire.carry_to_client();
            !wire.client.is_handshaking() && !wire.server.is_handshaking()
        });
        wire
    }

    /// The record of the client with `data`.
    fn record(&self, data: &[u8]) -> Vec<u8> {
        self.client.send_n(data).unwrap();
        let mut record = vec![0; data.len() + 5 + 1 + 16]; // header, kind, tag (RFC 8446, 5.2)
        self.to_client.recv_n_within(&mut record, TEST_TIMEOUT).unwrap();
        assert_eq!(record[..3], [23, 3, 3]);
        record
    }

    fn carry_to_client(&self) {
        self.to_client.send_n(&drained(&self.to_server)).unwrap();
    }

    /// Transfers to the client until it has received octets, the end or an error.
    fn received_by_client(&self, buffer: &mut [u8]) -> std::io::Result<usize> {
        loop {
            match self.client.recv_within(buffer, SHORT) {
                Err(error) if error.kind() == ErrorKind::TimedOut => {
                    assert!(!wait_ready(&self.to_server, Interest::INPUT, Some(TEST_TIMEOUT)).unwrap().is_none());
                    self.carry_to_client();
                }
                result => return result,
            }
        }
    }
}

/// The octets that can be received without a wait.
fn drained(stream: &inet::Stream) -> Vec<u8> {
    let mut octets = Vec::new();
    let mut buffer = [0; 65_536];
    while let Ok(count @ 1..) = stream.try_recv(&mut buffer) {
        octets.extend_from_slice(&buffer[..count]);
    }
    octets
}

fn is_readable(stream: &TcpStream) -> bool {
    wait_ready(stream, Interest::INPUT, Some(SHORT)).unwrap() == Interest::INPUT
}

#[test]
fn decrypted_octets_are_announced_without_socket_events() {
    let (client, server) = pair();
    client.send_n(b"in one record").unwrap();
    let mut octets = [0; 6];
    server.recv_n(&mut octets).unwrap();
    assert!(wait_ready(server.inner(), Interest::INPUT, Some(SHORT)).unwrap().is_none(), "the socket is silent");
    assert!(server.pending());
    assert_eq!(server.prepare(Interest::INPUT).ready, Interest::INPUT);
    assert_eq!(wait_ready(&server, Interest::INPUT, Some(Duration::ZERO)).unwrap(), Interest::INPUT);
    assert_eq!(server.try_recv(&mut [0; 64]).unwrap(), 7);
    assert!(!server.pending());
    assert!(wait_ready(&server, Interest::INPUT, Some(Duration::ZERO)).unwrap().is_none());
}

#[test]
fn records_received_together_are_announced_one_by_one() {
    let wire = Wire::new();
    let together = [wire.record(b"one"), wire.record(b"two"), wire.record(b"three")].concat();
    wire.to_server.send_n(&together).unwrap();
    let mut octets = [0; 5];
    for expected in [&b"one"[..], b"two", b"three"] {
        assert!(is_readable(&wire.server));
        assert_eq!(wire.server.try_recv(&mut octets[..expected.len()]).unwrap(), expected.len());
        assert_eq!(&octets[..expected.len()], expected);
    }
    assert!(!is_readable(&wire.server) && !wire.server.pending());
}

#[test]
fn half_a_record_gives_no_octets() {
    let wire = Wire::new();
    let record = wire.record(b"whole");
    let (half, rest) = record.split_at(record.len() / 2);
    wire.to_server.send_n(half).unwrap();
    assert!(!is_readable(&wire.server) && !wire.server.pending());
    assert_eq!(wire.server.try_recv(&mut [0; 8]).unwrap_err().kind(), ErrorKind::WouldBlock);
    wire.server.set_recv_timeout(Some(SHORT)).unwrap();
    assert!(spandrel_ipc::is_timeout(&wire.server.recv(&mut [0; 8]).unwrap_err()));
    wire.to_server.send_n(rest).unwrap();
    assert!(is_readable(&wire.server));
    assert_eq!(wire.server.recv(&mut [0; 8]).unwrap(), 5);
}

#[test]
fn the_timeout_of_a_recv_is_not_restarted_by_each_octet() {
    const TIME: Duration = Duration::from_millis(200);
    let wire = Wire::new();
    let record = wire.record(&[7; 10_000]);
    wire.server.set_recv_timeout(Some(TIME)).unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| wire.server.recv(&mut [0; 1]).unwrap_err());
        let mut sent = 0;
        while !waiting.is_finished() && sent < record.len() - 1 {
            wire.to_server.send_n(&record[sent..=sent]).unwrap();
            sent += 1;
            thread::sleep(TIME / 20);
        }
        assert!(sent < 1000, "it ended in time");
        assert!(spandrel_ipc::is_timeout(&waiting.join().unwrap()));
    });
}

#[test]
fn a_cut_connection_is_an_error_and_not_the_end() {
    let (client, server) = pair();
    client.send_n(b"and then").unwrap();
    client.inner().shutdown(Shutdown::Write).unwrap();
    let mut octets = [0; 8];
    server.recv_n(&mut octets).unwrap();
    for _ in 0..2 {
        assert!(is_readable(&server));
        assert_eq!(server.recv(&mut octets).unwrap_err().kind(), ErrorKind::UnexpectedEof);
    }
    server.send_n(b"the other way").unwrap();
    client.recv_n(&mut [0; 13]).unwrap();
}

#[test]
fn a_truncated_record_is_not_delivered() {
    let wire = Wire::new();
    let whole = wire.record(b"whole");
    let cut = wire.record(b"cut");
    wire.to_server.send_n(&[&whole[..], &cut[..cut.len() - 1]].concat()).unwrap();
    drop(wire.to_server);
    let mut octets = [0; 64];
    let error = wire.server.recv_n(&mut octets).unwrap_err();
    assert_eq!((error.kind(), error.transferred), (ErrorKind::UnexpectedEof, 5));
}

#[test]
fn a_reset_is_reported_after_earlier_octets() {
    let wire = Wire::new();
    wire.to_server.send_n(&wire.record(b"before")).unwrap();
    wire.server.recv_n(&mut [0; 1]).unwrap();
    wire.to_server.set_linger(Some(Duration::ZERO)).unwrap();
    drop(wire.to_server);
    wire.server.recv_n(&mut [0; 5]).unwrap();
    for _ in 0..2 {
        let kind = wire.server.recv(&mut [0; 1]).unwrap_err().kind();
        // Wine reports it as the end of the underlying stream, which is no end for TLS.
        let is_told = matches!(kind, ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted);
        assert!(is_told || cfg!(windows) && kind == ErrorKind::UnexpectedEof, "{kind:?}");
    }
    assert!(is_readable(&wire.server));
}

#[test]
fn a_modified_record_is_refused_with_an_alert() {
    let wire = Wire::new();
    let good = wire.record(b"good");
    let mut bad = wire.record(b"bad");
    bad[7] ^= 1;
    wire.to_server.send_n(&[good, bad].concat()).unwrap();
    let mut octets = [0; 64];
    let error = wire.server.recv_n(&mut octets).unwrap_err();
    assert_eq!((error.transferred, tls_error(&error.cause)), (4, Some(&Error::DecryptError)));
    assert!(is_readable(&wire.server) && wire.server.pending());
    assert_eq!(tls_error(&wire.server.send(b"x").unwrap_err()), Some(&Error::DecryptError));
    let reported = wire.received_by_client(&mut octets).unwrap_err();
    assert!(matches!(tls_error(&reported), Some(Error::AlertReceived(_))), "{reported:?}");
}

#[test]
fn a_repeated_record_is_refused() {
    let wire = Wire::new();
    let record = wire.record(b"pay once");
    wire.to_server.send_n(&record.repeat(2)).unwrap();
    let mut octets = [0; 16];
    assert_eq!(wire.server.recv_n(&mut octets).unwrap_err().transferred, 8);
    assert_eq!(tls_error(&wire.server.recv(&mut octets).unwrap_err()), Some(&Error::DecryptError));
}

#[test]
fn octets_after_the_end_are_ignored() {
    let wire = Wire::new();
    wire.client.close_writer().unwrap();
    let mut end = [0; 5 + 2 + 1 + 16];
    wire.to_client.recv_n(&mut end).unwrap();
    wire.to_server.send_n(&[&end[..], &[7; 10_000]].concat()).unwrap();
    for _ in 0..3 {
        assert_eq!(wire.server.recv(&mut [0; 64]).unwrap(), 0);
    }
    wire.server.send_n(b"still").unwrap();
    assert_eq!(wire.received_by_client(&mut [0; 64]).unwrap(), 5);
}

/// Sends without waiting until the stream takes no more, and returns the number of octets.
fn fill(stream: &TcpStream) -> usize {
    let mut sent = 0;
    loop {
        let taken: usize = std::iter::from_fn(|| stream.try_send(&[7; 65_536]).ok()).sum();
        sent += taken;
        // The system may find more room after a while, and may have some without showing it.
        let is_full = wait_ready(stream, Interest::OUTPUT, Some(SHORT)).unwrap().is_none() && stream.has_unsent();
        if is_full && taken == 0 {
            return sent;
        }
    }
}

#[test]
fn a_waiting_sender_does_not_block_a_receiver() {
    let (a, b) = pair();
    let sent = fill(&a);
    thread::scope(|scope| {
        let sending = scope.spawn(|| a.send_n(&[7; 200_000]).unwrap());
        let mut octets = [0; 3];
        for _ in 0..100 {
            b.send_n(b"abc").unwrap();
            a.recv_n_within(&mut octets, TEST_TIMEOUT).unwrap();
            assert_eq!(&octets, b"abc");
        }
        assert!(!sending.is_finished(), "no octet was received");
        b.recv_n(&mut vec![0; sent + 200_000]).unwrap();
        sending.join().unwrap();
    });
}

#[test]
fn a_waiting_receiver_does_not_block_a_sender() {
    let (a, b) = pair();
    thread::scope(|scope| {
        let receiving = scope.spawn(|| a.recv_n(&mut [0; 1]).unwrap());
        for _ in 0..100 {
            a.send_n(b"abc").unwrap();
            b.recv_n_within(&mut [0; 3], TEST_TIMEOUT).unwrap();
        }
        assert!(!receiving.is_finished());
        b.send_n(b"x").unwrap();
    });
}

#[test]
fn concurrent_sends_keep_records_intact() {
    let (a, b) = pair();
    thread::scope(|scope| {
        for mark in 1..=4_u8 {
            let a = &a;
            scope.spawn(move || (0..200).for_each(|_| assert_eq!(a.send(&[mark; 1000]).unwrap(), 1000)));
        }
        let mut counts = [0; 5];
        let mut block = [0; 1000];
        for _ in 0..800 {
            b.recv_n_within(&mut block, TEST_TIMEOUT).unwrap();
            assert!(block.iter().all(|octet| *octet == block[0]));
            counts[usize::from(block[0])] += 1;
        }
        assert_eq!(counts, [0, 200, 200, 200, 200]);
    });
}

#[test]
fn a_key_update_is_answered_by_a_receiving_side() {
    let (a, b) = pair();
    a.refresh_keys().unwrap();
    a.send_n(b"new keys").unwrap();
    b.recv_n(&mut [0; 8]).unwrap();
    // The answer has arrived, and is no input.
    assert_eq!(wait_ready(a.inner(), Interest::INPUT, Some(TEST_TIMEOUT)).unwrap(), Interest::INPUT);
    assert!(!is_readable(&a));
    b.send_n(b"others").unwrap();
    a.recv_n(&mut [0; 6]).unwrap();
}

#[test]
fn a_wait_for_input_sends_pending_ciphertext() {
    let (a, b) = pair();
    let sent = fill(&b);
    assert!(b.has_unsent());
    assert_eq!(b.prepare(Interest::INPUT).wait_for, Interest::INPUT | Interest::OUTPUT);
    a.refresh_keys().unwrap();
    a.send_n(b"x").unwrap();
    b.recv_n(&mut [0; 1]).unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| wait_ready(&b, Interest::INPUT, Some(TEST_TIMEOUT)).unwrap());
        a.recv_n(&mut vec![0; sent - 65_536]).unwrap();
        wait_until("the waiting thread sends the rest", || !b.has_unsent());
        a.send_n(b"y").unwrap();
        assert_eq!(waiting.join().unwrap(), Interest::INPUT);
    });
    assert_eq!(b.prepare(Interest::INPUT).wait_for, Interest::INPUT);
    // The answer to the new keys comes after the withheld octet.
    b.send_n(&[7, 8]).unwrap();
    let mut octets = vec![0; 65_536 + 2];
    a.recv_n(&mut octets).unwrap();
    assert_eq!(octets[65_534..], [7, 7, 7, 8]);
    assert!(!b.has_unsent());
}

#[test]
fn keys_are_not_renewed_before_there_are_any() {
    let (one, _other) = plain_pair();
    assert_eq!(tcp().join(one).unwrap().refresh_keys().unwrap_err().kind(), ErrorKind::InvalidData);
}

#[test]
fn octets_sent_before_the_end_arrive_with_unread_input() {
    let family = tcp();
    let acceptor = family.open(&inet::Addr::loopback(0)).unwrap();
    let addr = acceptor.local_addr().unwrap();
    for _ in 0..50 {
        thread::scope(|scope| {
            // The server's tickets are left unread.
            scope.spawn(|| family.connect(&addr, Some(TEST_TIMEOUT)).unwrap().send_n(&pattern(50_000)).unwrap());
            let (server, _) = acceptor.accept().unwrap();
            let mut received = vec![0; 50_000];
            server.recv_n(&mut received).unwrap();
            assert!(received == pattern(50_000));
            assert_eq!(server.recv(&mut [0; 1]).unwrap(), 0);
        });
    }
}

#[test]
fn a_waiting_close_follows_octets_of_a_slow_peer() {
    let (a, b) = pair();
    let sent = fill(&a);
    thread::scope(|scope| {
        scope.spawn(move || {
            a.send_n(&[7]).unwrap();
            drop(a);
        });
        let mut buffer = vec![0; 65_536];
        let mut received = 0;
        loop {
            match b.recv(&mut buffer).unwrap() {
                0 => break,
                octets => received += octets,
            }
        }
        assert_eq!(received, sent + 1);
    });
}

#[test]
fn an_abandoned_message_is_never_received_completely() {
    for is_dropped in [false, true] {
        let (a, b) = pair();
        let message = [7; 60_000];
        let stopped = loop {
            match a.send_n_within(&message, SHORT) {
                Ok(()) => {}
                Err(error) => break error,
            }
        };
        assert_eq!(stopped.kind(), ErrorKind::TimedOut);
        if is_dropped {
            drop(a);
        } else {
            a.close_writer().unwrap();
            assert_eq!(a.send(&[7]).unwrap_err().kind(), ErrorKind::BrokenPipe);
        }
        let mut received = 0;
        let end = loop {
            match b.recv_n(&mut [0; 60_000]) {
                Ok(()) => received += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(end.kind(), ErrorKind::UnexpectedEof);
        assert!(received > 0 && end.transferred < message.len(), "{received}, {end:?}");
    }
}

#[test]
fn an_interrupted_send_continues_with_the_unsent_octets() {
    let (a, b) = pair();
    let sent = fill(&a);
    for data in [&[8][..], &[8, 7, 7]] {
        assert_eq!(a.send(data).unwrap_err().kind(), ErrorKind::InvalidInput, "an octet 7 is owed");
    }
    assert_eq!(a.try_send(&[7, 8, 9]).unwrap_err().kind(), ErrorKind::WouldBlock);
    assert_eq!(a.send_within(&[7, 8, 9], SHORT).unwrap_err().kind(), ErrorKind::TimedOut);
    thread::scope(|scope| {
        scope.spawn(|| a.send_n(&[7, 8, 9]).unwrap());
        b.recv_n(&mut vec![0; sent + 1]).unwrap();
        let mut octets = [0; 2];
        b.recv_n(&mut octets).unwrap();
        assert_eq!(octets, [8, 9]);
    });
}

#[test]
fn a_blocked_sender_delays_closing_without_preventing_it() {
    let (a, b) = pair_of(&tcp().close_timeout(SHORT), &inet::Addr::loopback(0));
    let data = vec![7; 24 << 20];
    let sent = thread::scope(|scope| {
        let sending = scope.spawn(|| a.send_n(&data).unwrap_err());
        wait_until("it waits", || a.flush(Some(SHORT)).is_err());
        assert_eq!(a.close_writer().unwrap_err().kind(), ErrorKind::TimedOut);
        let error = sending.join().unwrap();
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
        error.transferred
    });
    // The peer must not believe that it had everything.
    let error = b.recv_n(&mut vec![0; data.len()]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
    assert!(error.transferred >= sent, "{} of {sent}", error.transferred);
    assert_eq!(b.recv(&mut [0; 1]).unwrap_err().kind(), ErrorKind::UnexpectedEof);
}

#[test]
fn a_nonblocking_transfer_does_not_wait_for_another_thread() {
    let (a, b) = pair();
    thread::scope(|scope| {
        let receiving = scope.spawn(|| a.recv_n(&mut [0; 1]).unwrap());
        for _ in 0..1000 {
            assert_eq!(a.try_recv(&mut [0; 1]).unwrap_err().kind(), ErrorKind::WouldBlock);
        }
        assert_eq!(a.recv_within(&mut [0; 1], SHORT).unwrap_err().kind(), ErrorKind::TimedOut);
        b.send_n(b"x").unwrap();
        receiving.join().unwrap();
    });
}

/// Senders know whether the stream has taken everything, whatever another thread does to the connection at
/// that moment: a sender that takes octets for unsent may send them again.
#[test]
fn octets_reported_unsent_have_not_arrived() {
    const DATA: &[u8] = b"once, and not twice";
    for round in 0..600 {
        let (client, server) = pair();
        let begin = std::sync::Barrier::new(2);
        let result = thread::scope(|scope| {
            let ending = scope.spawn(|| {
                begin.wait();
                (0..round % 40 * 20).for_each(|_| std::hint::spin_loop());
                client.shutdown(Shutdown::Both)
            });
            begin.wait();
            let result = client.try_send(DATA);
            ending.join().unwrap().unwrap();
            result
        });
        let mut arrived = Vec::new();
        let mut room = [0; 64];
        while let Ok(octets @ 1..) = server.recv(&mut room) {
            arrived.extend_from_slice(&room[..octets]);
        }
        match result {
            Ok(octets) => assert_eq!(octets, DATA.len()),
            Err(error) => assert_ne!(arrived, DATA, "round {round}: {error}"),
        }
    }
}
