//! What keeps a connection up, when attempts fail in every way.

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

use spandrel_test_support::{PATIENCE, eventually};
use support::places::*;
use support::{Echo, Running};

/// Says `hello`, and ends when it has come back.
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

fn it_connects_again_and_again<P: Place>(concurrency: impl Concurrency<P::Family, Hello>) {
    let running = Running::start(2);
    let registry = running.reactor.registry();
    let (addr, _folder) = P::fresh();
    let server = Acceptor::new(P::family(), || Echo).open(registry, &addr).unwrap();
    let (say, said) = mpsc::channel();
    let connector = Connector::new(P::family(), move || Hello(say.clone())).concurrency(concurrency).reconnect(quick());
    let client = connector.connect(registry, server.addr()).unwrap();
    for _ in 0..5 {
        assert_eq!(said.recv_timeout(PATIENCE).unwrap(), "hello");
    }
    let _ = client.drain(PATIENCE);
    assert!(!client.is_connected());
    eventually(|| server.connections() == 0);
}

fn who_does_not_answer_is_given_up<P: Place>() {
    let running = Running::start(1);
    let (addr, _folder) = P::fresh();
    let listener = P::family().open(&addr).unwrap();
    let addr = listener.local_addr().unwrap();
    let (fail, failed) = mpsc::channel();
    let (say, _said) = mpsc::channel();
    // Nobody accepts: some families are connected all the same.
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
    ($name:ident, $Place:ident) => {
        mod $name {
            use super::*;

            #[test]
            fn a_connection_that_ends_is_made_again() {
                it_connects_again_and_again::<$Place>(Reactive);
                it_connects_again_and_again::<$Place>(ThreadPerConnection::new(2));
            }

            #[test]
            fn an_attempt_that_takes_too_long_is_given_up() {
                who_does_not_answer_is_given_up::<$Place>();
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
        assert!(!self.panics, "as asked");
        Err(io::Error::other("as asked"))
    }
}

#[test]
fn a_handler_that_cannot_be_made_is_a_failure_that_is_waited_after() {
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
        // The fifth is the last: then the sender is dropped.
        (0..5).for_each(|_| failed.recv_timeout(PATIENCE).unwrap());
        assert_eq!(failed.recv_timeout(PATIENCE), Err(mpsc::RecvTimeoutError::Disconnected), "panics: {panics}");
        assert_eq!(made.load(Ordering::SeqCst), 5);
        // At least half of 8, 16, 32 and 64 milliseconds.
        assert!(start.elapsed() >= Duration::from_millis(60), "it waits longer each time: {:?}", start.elapsed());
        client.close();
    }
}

#[test]
fn a_peer_that_hangs_up_at_once_is_not_called_faster_and_faster() {
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
    // 4, 8, 16 and 32 milliseconds at least, if each connection ends at once; without that, 4 each.
    assert!(start.elapsed() >= Duration::from_millis(40), "{:?}", start.elapsed());
    client.close();
}

#[test]
fn without_room_for_handlers_it_tries_again() {
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
        assert!(reactor.run_until(Some(PATIENCE), has_failed).unwrap());
        assert_eq!(kind, Some(io::ErrorKind::QuotaExceeded));
    }
    client.close();
}

#[test]
fn it_hears_of_the_end_where_no_notice_is_free() {
    let reactor = Reactor::with(&Options::default().max_notices(1)).unwrap();
    let listener = Listener::open(&Addr::loopback(0)).unwrap();
    let (say, _said) = mpsc::channel();
    let connector = Connector::new(Inet::default(), move || Hello(say.clone())).reconnect(quick());
    let client = connector.connect(reactor.registry(), &listener.local_addr().unwrap()).unwrap();
    // Whenever there is room, there is a job that fills it again.
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
        assert!(reactor.run_until(Some(PATIENCE), has_come).unwrap());
    }
    client.close();
}

#[test]
fn closing_gives_up_the_attempt_and_the_wait() {
    let reactor = Reactor::new().unwrap();
    let listener = Listener::open(&Addr::loopback(0)).unwrap();
    let addr = listener.local_addr().unwrap();
    let connect = |backoff: Backoff| {
        let (say, said) = mpsc::channel();
        let connector = Connector::new(Inet::default(), move || Hello(say.clone())).reconnect(backoff);
        (connector.connect(reactor.registry(), &addr).unwrap(), said)
    };
    // Before it has begun, during the attempt, when that has succeeded and is not heard of yet: whatever the rounds bring.
    for rounds in 0..4 {
        let (client, said) = connect(quick());
        for _ in 0..rounds {
            reactor.run_once(Some(Duration::ZERO)).unwrap();
        }
        client.close();
        let _ = client.drain(Duration::ZERO);
        let is_over = || reactor.registry().is_empty();
        assert!(reactor.run_until(Some(PATIENCE), is_over).unwrap(), "after {rounds} rounds");
        assert!(said.try_recv().is_err());
    }
    // During the wait.
    drop(listener);
    let (client, said) = connect(Backoff::new(PATIENCE * 100, PATIENCE * 100));
    assert!(reactor.run_until(Some(PATIENCE), || reactor.registry().len() == 1).unwrap());
    client.close();
    assert!(reactor.registry().is_empty());
    assert_eq!(said.try_recv(), Err(mpsc::TryRecvError::Disconnected), "nothing is left of it");
}

#[test]
fn late_attempts_and_their_successes_make_one_connection() {
    // Attempts are given up at about the time when they succeed.
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
        let _ = client.drain(PATIENCE);
    }
    assert!(most.load(Ordering::SeqCst) <= 1, "{most:?} connections at once");
}

#[test]
fn a_peer_that_never_finishes_its_part_of_the_handshake_is_given_up() {
    let running = Running::start(1);
    let listener = Listener::open(&Addr::loopback(0)).unwrap();
    let (fail, failed) = mpsc::channel();
    let client = Connector::new(OverTls::family(), || Echo)
        .timeout(Duration::from_millis(30))
        .on_failure(move |error| fail.send(error.kind()).unwrap_or_default())
        .connect(running.reactor.registry(), &listener.local_addr().unwrap())
        .unwrap();
    let (silent, _) = listener.accept().unwrap();
    assert_eq!(failed.recv_timeout(PATIENCE).unwrap(), io::ErrorKind::TimedOut);
    // What it has said by then, and the end.
    silent.set_recv_timeout(Some(PATIENCE)).unwrap();
    while silent.recv(&mut [0; 4096]).is_ok_and(|count| count > 0) {}
    silent.shutdown(Shutdown::Both).unwrap_or_default();
    assert!(!client.is_connected());
    assert!(silent.send_n(&[0; 1 << 20]).is_err());
}
