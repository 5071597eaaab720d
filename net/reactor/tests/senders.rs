//! Senders: octets, notices and the end from other threads and services, in every strategy and family.

use crate::{for_every_place, support};

use std::io;
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use spandrel_ipc::inet::{Addr, Inet};
use spandrel_ipc::{Family, Receive, Shutdown, Transfer, Transmit};
use spandrel_reactor::strategy::{Concurrency, Creation, Reactive, ThreadPerConnection, ThreadPool};
use spandrel_reactor::{
    Acceptor, CloseReason, Expired, MAX_NOTICES, Notice, Peer, Reactor, SendError, Sender, Server, ServiceHandler,
};

use spandrel_test_support::{TEST_TIMEOUT, eventually};
use support::test_families::*;
use support::{Running, client, expect_echo, expect_end};

/// An event of a [`Station`].
#[derive(Debug)]
enum Event {
    Opened(Sender),
    Notice(u64),
    Closed(CloseReason),
}

/// Passes its sender and its events to the test, and echoes its input.
struct Station(mpsc::Sender<Event>);

impl Station {
    fn tell(&self, event: Event) {
        let _ = self.0.send(event); // the test may be over
    }
}

impl<F: Family> ServiceHandler<F> for Station {
    fn open(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        let sender = peer.sender()?;
        assert_eq!(sender, peer.sender()?, "there is one for each connection");
        self.tell(Event::Opened(sender));
        Ok(())
    }

    fn handle_input(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        let mut buffer = [0; 4096];
        match peer.recv(&mut buffer)? {
            0 => peer.close(),
            count => peer.put(&buffer[..count])?,
        }
        Ok(())
    }

    fn handle_notice(&mut self, peer: &mut Peer<'_, F>, notice: Notice) -> io::Result<()> {
        match notice.downcast::<u64>() {
            Ok(number) => self.tell(Event::Notice(*number)),
            Err(other) => peer.put(other.downcast::<String>().expect("numbers and texts").as_bytes())?,
        }
        Ok(())
    }

    fn close(&mut self, peer: &mut Peer<'_, F>, reason: &CloseReason) {
        assert_eq!(peer.sender().map(|sender| sender.put(b"late")).ok(), Some(Err(SendError::Closed)));
        let reason = match reason {
            CloseReason::Removed => CloseReason::Removed,
            CloseReason::PeerClosed => CloseReason::PeerClosed,
            CloseReason::Aborted => CloseReason::Aborted,
            CloseReason::Drained => CloseReason::Drained,
            CloseReason::Stopped => CloseReason::Stopped,
            other => CloseReason::Panicked(other.to_string()),
        };
        self.tell(Event::Closed(reason));
    }
}

/// A server of stations, and their events.
struct Stations<P: TestFamily> {
    server: Server<P::Family>,
    events: mpsc::Receiver<Event>,
    running: Running,
    _folder: Option<tempfile::TempDir>,
}

impl<P: TestFamily> Stations<P> {
    fn start(concurrency: impl Concurrency<P::Family, Station>) -> Self {
        let running = Running::start(2);
        let (tell, events) = mpsc::channel();
        let (addr, folder) = P::fresh();
        let server = Acceptor::new(P::family(), move || Station(tell.clone()))
            .concurrency(concurrency)
            .open(running.reactor.registry(), &addr)
            .unwrap();
        Self { server, events, running, _folder: folder }
    }

    /// A new connection, and its sender.
    fn connect(&self) -> (StreamOf<P>, Sender) {
        let client = client_of::<P>(self.server.addr());
        expect_echo(&client, "hello"); // the handshake is complete
        match self.next() {
            Event::Opened(sender) => (client, sender),
            other => panic!("expected a sender, found {other:?}"),
        }
    }

    #[track_caller]
    fn next(&self) -> Event {
        self.events.recv_timeout(TEST_TIMEOUT).unwrap()
    }

