//! Hosts that vanish without a packet, as a laptop does that is closed: whoever waits for them notices in time.
#![cfg(target_os = "linux")]

use std::net::IpAddr;
use std::ops::RangeFrom;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use spandrel::{CompletionStatus, Orb, OrbBuilder, SystemException, SystemExceptionKind};
use spandrel_faults::call::{Told, Way};
use spandrel_faults::ledger::Book;
use spandrel_faults::namespace::Namespace;
use spandrel_faults::server::{Arrangement, Server, program};
use spandrel_faults::{Gate, LONG, servants};
use spandrel_test_support::comes;

/// The deadline of calls.
const LIMIT: Duration = Duration::from_millis(400);
/// What a loaded machine adds.
const LEEWAY: Duration = Duration::from_secs(15);

/// A server on another host, and how often it does what.
struct Away {
    server: Server,
    gate: Gate,
    _folder: tempfile::TempDir,
    host: Namespace,
}

/// None where there is no other host.
fn away(number: u8, options: &[&str]) -> Option<Away> {
    let host = Namespace::make(number).unwrap()?;
    let folder = tempfile::tempdir().unwrap();
    let gate = Gate::open_at(IpAddr::V4(host.here())).unwrap();
    let endpoint = ["-ORBListenEndpoints".to_owned(), format!("iiop://{}:0", host.there())];
    let arrangement = Arrangement {
        journal: folder.path().join("journal"),
        gate: gate.addr(),
        asynchronous: false,
        options: options.iter().map(|&option| option.to_owned()).chain(endpoint).collect(),
    };
    let server = Server::start_by(host.command(program("faults-server").unwrap()), &arrangement).unwrap();
    Some(Away { server, gate, _folder: folder, host })
}

fn client(away: &Away, builder: OrbBuilder) -> (Orb, Book) {
    let orb = builder.build().unwrap();
    let book = Book::unchecked_narrow(&orb.string_to_object(&away.server.reference).unwrap());
    (orb, book)
}

const AWAITED: [Way; 8] = [
    Way::Synchronous,
    Way::Future,
    Way::Callback,
    Way::Dynamic,
    Way::Deferred,
    Way::WithServer,
    Way::WithTarget,
    Way::Locate,
];

/// How a call ends that has so much time, of a server that has just answered another and fallen asleep.
fn asked_asleep(away: &Away, book: &Book, way: Way, numbers: &mut RangeFrom<u64>, limit: Duration) -> SystemException {
    let mut ask = |time| {
        let book = Book::unchecked_narrow(&book.as_object().with_timeout(Some(time)));
        way.ask(&book, numbers.next().unwrap(), &[0])
    };
    assert!(matches!(ask(LONG), Told::Done), "{way:?} before");
    away.host.sleep().unwrap();
    let begun = Instant::now();
    let told = ask(limit);
    let took = begun.elapsed();
    let Told::Refused(exception) = told else { panic!("{way:?}: {told:?}") };
    assert_eq!(exception.kind(), SystemExceptionKind::Timeout, "{way:?}: {exception}");
    assert!(limit <= took && took <= limit + LEEWAY, "{way:?} took {took:?}");
    away.host.wake().unwrap();
    exception
}

#[test]
fn calls_with_a_deadline_end_with_it_and_go_on_when_the_server_wakes() {
    let Some(away) = away(0, &[]) else { return };
    let (orb, book) = client(&away, Orb::builder());
    let mut numbers = 0..;
    for way in AWAITED {
        // On a loaded machine its time may be up before it is sent.
        let limits = [LIMIT, 4 * LIMIT, 16 * LIMIT].into_iter();
        let mut told = limits.map(|limit| asked_asleep(&away, &book, way, &mut numbers, limit));
        let exception = told.find(|exception| exception.completed() != CompletionStatus::No);
        let exception = exception.expect("one of them is sent");
        assert_eq!(exception.completed(), CompletionStatus::Maybe, "{way:?}: {exception}");
    }
    orb.shutdown(true).unwrap();
}

