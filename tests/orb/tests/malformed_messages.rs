//! Servers that receive malformed messages, while a well-behaved client keeps calling and must not be
//! affected.

use spandrel_test_support::alone;
use std::{
    io::{Read, Write},
    net::TcpStream,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::Duration,
};

use spandrel::{
    Orb,
    cdr::{ByteOrder, GiopVersion},
};
use spandrel_cdr::{Encoder, Wire};
use spandrel_giop::{RequestTemplate, ResponseFlags};
use spandrel_orb_tests::{
    Server,
    probe::Target,
    support::{TEST_TIMEOUT, holds_within, wait_until},
};

/// Runs `attack` while a well-behaved client calls all the time and checks every answer.
fn with_a_calling_client(server: &Server, attack: impl FnOnce(&Server)) {
    let target = server.client();
    target.ping().unwrap();
    let (done, calls) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                call_and_check(&target, &calls);
            }
        });
        attack(server);
        let reached = calls.load(Ordering::Relaxed);
        let is_served = holds_within(TEST_TIMEOUT, || calls.load(Ordering::Relaxed) >= reached + 10);
        done.store(true, Ordering::Relaxed);
        assert!(is_served, "the well-behaved client is still served");
    });
}

fn call_and_check(target: &Target, calls: &AtomicU64) {
    let count = i32::try_from(calls.fetch_add(1, Ordering::Relaxed) % 1_000_000).unwrap();
    assert_eq!(target.add(count, 1).unwrap(), count + 1);
    assert_eq!(target.echo("still here").unwrap(), "still here");
}

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

/// Sends octets, closes the sending side, and returns all that the server sent until it closed.
fn send_and_read_answer(server: &Server, octets: &[u8]) -> Vec<u8> {
    let mut stream = connect(server);
    // The server may close the connection before everything is written.
    let _ = stream.write_all(octets);
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "the server closes: {error}"),
    }
    answer
}

