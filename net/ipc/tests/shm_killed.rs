//! A peer whose process is killed: the other side receives the published octets and learns of the end within
//! half a second, in every wait; and connections leave no descriptors and no mappings behind.
//!
//! Run without the test harness: the program runs itself as the peer, and counts the descriptors and mappings
//! of the whole process.

use std::env;
use std::fs;
use std::io::{self, ErrorKind};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use spandrel_ipc::shm::{Acceptor, Addr, Connector, Stream};
use spandrel_ipc::{Interest, wait_ready};
use spandrel_test_support::{ChildProcess, TEST_TIMEOUT};

/// Time limit for noticing a death: it is immediate, except for delays of a busy machine. A missed one waits
/// for [`TEST_TIMEOUT`].
const DETECTION_LIMIT: Duration = Duration::from_secs(20);
/// The tasks of the peer.
const WRITE: u8 = 1;
const BE_SILENT: u8 = 2;
const RING: usize = 65_536;

/// The octets that a peer writes, without end.
fn octet(i: usize) -> u8 {
    (i ^ (i >> 8)) as u8
}

/// Runs in the process that is killed.
pub(crate) fn peer(addr: &Addr) {
    let stream = Connector::new().send_queue(RING).recv_queue(RING).open(addr).unwrap();
    let mut task = [0];
    stream.recv_n(&mut task).unwrap();
    stream.send_n(&task).unwrap();
    if task == [WRITE] {
        let mut at = 0;
        loop {
            let data: Vec<u8> = (at..at + 1 + at % 5000).map(octet).collect();
            stream.send_n(&data).unwrap();
            at += data.len();
        }
    }
    loop {
        thread::park(); // until it is killed
    }
}

/// A peer that has begun its task.
fn start(task: u8) -> (ChildProcess, Stream) {
    let acceptor = Acceptor::open(&Addr::unnamed()).unwrap();
    let mut peer = Command::new(env::current_exe().unwrap());
    let child = ChildProcess::start(peer.arg("peer").arg(acceptor.local_addr().unwrap().to_string()));
    assert_eq!(wait_ready(&acceptor, Interest::INPUT, Some(TEST_TIMEOUT)).unwrap(), Interest::INPUT);
    let (stream, _) = acceptor.accept().unwrap();
    stream.set_recv_timeout(Some(TEST_TIMEOUT)).unwrap();
    stream.set_send_timeout(Some(TEST_TIMEOUT)).unwrap();
    stream.send_n(&[task]).unwrap();
    let mut reply = [0];
    stream.recv_n(&mut reply).unwrap();
    assert_eq!(reply, [task]);
    (child, stream)
}

/// Kills the peer while `wait` waits for it, and checks the time from the death to the end of the wait.
fn assert_noticed_soon<T: Send>(mut child: ChildProcess, wait: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let waiter = scope.spawn(|| (wait(), Instant::now()));
        // It may begin to wait before or after the death, and has to notice in either case.
        thread::yield_now();
        child.kill().unwrap();
        child.wait().unwrap();
        let dead = Instant::now();
        let (result, noticed) = waiter.join().unwrap();
        let time = noticed.saturating_duration_since(dead);
        assert!(time < DETECTION_LIMIT, "it took {time:?}");
        result
    })
}

pub(crate) fn the_death_of_a_writing_peer_is_noticed() {
    for round in 0..20 {
        let (mut child, stream) = start(WRITE);
        let mut received = 0;
        let mut buffer = vec![0; 3000];
        let mut dead = None;
        loop {
            if dead.is_none() && received > round * 10_000 {
                child.kill().unwrap();
                child.wait().unwrap();
                dead = Some(Instant::now());
            }
            match stream.recv(&mut buffer) {
                Ok(0) => break,
                Ok(n) => {
                    assert!(buffer[..n].iter().enumerate().all(|(i, o)| *o == octet(received + i)), "in round {round}");
                    received += n;
                }
                Err(error) => panic!("it had received all that was sent to it: {error}"),
            }
        }
        assert!(dead.unwrap().elapsed() < DETECTION_LIMIT);
        assert_eq!(stream.recv(&mut buffer).unwrap(), 0);
        assert_eq!(stream.send_n(&vec![0; 2 * RING]).unwrap_err().kind(), ErrorKind::BrokenPipe);
    }
}

pub(crate) fn a_receive_reports_the_peers_death() {
    let (child, stream) = start(BE_SILENT);
    assert_eq!(assert_noticed_soon(child, || stream.recv(&mut [0])).unwrap(), 0);

    // It had not received this octet, so the end is a reset, as with a socket.
    let (child, stream) = start(BE_SILENT);
    stream.send_n(b"unread").unwrap();
    assert_eq!(assert_noticed_soon(child, || stream.recv(&mut [0])).unwrap_err().kind(), ErrorKind::ConnectionReset);
}

pub(crate) fn a_send_reports_the_peers_death() {
    let (child, stream) = start(BE_SILENT);
    let error = assert_noticed_soon(child, || stream.send_n(&vec![0; 2 * RING])).unwrap_err();
    assert_eq!((error.transferred, error.kind()), (RING, ErrorKind::BrokenPipe));
}

pub(crate) fn a_poll_reports_the_peers_death() {
    let (child, stream) = start(BE_SILENT);
    let ready = assert_noticed_soon(child, || wait_ready(&stream, Interest::INPUT, Some(TEST_TIMEOUT))).unwrap();
    assert_eq!(ready, Interest::INPUT);
    assert_eq!(stream.try_recv(&mut [0]).unwrap(), 0);
}

pub(crate) fn a_try_reports_the_peers_death() {
    let (child, stream) = start(BE_SILENT);
    let end = assert_noticed_soon(child, || {
        loop {
            match stream.try_recv(&mut [0]) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => thread::yield_now(),
                result => break result,
            }
        }
    });
    assert_eq!(end.unwrap(), 0);
}

pub(crate) fn connections_leave_no_descriptors_or_mappings() {
    let acceptor = Acceptor::open(&Addr::unnamed()).unwrap();
    let addr = acceptor.local_addr().unwrap();
    let count = || -> io::Result<_> {
        let mappings = fs::read_to_string("/proc/self/maps")?.matches("spandrel-shm").count();
        Ok((fs::read_dir("/proc/self/fd")?.count(), mappings))
    };
    let before = count().unwrap();
    assert_eq!(before.1, 0);
    for _ in 0..100 {
        let client = Connector::connect(&addr).unwrap();
        let (server, _) = acceptor.accept().unwrap();
        client.send_n(b"octets").unwrap();
        server.recv_n(&mut [0; 6]).unwrap();
        assert_eq!(count().unwrap(), (before.0 + 2, 2), "one descriptor and one mapping on each side");
    }
    assert_eq!(count().unwrap(), before);
}
