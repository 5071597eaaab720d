//! Common parts of the tests of the patterns.
#![allow(dead_code, unreachable_pub, reason = "each suite uses some of it")]

pub mod test_families;

use std::io;
use std::thread;

use spandrel_ipc::inet::{self, Addr, Inet};
use spandrel_ipc::{Family, Transfer};
use spandrel_reactor::{Options, Peer, Reactor, ServiceHandler};
use spandrel_test_support::TEST_TIMEOUT;

/// Echoes its input; a `!` makes it panic, a `?` fail.
#[derive(Debug, Default)]
pub struct Echo;

impl<F: Family> ServiceHandler<F> for Echo {
    fn handle_input(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        let mut buffer = [0; 4096];
        match peer.recv(&mut buffer)? {
            0 => peer.close(),
            count if buffer[..count].contains(&b'!') => panic!("on purpose"),
            count if buffer[..count].contains(&b'?') => return Err(io::Error::other("on purpose")),
            count => peer.put(&buffer[..count])?,
        }
        Ok(())
    }
}

/// A reactor and the threads that run it; they end when it is dropped.
pub struct Running {
    pub reactor: Reactor,
    threads: Vec<thread::JoinHandle<io::Result<()>>>,
}

impl Running {
    pub fn start(threads: usize) -> Self {
        let reactor = Reactor::with(&Options::default()).unwrap();
        let run = |_| {
            let reactor = reactor.clone();
            thread::spawn(move || reactor.run())
        };
        let threads = (0..threads).map(run).collect();
        Self { reactor, threads }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.reactor.stop();
        for thread in self.threads.drain(..) {
            thread.join().expect("no reactor's thread panics").expect("a reactor ends well");
        }
    }
}

pub fn client(addr: &Addr) -> inet::Stream {
    let stream = Inet::default().connect(addr, Some(TEST_TIMEOUT)).unwrap();
    stream.set_recv_timeout(Some(TEST_TIMEOUT)).unwrap();
    stream
}

/// Sends text and expects it back.
#[track_caller]
pub fn expect_echo(stream: &impl Transfer, text: &str) {
    stream.send_n(text.as_bytes()).unwrap();
    let mut back = vec![0; text.len()];
    stream.recv_n(&mut back).unwrap();
    assert_eq!(back, text.as_bytes());
}

/// Expects that the peer has closed.
#[track_caller]
pub fn expect_end(stream: &impl Transfer) {
    match stream.recv(&mut [0; 64]) {
        Ok(0) => {}
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {}
        other => panic!("expected the end, found {other:?}"),
    }
}
