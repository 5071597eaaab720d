//! TLS under the reactor, with the patterns that serve every family.

// The support module of the crate whose streams are served.
#[path = "../../tls/tests/support/mod.rs"]
mod support;

use std::io::{self, ErrorKind};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use spandrel_ipc::{Family, inet};
use spandrel_reactor::strategy::{Concurrency, Reactive, ThreadPerConnection};
use spandrel_reactor::{Acceptor, Connector, Peer, Reactor, Server, ServiceHandler};
use spandrel_test_support::{pattern, wait_until};
use spandrel_tls::{Tls, tls_error};
use support::*;

/// Sends its input back.
struct Echo;

impl<F: Family> ServiceHandler<F> for Echo {
    fn handle_input(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        let mut buffer = [0; 10_000];
        match peer.recv(&mut buffer)? {
            0 => peer.close(),
            count => peer.put(&buffer[..count])?,
        }
        Ok(())
    }
}

/// A reactor with its own thread, until dropped.
struct Running {
    reactor: Reactor,
    thread: Option<thread::JoinHandle<()>>,
}

impl Running {
    fn start() -> Self {
        let reactor = Reactor::new().unwrap();
        let run = reactor.clone();
        Self { reactor, thread: Some(thread::spawn(move || run.run().unwrap())) }
    }

    fn serve(&self, family: Tls, concurrency: impl Concurrency<Tls, Echo>) -> Server<Tls> {
        let acceptor = Acceptor::new(family, || Echo).concurrency(concurrency);
        acceptor.open(self.reactor.registry(), &inet::Addr::loopback(0)).unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.reactor.stop();
        let end = self.thread.take().map(thread::JoinHandle::join);
        assert!(thread::panicking() || end.is_some_and(|end| end.is_ok()));
    }
}

fn echoes(concurrency: impl Concurrency<Tls, Echo>) {
    let running = Running::start();
    let server = running.serve(tcp(), concurrency);
    // Two silent connections, and one with another protocol, affect no other.
    let _silent = [(); 2].map(|()| inet::Connector::connect(server.addr()).unwrap());
    let stranger = inet::Connector::connect(server.addr()).unwrap();
    stranger.send_n(b"GET / HTTP/1.1\r\n\r\n").unwrap();

    let family = tcp();
    thread::scope(|scope| {
        for client in 0..8 {
            let (family, addr) = (&family, *server.addr());
            scope.spawn(move || {
                let stream = family.connect(&addr, Some(TEST_TIMEOUT)).unwrap();
                let data = pattern(1 << client << 8);
                for _ in 0..10 {
                    let mut received = vec![0; data.len()];
                    stream.send_n(&data).unwrap();
                    stream.recv_n_within(&mut received, TEST_TIMEOUT).unwrap();
                    assert!(received == data);
                }
                stream.close_writer().unwrap();
                assert_eq!(stream.recv(&mut [0; 1]).unwrap(), 0);
            });
        }
    });
    let mut alert = [0; 7];
    stranger.recv_n(&mut alert).unwrap();
    assert_eq!(alert[0], 21);
    wait_until("only the silent ones are left", || server.connections() == 2);
}

#[test]
fn a_reactor_serves_tls() {
    echoes(Reactive);
}

#[test]
fn a_thread_serves_each_connection_of_tls() {
    echoes(ThreadPerConnection::new(64));
}

#[test]
fn one_record_in_many_parts_is_served_without_further_input() {
    /// Takes one octet at a time, and answers the last.
    struct Sip(usize);
    impl<F: Family> ServiceHandler<F> for Sip {
        fn handle_input(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
            let mut octet = [0];
            self.0 += peer.recv(&mut octet)?;
            if octet == *b"." { peer.put(&self.0.to_be_bytes()) } else { Ok(()) }
        }
    }
    let running = Running::start();
    let acceptor = Acceptor::new(tcp(), || Sip(0));
    let server = acceptor.open(running.reactor.registry(), &inet::Addr::loopback(0)).unwrap();
    let client = tcp().connect(server.addr(), Some(TEST_TIMEOUT)).unwrap();
    let message = [&[b' '; 999][..], b"."].concat();
    client.send_n(&message).unwrap();
    let mut count = [0; size_of::<usize>()];
    client.recv_n_within(&mut count, TEST_TIMEOUT).unwrap();
    assert_eq!(usize::from_be_bytes(count), message.len());
}

