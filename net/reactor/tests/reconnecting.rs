//! A connector that keeps a connection up, with attempts that fail in every way.

use crate::{for_every_place, support};

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use spandrel_ipc::inet::{Acceptor as Listener, Addr, Inet};
use spandrel_ipc::{Accept, Family, Shutdown};
use spandrel_reactor::strategy::{Concurrency, Creation, Reactive, ThreadPerConnection};
use spandrel_reactor::{Acceptor, Backoff, Connector, Options, Peer, Reactor, ServiceHandler};

use spandrel_test_support::{TEST_TIMEOUT, eventually};
use support::test_families::*;
use support::{Echo, Running};

/// Sends `hello`, and closes when it has come back.
struct Hello(mpsc::Sender<&'static str>);

impl<F: Family> ServiceHandler<F> for Hello {
    fn open(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        peer.put(b"hello")
    }

    fn handle_input(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        let count = peer.recv(&mut [0; 64])?;
        let _ = self.0.send(if count == 0 { "end" } else { "hello" });
        peer.close();
        Ok(())
    }
}

fn quick() -> Backoff {
    Backoff::new(Duration::from_millis(1), Duration::from_millis(2))
}

fn a_connector_reconnects_repeatedly<P: TestFamily>(concurrency: impl Concurrency<P::Family, Hello>) {
    let running = Running::start(2);
    let registry = running.reactor.registry();
    let (addr, _folder) = P::fresh();
    let server = Acceptor::new(P::family(), || Echo).open(registry, &addr).unwrap();
    let (say, reports) = mpsc::channel();
    let connector = Connector::new(P::family(), move || Hello(say.clone())).concurrency(concurrency).reconnect(quick());
    let client = connector.connect(registry, server.addr()).unwrap();
    for _ in 0..5 {
        assert_eq!(reports.recv_timeout(TEST_TIMEOUT).unwrap(), "hello");
    }
    let _ = client.drain(TEST_TIMEOUT);
    assert!(!client.is_connected());
    eventually(|| server.connections() == 0);
}

fn a_silent_peer_times_out<P: TestFamily>() {
    let running = Running::start(1);
    let (addr, _folder) = P::fresh();
    let listener = P::family().open(&addr).unwrap();
    let addr = listener.local_addr().unwrap();
    let (fail, failed) = mpsc::channel();
    let (say, _said) = mpsc::channel();
    // No accept: some families are connected all the same.
    let client = Connector::new(P::family(), move || Hello(say.clone()))
        .timeout(Duration::from_millis(10))
        .reconnect(quick())
        .on_failure(move |error| fail.send(error.kind()).unwrap_or_default())
        .connect(running.reactor.registry(), &addr)
        .unwrap();
    eventually(|| client.is_connected() || failed.try_recv().is_ok_and(|kind| kind == io::ErrorKind::TimedOut));
    client.close();
}

macro_rules! connecting {
    ($name:ident, $TestFamily:ident) => {
        mod $name {
            use super::*;

            #[test]
            fn a_connector_reconnects_when_the_connection_ends() {
                a_connector_reconnects_repeatedly::<$TestFamily>(Reactive);
                a_connector_reconnects_repeatedly::<$TestFamily>(ThreadPerConnection::new(2));
            }

            #[test]
            fn an_attempt_times_out() {
                a_silent_peer_times_out::<$TestFamily>();
            }
        }
    };
}
for_every_place!(connecting);

/// Never makes a handler.
struct Never {
    made: Arc<AtomicUsize>,
    panics: bool,
}

impl Creation<Inet> for Never {
    type Handler = Echo;

    fn make(&mut self, _: &Addr) -> io::Result<Echo> {
        self.made.fetch_add(1, Ordering::SeqCst);
        assert!(!self.panics, "on purpose");
        Err(io::Error::other("on purpose"))
    }
}

#[test]
fn a_failed_creation_counts_as_a_failed_attempt() {
    for panics in [false, true] {
        let running = Running::start(1);
        let registry = running.reactor.registry();
        let server = Acceptor::new(Inet::default(), || Echo).open(registry, &Addr::loopback(0)).unwrap();
        let made = Arc::new(AtomicUsize::new(0));
        let (fail, failed) = mpsc::channel();
        let start = Instant::now();
        let client = Connector::new(Inet::default(), Never { made: Arc::clone(&made), panics })
            .reconnect(Backoff::new(Duration::from_millis(8), Duration::from_secs(60)).attempts(5))
            .on_failure(move |_| fail.send(()).unwrap_or_default())
            .connect(registry, server.addr())
            .unwrap();
        // The fifth attempt is the last: then the sender is dropped.
        (0..5).for_each(|_| failed.recv_timeout(TEST_TIMEOUT).unwrap());
        assert_eq!(failed.recv_timeout(TEST_TIMEOUT), Err(mpsc::RecvTimeoutError::Disconnected), "panics: {panics}");
        assert_eq!(made.load(Ordering::SeqCst), 5);
        // At least half of 8, 16, 32 and 64 milliseconds.
        assert!(start.elapsed() >= Duration::from_millis(60), "the waits grow: {:?}", start.elapsed());
        client.close();
    }
}

#[test]
fn a_peer_that_closes_at_once_counts_as_a_failure() {
    let running = Running::start(1);
    let listener = Listener::open(&Addr::loopback(0)).unwrap();
    let addr = listener.local_addr().unwrap();
    let (say, _said) = mpsc::channel();
    let client = Connector::new(Inet::default(), move || Hello(say.clone()))
        .reconnect(Backoff::new(Duration::from_millis(8), Duration::from_secs(60)))
        .connect(running.reactor.registry(), &addr)
        .unwrap();
    let start = Instant::now();
    for _ in 0..5 {
        drop(listener.accept().unwrap());
    }
    // 4, 8, 16 and 32 milliseconds at least, if each connection ends at once; otherwise 4 each.
    assert!(start.elapsed() >= Duration::from_millis(40), "{:?}", start.elapsed());
    client.close();
}

#[test]
fn a_connector_retries_without_room_for_handlers() {
    let reactor = Reactor::with(&Options::default().max_handlers(1)).unwrap();
    let listener = Listener::open(&Addr::loopback(0)).unwrap();
    let (fail, failed) = mpsc::channel();
    let client = Connector::new(Inet::default(), || Echo)
        .reconnect(quick())
        .on_failure(move |error| fail.send(error.kind()).unwrap_or_default())
        .connect(reactor.registry(), &listener.local_addr().unwrap())
        .unwrap();
    for _ in 0..3 {
        let mut kind = None;
        let has_failed = || {
            kind = kind.or(failed.try_recv().ok());
            kind.is_some()
        };
        assert!(reactor.run_until(Some(TEST_TIMEOUT), has_failed).unwrap());
        assert_eq!(kind, Some(io::ErrorKind::QuotaExceeded));
    }
    client.close();
}

#[test]
fn the_end_is_noticed_without_room_for_a_notice() {
    let reactor = Reactor::with(&Options::default().max_notices(1)).unwrap();
    let listener = Listener::open(&Addr::loopback(0)).unwrap();
    let (say, _said) = mpsc::channel();
    let connector = Connector::new(Inet::default(), move || Hello(say.clone())).reconnect(quick());
    let client = connector.connect(reactor.registry(), &listener.local_addr().unwrap()).unwrap();
    // Whenever there is room, a job fills it again.
    fn fill(registry: &spandrel_reactor::Registry) {
        let _ = registry.execute(fill);
    }
    listener.set_nonblocking(true).unwrap();
    for _ in 0..3 {
        let _ = reactor.registry().execute(fill);
        let mut come = None;
        let has_come = || {
            come = come.take().or(listener.accept().ok());
            come.is_some()
        };
        assert!(reactor.run_until(Some(TEST_TIMEOUT), has_come).unwrap());
    }
    client.close();
}

#[test]
fn closing_cancels_the_attempt_and_the_wait() {
    let reactor = Reactor::new().unwrap();
    let listener = Listener::open(&Addr::loopback(0)).unwrap();
    let addr = listener.local_addr().unwrap();
    let connect = |backoff: Backoff| {
        let (say, reports) = mpsc::channel();
        let connector = Connector::new(Inet::default(), move || Hello(say.clone())).reconnect(backoff);
        (connector.connect(reactor.registry(), &addr).unwrap(), reports)
    };
    // Before the attempt, during it, and after it has succeeded but before the notice: depending on the
    // rounds.
    for rounds in 0..4 {
        let (client, reports) = connect(quick());
        for _ in 0..rounds {
            reactor.run_once(Some(Duration::ZERO)).unwrap();
        }
        client.close();
        let _ = client.drain(Duration::ZERO);
        let is_over = || reactor.registry().is_empty();
        assert!(reactor.run_until(Some(TEST_TIMEOUT), is_over).unwrap(), "after {rounds} rounds");
        assert!(reports.try_recv().is_err());
    }
    // During the wait.
    drop(listener);
    let (client, reports) = connect(Backoff::new(TEST_TIMEOUT * 100, TEST_TIMEOUT * 100));
    assert!(reactor.run_until(Some(TEST_TIMEOUT), || reactor.registry().len() == 1).unwrap());
    client.close();
    assert!(reactor.registry().is_empty());
    assert_eq!(reports.try_recv(), Err(mpsc::TryRecvError::Disconnected), "nothing is left of it");
}

#[test]
fn late_attempts_and_their_successes_make_one_connection() {
    // Attempts time out at about the time when they succeed.
    let running = Running::start(3);
    let registry = running.reactor.registry();
    let server = Acceptor::new(Inet::default(), || Echo).open(registry, &Addr::loopback(0)).unwrap();
    let most = Arc::new(AtomicUsize::new(0));
    struct Counted(Arc<AtomicUsize>);
    impl<F: Family> ServiceHandler<F> for Counted {
        fn handle_input(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
            peer.recv(&mut [0; 64]).map(drop)
        }
    }
    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::SeqCst);
        }
    }
    for micros in 0..60 {
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::clone(&most));
        let make = move || {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            Counted(Arc::clone(&now))
        };
        let client = Connector::new(Inet::default(), make)
            .timeout(Duration::from_micros(micros * 20))
            .reconnect(Backoff::new(Duration::ZERO, Duration::ZERO))
            .connect(registry, server.addr())
            .unwrap();
        let start = Instant::now();
        while !client.is_connected() && start.elapsed() < Duration::from_millis(20) {
            thread::yield_now();
        }
        let _ = client.drain(TEST_TIMEOUT);
    }
    assert!(most.load(Ordering::SeqCst) <= 1, "{most:?} connections at once");
}

