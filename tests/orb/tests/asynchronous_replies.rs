//! The replies of asynchronous servants with many requests in flight on one connection.

#[cfg(target_os = "linux")]
use std::env;
use std::{
    collections::BTreeSet,
    io::Write as _,
    net::{Shutdown, TcpStream},
    sync::{Arc, Condvar, Mutex},
};

use spandrel::{
    ObjectRef, Orb, OrbBuilder, Poa,
    diagnostics::statistics::Level,
    options::{Concurrency, Task},
    types::IiopProfile,
};
#[cfg(target_os = "linux")]
use spandrel_orb_tests::system_calls::{self, SENDS};
use spandrel_orb_tests::{
    pipelined::{read_reply, request_to},
    support::{TEST_TIMEOUT, in_background, read_message, read_some, servant, wait_until},
};

/// A gate that threads wait at.
#[derive(Default)]
struct Gate {
    is_open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    fn open(&self) {
        *self.is_open.lock().unwrap() = true;
        self.opened.notify_all();
    }

    fn pass(&self) {
        let is_open = self.is_open.lock().unwrap();
        drop(self.opened.wait_timeout_while(is_open, TEST_TIMEOUT, |is_open| !*is_open).unwrap());
    }
}

/// A server whose servant answers in a future.
struct Server {
    orb: Orb,
    object: ObjectRef,
    gate: Arc<Gate>,
}

impl Server {
    fn with(builder: OrbBuilder) -> Self {
        let orb = builder.build().unwrap();
        let gate = Arc::<Gate>::default();
        let of_servant = Arc::clone(&gate);
        let servant = servant(move |operation, call| {
            let gate = (operation == "block").then(|| Arc::clone(&of_servant));
            let replied = call.spawn(move |call| async move {
                // Blocks the thread of the executor.
                gate.inspect(|gate| gate.pass());
                let replied = call.answer(|mut call| {
                    let octets = call.arguments()?.octet_sequence()?.to_vec();
                    call.reply(|out| out.octet_sequence(&octets))
                });
                call.end(replied);
            });
            if operation == "block_upcall" {
                of_servant.pass();
            }
            replied
        });
        let object = Poa::root(&orb).unwrap().activate(servant).unwrap();
        Self { orb, object, gate }
    }

    fn connect(&self) -> TcpStream {
        let profile = IiopProfile::decode(&self.object.ior().profiles[0]).unwrap().unwrap();
        let stream = TcpStream::connect(("127.0.0.1", profile.port)).unwrap();
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        stream.set_nodelay(true).unwrap();
        stream
    }

    fn request(&self, id: u32, operation: &str, octets: usize) -> Vec<u8> {
        request_to(&self.object, id, operation, |out| out.octet_sequence(&vec![id as u8; octets]).unwrap())
    }

    fn requests(&self, count: u32) -> Vec<u8> {
        (0..count).flat_map(|id| self.request(id, "echo_octets", 1)).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.gate.open();
        self.orb.shutdown().unwrap();
    }
}

/// The ids of so many replies.
fn read_replies(stream: &mut TcpStream, count: u32) -> Vec<u32> {
    let ids: BTreeSet<u32> = (0..count).map(|_| read_reply(stream).0).collect();
    ids.into_iter().collect()
}

/// The servers by the threads that read and those that poll.
const SERVERS: [&str; 5] = ["own", "shared", "reactive", "queue", "tokio"];

/// A builder for one of them, and the runtime of its executor.
fn builder(server: &str) -> (OrbBuilder, Option<tokio::runtime::Runtime>) {
    match server {
        "own" => (Orb::builder(), None),
        "shared" => (Orb::builder().concurrency(Concurrency::LeaderFollowers { threads: None }), None),
        "reactive" => (Orb::builder().concurrency(Concurrency::Reactive), None),
        "queue" => (Orb::builder().concurrency(Concurrency::ThreadPool { threads: 1, queue: 1024 }), None),
        _ => {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
            let handle = runtime.handle().clone();
            (Orb::builder().spawner(move |task: Task| drop(handle.spawn(task))), Some(runtime))
        }
    }
}

#[test]
fn each_request_has_its_whole_reply() {
    for name in SERVERS {
        let (builder, _runtime) = builder(name);
        let server = Server::with(builder);
        let mut stream = server.connect();
        let len = |id: u32| [0, 1, 100, 5_000, 20_000, 100_000][id as usize % 6];
        let all: Vec<u8> = (0..300).flat_map(|id| server.request(id, "echo_octets", len(id))).collect();
        let mut sending = stream.try_clone().unwrap();
        let sent = in_background(move || sending.write_all(&all).unwrap());
        let mut missing: BTreeSet<u32> = (0..300).collect();
        while !missing.is_empty() {
            let (id, octets) = read_reply(&mut stream);
            assert!(missing.remove(&id) && octets >= len(id), "{name}: request {id}");
        }
        sent.recv_timeout(TEST_TIMEOUT).unwrap();
        wait_until("the release of the memory", || server.orb.statistics().level(Level::OctetsReceived) == 0);
    }
}

