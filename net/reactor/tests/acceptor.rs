//! The Acceptor pattern with each of its strategies.

use crate::{for_every_place, support};

use std::io;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use spandrel_ipc::inet::{Addr, Inet};
use spandrel_ipc::{Family, Receive, Shutdown, Transfer, Transmit};
use spandrel_reactor::strategy::{AtMost, Concurrency, Reactive, ThreadPerConnection, ThreadPool};
use spandrel_reactor::{Acceptor, Expired, Peer, Server, ServiceHandler};

use spandrel_test_support::{TEST_TIMEOUT, eventually};
use support::test_families::*;
use support::{Echo, Running, client, expect_echo, expect_end};

fn serve(running: &Running, concurrency: impl Concurrency<Inet, Echo>) -> Server<Inet> {
    let acceptor = Acceptor::new(Inet::default(), || Echo).concurrency(concurrency);
    acceptor.open(running.reactor.registry(), &Addr::loopback(0)).unwrap()
}

/// The contract under every concurrency strategy, over every family.
fn assert_contract<P: TestFamily>(concurrency: impl Concurrency<P::Family, Echo>) {
    let running = Running::start(2);
    let (addr, _folder) = P::fresh();
    let acceptor = Acceptor::new(P::family(), || Echo).concurrency(concurrency);
    let server = acceptor.open(running.reactor.registry(), &addr).unwrap();
    let clients: Vec<_> = (0..8).map(|_| client_of::<P>(server.addr())).collect();
    for round in 0..3 {
        for (number, client) in clients.iter().enumerate() {
            expect_echo(client, &format!("{number}: round {round}"));
        }
    }
    eventually(|| server.connections() == 8);

    // A handler that panics, one that fails and one whose peer closes concern no other.
    clients[0].send_n(b"!").unwrap();
    expect_end(&clients[0]);
    clients[1].send_n(b"?").unwrap();
    expect_end(&clients[1]);
    let _ = clients[2].shutdown(Shutdown::Both); // in two steps where there are two layers, and the peer may have closed after the first
    eventually(|| server.connections() == 5);
    clients[3..].iter().for_each(|client| expect_echo(client, "still there"));

    // Half-closed, it is served to its end.
    clients[3].send_n(b"last words").unwrap();
    clients[3].shutdown(Shutdown::Write).unwrap();
    let mut last = [0; 10];
    clients[3].recv_n(&mut last).unwrap();
    assert_eq!(&last, b"last words");
    expect_end(&clients[3]);

    assert_eq!(server.drain(TEST_TIMEOUT), 0, "idle connections end by themselves");
    clients[4..].iter().for_each(expect_end);
    let is_refused = || P::family().connect(server.addr(), Some(TEST_TIMEOUT)).is_err();
    if cfg!(windows) {
        eventually(is_refused); // Wine may accept one more connection while another thread ends its wait
    } else {
        assert!(is_refused(), "the listener is closed");
    }
}

macro_rules! conforming {
    ($name:ident, $TestFamily:ident) => {
        mod $name {
            use super::*;

            #[test]
            fn a_reactor_runs_the_services() {
                assert_contract::<$TestFamily>(Reactive);
            }

            #[test]
            fn a_thread_runs_each_service() {
                assert_contract::<$TestFamily>(ThreadPerConnection::new(64));
            }

            #[test]
            fn threads_run_up_to_the_limit_and_the_reactor_the_rest() {
                assert_contract::<$TestFamily>(ThreadPerConnection::new(3).or_reactive());
            }

            #[test]
            fn a_pool_runs_the_services() {
                assert_contract::<$TestFamily>(ThreadPool::new(8, 8).unwrap());
            }

            #[test]
            fn untaken_output_is_queued_and_sent_later() {
                unread_output_is_queued::<$TestFamily>();
            }

            #[test]
            fn octets_put_before_the_end_arrive() {
                all_octets_arrive_before_the_end::<$TestFamily>();
            }

            #[test]
            fn connections_are_closed_after_the_drain_timeout() {
                unread_connections_are_closed::<$TestFamily>(Reactive);
                unread_connections_are_closed::<$TestFamily>(ThreadPerConnection::new(8));
            }
        }
    };
}
for_every_place!(conforming);

