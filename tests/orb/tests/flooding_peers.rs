//! Peers that send messages without end: they delay their own calls only, and take no memory.

use std::{
    io::Write,
    net::{Shutdown, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use spandrel::{Orb, SystemExceptionKind, options::Concurrency};
use spandrel_orb_tests::{
    Server,
    probe::Target,
    support::{TEST_TIMEOUT, block_on, fake_server, in_background, read_message, wait_until},
};
use spandrel_test_support::alone;

/// Octets that a peer writes at once.
const BLOCK: usize = 64 * 1024;

/// A message of GIOP 1.2 in little-endian order.
fn message(message_type: u8, has_more: bool, body: &[u8]) -> Vec<u8> {
    let flags = 1 | u8::from(has_more) << 1;
    let len = (body.len() as u32).to_le_bytes();
    [&[b'G', b'I', b'O', b'P', 1, 2, flags, message_type], &len[..], body].concat()
}

/// A reply without results.
fn reply(request_id: u32) -> Vec<u8> {
    message(1, false, &[request_id.to_le_bytes(), [0; 4], [0; 4]].concat())
}

/// An id that no request has.
const UNKNOWN: u32 = 0xFFFF_FFF1;

/// The messages with which a peer floods a connection.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Flood {
    UnknownReplies,
    /// The parts of one reply, without octets.
    Fragments,
    CloseConnections,
}

impl Flood {
    fn begin(self) -> Vec<u8> {
        match self {
            Self::Fragments => message(1, true, &UNKNOWN.to_le_bytes()),
            Self::UnknownReplies | Self::CloseConnections => Vec::new(),
        }
    }

    fn block(self) -> Vec<u8> {
        let one = match self {
            Self::UnknownReplies => reply(UNKNOWN),
            Self::Fragments => message(7, true, &UNKNOWN.to_le_bytes()),
            Self::CloseConnections => message(5, false, &[]),
        };
        one.repeat(BLOCK / one.len())
    }
}

/// A server that answers the requests of each connection, at most so many, and floods it after the first.
struct FloodingServer {
    url: String,
    /// The number of blocks that were written.
    blocks: Arc<AtomicUsize>,
}

impl FloodingServer {
    fn start(flood: Flood, answers: usize) -> Self {
        let blocks: Arc<AtomicUsize> = Arc::default();
        let written = Arc::clone(&blocks);
        let port = fake_server(move |_, stream| {
            let (requests, written) = (stream.try_clone().unwrap(), Arc::clone(&written));
            let (send, ids) = mpsc::channel();
            thread::spawn(move || read_ids(requests, &send));
            thread::spawn(move || answer_and_flood(stream, flood, answers, &ids, &written));
        });
        Self { url: format!("corbaloc:iiop:1.2@127.0.0.1:{port}/x"), blocks }
    }

    fn target(&self, orb: &Orb) -> Target {
        orb.string_to_object(&self.url).unwrap().unchecked_narrow()
    }

    /// Waits until the flood has begun, and the last call is over for longer than the client trusts a connection.
    fn await_flood(&self) {
        let before = self.blocks.load(Ordering::SeqCst);
        wait_until("the flood", || self.blocks.load(Ordering::SeqCst) > before.min(2));
        thread::sleep(Duration::from_millis(5));
    }
}

fn read_ids(mut requests: TcpStream, ids: &mpsc::Sender<u32>) {
    while let Ok(request) = read_message(&mut requests) {
        let id = u32::from_le_bytes(request[12..16].try_into().unwrap());
        if request[7] == 0 && ids.send(id).is_err() {
            return;
        }
    }
}

fn answer_and_flood(
    mut stream: TcpStream,
    flood: Flood,
    answers: usize,
    ids: &mpsc::Receiver<u32>,
    written: &AtomicUsize,
) {
    let Ok(first) = ids.recv() else { return };
    let (block, mut left) = (flood.block(), answers - 1);
    let mut outcome = stream.write_all(&[reply(first), flood.begin()].concat());
    while outcome.is_ok() {
        outcome = stream.write_all(&block);
        written.fetch_add(1, Ordering::SeqCst);
        for id in ids.try_iter().take(left) {
            left -= 1;
            outcome = outcome.and_then(|()| stream.write_all(&reply(id)));
        }
    }
}

/// The memory of this process, in octets.
#[cfg(target_os = "linux")]
fn memory() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

#[cfg(not(target_os = "linux"))]
fn memory() -> usize {
    0
}

type CallKind = fn(&Target);

const CALL_KINDS: [CallKind; 2] = [|target| target.ping().unwrap(), |target| block_on(target.ping_async()).unwrap()];

#[test]
fn calls_go_on_over_a_connection_that_its_server_floods() {
    alone(|| {
        const MOST_MEMORY: usize = 32 << 20;
        for flood in [Flood::UnknownReplies, Flood::Fragments, Flood::CloseConnections] {
            for call in CALL_KINDS {
                let server = FloodingServer::start(flood, usize::MAX);
                let orb = Orb::builder().connections_per_peer(1).request_timeout(Some(TEST_TIMEOUT)).build().unwrap();
                let target = server.target(&orb);
                call(&target);
                let before = memory();
                for _ in 0..5 {
                    server.await_flood();
                    let target = target.clone();
                    let called = in_background(move || call(&target));
                    called.recv_timeout(TEST_TIMEOUT).unwrap_or_else(|_| panic!("{flood:?}: the call ends"));
                }
                let more = memory().saturating_sub(before);
                assert!(more < MOST_MEMORY, "{flood:?}: {more} octets");
            }
        }
    });
}

#[test]
fn a_call_that_a_flooding_server_does_not_answer_ends_in_time() {
    const LIMIT: Duration = Duration::from_millis(200);
    for flood in [Flood::UnknownReplies, Flood::Fragments] {
        let server = FloodingServer::start(flood, 1);
        let orb = Orb::builder().connections_per_peer(1).request_timeout(Some(LIMIT)).build().unwrap();
        let target = server.target(&orb);
        target.ping().unwrap();
        server.await_flood();
        let begun = Instant::now();
        let called = in_background(move || target.ping());
        let error = called.recv_timeout(TEST_TIMEOUT).expect("the call ends").unwrap_err();
        assert_eq!(error.kind(), SystemExceptionKind::Timeout, "{flood:?}: {error}");
        assert!(begun.elapsed() >= LIMIT);
    }
}

#[test]
fn a_flooding_server_delays_no_asynchronous_call_of_another() {
    for flood in [Flood::UnknownReplies, Flood::Fragments] {
        let (flooding, other) = (FloodingServer::start(flood, 1), Server::start());
        let orb = Orb::builder().connections_per_peer(1).build().unwrap();
        let (flooded, target) =
            (flooding.target(&orb), orb.string_to_object(&other.ior()).unwrap().unchecked_narrow::<Target>());
        block_on(flooded.ping_async()).unwrap();
        // The reactor reads as long as a reply is awaited.
        let unanswered = in_background(move || drop(block_on(flooded.ping_async())));
        flooding.await_flood();
        for number in 0..20 {
            let target = target.clone();
            let sum = in_background(move || block_on(target.add_async(number, 1)));
            let sum = sum.recv_timeout(TEST_TIMEOUT).unwrap_or_else(|_| panic!("{flood:?}: the call ends"));
            assert_eq!(sum.unwrap(), number + 1);
        }
        drop(unanswered);
        orb.shutdown().unwrap();
    }
}

#[test]
fn clients_that_send_fragments_without_end_delay_no_other_client() {
    for concurrency in [
        Concurrency::Reactive,
        Concurrency::LeaderFollowers { threads: Some(1) },
        Concurrency::ThreadPool { threads: 1, queue: 8 },
    ] {
        let server = Server::with(Orb::builder().concurrency(concurrency));
        let mut stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
        let flood = stream.try_clone().unwrap();
        let (begun, has_begun) = mpsc::channel();
        let flooding = in_background(move || {
            let mut outcome = stream.write_all(&message(0, true, &7u32.to_le_bytes()));
            let block = message(7, true, &7u32.to_le_bytes()).repeat(BLOCK / 16);
            while outcome.is_ok() {
                outcome = stream.write_all(&block);
                let _ = begun.send(());
            }
        });
        has_begun.recv_timeout(TEST_TIMEOUT).unwrap();
        let target = server.client();
        for number in 0..20 {
            let target = target.clone();
            let sum = in_background(move || target.add(number, 1));
            let sum = sum.recv_timeout(TEST_TIMEOUT).unwrap_or_else(|_| panic!("{concurrency}: the call ends"));
            assert_eq!(sum.unwrap(), number + 1);
        }
        flood.shutdown(Shutdown::Both).unwrap();
        flooding.recv_timeout(TEST_TIMEOUT).unwrap();
    }
}