#[test]
fn an_unfinished_handshake_times_out() {
    let running = Running::start(1);
    let listener = Listener::open(&Addr::loopback(0)).unwrap();
    let (fail, failed) = mpsc::channel();
    let client = Connector::new(OverTls::family(), || Echo)
        .timeout(Duration::from_millis(30))
        .on_failure(move |error| fail.send(error.kind()).unwrap_or_default())
        .connect(running.reactor.registry(), &listener.local_addr().unwrap())
        .unwrap();
    let (silent, _) = listener.accept().unwrap();
    assert_eq!(failed.recv_timeout(TEST_TIMEOUT).unwrap(), io::ErrorKind::TimedOut);
    // The octets that it has sent by then, and the end.
    silent.set_recv_timeout(Some(TEST_TIMEOUT)).unwrap();
    while silent.recv(&mut [0; 4096]).is_ok_and(|count| count > 0) {}
    silent.shutdown(Shutdown::Both).unwrap_or_default();
    assert!(!client.is_connected());
    assert!(silent.send_n(&[0; 1 << 20]).is_err());
}

/// The address of a listener that is closed already.
fn no_listener() -> Addr {
    Listener::open(&Addr::loopback(0)).unwrap().local_addr().unwrap()
}

#[test]
fn giving_up_is_reported_once_with_the_last_error() {
    for (backoff, attempts) in [(None, 1), (Some(quick().attempts(1)), 1), (Some(quick().attempts(4)), 4)] {
        let running = Running::start(1);
        let (fail, failed) = mpsc::channel();
        let (end, ended) = mpsc::channel();
        let (say, _said) = mpsc::channel();
        let mut connector = Connector::new(Inet::default(), move || Hello(say.clone()))
            .on_failure(move |error| fail.send(error.kind()).unwrap())
            .on_give_up(move |gave_up| end.send(gave_up).unwrap());
        if let Some(backoff) = backoff {
            connector = connector.reconnect(backoff);
        }
        let client = connector.connect(running.reactor.registry(), &no_listener()).unwrap();
        let gave_up = ended.recv_timeout(TEST_TIMEOUT).unwrap();
        assert_eq!((gave_up.attempts, gave_up.last_error.kind()), (attempts, io::ErrorKind::ConnectionRefused));
        assert!(gave_up.to_string().starts_with(&format!("gave up connecting after {attempts} failed attempt(s)")));
        assert_eq!(failed.iter().count(), attempts as usize, "before that, each failure");
        assert!(ended.recv_timeout(TEST_TIMEOUT).is_err(), "only once");
        assert!(!client.is_connected());
    }
}

