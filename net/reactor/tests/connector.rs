//! The Connector pattern and the connection cache.

use crate::support;

use std::io;
use std::sync::mpsc;
use std::time::Duration;

use spandrel_ipc::Family;
use spandrel_ipc::inet::{Acceptor as Listener, Addr, Inet};
use spandrel_reactor::strategy::{Concurrency, Reactive, ThreadPerConnection};
use spandrel_reactor::{Acceptor, Backoff, CloseReason, Connector, Peer, ServiceHandler};

use spandrel_test_support::{TEST_TIMEOUT, eventually};
use support::{Echo, Running};

/// Sends a greeting to its peer, and reports the answer.
struct Greeter(mpsc::Sender<String>);

impl<F: Family> ServiceHandler<F> for Greeter {
    fn open(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        peer.put(b"greetings")
    }

    fn handle_input(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        let mut buffer = [0; 64];
        match peer.recv(&mut buffer)? {
            0 => peer.close(),
            count => self.0.send(String::from_utf8_lossy(&buffer[..count]).into_owned()).map_err(io::Error::other)?,
        }
        Ok(())
    }

    fn close(&mut self, _: &mut Peer<'_, F>, _: &CloseReason) {
        let _ = self.0.send("closed".into());
    }
}

/// Connects to an echo server and is served under any concurrency strategy.
fn assert_contract(concurrency: impl Concurrency<Inet, Greeter>) {
    let running = Running::start(2);
    let registry = running.reactor.registry();
    let server = Acceptor::new(Inet::default(), || Echo).open(registry, &Addr::loopback(0)).unwrap();
    let (say, reports) = mpsc::channel();
    let connector = Connector::new(Inet::default(), move || Greeter(say.clone())).concurrency(concurrency);
    let client = connector.connect(registry, server.addr()).unwrap();
    assert_eq!(reports.recv_timeout(TEST_TIMEOUT).unwrap(), "greetings");
    assert!(client.is_connected());
    assert_eq!(client.drain(TEST_TIMEOUT), 0);
    assert_eq!(reports.recv_timeout(TEST_TIMEOUT).unwrap(), "closed");
    eventually(|| server.connections() == 0);
}

#[test]
fn a_reactor_runs_what_was_connected() {
    assert_contract(Reactive);
}

#[test]
fn a_thread_runs_what_was_connected() {
    assert_contract(ThreadPerConnection::new(1));
}

/// An address without a listener, which no other socket will get soon.
fn vacant() -> Addr {
    Listener::open(&Addr::loopback(0)).unwrap().local_addr().unwrap()
}

#[test]
fn a_refusal_is_reported_and_ends_the_connector() {
    let running = Running::start(1);
    let (fail, failed) = mpsc::channel();
    let (say, _said) = mpsc::channel();
    let connector = Connector::new(Inet::default(), move || Greeter(say.clone()))
        .on_failure(move |error| fail.send(error.kind()).unwrap());
    let client = connector.connect(running.reactor.registry(), &vacant()).unwrap();
    assert_eq!(failed.recv_timeout(TEST_TIMEOUT).unwrap(), io::ErrorKind::ConnectionRefused);
    assert!(!client.is_connected());
    // Its failure handler is dropped with it: there is no further attempt.
    assert_eq!(failed.recv_timeout(TEST_TIMEOUT), Err(mpsc::RecvTimeoutError::Disconnected));
}

#[test]
fn a_connector_retries_until_connected_and_after_a_loss() {
    let running = Running::start(1);
    let addr = vacant();
    let (fail, failed) = mpsc::channel();
    let (say, reports) = mpsc::channel();
    let client = Connector::new(Inet::default(), move || Greeter(say.clone()))
        .reconnect(Backoff::new(Duration::from_millis(1), Duration::from_millis(10)))
        .on_failure(move |_| fail.send(()).unwrap_or_default())
        .connect(running.reactor.registry(), &addr)
        .unwrap();
    for _ in 0..3 {
        failed.recv_timeout(TEST_TIMEOUT).unwrap();
    }
    let listener = Listener::open(&addr).unwrap();
    for _ in 0..3 {
        let (stream, _) = listener.accept().unwrap();
        stream.set_recv_timeout(Some(TEST_TIMEOUT)).unwrap();
        let mut greeting = [0; 9];
        stream.recv_n(&mut greeting).unwrap();
        assert_eq!(&greeting, b"greetings");
        drop(stream);
        assert_eq!(reports.recv_timeout(TEST_TIMEOUT).unwrap(), "closed");
    }
    client.close();
}

#[test]
fn an_attempt_times_out() {
    let running = Running::start(1);
    let (fail, failed) = mpsc::channel();
    let (say, _said) = mpsc::channel();
    // A full backlog: the system leaves the next attempt unanswered, or (some systems) refuses it.
    let options = spandrel_ipc::inet::AcceptorOptions::default().backlog(0);
    let listener = Listener::open_with(&Addr::loopback(0), &options).unwrap();
    let addr = listener.local_addr().unwrap();
    let attempts: Vec<_> = (0..16).filter_map(|_| Inet::default().start(&addr).ok()).collect();
    let _client = Connector::new(Inet::default(), move || Greeter(say.clone()))
        .timeout(Duration::from_millis(20))
        .on_failure(move |error| fail.send(error.kind()).unwrap())
        .connect(running.reactor.registry(), &addr)
        .unwrap();
    let kind = failed.recv_timeout(TEST_TIMEOUT).unwrap();
    assert!(matches!(kind, io::ErrorKind::TimedOut | io::ErrorKind::ConnectionRefused), "{kind:?}");
    drop(attempts);
}