    #[track_caller]
    fn expect_reason(&self, expected: &str) {
        match self.next() {
            Event::Closed(reason) => assert_eq!(format!("{reason:?}"), expected),
            other => panic!("expected the end, found {other:?}"),
        }
    }
}

/// Messages of different lengths from several threads, in which a torn or reordered one shows.
fn messages_arrive_whole_and_in_order<P: TestFamily>(concurrency: impl Concurrency<P::Family, Station>) {
    const THREADS: u8 = 4;
    const MESSAGES: usize = 200;
    let stations = Stations::<P>::start(concurrency);
    let (client, sender) = stations.connect();
    thread::scope(|scope| {
        for number in 0..THREADS {
            let sender = sender.clone();
            scope.spawn(move || {
                for message in 0..MESSAGES {
                    let length = message * 7 % 300;
                    let mut octets = vec![number, (length >> 8) as u8, length as u8, message as u8];
                    octets.resize(4 + length, number);
                    sender.put(&octets).unwrap();
                }
            });
        }
        let mut next = [0; THREADS as usize];
        for _ in 0..MESSAGES * usize::from(THREADS) {
            let mut head = [0; 4];
            client.recv_n(&mut head).unwrap();
            let mut body = vec![0; usize::from(head[1]) << 8 | usize::from(head[2])];
            client.recv_n(&mut body).unwrap();
            let number = usize::from(head[0]);
            assert_eq!((head[3], body.len()), (next[number] as u8, next[number] * 7 % 300), "in order");
            assert!(body.iter().all(|octet| *octet == head[0]), "whole");
            next[number] += 1;
        }
    });
    expect_echo(&client, "input is still served");
}

/// A peer that does not read is refused further octets, and disconnected without a wait.
fn a_peer_that_does_not_read_is_disconnected<P: TestFamily>(concurrency: impl Concurrency<P::Family, Station>) {
    let stations = Stations::<P>::start(concurrency);
    let (lazy, sender) = stations.connect();
    let (other, _sender) = stations.connect();
    let chunk = vec![7; 1 << 20];
    let refused = loop {
        match sender.put(&chunk) {
            Ok(()) => {}
            Err(error) => break error,
        }
    };
    let SendError::PeerDoesNotRead { octets, waiting, limit } = refused else { panic!("{refused:?}") };
    assert_eq!((octets, limit), (1 << 20, spandrel_reactor::MAX_WAITING));
    assert!(waiting <= limit && waiting + octets > limit, "{waiting}");
    assert!(!sender.is_closed() && sender.waiting() > 0);
    expect_echo(&other, "not blocked");
    sender.abort();
    assert_eq!(sender.put(b"late"), Err(SendError::Closed));
    stations.expect_reason("Aborted");
    assert_eq!((sender.waiting(), sender.notice(1_u64)), (0, Err(SendError::Closed)));
    eventually(|| stations.server.connections() == 1);
    drop(lazy);
}

/// Notices arrive in order; octets from before a notice precede those that the handler sends for it.
fn notices_are_handled_in_order<P: TestFamily>(concurrency: impl Concurrency<P::Family, Station>) {
    let stations = Stations::<P>::start(concurrency);
    let (client, sender) = stations.connect();
    (0..100_u64).for_each(|number| sender.notice(number).unwrap());
    for expected in 0..100 {
        assert!(matches!(stations.next(), Event::Notice(number) if number == expected));
    }
    sender.put(b"one ").unwrap();
    sender.notice("two ".to_owned()).unwrap();
    let mut received = [0; 8];
    client.recv_n(&mut received).unwrap();
    assert_eq!(&received, b"one two ");
}