/// A well-formed request for an operation of the target.
fn request(server: &Server, wire: Wire, operation: &str, arguments: impl FnOnce(&mut Encoder<'_>)) -> Vec<u8> {
    let profile = spandrel::types::IiopProfile::decode(&server.object.ior().profiles[0]).unwrap().unwrap();
    let template = RequestTemplate::new(wire, &profile.object_key);
    let mut out = Encoder::new(wire);
    let body = template.begin(&mut out, 77, ResponseFlags::TWO_WAY, operation, &[]);
    arguments(&mut out);
    body.end(&mut out).unwrap();
    out.to_vec()
}

fn is_message_error(answer: &[u8]) -> bool {
    answer.len() == 12 && answer.starts_with(b"GIOP") && answer[7] == 6
}

/// Resident memory of this process, in KiB.
fn resident_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn malformed_headers_are_answered_with_message_error() {
    let server = Server::start();
    with_a_calling_client(&server, |server| {
        for malformed in [
            &b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"[..],
            b"GIOP\x03\x00\x01\x00\x00\x00\x00\x00",
            b"GIOP\x01\x02\x01\x63\x00\x00\x00\x00",
            b"GIOP\x01\x02\x01\x00\xff\xff\xff\xff",
            b"GIOP\x01\x02\x01\x01\x00\x00\x00\x00",
            b"GIOP\x01\x00\x01\x07\x00\x00\x00\x00",
            b"GIOP\x01\x02\x01\x07\x04\x00\x00\x00\x01\x00\x00\x00",
            b"GIOP\x01\x02\x01\x00\x04\x00\x00\x00\x01\x00\x00\x00",
        ] {
            let answer = send_and_read_answer(server, malformed);
            assert!(is_message_error(&answer), "{:?} answered with {answer:02x?}", String::from_utf8_lossy(malformed));
        }
    });
}

#[test]
fn random_octets_do_not_disturb_other_clients() {
    let server = Server::start();
    let mut random = fastrand::Rng::with_seed(3);
    with_a_calling_client(&server, |server| {
        for round in 0..300 {
            let mut octets = vec![0; random.usize(..2000)];
            random.fill(&mut octets);
            if round % 2 == 0 && octets.len() > 12 {
                octets[..8].copy_from_slice(&[
                    b'G',
                    b'I',
                    b'O',
                    b'P',
                    1,
                    random.u8(..3),
                    random.u8(..4),
                    random.u8(..8),
                ]);
                octets[9..12].fill(0);
            }
            send_and_read_answer(server, &octets);
        }
    });
}

#[test]
fn requests_damaged_or_cut_anywhere_do_not_disturb_other_clients() {
    let server = Server::start();
    let mut random = fastrand::Rng::with_seed(4);
    with_a_calling_client(&server, |server| {
        for version in [GiopVersion::V1_0, GiopVersion::V1_1, GiopVersion::V1_2] {
            for order in [ByteOrder::Big, ByteOrder::Little] {
                let whole = request(server, Wire::new(order, version), "echo", |out| out.str("payload").unwrap());
                assert!(send_and_read_answer(server, &whole).starts_with(b"GIOP"), "the sound one is answered");
                for at in 0..whole.len() {
                    let mut damaged = whole.clone();
                    damaged[at] ^= 1 << random.u8(..8);
                    send_and_read_answer(server, &damaged);
                    send_and_read_answer(server, &whole[..at]);
                }
            }
        }
    });
}

#[test]
fn false_lengths_allocate_no_memory() {
    alone(|| {
        let server = Server::start();
        with_a_calling_client(&server, |server| {
            // Memory of the rest of this process counts as well, so one attempt with a small increase is
            // enough.
            wait_until("an attempt without growth", || {
                let before = resident_memory();
                send_false_lengths(server);
                resident_memory().saturating_sub(before) < 200 * 1024
            });
        });
    });
}

/// Announces far more octets than follow, in arguments and in message headers.
fn send_false_lengths(server: &Server) {
    for length in [u32::MAX, 1 << 31, 1 << 30, 64 << 20] {
        for operation in ["echo", "echo_octets", "echo_doubles", "same", "no_such_operation"] {
            let answer = send_and_read_answer(
                server,
                &request(server, Wire::default(), operation, |out| {
                    out.u32(length);
                    out.u32(length);
                }),
            );
            assert_eq!(answer[7], 1, "a reply with the exception: {answer:02x?}");
        }
        // A header that announces a long body, without the body.
        let mut header = b"GIOP\x01\x02\x01\x00".to_vec();
        header.extend(length.min(60 << 20).to_le_bytes());
        send_and_read_answer(server, &header);
    }
}

#[test]
fn two_thousand_aborted_connections_do_not_disturb_other_clients() {
    let server = Server::start();
    with_a_calling_client(&server, |server| {
        for round in 0..2000 {
            let mut stream = connect(server);
            match round % 4 {
                0 => {}
                1 => stream.write_all(b"GIO").unwrap(),
                2 => stream.write_all(b"GIOP\x01\x02\x01\x00\xff\x00\x00\x00abc").unwrap(),
                _ => stream.write_all(&request(server, Wire::default(), "ping", |_| ())).unwrap(),
            }
        }
    });
}

#[test]
fn connections_beyond_the_limit_do_not_disturb_other_clients() {
    let server = Server::with(Orb::builder().max_connections(8));
    with_a_calling_client(&server, |server| {
        let crowd: Vec<TcpStream> = (0..40).map(|_| connect(server)).collect();
        drop(crowd);
    });
}

#[test]
fn a_client_that_never_reads_its_replies_does_not_block_others() {
    let server = Server::start();
    with_a_calling_client(&server, |server| {
        let mut unread = connect(server);
        unread.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
        let data = vec![1; 1 << 20];
        let wire = Wire::default();
        let large = request(server, wire, "echo_octets", |out| out.octet_sequence(&data).unwrap());
        // Until both directions are full and the server's thread blocks in its write.
        while unread.write_all(&large).is_ok() {}
    });
}
