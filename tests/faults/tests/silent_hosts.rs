//! Hosts that stop responding without a packet, like a suspended laptop: their peers detect it in time.
#![cfg(target_os = "linux")]

use std::net::IpAddr;
use std::ops::RangeFrom;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use spandrel::{CompletionStatus, Orb, OrbBuilder, SystemException, SystemExceptionKind};
use spandrel_faults::call::{CallKind, Outcome};
use spandrel_faults::ledger::Book;
use spandrel_faults::namespace::Namespace;
use spandrel_faults::server::{Configuration, Server, program};
use spandrel_faults::{Gate, TIMEOUT, servants};
use spandrel_test_support::wait_until;

/// The timeout of calls.
const LIMIT: Duration = Duration::from_millis(400);
/// The additional time allowed on a loaded machine.
const LEEWAY: Duration = Duration::from_secs(15);

/// A server on a simulated host.
struct RemoteServer {
    server: Server,
    gate: Gate,
    _folder: tempfile::TempDir,
    host: Namespace,
}

/// Starts a server on a simulated host; `None` if the host cannot be created.
fn remote_server(number: u8, options: &[&str]) -> Option<RemoteServer> {
    let host = Namespace::create(number).unwrap()?;
    let folder = tempfile::tempdir().unwrap();
    let gate = Gate::open_at(IpAddr::V4(host.local_address())).unwrap();
    let endpoint = ["-ORBListenEndpoints".to_owned(), format!("iiop://{}:0", host.remote_address())];
    let configuration = Configuration {
        journal: folder.path().join("journal"),
        gate: gate.addr(),
        asynchronous: false,
        options: options.iter().map(|&option| option.to_owned()).chain(endpoint).collect(),
    };
    let server = Server::start_with(host.command(program("faults-server").unwrap()), &configuration).unwrap();
    Some(RemoteServer { server, gate, _folder: folder, host })
}

fn client(remote_server: &RemoteServer, builder: OrbBuilder) -> (Orb, Book) {
    let orb = builder.build().unwrap();
    let book = Book::unchecked_narrow(&orb.string_to_object(&remote_server.server.reference).unwrap());
    (orb, book)
}

const AWAITED_CALLS: [CallKind; 8] = [
    CallKind::Synchronous,
    CallKind::Future,
    CallKind::Callback,
    CallKind::Dynamic,
    CallKind::Deferred,
    CallKind::WithServer,
    CallKind::WithTarget,
    CallKind::Locate,
];

/// Calls a server whose host was suspended after an earlier reply; returns the exception.
fn call_suspended_host(
    remote_server: &RemoteServer,
    book: &Book,
    call_kind: CallKind,
    numbers: &mut RangeFrom<u64>,
    limit: Duration,
) -> SystemException {
    let mut invoke = |time| {
        let book = Book::unchecked_narrow(&book.as_object().with_timeout(Some(time)));
        call_kind.invoke(&book, numbers.next().unwrap(), &[0])
    };
    assert!(matches!(invoke(TIMEOUT), Outcome::Returned), "{call_kind:?} before the suspension");
    remote_server.host.suspend().unwrap();
    let start = Instant::now();
    let outcome = invoke(limit);
    let took = start.elapsed();
    let Outcome::Raised(exception) = outcome else { panic!("{call_kind:?}: {outcome:?}") };
    assert_eq!(exception.kind(), SystemExceptionKind::Timeout, "{call_kind:?}: {exception}");
    assert!(limit <= took && took <= limit + LEEWAY, "{call_kind:?} took {took:?}");
    remote_server.host.resume().unwrap();
    exception
}

#[test]
fn calls_with_a_timeout_end_at_it_and_succeed_when_the_host_resumes() {
    let Some(remote_server) = remote_server(0, &[]) else { return };
    let (orb, book) = client(&remote_server, Orb::builder());
    let mut numbers = 0..;
    for call_kind in AWAITED_CALLS {
        // On a loaded machine the timeout may expire before the request is sent.
        let limits = [LIMIT, 4 * LIMIT, 16 * LIMIT].into_iter();
        let mut outcome =
            limits.map(|limit| call_suspended_host(&remote_server, &book, call_kind, &mut numbers, limit));
        let exception = outcome.find(|exception| exception.completed() != CompletionStatus::No);
        let exception = exception.expect("one of the requests is sent");
        assert_eq!(exception.completed(), CompletionStatus::Maybe, "{call_kind:?}: {exception}");
    }
    orb.shutdown().unwrap();
}

