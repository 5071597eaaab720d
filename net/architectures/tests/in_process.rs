//! Servers in this process: with a protocol of the test's own, and their limits.

use std::io::{self, Read as _, Write as _};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use spandrel_architectures::http::Http;
use spandrel_architectures::transfer::{Transfer, TransferSession};
use spandrel_architectures::{
    Architecture, Phase, Port, Protocol, Server, Service, Session, Settings, accept_pool, iterative, leader_followers,
    queue_pool, reactive, thread_per_connection,
};
use spandrel_ipc::inet::Addr;
use spandrel_test_support::{TEST_TIMEOUT, holds_within, read_some, wait_until};

use crate::support::{SHORT, at_once, connect, greeted, is_in_time, permitted, request, rest, transfer};

/// The paper's service, but a request for 13 octets panics.
struct Panicking;

struct PanickingSession(TransferSession);

impl Protocol for Panicking {
    type Session = PanickingSession;

    fn open(&self) -> PanickingSession {
        PanickingSession(Transfer { has_greeting: true }.open())
    }
}

impl Session for PanickingSession {
    fn receive(&mut self, octets: &[u8]) {
        assert_ne!(octets, b"0013");
        self.0.receive(octets);
    }
    fn end_input(&mut self) {
        self.0.end_input();
    }
    fn time_out(&mut self) {
        self.0.time_out();
    }
    fn output(&mut self) -> &[u8] {
        self.0.output()
    }
    fn sent(&mut self, octets: usize) {
        self.0.sent(octets);
    }
    fn phase(&self) -> Phase {
        self.0.phase()
    }
}

pub(crate) type Start<P> = fn(&Port, P, &Settings) -> io::Result<Box<dyn Server>>;

/// The architectures that run any protocol.
pub(crate) fn starts<P: Protocol>() -> Vec<(&'static str, Start<P>)> {
    let all: Vec<(&'static str, Start<P>)> = vec![
        ("iterative", |port, protocol, settings| Ok(Box::new(iterative::start(port, protocol, settings)?))),
        ("reactive", |port, protocol, settings| Ok(Box::new(reactive::start(port, protocol, settings)?))),
        ("thread-per-connection", |port, protocol, settings| {
            Ok(Box::new(thread_per_connection::start(port, protocol, settings)?))
        }),
        ("queue-pool", |port, protocol, settings| Ok(Box::new(queue_pool::start(port, protocol, settings)?))),
        ("accept-pool", |port, protocol, settings| Ok(Box::new(accept_pool::start(port, protocol, settings)?))),
        ("leader-followers", |port, protocol, settings| {
            Ok(Box::new(leader_followers::start(port, protocol, settings)?))
        }),
        #[cfg(proactor)]
        ("asynchronous", |port, protocol, settings| {
            Ok(Box::new(spandrel_architectures::asynchronous::start(port, protocol, settings)?))
        }),
    ];
    let permitted = permitted();
    let is_permitted = |name: &str| permitted.iter().any(|architecture| architecture.name() == name);
    all.into_iter().filter(|(name, _)| is_permitted(name)).collect()
}

pub(crate) fn port() -> (Port, SocketAddr) {
    let port = Port::exclusive(&Addr::loopback(0)).unwrap();
    let address = port.addr().unwrap().into();
    (port, address)
}

#[test]
fn a_panic_in_a_session_ends_its_connection_alone() {
    for (name, start) in starts() {
        let (port, address) = port();
        let server = start(&port, Panicking, &Settings::default()).unwrap();
        // Iterative servers serve it first.
        let unlucky = greeted(address);
        std::io::Write::write_all(&mut &unlucky, b"0013").unwrap();
        assert_eq!(rest(&unlucky), b"", "{name}");
        at_once(10, |_| transfer(address));
        assert_eq!(server.stop(TEST_TIMEOUT), 0, "{name}");
    }
}