#[test]
fn connections_beyond_the_threads_are_refused() {
    let running = Running::start(1);
    let threads = ThreadPerConnection::new(2);
    let server = serve(&running, threads.clone());
    let (one, two) = (client(server.addr()), client(server.addr()));
    expect_echo(&one, "one");
    expect_echo(&two, "two");
    expect_end(&client(server.addr()));
    drop(one);
    eventually(|| threads.running() == 1);
    expect_echo(&client(server.addr()), "three");
}

#[test]
fn a_pool_serves_queued_connections_and_refuses_more() {
    let running = Running::start(1);
    let server = serve(&running, ThreadPool::new(1, 1).unwrap());
    let served = client(server.addr());
    expect_echo(&served, "served");
    let waiting = client(server.addr());
    eventually(|| server.connections() == 2);
    expect_end(&client(server.addr()));
    drop(served);
    expect_echo(&waiting, "served at last");
}

#[test]
fn only_the_limit_is_admitted() {
    let running = Running::start(1);
    let acceptor = Acceptor::new(Inet::default(), || Echo).acceptance(AtMost(1));
    let server = acceptor.open(running.reactor.registry(), &Addr::loopback(0)).unwrap();
    let first = client(server.addr());
    expect_echo(&first, "first");
    expect_end(&client(server.addr()));
    drop(first);
    eventually(|| server.connections() == 0);
    expect_echo(&client(server.addr()), "next");
}

#[test]
fn a_closure_admits_connections() {
    let running = Running::start(1);
    let mut came = 0;
    let every_other = move |_: &Addr| {
        came += 1;
        came % 2 == 0
    };
    let acceptor = Acceptor::new(Inet::default(), || Echo).acceptance(every_other);
    let server = acceptor.open(running.reactor.registry(), &Addr::loopback(0)).unwrap();
    expect_end(&client(server.addr()));
    expect_echo(&client(server.addr()), "let in");
}

/// Sends many octets to each client, and reports how its connections ended.
struct Flood {
    octets: usize,
    sent: mpsc::Sender<&'static str>,
}

impl<F: Family> ServiceHandler<F> for Flood {
    fn open(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        peer.put(&vec![7; self.octets])?;
        peer.schedule(Duration::from_millis(1), Some(Duration::from_millis(1)), 9).map(drop)
    }

    fn handle_input(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        assert_eq!(peer.waiting(), 0, "no input while output waits");
        if peer.recv(&mut [0; 64])? == 0 {
            peer.close();
        }
        Ok(())
    }

    fn handle_sent(&mut self, _: &mut Peer<'_, F>) -> io::Result<()> {
        self.sent.send("sent").map_err(io::Error::other)
    }

    fn handle_timeout(&mut self, peer: &mut Peer<'_, F>, timer: Expired) -> io::Result<()> {
        assert_eq!(timer.argument, 9);
        peer.cancel(timer.id);
        self.sent.send("timer").map_err(io::Error::other)
    }
}

fn unread_output_is_queued<P: TestFamily>() {
    const OCTETS: usize = 12 << 20;
    let running = Running::start(1);
    let (addr, _folder) = P::fresh();
    let (sent, reports) = mpsc::channel();
    let make = move || Flood { octets: OCTETS, sent: sent.clone() };
    let server = Acceptor::new(P::family(), make).open(running.reactor.registry(), &addr).unwrap();
    let client = client_of::<P>(server.addr());
    client.send_n(b"input that has to wait").unwrap();
    assert_eq!(reports.recv_timeout(TEST_TIMEOUT).unwrap(), "timer", "timers continue while output waits");
    let mut octets = vec![0; OCTETS];
    client.recv_n(&mut octets).unwrap();
    assert!(octets.iter().all(|octet| *octet == 7));
    assert_eq!(reports.recv_timeout(TEST_TIMEOUT).unwrap(), "sent");
}

/// Sends many octets and closes at the first input.
struct SendsAndCloses(Vec<u8>);

impl<F: Family> ServiceHandler<F> for SendsAndCloses {
    fn handle_input(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        peer.recv(&mut [0; 64])?;
        peer.put(&self.0)?;
        peer.close();
        Ok(())
    }
}

fn all_octets_arrive_before_the_end<P: TestFamily>() {
    let running = Running::start(1);
    for octets in [1, 70_000, 4 << 20] {
        let (addr, _folder) = P::fresh();
        let words: Vec<u8> = (0..octets).map(|number: usize| (number ^ (number >> 8)) as u8).collect();
        let sent_words = words.clone();
        let make = move || SendsAndCloses(sent_words.clone());
        let server = Acceptor::new(P::family(), make).open(running.reactor.registry(), &addr).unwrap();
        let client = client_of::<P>(server.addr());
        client.send_n(b"speak").unwrap();
        let mut received = vec![0; octets];
        client.recv_n(&mut received).unwrap();
        assert!(received == words, "{octets} octets");
        expect_end(&client);
    }
}