#[test]
fn giving_up_counts_connections_that_end_at_once_or_cannot_be_served() {
    let running = Running::start(1);
    let registry = running.reactor.registry();
    let listener = Listener::open(&Addr::loopback(0)).unwrap();
    let (end, ended) = mpsc::channel();
    let (say, _said) = mpsc::channel();
    let backoff = || Backoff::new(Duration::from_secs(1), Duration::from_secs(1)).attempts(1);
    let _client = Connector::new(Inet::default(), move || Hello(say.clone()))
        .reconnect(backoff())
        .on_give_up(move |gave_up| end.send(gave_up).unwrap())
        .connect(registry, &listener.local_addr().unwrap())
        .unwrap();
    drop(listener.accept().unwrap());
    let gave_up = ended.recv_timeout(TEST_TIMEOUT).unwrap();
    assert_eq!((gave_up.attempts, gave_up.last_error.kind()), (1, io::ErrorKind::ConnectionAborted), "{gave_up}");

    let server = Acceptor::new(Inet::default(), || Echo).open(registry, &Addr::loopback(0)).unwrap();
    for reconnects in [false, true] {
        let (end, ended) = mpsc::channel();
        let mut connector = Connector::new(Inet::default(), Never { made: Arc::default(), panics: false })
            .on_give_up(move |gave_up| end.send(gave_up).unwrap());
        if reconnects {
            connector = connector.reconnect(backoff());
        }
        let _client = connector.connect(registry, server.addr()).unwrap();
        let gave_up = ended.recv_timeout(TEST_TIMEOUT).unwrap();
        assert_eq!((gave_up.attempts, gave_up.last_error.to_string().as_str()), (1, "on purpose"));
    }
}