#[test]
fn connections_beyond_the_limits_wait_and_are_served() {
    // Event-driven servers close them instead.
    let waiting = ["iterative", "thread-per-connection", "queue-pool", "accept-pool", "asynchronous"];
    let settings = Settings { workers: 2, queue: 1, max_connections: 2, ..Settings::default() };
    for (name, start) in starts().into_iter().filter(|(name, _)| waiting.contains(name)) {
        let (port, address) = port();
        let server = start(&port, Transfer { has_greeting: true }, &settings).unwrap();
        at_once(50, |_| transfer(address));
        wait_until("all connections are closed", || server.connections() == 0);
        assert_eq!(server.stop(TEST_TIMEOUT), 0, "{name}");
    }
}

/// The paper's service, which counts its sessions.
struct Counted(Arc<Counts>);

#[derive(Default)]
struct Counts {
    open: AtomicUsize,
    most: AtomicUsize,
}

struct CountedSession(TransferSession, Arc<Counts>);

impl Protocol for Counted {
    type Session = CountedSession;

    fn open(&self) -> CountedSession {
        let open = self.0.open.fetch_add(1, Ordering::SeqCst) + 1;
        self.0.most.fetch_max(open, Ordering::SeqCst);
        CountedSession(Transfer { has_greeting: true }.open(), Arc::clone(&self.0))
    }
}

