//! Failures in making and running services, and their isolation.

use crate::{for_every_place, support};

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use spandrel_ipc::inet::{Addr, Inet};
use spandrel_ipc::{Family, Interest, Receive, Shutdown, Transfer};
use spandrel_reactor::strategy::{Concurrency, Creation, Reactive, ThreadPerConnection, ThreadPool};
use spandrel_reactor::{Acceptor, CloseReason, Expired, Listening, Peer, Reactor, ServiceHandler};

use spandrel_test_support::{TEST_TIMEOUT, eventually};
use support::test_families::*;
use support::{Echo, Running, client, expect_echo, expect_end};

/// The behaviour of a handler when its connection is opened.
#[derive(Clone, Copy, Debug)]
enum Opening {
    Fails,
    Panics,
    Closes,
}

/// Does that, and counts the calls of `close`.
struct Opens(Opening, Arc<AtomicUsize>);

impl<F: Family> ServiceHandler<F> for Opens {
    fn open(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        match self.0 {
            Opening::Fails => return Err(io::Error::other("on purpose")),
            Opening::Panics => panic!("on purpose"),
            Opening::Closes => peer.put(b"goodbye")?,
        }
        peer.close();
        Ok(())
    }

    fn handle_input(&mut self, _: &mut Peer<'_, F>) -> io::Result<()> {
        unreachable!("its connection is closed at once")
    }

    fn close(&mut self, _: &mut Peer<'_, F>, reason: &CloseReason) {
        let is_told_why = matches!(
            (self.0, reason),
            (Opening::Fails, CloseReason::Failed(_))
                | (Opening::Panics, CloseReason::Panicked(_))
                | (Opening::Closes, CloseReason::Removed)
        );
        assert!(is_told_why, "{reason:?}");
        self.1.fetch_add(1, Ordering::SeqCst);
    }
}

fn opening_goes_wrong(concurrency: impl Concurrency<Inet, Opens> + Clone) {
    for opening in [Opening::Fails, Opening::Panics, Opening::Closes] {
        let running = Running::start(1);
        let closed = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&closed);
        let server = Acceptor::new(Inet::default(), move || Opens(opening, Arc::clone(&count)))
            .concurrency(concurrency.clone())
            .open(running.reactor.registry(), &Addr::loopback(0))
            .unwrap();
        for done in 1..=3 {
            let client = client(server.addr());
            if matches!(opening, Opening::Closes) {
                client.recv_n(&mut [0; 7]).unwrap();
            }
            expect_end(&client);
            eventually(|| closed.load(Ordering::SeqCst) == done && server.connections() == 0);
        }
    }
}

#[test]
fn a_failed_opening_concerns_its_connection_only() {
    opening_goes_wrong(Reactive);
    opening_goes_wrong(ThreadPerConnection::new(4));
    opening_goes_wrong(ThreadPerConnection::new(0).or_reactive());
}

/// Makes an echo, except the first time.
struct Late(usize);

impl Creation<Inet> for Late {
    type Handler = Echo;

    fn make(&mut self, _: &Addr) -> io::Result<Echo> {
        self.0 += 1;
        match self.0 {
            1 => panic!("on purpose"),
            2 => Err(io::Error::other("on purpose")),
            _ => Ok(Echo),
        }
    }
}

#[test]
fn a_failed_creation_concerns_its_connection_only() {
    let running = Running::start(1);
    let server = Acceptor::new(Inet::default(), Late(0)).open(running.reactor.registry(), &Addr::loopback(0)).unwrap();
    expect_end(&client(server.addr()));
    expect_end(&client(server.addr()));
    expect_echo(&client(server.addr()), "made at last");
    eventually(|| server.connections() == 0);
}

#[test]
fn a_panicking_acceptance_admits_nothing_and_continues() {
    let running = Running::start(1);
    let mut came = 0;
    let acceptance = move |_: &Addr| {
        came += 1;
        assert!(came > 1, "on purpose");
        true
    };
    let acceptor = Acceptor::new(Inet::default(), || Echo).acceptance(acceptance);
    let server = acceptor.open(running.reactor.registry(), &Addr::loopback(0)).unwrap();
    expect_end(&client(server.addr()));
    expect_echo(&client(server.addr()), "let in");
}

/// Sends an octet at each check, and closes at the third.
struct Checked {
    count: u8,
}

impl<F: Family> ServiceHandler<F> for Checked {
    fn handle_input(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        peer.recv(&mut [0; 8]).map(drop)
    }

    fn handle_check(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        self.count += 1;
        if self.count == 3 {
            peer.close();
        }
        peer.put(&[self.count])
    }
}