fn a_sender_closes_after_its_octets<P: TestFamily>(concurrency: impl Concurrency<P::Family, Station>) {
    let stations = Stations::<P>::start(concurrency);
    let (client, sender) = stations.connect();
    let farewell = vec![9; 3 << 20]; // more than the transport takes at once
    sender.put(&farewell).unwrap();
    sender.notice("and this".to_owned()).unwrap();
    sender.close();
    assert_eq!((sender.put(b"late"), sender.is_closed()), (Err(SendError::Closed), true));
    let mut received = vec![0; farewell.len() + 8];
    client.recv_n(&mut received).unwrap();
    assert!(received.starts_with(&farewell) && received.ends_with(b"and this"));
    expect_end(&client);
    stations.expect_reason("Removed");
    eventually(|| stations.server.connections() == 0);
    sender.abort(); // no effect
}

/// Also with a sender, the end of either side is noticed.
fn either_side_ends_a_connection_with_a_sender<P: TestFamily>(concurrency: impl Concurrency<P::Family, Station>) {
    let stations = Stations::<P>::start(concurrency);
    let (client, sender) = stations.connect();
    client.shutdown(Shutdown::Write).unwrap();
    expect_end(&client);
    stations.expect_reason("PeerClosed");
    assert_eq!(sender.put(b"late"), Err(SendError::Closed));
    let (client, sender) = stations.connect();
    assert_eq!(stations.server.drain(TEST_TIMEOUT), 0);
    expect_end(&client);
    stations.expect_reason("Drained");
    assert_eq!(sender.put(b"late"), Err(SendError::Closed));
}

/// A drain that has to cut a connection whose peer does not read.
fn a_drain_cuts_a_connection_with_queued_octets<P: TestFamily>(concurrency: impl Concurrency<P::Family, Station>) {
    let stations = Stations::<P>::start(concurrency);
    let (lazy, sender) = stations.connect();
    sender.put(&vec![0; 16 << 20]).unwrap();
    assert_eq!(stations.server.drain(Duration::from_millis(1)), 1);
    stations.expect_reason("Drained");
    eventually(|| stations.server.connections() == 0);
    drop((lazy, stations.running));
}

/// The work that a connection has given to another thread; the connection is paused until it is done.
struct Job {
    input: Vec<u8>,
    sender: Sender,
}

// ANCHOR: pause
/// A service that has one job at a time: it gets no input meanwhile, so that a client which sends faster than the jobs are
/// done has to wait.
struct Jobs(mpsc::SyncSender<Job>);

impl<F: Family> ServiceHandler<F> for Jobs {
    fn handle_input(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        let mut buffer = [0; 4];
        match peer.recv(&mut buffer)? {
            0 => peer.close(),
            count => {
                let job = Job { input: buffer[..count].to_vec(), sender: peer.sender()? };
                self.0.send(job).map_err(io::Error::other)?;
                peer.pause();
            }
        }
        Ok(())
    }

    /// The job is done: the notice is its result.
    fn handle_notice(&mut self, peer: &mut Peer<'_, F>, result: Notice) -> io::Result<()> {
        peer.put(&result.downcast::<Vec<u8>>().expect("the result of a job"))?;
        peer.resume();
        Ok(())
    }
}
// ANCHOR_END: pause

/// Input in pieces of four octets at most: the second job begins when the first is done.
fn a_paused_connection_gets_no_input<P: TestFamily>(concurrency: impl Concurrency<P::Family, Jobs>) {
    let running = Running::start(2);
    let (give, jobs) = mpsc::sync_channel(1);
    let (addr, _folder) = P::fresh();
    let acceptor = Acceptor::new(P::family(), move || Jobs(give.clone())).concurrency(concurrency);
    let server = acceptor.open(running.reactor.registry(), &addr).unwrap();
    let client = client_of::<P>(server.addr());
    client.send_n(b"onetwothree").unwrap();
    let (mut received, mut back) = (Vec::new(), Vec::new());
    while received.len() < 11 {
        let Job { input, sender } = jobs.recv_timeout(TEST_TIMEOUT).unwrap();
        assert!(jobs.recv_timeout(Duration::from_millis(2)).is_err(), "one job at a time");
        received.extend_from_slice(&input);
        sender.notice(input.clone()).unwrap();
        let mut result = vec![0; input.len()];
        client.recv_n(&mut result).unwrap();
        back.extend(result);
    }
    assert_eq!((received.as_slice(), back.as_slice()), (&b"onetwothree"[..], &b"onetwothree"[..]));
    client.shutdown(Shutdown::Write).unwrap();
    eventually(|| server.connections() == 0);
    drop(running);
}