#[test]
fn a_failing_callback_ends_the_attempts_and_is_reported() {
    let running = Running::start(1);
    let (end, ended) = mpsc::channel();
    let (say, _said) = mpsc::channel();
    let _client = Connector::new(Inet::default(), move || Hello(say.clone()))
        .reconnect(quick())
        .on_failure(|_| panic!("on purpose"))
        .on_give_up(move |gave_up| end.send(gave_up.last_error.to_string()).unwrap())
        .connect(running.reactor.registry(), &no_listener())
        .unwrap();
    assert_eq!(ended.recv_timeout(TEST_TIMEOUT).unwrap(), "on purpose");
}

#[test]
fn a_closed_client_does_not_report_that_it_gave_up() {
    let running = Running::start(1);
    let (end, ended) = mpsc::channel();
    let (fail, failed) = mpsc::channel();
    let (say, _said) = mpsc::channel();
    let client = Connector::new(Inet::default(), move || Hello(say.clone()))
        .reconnect(quick())
        .on_failure(move |_| fail.send(()).unwrap_or_default())
        .on_give_up(move |gave_up| end.send(gave_up.attempts).unwrap())
        .connect(running.reactor.registry(), &no_listener())
        .unwrap();
    failed.recv_timeout(TEST_TIMEOUT).unwrap();
    client.close();
    assert_eq!(ended.recv_timeout(TEST_TIMEOUT), Err(mpsc::RecvTimeoutError::Disconnected));
}