fn connections_are_checked(concurrency: impl Concurrency<Inet, Checked>) {
    let running = Running::start(1);
    let server = Acceptor::new(Inet::default(), || Checked { count: 0 })
        .concurrency(concurrency)
        .check_every(Duration::from_millis(5))
        .open(running.reactor.registry(), &Addr::loopback(0))
        .unwrap();
    let clients = [client(server.addr()), client(server.addr())];
    let expect = |range: std::ops::RangeInclusive<u8>| {
        for (client, octet) in clients.iter().flat_map(|client| range.clone().map(move |octet| (client, octet))) {
            let mut octets = [0];
            client.recv_n(&mut octets).unwrap();
            assert_eq!(octets, [octet]);
        }
    };
    expect(1..=1);
    server.close(); // the checks of accepted connections go on
    expect(2..=3);
    clients.iter().for_each(expect_end);
    eventually(|| server.connections() == 0);
    eventually(|| running.reactor.registry().is_empty());
}

#[test]
fn all_connections_are_checked_each_interval_until_the_last_ends() {
    connections_are_checked(Reactive);
    connections_are_checked(ThreadPerConnection::new(2));
    connections_are_checked(ThreadPool::new(1, 2).unwrap());
}

/// Takes the end for input, and never closes.
struct IgnoresEnd(Arc<AtomicUsize>);

impl<F: Family> ServiceHandler<F> for IgnoresEnd {
    fn handle_input(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        self.0.fetch_add(1, Ordering::SeqCst);
        let mut buffer = [0; 64];
        let count = peer.recv(&mut buffer)?;
        peer.put(&buffer[..count])
    }
}

fn the_end_is_delivered_once<P: TestFamily>(concurrency: impl Concurrency<P::Family, IgnoresEnd>) {
    let running = Running::start(1);
    let calls = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&calls);
    let (addr, _folder) = P::fresh();
    let server = Acceptor::new(P::family(), move || IgnoresEnd(Arc::clone(&count)))
        .concurrency(concurrency)
        .open(running.reactor.registry(), &addr)
        .unwrap();
    let client = client_of::<P>(server.addr());
    expect_echo(&client, "once");
    client.shutdown(Shutdown::Write).unwrap();
    expect_end(&client);
    eventually(|| server.connections() == 0);
    assert!(calls.load(Ordering::SeqCst) < 6, "{calls:?} calls");
}

/// Sends for a while after the end.
struct SendsAfterEnd {
    left: u8,
    calls: Arc<AtomicUsize>,
}

impl<F: Family> ServiceHandler<F> for SendsAfterEnd {
    fn open(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        peer.schedule(Duration::from_millis(1), Some(Duration::from_millis(1)), 0).map(drop)
    }

    fn handle_input(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        peer.recv(&mut [0; 64]).map(drop)
    }

    fn handle_timeout(&mut self, peer: &mut Peer<'_, F>, _: Expired) -> io::Result<()> {
        peer.put(&[self.left])?;
        self.left -= 1;
        if self.left == 0 {
            peer.close();
        }
        Ok(())
    }
}

fn a_handler_with_timers_continues_after_the_end<P: TestFamily>(
    concurrency: impl Concurrency<P::Family, SendsAfterEnd>,
) {
    let running = Running::start(1);
    let calls = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&calls);
    let (addr, _folder) = P::fresh();
    let server = Acceptor::new(P::family(), move || SendsAfterEnd { left: 20, calls: Arc::clone(&count) })
        .concurrency(concurrency)
        .open(running.reactor.registry(), &addr)
        .unwrap();
    let client = client_of::<P>(server.addr());
    client.shutdown(Shutdown::Write).unwrap();
    let mut received = [0; 20];
    client.recv_n(&mut received).unwrap();
    assert!(received.iter().copied().eq((1..=20).rev()));
    expect_end(&client);
    assert!(calls.load(Ordering::SeqCst) < 6, "{calls:?} calls");
}

/// Sends an octet in each of its turns, although the peer takes each at once.
struct TakesTurns {
    left: u8,
}

impl<F: Family> ServiceHandler<F> for TakesTurns {
    fn open(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        peer.notify_sent();
        Ok(())
    }

    fn handle_input(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        peer.recv(&mut [0; 64]).map(drop)
    }

    fn handle_sent(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        peer.put(&[self.left])?;
        self.left -= 1;
        if self.left > 0 {
            peer.notify_sent();
        }
        Ok(())
    }
}

fn a_handler_with_turns_continues_after_the_end<P: TestFamily>(concurrency: impl Concurrency<P::Family, TakesTurns>) {
    let running = Running::start(1);
    let (addr, _folder) = P::fresh();
    let server = Acceptor::new(P::family(), || TakesTurns { left: 100 })
        .concurrency(concurrency)
        .open(running.reactor.registry(), &addr)
        .unwrap();
    let client = client_of::<P>(server.addr());
    client.shutdown(Shutdown::Write).unwrap();
    let mut received = [0; 100];
    client.recv_n(&mut received).unwrap();
    assert!(received.iter().copied().eq((1..=100).rev()));
    expect_end(&client);
    eventually(|| server.connections() == 0);
}

