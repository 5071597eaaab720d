//! The connections of an HTTP server that is stopped end in a bounded time, whatever their peers do.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use spandrel_architectures::Settings;
use spandrel_architectures::http::Http;
use spandrel_test_support::wait_until;

use crate::in_process::{port, starts};
use crate::support::{SHORT, connect};

/// The bound after the time of the stop, with room for a loaded machine: a server has 5 s for the ends of its threads.
const BOUND: Duration = Duration::from_secs(60);

/// Octets that a peer writes at once.
const BLOCK: usize = 64 * 1024;

/// The behaviour of the peer from the first connection to its end.
#[derive(Clone, Copy, Debug)]
enum Peer {
    /// Sends requests without end and takes the responses.
    Requests,
    /// Sends requests without end and takes no response.
    UntakenResponses,
    /// Sends a head without end.
    Head,
    /// Sends the chunks of one body without end.
    Chunks,
    /// Sends a long body in single octets.
    SingleOctets,
    /// Sends a part of a head, and nothing more.
    HalfRequest,
    /// Sends nothing and reads nothing.
    Silent,
}

impl Peer {
    const ALL: [Self; 7] = [
        Self::Requests,
        Self::UntakenResponses,
        Self::Head,
        Self::Chunks,
        Self::SingleOctets,
        Self::HalfRequest,
        Self::Silent,
    ];

    fn begin(self) -> &'static str {
        match self {
            Self::Requests | Self::UntakenResponses | Self::Silent => "",
            Self::Head | Self::HalfRequest => "GET / HTTP/1.1\r\nHost: h\r\n",
            Self::Chunks => "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n",
            Self::SingleOctets => "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 60000\r\n\r\n",
        }
    }

    /// The octets of one write, and the pause after it; `None` if nothing more is written.
    fn block(self) -> Option<(Vec<u8>, Duration)> {
        let one = match self {
            Self::Requests | Self::UntakenResponses => "GET / HTTP/1.1\r\nHost: h\r\n\r\n",
            Self::Head => "X: y\r\n",
            Self::Chunks => "1\r\nx\r\n",
            Self::SingleOctets => return Some((vec![b'x'], Duration::from_millis(20))),
            Self::HalfRequest | Self::Silent => return None,
        };
        Some((one.repeat(BLOCK / one.len()).into_bytes(), Duration::ZERO))
    }

    /// Begins what the peer does, and waits until it does it. Returns the event of its connection's end.
    fn start(self, server: SocketAddr) -> mpsc::Receiver<()> {
        let mut stream = connect(server);
        stream.set_read_timeout(None).unwrap();
        stream.write_all(self.begin().as_bytes()).unwrap();
        if let Self::Requests = self {
            let mut responses = stream.try_clone().unwrap();
            thread::spawn(move || std::io::copy(&mut responses, &mut std::io::sink()));
        }
        let (begun, has_begun) = mpsc::channel();
        let (end, ended) = mpsc::channel();
        thread::spawn(move || {
            self.run(&mut stream, &begun);
            let _ = end.send(());
        });
        for _ in 0..2 {
            // A peer that takes no responses is no longer read from at some time; one without blocks ends this at its end.
            if self.block().is_some() {
                let _ = has_begun.recv_timeout(Duration::from_millis(200));
            }
        }
        ended
    }

    /// Returns when the connection has ended.
    fn run(self, stream: &mut TcpStream, begun: &mpsc::Sender<()>) {
        let Some((block, pause)) = self.block() else {
            // The end stands behind what the server sent before.
            _ = stream.read_to_end(&mut Vec::new());
            return;
        };
        while stream.write_all(&block).is_ok() {
            let _ = begun.send(());
            thread::sleep(pause);
        }
    }
}

#[test]
fn connections_end_after_the_stop_whatever_their_peers_do() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("index.html"), "x".repeat(1_000)).unwrap();
    let mut left = Vec::new();
    for (name, start) in starts() {
        for peer in Peer::ALL {
            let (port, address) = port();
            let http = Http::open(folder.path()).unwrap();
            let server = start(&port, http, &Settings::default()).unwrap();
            let ended = peer.start(address);
            // The port outlives the server. A connection that it has not accepted would wait for the next one.
            wait_until("the connection is accepted", || server.connections() == 1);
            let begun = Instant::now();
            let _ = server.stop(SHORT);
            let elapsed = begun.elapsed();
            drop(server);
            if elapsed > SHORT + BOUND || ended.recv_timeout(BOUND).is_err() {
                left.push(format!("{name}, {peer:?}: stop took {elapsed:?}"));
            }
        }
    }
    assert!(left.is_empty(), "{left:#?}");
}

/// The processes of connections and of pools, too.
#[cfg(unix)]
#[test]
fn an_executable_ends_within_its_drain_whatever_its_peers_do() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("index.html"), "x".repeat(1_000)).unwrap();
    for architecture in crate::support::permitted() {
        let arguments =
            [architecture.name(), "--workers", "8", "--drain", "1", "--http", folder.path().to_str().unwrap()];
        let server = crate::support::Running::start(&arguments);
        let ends = Peer::ALL.map(|peer| (peer, peer.start(server.address)));
        server.terminate(); // waits for the end
        for (peer, ended) in ends {
            assert!(ended.recv_timeout(BOUND).is_ok(), "{architecture}: {peer:?} has not ended");
        }
    }
}
