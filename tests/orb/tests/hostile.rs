//! A server under bytes from hell, with a well-behaved client beside it that must never notice.

use spandrel_test_support::alone;
use std::{
    io::{Read, Write},
    net::TcpStream,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::Duration,
};

use spandrel::{ByteOrder, GiopVersion, Orb};
use spandrel_cdr::{Encoder, Wire};
use spandrel_giop::{RequestTemplate, ResponseFlags};
use spandrel_orb_tests::{
    Server,
    probe::Target,
    support::{PATIENCE, comes, comes_within},
};

/// Runs `attack` while a good client calls all the time and checks every answer.
fn while_a_good_client_calls(server: &Server, attack: impl FnOnce(&Server)) {
    let target = server.client();
    target.ping().unwrap();
    let (done, calls) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                converse(&target, &calls);
            }
        });
        attack(server);
        let reached = calls.load(Ordering::Relaxed);
        let is_served = comes_within(PATIENCE, || calls.load(Ordering::Relaxed) >= reached + 10);
        done.store(true, Ordering::Relaxed);
        assert!(is_served, "the good client is still served");
    });
}

fn converse(target: &Target, calls: &AtomicU64) {
    let count = i32::try_from(calls.fetch_add(1, Ordering::Relaxed) % 1_000_000).unwrap();
    assert_eq!(target.add(count, 1).unwrap(), count + 1);
    assert_eq!(target.echo("still here").unwrap(), "still here");
}

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

/// Sends octets, half-closes, and returns what the server said until it closed.
fn provoke(server: &Server, octets: &[u8]) -> Vec<u8> {
    let mut stream = connect(server);
    // The server may refuse in the middle.
    let _ = stream.write_all(octets);
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let mut said = Vec::new();
    match stream.read_to_end(&mut said) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "the server closes: {error}"),
    }
    said
}

/// A well-formed request for an operation of the target.
fn request(server: &Server, wire: Wire, operation: &str, arguments: impl FnOnce(&mut Encoder<'_>)) -> Vec<u8> {
    let profile = spandrel::IiopProfile::decode(&server.object.ior().profiles[0]).unwrap().unwrap();
    let template = RequestTemplate::new(wire, &profile.object_key);
    let mut out = Encoder::new(wire);
    let body = template.begin(&mut out, 77, ResponseFlags::TWO_WAY, operation, &[]);
    arguments(&mut out);
    body.end(&mut out).unwrap();
    out.to_vec()
}

fn is_message_error(said: &[u8]) -> bool {
    said.len() == 12 && said.starts_with(b"GIOP") && said[7] == 6
}

/// Resident memory of this process, in KiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn what_is_not_giop_is_answered_with_message_error() {
    let server = Server::start();
    while_a_good_client_calls(&server, |server| {
        for hostile in [
            &b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"[..],
            b"GIOP\x03\x00\x01\x00\x00\x00\x00\x00",
            b"GIOP\x01\x02\x01\x63\x00\x00\x00\x00",
            b"GIOP\x01\x02\x01\x00\xff\xff\xff\xff",
            b"GIOP\x01\x02\x01\x01\x00\x00\x00\x00",
            b"GIOP\x01\x00\x01\x07\x00\x00\x00\x00",
            b"GIOP\x01\x02\x01\x07\x04\x00\x00\x00\x01\x00\x00\x00",
            b"GIOP\x01\x02\x01\x00\x04\x00\x00\x00\x01\x00\x00\x00",
        ] {
            let said = provoke(server, hostile);
            assert!(is_message_error(&said), "{:?} answered with {said:02x?}", String::from_utf8_lossy(hostile));
        }
    });
}

#[test]
fn random_octets_are_survived() {
    let server = Server::start();
    let mut random = fastrand::Rng::with_seed(3);
    while_a_good_client_calls(&server, |server| {
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
            provoke(server, &octets);
        }
    });
}

#[test]
fn requests_damaged_anywhere_are_survived() {
    let server = Server::start();
    let mut random = fastrand::Rng::with_seed(4);
    while_a_good_client_calls(&server, |server| {
        for version in [GiopVersion::V1_0, GiopVersion::V1_1, GiopVersion::V1_2] {
            for order in [ByteOrder::Big, ByteOrder::Little] {
                let whole = request(server, Wire::new(order, version), "echo", |out| out.str("payload").unwrap());
                assert!(provoke(server, &whole).starts_with(b"GIOP"), "the sound one is answered");
                for at in 0..whole.len() {
                    let mut damaged = whole.clone();
                    damaged[at] ^= 1 << random.u8(..8);
                    provoke(server, &damaged);
                    provoke(server, &whole[..at]);
                }
            }
        }
    });
}

#[test]
fn lengths_that_lie_cost_no_memory() {
    alone(|| {
        let server = Server::start();
        while_a_good_client_calls(&server, |server| {
            // What other tests of this program take meanwhile counts as well, but not each time.
            comes("a time at which it costs nothing", || {
                let before = resident();
                lie(server);
                resident().saturating_sub(before) < 200 * 1024
            });
        });
    });
}

/// Announces far more than follows, in arguments and in messages.
fn lie(server: &Server) {
    for lie in [u32::MAX, 1 << 31, 1 << 30, 64 << 20] {
        for operation in ["echo", "echo_octets", "echo_doubles", "same", "no_such_operation"] {
            let said = provoke(
                server,
                &request(server, Wire::default(), operation, |out| {
                    out.u32(lie);
                    out.u32(lie);
                }),
            );
            assert_eq!(said[7], 1, "a reply with the exception: {said:02x?}");
        }
        // A message that announces much and brings nothing.
        let mut header = b"GIOP\x01\x02\x01\x00".to_vec();
        header.extend(lie.min(60 << 20).to_le_bytes());
        provoke(server, &header);
    }
}

#[test]
fn two_thousand_connections_opened_and_dropped_leave_nothing_behind() {
    let server = Server::start();
    while_a_good_client_calls(&server, |server| {
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
fn more_connections_than_allowed_are_refused_and_the_others_served() {
    let server = Server::with(Orb::builder().max_connections(8));
    while_a_good_client_calls(&server, |server| {
        let crowd: Vec<TcpStream> = (0..40).map(|_| connect(server)).collect();
        drop(crowd);
    });
}

#[test]
fn a_client_that_never_reads_its_replies_blocks_only_itself() {
    let server = Server::start();
    while_a_good_client_calls(&server, |server| {
        let mut greedy = connect(server);
        greedy.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
        let data = vec![1; 1 << 20];
        let wire = Wire::default();
        let large = request(server, wire, "echo_octets", |out| out.octet_sequence(&data).unwrap());
        // Until both directions are full and the server's thread is stuck in its write.
        while greedy.write_all(&large).is_ok() {}
    });
}
