//! One-ways that nobody waits for (the sync scope NONE): what is written when, and that nothing overtakes.

use std::{
    io::{ErrorKind, Read},
    net::TcpStream,
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use spandrel::{
    CompletionStatus, Orb, OrbBuilder, SystemExceptionKind,
    policies::{BufferingConstraintPolicy, SetOverrideType, SyncScopePolicy},
    statistics::{Event, Level},
};
use spandrel_orb_tests::{
    Server,
    probe::Target,
    support::{PATIENCE, kind_and_completion, pretend, read_message},
};

/// Nothing is written before somebody says so.
const NEVER: BufferingConstraintPolicy =
    BufferingConstraintPolicy { timeout: Duration::MAX, messages: u32::MAX, octets: usize::MAX };

fn unwaited(orb: &Orb, url: &str, constraint: Option<BufferingConstraintPolicy>) -> Target {
    let mut policies = vec![SyncScopePolicy::None.into()];
    policies.extend(constraint.map(Into::into));
    let object = orb.string_to_object(url).unwrap();
    Target::unchecked_narrow(&object.set_policy_overrides(&policies, SetOverrideType::SetOverride).unwrap())
}

/// A server that hands its connection out, and what is sent to it by `builder`'s ORB with this constraint.
fn to_a_pretender(
    builder: OrbBuilder,
    constraint: Option<BufferingConstraintPolicy>,
) -> (Orb, Target, mpsc::Receiver<TcpStream>) {
    let (send, accepted) = mpsc::channel();
    let port = pretend(move |_, stream| {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        send.send(stream).unwrap();
    });
    let orb = builder.build().unwrap();
    let target = unwaited(&orb, &format!("corbaloc:iiop:1.2@127.0.0.1:{port}/x"), constraint);
    (orb, target, accepted)
}

/// The first octets of the data of a `note`, in a message that was read.
fn noted(message: &[u8]) -> u8 {
    assert_eq!(&message[..4], b"GIOP");
    *message.last().unwrap()
}

#[track_caller]
fn assert_silent(stream: &TcpStream) {
    stream.set_nonblocking(true).unwrap();
    assert_eq!((&*stream).read(&mut [0; 1]).unwrap_err().kind(), ErrorKind::WouldBlock);
    stream.set_nonblocking(false).unwrap();
}

#[test]
fn what_is_sent_without_waiting_arrives_before_what_follows() {
    let server = Server::start();
    let orb = Orb::builder().build().unwrap();
    let target = unwaited(&orb, &server.ior(), None);
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
fn a_two_way_takes_along_what_is_buffered_in_one_write() {
    let (_orb, target, accepted) = to_a_pretender(Orb::builder(), Some(NEVER));
    for number in 0..3 {
        target.note(&[number]).unwrap();
    }
    let mut stream = accepted.recv_timeout(PATIENCE).unwrap();
    assert_silent(&stream);
    let caller = thread::spawn(move || target.ping());
    let mut read = vec![0; 4096];
    let count = stream.read(&mut read).unwrap();
    let messages = read[..count].windows(4).filter(|window| window == b"GIOP").count();
    assert_eq!(messages, 4, "three one-ways and the two-way");
    drop(stream);
    assert!(caller.join().unwrap().is_err());
}

#[test]
fn one_that_waits_for_the_transport_takes_them_along_too() {
    let (orb, target, accepted) = to_a_pretender(Orb::builder(), Some(NEVER));
    let url = orb.object_to_string(target.as_object());
    let waited = Target::unchecked_narrow(&orb.string_to_object(&url).unwrap());
    target.note(&[1]).unwrap();
    target.note(&[2]).unwrap();
    waited.note(&[3]).unwrap();
    let mut stream = accepted.recv_timeout(PATIENCE).unwrap();
    for number in 1..=3 {
        assert_eq!(noted(&read_message(&mut stream).unwrap()), number);
    }
}

#[test]
fn after_a_pause_one_is_written_at_once_and_the_others_soon() {
    let (orb, target, accepted) = to_a_pretender(Orb::builder(), None);
    target.note(&[1]).unwrap();
    let mut stream = accepted.recv_timeout(PATIENCE).unwrap();
    assert_eq!(noted(&read_message(&mut stream).unwrap()), 1);
    assert_eq!(orb.statistics().count(Event::OneWayBatched), 0, "the connection was quiet");
    for number in 2..=40 {
        target.note(&[number]).unwrap();
    }
    // Nobody calls again.
    for number in 2..=40 {
        assert_eq!(noted(&read_message(&mut stream).unwrap()), number);
    }
}

#[test]
fn any_constraint_that_is_reached_has_them_written() {
    let by_count = BufferingConstraintPolicy { messages: 3, ..NEVER };
    let by_octets = BufferingConstraintPolicy { octets: 150, ..NEVER };
    let by_time = BufferingConstraintPolicy { timeout: Duration::from_millis(20), ..NEVER };
    for (constraint, waits) in [(by_count, 2), (by_octets, 2), (by_time, 3)] {
        let (_orb, target, accepted) = to_a_pretender(Orb::builder(), Some(constraint));
        let before = Instant::now();
        for number in 1..=waits {
            target.note(&[number]).unwrap();
        }
        let mut stream = accepted.recv_timeout(PATIENCE).unwrap();
        if constraint != by_time {
            assert_silent(&stream);
            target.note(&[waits + 1]).unwrap();
        }
        for number in 1..=3 {
            assert_eq!(noted(&read_message(&mut stream).unwrap()), number, "{constraint:?}");
        }
        assert!(constraint != by_time || before.elapsed() >= Duration::from_millis(20));
    }
}

#[test]
fn flushing_writes_what_is_buffered() {
    for by_orb in [false, true] {
        let (orb, target, accepted) = to_a_pretender(Orb::builder(), Some(NEVER));
        target.note(&[1]).unwrap();
        let mut stream = accepted.recv_timeout(PATIENCE).unwrap();
        assert_silent(&stream);
        if by_orb {
            orb.flush().unwrap()
        } else {
            target.as_object().flush().unwrap()
        }
        assert_eq!(noted(&read_message(&mut stream).unwrap()), 1);
        assert_eq!(orb.statistics().level(Level::OneWaysUnsent), 0);
    }
}

#[test]
fn an_orb_that_ends_leaves_nothing_unwritten() {
    for shuts_down in [false, true] {
        let (orb, target, accepted) = to_a_pretender(Orb::builder(), Some(NEVER));
        target.note(&[1]).unwrap();
        target.note(&[2]).unwrap();
        let mut stream = accepted.recv_timeout(PATIENCE).unwrap();
        if shuts_down {
            orb.shutdown(true).unwrap();
        }
        drop((orb, target));
        for number in 1..=2 {
            assert_eq!(noted(&read_message(&mut stream).unwrap()), number);
        }
        // An orderly end: a CloseConnection at most.
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).unwrap();
        assert!(rest.is_empty() || rest[..8] == *b"GIOP\x01\x02\x01\x05" && rest.len() == 12, "{rest:?}");
    }
}

#[test]
fn many_threads_lose_nothing_and_their_own_calls_come_in_order() {
    let server = Server::start();
    let orb = Orb::builder().build().unwrap();
    let target = unwaited(&orb, &server.ior(), None);
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
    let end = Instant::now() + PATIENCE;
    while target.count().unwrap() < 1600 {
        assert!(Instant::now() < end, "some are lost");
    }
    assert_eq!(target.count().unwrap(), 1600);
    assert_eq!(orb.statistics().count(Event::OneWayDropped), 0);
}

#[test]
fn what_is_lost_is_counted() {
    let (orb, target, accepted) = to_a_pretender(Orb::builder(), Some(NEVER));
    target.note(&[1]).unwrap();
    target.note(&[2]).unwrap();
    // With a reset, since it has not been read.
    let stream = accepted.recv_timeout(PATIENCE).unwrap();
    drop(stream);
    let end = Instant::now() + PATIENCE;
    // The first write after the end of the connection may still be taken by the system.
    while orb.statistics().count(Event::OneWayDropped) == 0 {
        assert!(Instant::now() < end, "nothing shows that they are lost");
        let _ = target.note(&[3]);
        let _ = target.as_object().flush();
    }
    assert!(orb.statistics().count(Event::OneWayDropped) >= 1);
}

#[test]
fn a_peer_that_does_not_read_is_waited_for_only_at_the_limit_and_in_time() {
    let builder = Orb::builder().buffer_limit(100_000).socket_queues(Some(4096), Some(4096));
    let (orb, untimed, accepted) = to_a_pretender(builder, None);
    let target = Target::unchecked_narrow(&untimed.as_object().with_timeout(Some(Duration::from_millis(300))));
    let data = [7; 10_000];
    let before = Instant::now();
    let full = loop {
        if let Err(full) = target.note(&data) {
            break full;
        }
        assert!(before.elapsed() < PATIENCE, "it takes for ever");
    };
    assert_eq!(kind_and_completion(&full), (SystemExceptionKind::Timeout, CompletionStatus::No));
    let words = full.to_string();
    assert!(words.contains("does not read") && words.contains("100000 (`-ORBBufferLimit`)"), "{words}");
    assert!(orb.statistics().level(Level::OneWaysUnsent) > 0);
    // Once it reads on all is well again.
    let mut stream = accepted.recv_timeout(PATIENCE).unwrap();
    let reader = thread::spawn(move || while read_message(&mut stream).is_ok() {});
    let end = Instant::now() + PATIENCE;
    while target.note(&data).is_err() {
        assert!(Instant::now() < end);
    }
    target.as_object().flush().unwrap();
    assert_eq!(orb.statistics().count(Event::OneWayDropped), 0);
    drop((orb, target, untimed));
    reader.join().unwrap();
}