/// Pauses at its first input, and has neither a timer nor a sender.
struct PausedForEver(mpsc::Sender<String>);

impl<F: Family> ServiceHandler<F> for PausedForEver {
    fn handle_input(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        peer.recv(&mut [0; 4])?;
        peer.pause();
        Ok(())
    }

    fn close(&mut self, _: &mut Peer<'_, F>, reason: &CloseReason) {
        let _ = self.0.send(reason.to_string());
    }
}

#[test]
fn a_thread_closes_a_paused_connection_that_nothing_can_resume() {
    let running = Running::start(1);
    let (tell, reasons) = mpsc::channel();
    let acceptor = Acceptor::new(Inet::default(), move || PausedForEver(tell.clone()));
    let acceptor = acceptor.concurrency(ThreadPerConnection::new(4));
    let server = acceptor.open(running.reactor.registry(), &Addr::loopback(0)).unwrap();
    let client = client(server.addr());
    client.send_n(b"one").unwrap();
    let reason = reasons.recv_timeout(TEST_TIMEOUT).unwrap();
    assert!(reason.contains("a connection is paused, and has no timer or sender to resume it"), "{reason}");
    expect_end(&client);
    drop(running);
}

macro_rules! senders {
    ($name:ident, $TestFamily:ident) => {
        mod $name {
            use super::*;

            senders!($TestFamily: messages_arrive_whole_and_in_order);
            senders!($TestFamily: a_peer_that_does_not_read_is_disconnected);
            senders!($TestFamily: notices_are_handled_in_order);
            senders!($TestFamily: a_sender_closes_after_its_octets);
            senders!($TestFamily: either_side_ends_a_connection_with_a_sender);
            senders!($TestFamily: a_drain_cuts_a_connection_with_queued_octets);
            senders!($TestFamily: a_paused_connection_gets_no_input);
        }
    };
    ($TestFamily:ident: $case:ident) => {
        #[test]
        fn $case() {
            super::$case::<$TestFamily>(Reactive);
            super::$case::<$TestFamily>(ThreadPerConnection::new(4));
            super::$case::<$TestFamily>(ThreadPool::new(2, 4).unwrap());
        }
    };
}
for_every_place!(senders);

/// A chat: sends its input to all connections, from inside of the handlers, under a lock.
struct Broadcast(Arc<Mutex<Vec<Sender>>>);

impl<F: Family> ServiceHandler<F> for Broadcast {
    fn open(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        self.0.lock().unwrap().push(peer.sender()?);
        Ok(())
    }

    fn handle_input(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        let mut buffer = [0; 64];
        let count = peer.recv(&mut buffer)?;
        self.0.lock().unwrap().retain(|sender| sender.put(&buffer[..count]).is_ok());
        Ok(())
    }
}

/// All services put to all others at the same time, one octet each.
fn services_put_to_one_another<C: Creation<Inet>>(
    make: impl FnOnce(Arc<Mutex<Vec<Sender>>>) -> C,
    concurrency: impl Concurrency<Inet, C::Handler>,
) {
    const CLIENTS: usize = 4;
    let running = Running::start(2);
    let senders = Arc::default();
    let acceptor = Acceptor::new(Inet::default(), make(Arc::clone(&senders))).concurrency(concurrency);
    let server = acceptor.open(running.reactor.registry(), &Addr::loopback(0)).unwrap();
    let clients: Vec<_> = (0..CLIENTS).map(|_| client(server.addr())).collect();
    eventually(|| senders.lock().unwrap().len() == CLIENTS);
    let start = Barrier::new(CLIENTS);
    thread::scope(|scope| {
        for client in &clients {
            scope.spawn(|| {
                start.wait();
                for _ in 0..50 {
                    client.send_n(b"x").unwrap();
                }
                let mut received = [0; 50 * CLIENTS];
                client.recv_n(&mut received).unwrap();
                assert!(received.iter().all(|octet| *octet == b'x'));
            });
        }
    });
}

