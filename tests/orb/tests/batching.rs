//! One-way requests with the sync scope NONE: buffering, flushing and order.

use std::{
    io::{ErrorKind, Read},
    net::TcpStream,
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use spandrel::{
    CompletionStatus, Orb, OrbBuilder, SystemExceptionKind,
    diagnostics::statistics::{Event, Level},
    policy::{BufferingConstraintPolicy, SetOverrideType, SyncScopePolicy},
};
use spandrel_orb_tests::{
    Server,
    probe::Target,
    support::{TEST_TIMEOUT, fake_server, kind_and_completion, read_message, read_some},
};

/// A constraint that never flushes by itself.
const NEVER: BufferingConstraintPolicy =
    BufferingConstraintPolicy { timeout: Duration::MAX, messages: u32::MAX, octets: usize::MAX };

fn with_sync_none(orb: &Orb, url: &str, constraint: Option<BufferingConstraintPolicy>) -> Target {
    let mut policies = vec![SyncScopePolicy::None.into()];
    policies.extend(constraint.map(Into::into));
    let object = orb.string_to_object(url).unwrap();
    Target::unchecked_narrow(&object.set_policy_overrides(&policies, SetOverrideType::SetOverride).unwrap())
}

/// A fake server that hands out its connection, and a target there with the sync scope NONE and this
/// constraint.
fn fake_server_and_target(
    builder: OrbBuilder,
    constraint: Option<BufferingConstraintPolicy>,
) -> (Orb, Target, mpsc::Receiver<TcpStream>) {
    let (send, accepted) = mpsc::channel();
    let port = fake_server(move |_, stream| {
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        send.send(stream).unwrap();
    });
    let orb = builder.build().unwrap();
    let target = with_sync_none(&orb, &format!("corbaloc:iiop:1.2@127.0.0.1:{port}/x"), constraint);
    (orb, target, accepted)
}

/// The last octet of a message: the data of a `note` of one octet.
fn last_octet(message: &[u8]) -> u8 {
    assert_eq!(&message[..4], b"GIOP");
    *message.last().unwrap()
}

#[track_caller]
fn assert_nothing_to_read(stream: &TcpStream) {
    stream.set_nonblocking(true).unwrap();
    assert_eq!(read_some(stream, &mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
    stream.set_nonblocking(false).unwrap();
}

#[test]
fn one_ways_with_sync_none_arrive_before_later_requests() {
    let server = Server::start();
    let orb = Orb::builder().build().unwrap();
    let target = with_sync_none(&orb, &server.ior(), None);
    for round in 1..=20 {
        for _ in 0..50 {
            target.note(&[7; 100]).unwrap();
        }
        assert_eq!(target.count().unwrap(), round * 50);
    }
    let statistics = orb.statistics();
    assert!(statistics.count(Event::OneWayBatched) > 0);
    assert_eq!((statistics.level(Level::OneWaysUnsent), statistics.count(Event::OneWayDropped)), (0, 0));
    assert_eq!(statistics.count(Event::ConnectionOpened), 1);
}

#[test]
fn a_two_way_request_flushes_the_buffer_in_one_write() {
    let (_orb, target, accepted) = fake_server_and_target(Orb::builder(), Some(NEVER));
    for number in 0..3 {
        target.note(&[number]).unwrap();
    }
    let stream = accepted.recv_timeout(TEST_TIMEOUT).unwrap();
    assert_nothing_to_read(&stream);
    let caller = thread::spawn(move || target.ping());
    let mut read = vec![0; 4096];
    let count = read_some(&stream, &mut read).unwrap();
    let messages = read[..count].windows(4).filter(|window| window == b"GIOP").count();
    assert_eq!(messages, 4, "three one-ways and the two-way");
    drop(stream);
    assert!(caller.join().unwrap().is_err());
}

#[test]
fn a_one_way_with_transport_flushes_the_buffer() {
    let (orb, target, accepted) = fake_server_and_target(Orb::builder(), Some(NEVER));
    let url = orb.object_to_string(target.as_object());
    let with_transport = Target::unchecked_narrow(&orb.string_to_object(&url).unwrap());
    target.note(&[1]).unwrap();
    target.note(&[2]).unwrap();
    with_transport.note(&[3]).unwrap();
    let mut stream = accepted.recv_timeout(TEST_TIMEOUT).unwrap();
    for number in 1..=3 {
        assert_eq!(last_octet(&read_message(&mut stream).unwrap()), number);
    }
}

#[test]
fn the_first_one_way_after_a_pause_is_written_at_once_and_the_rest_soon() {
    let (orb, target, accepted) = fake_server_and_target(Orb::builder(), None);
    target.note(&[1]).unwrap();
    let mut stream = accepted.recv_timeout(TEST_TIMEOUT).unwrap();
    assert_eq!(last_octet(&read_message(&mut stream).unwrap()), 1);
    assert_eq!(orb.statistics().count(Event::OneWayBatched), 0, "the connection was quiet");
    for number in 2..=40 {
        target.note(&[number]).unwrap();
    }
    // The rest is written without a further call.
    for number in 2..=40 {
        assert_eq!(last_octet(&read_message(&mut stream).unwrap()), number);
    }
}

#[test]
fn reaching_a_buffering_constraint_flushes_the_buffer() {
    let by_count = BufferingConstraintPolicy { messages: 3, ..NEVER };
    let by_octets = BufferingConstraintPolicy { octets: 150, ..NEVER };
    let by_time = BufferingConstraintPolicy { timeout: Duration::from_millis(20), ..NEVER };
    for (constraint, waits) in [(by_count, 2), (by_octets, 2), (by_time, 3)] {
        let (_orb, target, accepted) = fake_server_and_target(Orb::builder(), Some(constraint));
        let before = Instant::now();
        for number in 1..=waits {
            target.note(&[number]).unwrap();
        }
        let mut stream = accepted.recv_timeout(TEST_TIMEOUT).unwrap();
        if constraint != by_time {
            assert_nothing_to_read(&stream);
            target.note(&[waits + 1]).unwrap();
        }
        for number in 1..=3 {
            assert_eq!(last_octet(&read_message(&mut stream).unwrap()), number, "{constraint:?}");
        }
        assert!(constraint != by_time || before.elapsed() >= Duration::from_millis(20));
    }
}

#[test]
fn flush_writes_the_buffer() {
    for by_orb in [false, true] {
        let (orb, target, accepted) = fake_server_and_target(Orb::builder(), Some(NEVER));
        target.note(&[1]).unwrap();
        let mut stream = accepted.recv_timeout(TEST_TIMEOUT).unwrap();
        assert_nothing_to_read(&stream);
        if by_orb {
            orb.flush().unwrap()
        } else {
            target.as_object().flush().unwrap()
        }
        assert_eq!(last_octet(&read_message(&mut stream).unwrap()), 1);
        assert_eq!(orb.statistics().level(Level::OneWaysUnsent), 0);
    }
}

#[test]
fn shutdown_or_dropping_the_orb_flushes_the_buffer() {
    for shuts_down in [false, true] {
        let (orb, target, accepted) = fake_server_and_target(Orb::builder(), Some(NEVER));
        target.note(&[1]).unwrap();
        target.note(&[2]).unwrap();
        let mut stream = accepted.recv_timeout(TEST_TIMEOUT).unwrap();
        if shuts_down {
            orb.shutdown().unwrap();
        }
        drop((orb, target));
        for number in 1..=2 {
            assert_eq!(last_octet(&read_message(&mut stream).unwrap()), number);
        }
        // CloseConnection may follow, and nothing else.
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).unwrap();
        assert!(rest.is_empty() || rest[..8] == *b"GIOP\x01\x02\x01\x05" && rest.len() == 12, "{rest:?}");
    }
}

#[test]
fn concurrent_threads_lose_no_one_way_requests() {
    let server = Server::start();
    let orb = Orb::builder().build().unwrap();
    let target = with_sync_none(&orb, &server.ior(), None);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for round in 0..200 {
                    target.note(&[7; 40]).unwrap();
                    if round % 50 == 49 {
                        target.ping().unwrap();
                    }
                }
            });
        }
    });
    orb.flush().unwrap();
    let end = Instant::now() + TEST_TIMEOUT;
    while target.count().unwrap() < 1600 {
        assert!(Instant::now() < end, "one-way requests are lost");
    }
    assert_eq!(target.count().unwrap(), 1600);
    assert_eq!(orb.statistics().count(Event::OneWayDropped), 0);
}