macro_rules! ending {
    ($name:ident, $TestFamily:ident) => {
        mod $name {
            use super::*;

            #[test]
            fn a_handler_that_ignores_the_end_does_not_spin() {
                the_end_is_delivered_once::<$TestFamily>(Reactive);
                the_end_is_delivered_once::<$TestFamily>(ThreadPerConnection::new(1));
            }

            #[test]
            fn a_handler_with_timers_may_send_after_the_end() {
                a_handler_with_timers_continues_after_the_end::<$TestFamily>(Reactive);
                a_handler_with_timers_continues_after_the_end::<$TestFamily>(ThreadPerConnection::new(1));
            }

            #[test]
            fn a_handler_with_turns_may_send_after_the_end() {
                a_handler_with_turns_continues_after_the_end::<$TestFamily>(Reactive);
                a_handler_with_turns_continues_after_the_end::<$TestFamily>(ThreadPerConnection::new(1));
            }
        }
    };
}
for_every_place!(ending);

/// Schedules from each input, and closes from its timer although more timers have expired.
struct Timed(mpsc::Sender<u64>);

impl<F: Family> ServiceHandler<F> for Timed {
    fn handle_input(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        if peer.recv(&mut [0; 64])? == 0 {
            peer.close();
            return Ok(());
        }
        let never = peer.schedule(TEST_TIMEOUT, None, 9)?;
        assert!(peer.cancel(never) && !peer.cancel(never));
        for argument in 1..=3 {
            peer.schedule(Duration::from_nanos(argument), Some(Duration::from_nanos(1)), argument)?;
        }
        Ok(())
    }

    fn handle_timeout(&mut self, peer: &mut Peer<'_, F>, timer: Expired) -> io::Result<()> {
        self.0.send(timer.argument).map_err(io::Error::other)?;
        if timer.argument == 2 {
            peer.close();
        }
        Ok(())
    }
}

#[test]
fn timers_of_a_thread_are_scheduled_from_input_and_end_with_the_connection() {
    let running = Running::start(1);
    let (tell, reports) = mpsc::channel();
    let server = Acceptor::new(Inet::default(), move || Timed(tell.clone()))
        .concurrency(ThreadPerConnection::new(1))
        .open(running.reactor.registry(), &Addr::loopback(0))
        .unwrap();
    let client = client(server.addr());
    client.send_n(b"go").unwrap();
    expect_end(&client);
    eventually(|| server.connections() == 0);
    let reports: Vec<_> = reports.try_iter().collect();
    assert_eq!(reports.last(), Some(&2), "nothing after the close: {reports:?}");
}

#[test]
fn a_pool_serves_as_many_connections_as_it_has_threads() {
    let running = Running::start(1);
    let acceptor = Acceptor::new(Inet::default(), || Echo).concurrency(ThreadPool::new(3, 0).unwrap());
    let server = acceptor.open(running.reactor.registry(), &Addr::loopback(0)).unwrap();
    let clients = [client(server.addr()), client(server.addr()), client(server.addr())];
    clients.iter().for_each(|client| expect_echo(client, "there is a thread for each"));
    expect_end(&client(server.addr()));
    drop(clients);
    eventually(|| server.connections() == 0);
    // The last thread may not be waiting again yet.
    eventually(|| {
        let next = client(server.addr());
        next.send_n(b"next").is_ok() && next.recv_n(&mut [0; 4]).is_ok()
    });
}

#[test]
fn a_pool_without_threads_is_refused() {
    assert_eq!(ThreadPool::new(0, 8).unwrap_err().kind(), io::ErrorKind::InvalidInput);
}

/// Panics when it is dropped.
struct PanicsOnDrop(Echo);

impl<F: Family> ServiceHandler<F> for PanicsOnDrop {
    fn handle_input(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        self.0.handle_input(peer)
    }
}

impl Drop for PanicsOnDrop {
    fn drop(&mut self) {
        panic!("on purpose");
    }
}

#[test]
fn a_panic_in_drop_ends_no_thread() {
    let running = Running::start(1);
    let concurrency = ThreadPool::new(1, 8).unwrap();
    let acceptor = Acceptor::new(Inet::default(), || PanicsOnDrop(Echo)).concurrency(concurrency);
    let server = acceptor.open(running.reactor.registry(), &Addr::loopback(0)).unwrap();
    for _ in 0..3 {
        expect_echo(&client(server.addr()), "there still is a thread");
        eventually(|| server.connections() == 0);
    }
}