#[test]
fn services_put_to_one_another_in_every_strategy() {
    let each = |senders| move || Broadcast(Arc::clone(&senders));
    services_put_to_one_another(each, Reactive);
    services_put_to_one_another(each, ThreadPerConnection::new(4));
    services_put_to_one_another(each, ThreadPerConnection::new(2).or_reactive());
    services_put_to_one_another(each, ThreadPool::new(4, 0).unwrap());
}

/// Answers each notice with an octet.
struct Answers(mpsc::Sender<Sender>);

impl<F: Family> ServiceHandler<F> for Answers {
    fn open(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        self.0.send(peer.sender()?).map_err(io::Error::other)
    }

    fn handle_input(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        peer.recv(&mut [0; 64]).map(drop)
    }

    fn handle_notice(&mut self, peer: &mut Peer<'_, F>, notice: Notice) -> io::Result<()> {
        peer.put(&[*notice.downcast::<u8>().expect("an octet")])
    }
}

#[test]
fn notices_reach_their_handlers() {
    let running = Running::start(1);
    let (tell, senders) = mpsc::channel();
    let server = Acceptor::new(Inet::default(), move || Answers(tell.clone()))
        .open(running.reactor.registry(), &Addr::loopback(0))
        .unwrap();
    for number in 1..4 {
        let client = client(server.addr());
        let sender = senders.recv_timeout(TEST_TIMEOUT).unwrap();
        sender.notice(number).unwrap();
        let mut answer = [0];
        client.recv_n(&mut answer).unwrap();
        assert_eq!(answer, [number]);
        drop(client);
        eventually(|| sender.is_closed());
    }
}

/// Uses its own sender, also while a thread runs it that nothing else wakes.
struct Selfish;

impl<F: Family> ServiceHandler<F> for Selfish {
    fn open(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        let sender = peer.sender()?;
        sender.put(b"first ").map_err(io::Error::from)?;
        peer.put(b"second ")?;
        sender.put(b"third").map_err(io::Error::from)?;
        peer.close();
        Ok(())
    }

    fn handle_input(&mut self, _: &mut Peer<'_, F>) -> io::Result<()> {
        unreachable!("its connection is closed at once")
    }
}

fn octets_from_before_a_close_are_sent(concurrency: impl Concurrency<Inet, Selfish>) {
    let running = Running::start(1);
    let acceptor = Acceptor::new(Inet::default(), || Selfish).concurrency(concurrency);
    let server = acceptor.open(running.reactor.registry(), &Addr::loopback(0)).unwrap();
    let client = client(server.addr());
    let mut received = [0; 18];
    client.recv_n(&mut received).unwrap();
    assert_eq!(&received, b"first second third");
    expect_end(&client);
    eventually(|| server.connections() == 0);
}

#[test]
fn a_handler_may_use_its_own_sender_and_close() {
    octets_from_before_a_close_are_sent(Reactive);
    octets_from_before_a_close_are_sent(ThreadPerConnection::new(1));
}

/// Waits in a notice until the test lets it continue.
struct Busy(mpsc::Sender<Sender>, Arc<Barrier>);

impl<F: Family> ServiceHandler<F> for Busy {
    fn open(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        self.0.send(peer.sender()?).map_err(io::Error::other)
    }

    fn handle_input(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        peer.recv(&mut [0; 64]).map(drop)
    }

    fn handle_notice(&mut self, _: &mut Peer<'_, F>, notice: Notice) -> io::Result<()> {
        if notice.is::<&str>() {
            self.1.wait();
            self.1.wait();
        }
        Ok(())
    }
}