#[test]
fn a_slow_reader_receives_everything_and_then_the_end() {
    let running = Running::start();
    let server = running.serve(tcp(), Reactive);
    let client = tcp().connect(server.addr(), Some(TEST_TIMEOUT)).unwrap();
    let data = pattern(12 << 20);
    thread::scope(|scope| {
        scope.spawn(|| {
            client.send_n(&data).unwrap();
            client.close_writer().unwrap();
        });
        wait_until("neither side takes any more", || client.flush(Some(SHORT)).is_err());
        let mut received = vec![0; data.len()];
        for part in received.chunks_mut(3000) {
            client.recv_n_within(part, TEST_TIMEOUT).unwrap();
        }
        assert!(received == data);
        assert_eq!(client.recv_within(&mut [0; 1], TEST_TIMEOUT).unwrap(), 0);
    });
    wait_until("no connection is served", || server.connections() == 0);
}

#[test]
fn a_server_that_drains_ends_idle_connections_cleanly() {
    let running = Running::start();
    let server = running.serve(tcp(), Reactive);
    let client = tcp().connect(server.addr(), Some(TEST_TIMEOUT)).unwrap();
    client.send_n(b"x").unwrap();
    client.recv_n(&mut [0; 1]).unwrap();
    assert_eq!(server.drain(TEST_TIMEOUT), 0);
    assert_eq!(client.recv_within(&mut [0; 1], TEST_TIMEOUT).unwrap(), 0);
}

/// Sends a greeting to its peer, and reports the answer.
struct Greeter(mpsc::Sender<Vec<u8>>);

impl<F: Family> ServiceHandler<F> for Greeter {
    fn open(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        peer.put(b"greetings")
    }
    fn handle_input(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        let mut buffer = [0; 64];
        match peer.recv(&mut buffer)? {
            0 => peer.close(),
            count => self.0.send(buffer[..count].to_vec()).map_err(io::Error::other)?,
        }
        Ok(())
    }
}

#[test]
fn a_reactor_makes_connections_of_tls() {
    let running = Running::start();
    let server = running.serve(tcp(), Reactive);
    let (say, reports) = mpsc::channel();
    let connector = Connector::new(tcp(), move || Greeter(say.clone()));
    let client = connector.connect(running.reactor.registry(), server.addr()).unwrap();
    assert_eq!(reports.recv_timeout(TEST_TIMEOUT).unwrap(), b"greetings");
    assert!(client.is_connected());
}

#[test]
fn a_failed_connection_is_reported_with_its_reason() {
    let running = Running::start();
    let server = running.serve(tcp(), Reactive);
    let silent = inet::Acceptor::open(&inet::Addr::loopback(0)).unwrap();
    let wrong =
        Tls::new(inet::Inet::default()).client(client_options().build().unwrap(), "other.test".try_into().unwrap());
    let reason = |family: Tls, addr: &inet::Addr, time: Duration| {
        let (fail, failed) = mpsc::channel();
        let (say, _said) = mpsc::channel();
        let connector = Connector::new(family, move || Greeter(say.clone()))
            .timeout(time)
            .on_failure(move |error| fail.send((error.kind(), tls_error(error).cloned())).unwrap());
        let _client = connector.connect(running.reactor.registry(), addr).unwrap();
        failed.recv_timeout(TEST_TIMEOUT).unwrap()
    };
    let (kind, error) = reason(wrong, server.addr(), TEST_TIMEOUT);
    assert_eq!(kind, ErrorKind::InvalidData);
    assert!(matches!(error, Some(rustls::Error::InvalidCertificate(_))), "{error:?}");
    assert_eq!(reason(tcp(), &silent.local_addr().unwrap(), Duration::from_millis(100)), (ErrorKind::TimedOut, None));
}