#[test]
fn one_ways_lost_with_their_connection_are_counted() {
    let (orb, target, accepted) = fake_server_and_target(Orb::builder(), Some(NEVER));
    target.note(&[1]).unwrap();
    target.note(&[2]).unwrap();
    // Closing with unread data resets the connection.
    let stream = accepted.recv_timeout(TEST_TIMEOUT).unwrap();
    drop(stream);
    let end = Instant::now() + TEST_TIMEOUT;
    // The system may accept the first write after the end of the connection.
    while orb.statistics().count(Event::OneWayDropped) == 0 {
        assert!(Instant::now() < end, "the lost one-way requests are not counted");
        let _ = target.note(&[3]);
        let _ = target.as_object().flush();
    }
    assert!(orb.statistics().count(Event::OneWayDropped) >= 1);
}

#[test]
fn at_the_buffer_limit_a_one_way_waits_for_the_peer_until_its_timeout() {
    let builder = Orb::builder().buffer_limit(100_000).socket_queues(Some(4096), Some(4096));
    let (orb, untimed, accepted) = fake_server_and_target(builder, None);
    let target = Target::unchecked_narrow(&untimed.as_object().with_timeout(Some(Duration::from_millis(300))));
    let data = [7; 10_000];
    let before = Instant::now();
    let full = loop {
        if let Err(full) = target.note(&data) {
            break full;
        }
        assert!(before.elapsed() < TEST_TIMEOUT, "the buffer limit is never reached");
    };
    assert_eq!(kind_and_completion(&full), (SystemExceptionKind::Timeout, CompletionStatus::No));
    let text = full.to_string();
    assert!(text.contains("does not read") && text.contains("100000 (`-ORBBufferLimit`)"), "{text}");
    assert!(orb.statistics().level(Level::OneWaysUnsent) > 0);
    // Once the server reads, one-way requests are accepted again.
    let mut stream = accepted.recv_timeout(TEST_TIMEOUT).unwrap();
    let reader = thread::spawn(move || while read_message(&mut stream).is_ok() {});
    let end = Instant::now() + TEST_TIMEOUT;
    while target.note(&data).is_err() {
        assert!(Instant::now() < end);
    }
    target.as_object().flush().unwrap();
    assert_eq!(orb.statistics().count(Event::OneWayDropped), 0);
    drop((orb, target, untimed));
    reader.join().unwrap();
}