#[test]
fn queued_connections_are_served_after_the_server_has_closed() {
    let running = Running::start(1);
    let acceptor = Acceptor::new(Inet::default(), || Echo).concurrency(ThreadPool::new(1, 1).unwrap());
    let server = acceptor.open(running.reactor.registry(), &Addr::loopback(0)).unwrap();
    let served = client(server.addr());
    expect_echo(&served, "served");
    let waiting = client(server.addr());
    eventually(|| server.connections() == 2);
    server.close();
    drop(served);
    expect_echo(&waiting, "served at last");
    drop(waiting);
    eventually(|| server.connections() == 0);
}

#[test]
fn a_reactor_that_closes_closes_its_connections() {
    let reactor = Reactor::new().unwrap();
    let closed = Arc::new(AtomicUsize::new(0));
    struct Stops(Arc<AtomicUsize>);
    impl<F: Family> ServiceHandler<F> for Stops {
        fn handle_input(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
            peer.recv(&mut [0; 64]).map(drop)
        }
        fn close(&mut self, _: &mut Peer<'_, F>, reason: &CloseReason) {
            assert!(matches!(reason, CloseReason::Stopped), "{reason:?}");
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let count = Arc::clone(&closed);
    let make = move || Stops(Arc::clone(&count));
    let server = Acceptor::new(Inet::default(), make).open(reactor.registry(), &Addr::loopback(0)).unwrap();
    let clients = [client(server.addr()), client(server.addr())];
    assert!(reactor.run_until(Some(TEST_TIMEOUT), || server.connections() == 2).unwrap());
    drop(reactor);
    assert_eq!((closed.load(Ordering::SeqCst), server.connections()), (2, 0));
    clients.iter().for_each(expect_end);
    assert_eq!(server.drain(TEST_TIMEOUT), 0);
}

#[test]
fn several_servers_are_drained_together() {
    let running = Running::start(1);
    let registry = running.reactor.registry();
    let servers: Vec<_> =
        (0..3).map(|_| Acceptor::new(Inet::default(), || Echo).open(registry, &Addr::loopback(0)).unwrap()).collect();
    let clients: Vec<_> = servers.iter().map(|server| client(server.addr())).collect();
    clients.iter().for_each(|client| expect_echo(client, "hello"));
    servers.iter().for_each(|server| server.begin_drain());
    clients.iter().for_each(expect_end);
    servers.iter().for_each(|server| assert_eq!(server.drain(TEST_TIMEOUT), 0));
}

#[test]
fn a_draining_server_admits_no_connection() {
    let running = Running::start(2);
    for _ in 0..20 {
        let acceptor = Acceptor::new(Inet::default(), || Echo).concurrency(ThreadPerConnection::new(4).or_reactive());
        let server = acceptor.open(running.reactor.registry(), &Addr::loopback(0)).unwrap();
        let addr = *server.addr();
        let crowd = thread::spawn(move || {
            while let Ok(stream) = Inet::default().connect(&addr, Some(TEST_TIMEOUT)) {
                drop(stream);
            }
        });
        eventually(|| server.connections() > 0);
        let other = server.clone();
        let twice = thread::spawn(move || other.drain(TEST_TIMEOUT));
        assert_eq!((server.drain(TEST_TIMEOUT), twice.join().unwrap()), (0, 0));
        assert_eq!(server.connections(), 0);
        crowd.join().unwrap();
    }
}

#[test]
fn other_handlers_run_while_many_connections_are_accepted() {
    let running = Running::start(1);
    let registry = running.reactor.registry();
    let server = Acceptor::new(Inet::default(), || Echo).open(registry, &Addr::loopback(0)).unwrap();
    let early = client(server.addr());
    expect_echo(&early, "early");
    let addr = *server.addr();
    let is_over = Arc::new(AtomicUsize::new(0));
    let over = Arc::clone(&is_over);
    let crowd = thread::spawn(move || {
        while over.load(Ordering::SeqCst) == 0 {
            drop(Inet::default().connect(&addr, Some(TEST_TIMEOUT)));
        }
    });
    (0..200).for_each(|round| expect_echo(&early, &format!("round {round}")));
    is_over.store(1, Ordering::SeqCst);
    crowd.join().unwrap();
}

#[test]
fn an_accept_callback_may_panic() {
    let running = Running::start(1);
    let listener = Inet::default().open(&Addr::loopback(0)).unwrap();
    spandrel_ipc::Accept::set_nonblocking(&listener, true).unwrap();
    let addr = listener.local_addr().unwrap();
    let mut came = 0;
    let listening = Listening::<Inet, _>::new(listener, move |_, stream, _| {
        came += 1;
        assert!(came > 1, "on purpose");
        stream.send_n(b"hello").map_err(Into::into)
    });
    running.reactor.registry().register(listening, Interest::INPUT).unwrap();
    expect_end(&client(&addr));
    client(&addr).recv_n(&mut [0; 5]).unwrap();
}