#[test]
fn a_new_connection_to_a_server_that_sleeps_ends_with_the_deadline() {
    let Some(away) = away(1, &[]) else { return };
    away.host.sleep().unwrap();
    let (orb, book) = client(&away, Orb::builder().request_timeout(Some(LIMIT)));
    for way in AWAITED {
        let begun = Instant::now();
        let told = way.ask(&book, 1, &[0]);
        let took = begun.elapsed();
        let Told::Refused(exception) = told else { panic!("{way:?}: {told:?}") };
        assert_eq!(exception.completed(), CompletionStatus::No, "{way:?}: {exception}");
        let kinds = [SystemExceptionKind::Timeout, SystemExceptionKind::Transient];
        assert!(kinds.contains(&exception.kind()), "{way:?}: {exception}");
        assert!(took <= LIMIT + LEEWAY, "{way:?} took {took:?}");
    }
    orb.shutdown(true).unwrap();
}

/// 1 s, and 2 probes a second apart: 3 s.
const KEEP_ALIVE: [&str; 2] = ["-ORBKeepAlive", "1:1:2"];
const NOTICED: Duration = Duration::from_secs(3);

#[test]
fn calls_without_a_deadline_notice_by_keep_alive() {
    let Some(away) = away(2, &[]) else { return };
    let builder = || Orb::builder().request_timeout(None).option(KEEP_ALIVE[0], KEEP_ALIVE[1]).unwrap();
    // One is asked when the server sleeps already; the other is in its upcall.
    let (orb, book) = client(&away, builder());
    let (other_orb, other) = client(&away, builder());
    assert!(matches!(Way::Synchronous.ask(&book, 1, &[0]), Told::Done));
    let (told, falls_asleep) = mpsc::channel();
    let (asleep, goes_on) = mpsc::channel();
    away.gate.at_next(2..3, move || {
        told.send(()).unwrap();
        goes_on.recv_timeout(LONG).unwrap();
    });
    let waits = std::thread::spawn(move || Way::Synchronous.ask(&other, 2, &[servants::WAITS]));
    falls_asleep.recv_timeout(LONG).unwrap();
    away.host.sleep().unwrap();
    asleep.send(()).unwrap();
    let begun = Instant::now();
    let outcomes = [Way::Synchronous.ask(&book, 3, &[0]), waits.join().unwrap()];
    let took = begun.elapsed();
    for told in outcomes {
        let Told::Refused(exception) = told else { panic!("{told:?}") };
        assert_eq!(
            (exception.kind(), exception.completed()),
            (SystemExceptionKind::CommFailure, CompletionStatus::Maybe),
            "{exception}"
        );
    }
    assert!(took <= 2 * NOTICED + LEEWAY, "it took {took:?}");
    orb.shutdown(true).unwrap();
    other_orb.shutdown(true).unwrap();
}

/// A client of this host is, for the server, on a host that vanishes.
fn is_forgotten(number: u8, options: &[&str]) {
    let Some(away) = away(number, options) else { return };
    let (orb, book) = client(&away, Orb::builder());
    let before = away.server.descriptors_without_clients().unwrap();
    assert!(matches!(Way::Synchronous.ask(&book, 1, &[0]), Told::Done));
    comes("the connection", || away.server.descriptors().unwrap() > before);
    away.host.sleep().unwrap();
    let begun = Instant::now();
    comes("the end of the connection", || away.server.descriptors().unwrap() <= before);
    assert!(begun.elapsed() <= 2 * NOTICED + LEEWAY, "it took {:?}", begun.elapsed());
    orb.shutdown(false).unwrap();
}

#[test]
fn a_server_that_probes_forgets_a_client_that_sleeps() {
    is_forgotten(3, &KEEP_ALIVE);
}

#[test]
fn a_server_with_idle_timeouts_forgets_a_client_that_sleeps() {
    is_forgotten(4, &["-ORBServerIdleTimeout", "1000"]);
}

#[test]
fn a_server_whose_connections_share_threads_forgets_a_client_that_sleeps() {
    is_forgotten(5, &["-ORBConcurrency", "leader-followers", KEEP_ALIVE[0], KEEP_ALIVE[1]]);
}