/// Sends without end and never reads.
struct NeverReads;

impl<F: Family> ServiceHandler<F> for NeverReads {
    fn open(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        peer.put(&vec![1; 12 << 20])
    }

    fn handle_input(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        peer.recv(&mut [0; 64]).map(drop)
    }
}

fn unread_connections_are_closed<P: TestFamily>(concurrency: impl Concurrency<P::Family, NeverReads>) {
    let running = Running::start(1);
    let (addr, _folder) = P::fresh();
    let acceptor = Acceptor::new(P::family(), || NeverReads).concurrency(concurrency);
    let server = acceptor.open(running.reactor.registry(), &addr).unwrap();
    let client = client_of::<P>(server.addr());
    client.recv_n(&mut [0; 64]).unwrap();
    assert_eq!(server.drain(Duration::from_millis(20)), 1);
    eventually(|| server.connections() == 0);
    assert_eq!(server.drain(Duration::ZERO), 0, "it may be drained again");
}

#[test]
fn a_peer_that_never_reads_is_closed() {
    let running = Running::start(1);
    let (sent, _told) = mpsc::channel();
    let make = move || Flood { octets: 64 << 20, sent: sent.clone() };
    let server = Acceptor::new(Inet::default(), make).open(running.reactor.registry(), &Addr::loopback(0)).unwrap();
    let _client = client(server.addr());
    eventually(|| server.connections() == 0);
}

#[test]
fn a_thread_that_serves_one_connection_serves_its_timers() {
    let running = Running::start(1);
    let (sent, reports) = mpsc::channel();
    let make = move || Flood { octets: 1, sent: sent.clone() };
    let server = Acceptor::new(Inet::default(), make)
        .concurrency(ThreadPerConnection::new(1))
        .open(running.reactor.registry(), &Addr::loopback(0))
        .unwrap();
    let client = client(server.addr());
    assert_eq!(reports.recv_timeout(TEST_TIMEOUT).unwrap(), "timer");
    drop(client);
    eventually(|| server.connections() == 0);
}

/// Waits in its handler until the test lets it continue.
struct Blocked(Arc<std::sync::Mutex<mpsc::Receiver<()>>>);

impl<F: Family> ServiceHandler<F> for Blocked {
    fn handle_input(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        if peer.recv(&mut [0; 64])? == 0 {
            peer.close();
            return Ok(());
        }
        self.0.lock().unwrap().recv_timeout(TEST_TIMEOUT).map_err(io::Error::other)?;
        peer.put(b"done")
    }
}

#[test]
fn draining_lets_connections_finish() {
    let running = Running::start(1);
    let (go, held) = mpsc::channel();
    let held = Arc::new(std::sync::Mutex::new(held));
    let server = Acceptor::new(Inet::default(), move || Blocked(Arc::clone(&held)))
        .concurrency(ThreadPerConnection::new(4))
        .open(running.reactor.registry(), &Addr::loopback(0))
        .unwrap();
    let client = client(server.addr());
    client.send_n(b"begin").unwrap();
    eventually(|| server.connections() == 1);
    let draining = server.clone();
    let drained_processes_end = thread::spawn(move || draining.drain(TEST_TIMEOUT));
    go.send(()).unwrap();
    let mut reply = [0; 4];
    client.recv_n(&mut reply).unwrap();
    assert_eq!(&reply, b"done");
    expect_end(&client);
    assert_eq!(drained_processes_end.join().unwrap(), 0);
}

#[test]
fn draining_closes_connections_after_the_timeout() {
    let running = Running::start(1);
    let (_go, held) = mpsc::channel();
    let held = Arc::new(std::sync::Mutex::new(held));
    let server = Acceptor::new(Inet::default(), move || Blocked(Arc::clone(&held)))
        .concurrency(ThreadPerConnection::new(4))
        .open(running.reactor.registry(), &Addr::loopback(0))
        .unwrap();
    let client = client(server.addr());
    client.send_n(b"begin").unwrap();
    eventually(|| server.connections() == 1);
    assert_eq!(server.drain(Duration::from_millis(50)), 1);
    expect_end(&client);
}