#[test]
fn connecting_to_a_suspended_host_ends_at_the_timeout() {
    let Some(remote_server) = remote_server(1, &[]) else { return };
    remote_server.host.suspend().unwrap();
    let (orb, book) = client(&remote_server, Orb::builder().request_timeout(Some(LIMIT)));
    for call_kind in AWAITED_CALLS {
        let start = Instant::now();
        let outcome = call_kind.invoke(&book, 1, &[0]);
        let took = start.elapsed();
        let Outcome::Raised(exception) = outcome else { panic!("{call_kind:?}: {outcome:?}") };
        assert_eq!(exception.completed(), CompletionStatus::No, "{call_kind:?}: {exception}");
        let kinds = [SystemExceptionKind::Timeout, SystemExceptionKind::Transient];
        assert!(kinds.contains(&exception.kind()), "{call_kind:?}: {exception}");
        assert!(took <= LIMIT + LEEWAY, "{call_kind:?} took {took:?}");
    }
    orb.shutdown().unwrap();
}

/// 1 s of idle time and 2 probes at 1 s intervals: 3 s.
const KEEP_ALIVE: [&str; 2] = ["-ORBKeepAlive", "1:1:2"];
const DETECTION_TIME: Duration = Duration::from_secs(3);

#[test]
fn keep_alive_ends_calls_without_a_timeout() {
    let Some(remote_server) = remote_server(2, &[]) else { return };
    let builder = || Orb::builder().request_timeout(None).option(KEEP_ALIVE[0], KEEP_ALIVE[1]).unwrap();
    // One request is sent after the host is suspended; the other is in its upcall.
    let (orb, book) = client(&remote_server, builder());
    let (other_orb, other) = client(&remote_server, builder());
    assert!(matches!(CallKind::Synchronous.invoke(&book, 1, &[0]), Outcome::Returned));
    let (outcome, upcall_begun) = mpsc::channel();
    let (suspended, host_suspended) = mpsc::channel();
    remote_server.gate.on_next_arrival(2..3, move || {
        outcome.send(()).unwrap();
        host_suspended.recv_timeout(TIMEOUT).unwrap();
    });
    let waiting_call = std::thread::spawn(move || CallKind::Synchronous.invoke(&other, 2, &[servants::WAIT_AT_GATE]));
    upcall_begun.recv_timeout(TIMEOUT).unwrap();
    remote_server.host.suspend().unwrap();
    suspended.send(()).unwrap();
    let start = Instant::now();
    let outcomes = [CallKind::Synchronous.invoke(&book, 3, &[0]), waiting_call.join().unwrap()];
    let took = start.elapsed();
    for outcome in outcomes {
        let Outcome::Raised(exception) = outcome else { panic!("{outcome:?}") };
        assert_eq!(
            (exception.kind(), exception.completed()),
            (SystemExceptionKind::CommFailure, CompletionStatus::Maybe),
            "{exception}"
        );
    }
    assert!(took <= 2 * DETECTION_TIME + LEEWAY, "the calls took {took:?}");
    orb.shutdown().unwrap();
    other_orb.shutdown().unwrap();
}

/// Suspends the server's host after a call: for the server, its client stops responding.
fn assert_connection_is_closed(number: u8, options: &[&str]) {
    let Some(remote_server) = remote_server(number, options) else { return };
    let (orb, book) = client(&remote_server, Orb::builder());
    let before = remote_server.server.descriptors_without_clients().unwrap();
    assert!(matches!(CallKind::Synchronous.invoke(&book, 1, &[0]), Outcome::Returned));
    wait_until("the connection to open", || remote_server.server.descriptors().unwrap() > before);
    remote_server.host.suspend().unwrap();
    let start = Instant::now();
    wait_until("the connection to close", || remote_server.server.descriptors().unwrap() <= before);
    assert!(start.elapsed() <= 2 * DETECTION_TIME + LEEWAY, "closing took {:?}", start.elapsed());
    orb.begin_shutdown().unwrap();
}

#[test]
fn keep_alive_closes_connections_of_silent_clients() {
    assert_connection_is_closed(3, &KEEP_ALIVE);
}

#[test]
fn the_idle_timeout_closes_connections_of_silent_clients() {
    assert_connection_is_closed(4, &["-ORBServerIdleTimeout", "1000"]);
}

#[test]
fn leader_followers_servers_close_connections_of_silent_clients() {
    assert_connection_is_closed(5, &["-ORBConcurrency", "leader-followers", KEEP_ALIVE[0], KEEP_ALIVE[1]]);
}