impl Drop for CountedSession {
    fn drop(&mut self) {
        self.1.open.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Session for CountedSession {
    fn receive(&mut self, octets: &[u8]) {
        self.0.receive(octets);
    }
    fn end_input(&mut self) {
        self.0.end_input();
    }
    fn time_out(&mut self) {
        self.0.time_out();
    }
    fn output(&mut self) -> &[u8] {
        self.0.output()
    }
    fn sent(&mut self, octets: usize) {
        self.0.sent(octets);
    }
    fn phase(&self) -> Phase {
        self.0.phase()
    }
}

#[test]
fn no_more_connections_than_the_limit_are_served_at_once() {
    const LIMIT: usize = 70;
    let settings = Settings { max_connections: LIMIT, ..Settings::default() };
    for (name, start) in
        starts().into_iter().filter(|(name, _)| ["thread-per-connection", "asynchronous"].contains(name))
    {
        let (port, address) = port();
        let counts = Arc::<Counts>::default();
        let server = start(&port, Counted(Arc::clone(&counts)), &settings).unwrap();
        let clients: Vec<_> = (0..2 * LIMIT).map(|_| crate::support::connect(address)).collect();
        wait_until("the limit is reached", || server.connections() == LIMIT);
        // As soon as connections end, others are served in their order.
        for client in &clients {
            let mut greeting = [0; 7];
            std::io::Read::read_exact(&mut &*client, &mut greeting).unwrap();
            request(client, &[b"4000"], 4_000);
            client.shutdown(std::net::Shutdown::Both).unwrap();
        }
        wait_until("all connections are closed", || server.connections() == 0);
        assert_eq!(counts.most.load(Ordering::SeqCst), LIMIT, "{name}");
        assert_eq!(server.stop(TEST_TIMEOUT), 0, "{name}");
    }
}

#[test]
fn a_stop_cuts_connections_after_its_time_and_counts_them() {
    for (name, start) in starts() {
        let (port, address) = port();
        let server = start(&port, Endless, &Settings::default()).unwrap();
        let endless = crate::support::connect(address);
        wait_until("the connection is served", || server.connections() == 1);
        assert_eq!(server.stop(SHORT), 1, "{name}");
        drop(server);
        drop(endless);
    }
}

/// Sends without an end.
struct Endless;

impl Protocol for Endless {
    type Session = Self;

    fn open(&self) -> Self {
        Self
    }
}

impl Session for Endless {
    fn receive(&mut self, _octets: &[u8]) {}
    fn end_input(&mut self) {}
    fn time_out(&mut self) {}
    fn output(&mut self) -> &[u8] {
        &[0; 4_096]
    }
    fn sent(&mut self, _octets: usize) {}
    fn phase(&self) -> Phase {
        Phase::Idle
    }
}

#[test]
fn a_request_that_arrives_too_slowly_is_dropped() {
    let settings =
        Settings { request: Duration::from_millis(200), idle: Duration::from_millis(400), ..Settings::default() };
    for (name, start) in starts() {
        let (port, address) = port();
        let server = start(&port, Transfer { has_greeting: true }, &settings).unwrap();
        let slow = greeted(address);
        std::io::Write::write_all(&mut &slow, b"4").unwrap();
        assert_eq!(rest(&slow), b"", "{name}");
        // On a loaded machine, any client may be too slow.
        wait_until("a reply", || is_in_time(address));
        assert_eq!(server.stop(TEST_TIMEOUT), 0, "{name}");
    }
}

#[test]
fn a_client_that_is_told_of_its_time_limit_is_not_reset() {
    let folder = tempfile::tempdir().unwrap();
    let service = Service::Http(Http::open(folder.path()).unwrap());
    let settings = Settings { request: Duration::from_secs(2), ..Settings::default() };
    let architectures = permitted();
    at_once(architectures.len(), |number| {
        let architecture = architectures[number];
        if [Architecture::ProcessPerConnection, Architecture::PreForked].contains(&architecture) {
            return; // their processes would have to be this program
        }
        let (port, address) = port();
        let server = architecture.start(&port, &service, &settings).unwrap();
        let limit = settings.request..settings.request * 7 / 4;
        let attempt = || {
            let mut slow = connect(address);
            slow.set_read_timeout(Some(SHORT)).unwrap();
            let begin = Instant::now();
            slow.write_all(b"GET /").unwrap();
            let mut first = [0];
            wait_until("the request has exceeded its time", || {
                slow.write_all(b"a").unwrap_or_else(|error| panic!("{architecture}: {error}"));
                read_some(&slow, &mut first).is_ok()
            });
            let elapsed = begin.elapsed();
            assert!(elapsed >= limit.start, "{architecture}: {elapsed:?}");
            (elapsed, slow, first)
        };
        // One of five: a loaded machine delays the server and this thread.
        let mut attempts = (0..5).map(|_| {
            wait_until("the end of the connection before", || server.connections() == 0);
            attempt()
        });
        let (_, mut slow, first) = attempts.find(|(elapsed, ..)| limit.contains(elapsed)).expect("an end in time");
        slow.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        let mut response = first.to_vec();
        slow.read_to_end(&mut response).unwrap_or_else(|error| panic!("{architecture}: {error}"));
        assert!(response.starts_with(b"HTTP/1.1 408 "), "{architecture}");
        // The server has ended its sending side, and still receives.
        for _ in 0..3 {
            slow.write_all(b"a").unwrap_or_else(|error| panic!("{architecture}: {error}"));
        }
        assert_eq!(server.connections(), 1, "{architecture}");
        // It never stops sending, so that the server always has octets to receive.
        let has_ended = holds_within(TEST_TIMEOUT, || {
            _ = slow.write_all(b"a");
            server.connections() == 0
        });
        assert!(has_ended, "{architecture}: the rest of the request has no end");
        assert_eq!(server.stop(TEST_TIMEOUT), 0, "{architecture}");
    });
}

#[test]
fn limits_of_zero_or_beyond_the_greatest_are_refused() {
    let service = Service::Transfer(Transfer { has_greeting: true });
    for settings in [
        Settings { workers: 0, ..Settings::default() },
        Settings { max_connections: 0, ..Settings::default() },
        Settings { queue: 0, ..Settings::default() },
        Settings { workers: Settings::MOST_WORKERS + 1, ..Settings::default() },
        Settings { max_connections: Settings::MOST_CONNECTIONS + 1, ..Settings::default() },
        Settings { idle: Duration::ZERO, ..Settings::default() },
    ] {
        for architecture in permitted() {
            let (port, _) = port();
            let error = architecture.start(&port, &service, &settings).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{architecture}");
        }
    }
}

#[test]
fn architectures_that_the_platform_lacks_are_explained() {
    let service = Service::Transfer(Transfer { has_greeting: true });
    for architecture in Architecture::ALL.iter().filter(|architecture| !architecture.is_available()) {
        let (port, _) = port();
        let error = architecture.start(&port, &service, &Settings::default()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Unsupported, "{architecture}");
    }
    assert!(Architecture::Iterative.is_available());
}