#[test]
fn a_client_that_ends_its_side_gets_the_replies_before_the_end() {
    for name in SERVERS {
        let (builder, _runtime) = builder(name);
        let server = Server::with(builder);
        let mut stream = server.connect();
        stream.write_all(&server.requests(100)).unwrap();
        // The end of the client cancels requests that are not answered.
        assert_eq!(read_replies(&mut stream, 100), (0..100).collect::<Vec<_>>(), "{name}");
        stream.shutdown(Shutdown::Write).unwrap();
        assert_eq!(read_some(&stream, &mut [0]).unwrap(), 0, "{name}");
    }
}

#[test]
fn a_shutdown_sends_the_replies_before_close_connection() {
    for name in SERVERS {
        for _ in 0..5 {
            let (builder, _runtime) = builder(name);
            let server = Server::with(builder);
            let mut stream = server.connect();
            stream.write_all(&server.requests(200)).unwrap();
            let _ = read_message(&mut stream).unwrap();
            server.orb.shutdown().unwrap();
            let mut replies = 1;
            while read_message(&mut stream).unwrap()[7] != 5 {
                replies += 1;
            }
            // CloseConnection stands for the requests that were not begun.
            assert!(replies <= 200, "{name}");
            assert_eq!(read_some(&stream, &mut [0]).unwrap(), 0, "{name}");
        }
    }
}

#[test]
fn a_reply_does_not_wait_for_a_servant_that_blocks_the_executor() {
    for name in SERVERS {
        let (builder, _runtime) = builder(name);
        let server = Server::with(builder);
        let mut stream = server.connect();
        let last = server.request(9, "block", 0);
        stream.write_all(&[server.requests(2), last].concat()).unwrap();
        assert_eq!(read_replies(&mut stream, 2), [0, 1], "{name}: while the third one is not answered");
        server.gate.open();
        assert_eq!(read_reply(&mut stream).0, 9, "{name}");
    }
}

#[test]
fn a_future_runs_while_the_upcall_that_has_spawned_it_blocks() {
    // The servers whose futures other threads poll.
    for name in ["own", "shared", "tokio"] {
        let (builder, _runtime) = builder(name);
        let server = Server::with(builder);
        let mut stream = server.connect();
        let blocking = server.request(2, "block_upcall", 0);
        stream.write_all(&[server.requests(2), blocking, server.request(3, "echo_octets", 1)].concat()).unwrap();
        assert_eq!(read_replies(&mut stream, 4), [0, 1, 2, 3], "{name}: another thread reads on");
    }
}

/// The environment variable with the server of a process whose system calls are counted, and its requests in flight.
#[cfg(target_os = "linux")]
const IS_COUNTED: &str = "SPANDREL_COUNTS_ASYNCHRONOUS_REPLIES";

/// Requests of the process whose system calls are counted.
#[cfg(target_os = "linux")]
const REQUESTS: u32 = 5_000;

#[cfg(target_os = "linux")]
fn calls_of_a_copy(test: &str, names: &str, server: &str) -> u32 {
    system_calls::count(&format!("asynchronous_replies::{test}"), names, (IS_COUNTED, server))
}

/// Sends as many requests, so many of them at a time, if this process is the one whose system calls are counted.
#[cfg(target_os = "linux")]
fn is_copy(in_flight: u32) -> bool {
    let Ok(name) = env::var(IS_COUNTED) else { return false };
    let (builder, _runtime) = builder(&name);
    let server = Server::with(builder);
    let mut stream = server.connect();
    let segment = server.requests(in_flight);
    for _ in 0..REQUESTS / in_flight {
        stream.write_all(&segment).unwrap();
        read_replies(&mut stream, in_flight);
    }
    // The server then sends no CloseConnection.
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(read_some(&stream, &mut [0]).unwrap(), 0);
    true
}

#[test]
#[cfg(target_os = "linux")]
fn many_requests_in_flight_share_writes() {
    const TEST: &str = "many_requests_in_flight_share_writes";
    // With those of the client, one for each segment, and the wake-ups of threads; without sharing, they are more than
    // the requests. A busy machine makes some upcalls slow, and writes replies that were held for half a millisecond:
    // beside ten busy processes up to 1,400 of 5,000.
    const MAXIMUM: u32 = REQUESTS / 3;
    if is_copy(100) {
        return;
    }
    for name in SERVERS {
        let mut writes = Vec::new();
        while writes.last().is_none_or(|writes| *writes > MAXIMUM) {
            assert!(writes.len() < 5, "{name}: {writes:?} of at most {MAXIMUM}");
            writes.push(calls_of_a_copy(TEST, &format!("{SENDS},write"), name));
        }
        println!("{name}: {writes:?}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn one_request_at_a_time_has_one_write() {
    const TEST: &str = "one_request_at_a_time_has_one_write";
    if is_copy(1) {
        return;
    }
    for name in SERVERS {
        // The client makes one as well.
        assert_eq!(calls_of_a_copy(TEST, SENDS, name), 2 * REQUESTS, "{name}");
    }
}