fn notices_are_bounded_for(concurrency: impl Concurrency<Inet, Busy>) {
    let running = Running::start(1);
    let (tell, senders) = mpsc::channel();
    let barrier = Arc::new(Barrier::new(2));
    let gate = Arc::clone(&barrier);
    let acceptor = Acceptor::new(Inet::default(), move || Busy(tell.clone(), Arc::clone(&gate)));
    let server = acceptor.concurrency(concurrency).open(running.reactor.registry(), &Addr::loopback(0)).unwrap();
    let _client = client(server.addr());
    let sender = senders.recv_timeout(TEST_TIMEOUT).unwrap();
    sender.notice("wait").unwrap();
    barrier.wait();
    (0..MAX_NOTICES).for_each(|_| sender.notice(()).unwrap());
    assert_eq!(sender.notice(()), Err(SendError::TooManyNotices { limit: MAX_NOTICES }));
    barrier.wait();
    eventually(|| sender.notice(()).is_ok());
}

#[test]
fn notices_are_bounded() {
    notices_are_bounded_for(Reactive);
    notices_are_bounded_for(ThreadPerConnection::new(1));
}

#[test]
fn a_sender_outlives_its_reactor() {
    let reactor = Reactor::new().unwrap();
    let (tell, events) = mpsc::channel();
    let acceptor = Acceptor::new(Inet::default(), move || Station(tell.clone()));
    let server = acceptor.open(reactor.registry(), &Addr::loopback(0)).unwrap();
    let _client = client(server.addr());
    let mut opened = None;
    let has_opened = || {
        opened = opened.take().or_else(|| events.try_recv().ok());
        opened.is_some()
    };
    assert!(reactor.run_until(Some(TEST_TIMEOUT), has_opened).unwrap());
    let Some(Event::Opened(sender)) = opened else { panic!("{opened:?}") };
    sender.put(b"never sent").unwrap();
    drop(reactor);
    assert!(matches!(events.try_recv(), Ok(Event::Closed(CloseReason::Stopped))));
    assert_eq!((sender.put(b"late"), sender.waiting()), (Err(SendError::Closed), 0));
    sender.close();
    sender.abort();
}

/// Fails from its timer in the way that the test chooses, and tells the reason.
struct Fails(io::ErrorKind, mpsc::Sender<String>);

impl<F: Family> ServiceHandler<F> for Fails {
    fn open(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        peer.schedule(Duration::ZERO, None, 0).map(drop)
    }

    fn handle_input(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        peer.recv(&mut [0; 64]).map(drop)
    }

    fn handle_timeout(&mut self, _: &mut Peer<'_, F>, _: Expired) -> io::Result<()> {
        Err(io::Error::new(self.0, "on purpose"))
    }

    fn close(&mut self, _: &mut Peer<'_, F>, reason: &CloseReason) {
        let _ = self.1.send(format!("{reason}, by the peer: {}", reason.is_by_peer()));
    }
}

fn reasons_of_failures(concurrency: impl Concurrency<Inet, Fails> + Clone) {
    for (kind, expected) in [
        (io::ErrorKind::TimedOut, "timed out: on purpose, by the peer: false"),
        (io::ErrorKind::QuotaExceeded, "limit exceeded: on purpose, by the peer: false"),
        (io::ErrorKind::ConnectionReset, "failed: on purpose, by the peer: true"),
        (io::ErrorKind::Other, "failed: on purpose, by the peer: false"),
    ] {
        let running = Running::start(1);
        let (tell, reasons) = mpsc::channel();
        let acceptor = Acceptor::new(Inet::default(), move || Fails(kind, tell.clone()));
        let acceptor = acceptor.concurrency(concurrency.clone());
        let server = acceptor.open(running.reactor.registry(), &Addr::loopback(0)).unwrap();
        let _client = client(server.addr());
        assert_eq!(reasons.recv_timeout(TEST_TIMEOUT).unwrap(), expected);
    }
}

#[test]
fn the_close_reason_tells_the_kind_of_failure() {
    reasons_of_failures(Reactive);
    reasons_of_failures(ThreadPerConnection::new(4));
}
