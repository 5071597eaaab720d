//! Every wait of every family continues after signals, and sending to a closed peer raises none.
//!
//! Run without the test harness: a signal to the process goes to its main thread, and here that thread waits.
//! Linux itself never restarts receiving with a timeout set (signal(7)), so every signal that arrives during
//! such a wait is one `EINTR` that the stream must handle.

use std::fs;
use std::io::{ErrorKind, IoSlice, IoSliceMut};
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Signal, getpid, kill_process};
use signal_hook::consts::{SIGPIPE, SIGUSR1};

use spandrel_ipc::{Accept, Family, Interest, Receive, Transmit, fifo, inet, is_timeout, spipe, unix, wait_ready};

use crate::for_every_place;
use crate::support::pair;
use crate::support::test_families::*;
use spandrel_test_support::{TEST_TIMEOUT, holds_within};

pub(crate) fn every_wait_continues_after_signals() {
    let waits = Waits::new();
    macro_rules! at_place {
        ($name:ident, $TestFamily:ident) => {
            if $TestFamily::is_available() {
                waits.receiving::<$TestFamily>();
                waits.sending::<$TestFamily>();
                waits.accepting::<$TestFamily>();
            }
        };
    }
    for_every_place!(at_place);
    waits.connecting();
    waits.one_way();
    waits.passing();
    waits.ending_in_time();
    let ended = waits.ended.get();
    assert!(ended > 80, "{ended} waits were interrupted");
    sending_to_a_closed_peer_raises_no_signal();
    println!("signals: {ended} kinds of waits went on after {EACH} signals each; no SIGPIPE");
}

/// The number of signals during each wait.
const EACH: usize = 5;

/// Interrupts the waits of the main thread.
struct Waits {
    handled: Arc<AtomicBool>,
    ended: std::cell::Cell<usize>,
}

impl Waits {
    fn new() -> Self {
        let handled = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(SIGUSR1, Arc::clone(&handled)).unwrap();
        Self { handled, ended: 0.into() }
    }

    /// Runs `wait` in the main thread; another thread interrupts it and at last ends it with `release`.
    fn interrupted<T, R: Send>(
        &self,
        what: &str,
        wait: impl FnOnce() -> T,
        release: impl FnOnce() -> R + Send,
    ) -> (T, R) {
        let handled = &self.handled;
        self.ended.set(self.ended.get() + 1);
        thread::scope(|scope| {
            let interrupter = scope.spawn(move || {
                for _ in 0..EACH {
                    wait_until_main_sleeps(what);
                    handled.store(false, Ordering::SeqCst);
                    kill_process(getpid(), Signal::USR1).unwrap();
                    bounded(what, || handled.load(Ordering::SeqCst));
                }
                wait_until_main_sleeps(what);
                release()
            });
            let result = wait();
            (result, interrupter.join().unwrap())
        })
    }

    fn receiving<P: TestFamily>(&self) {
        let (client, server) = connected::<P>();
        let octet = || client.send_n(b"x").unwrap();
        let mut buffer = [0; 1];
        for timeout in [None, Some(TEST_TIMEOUT)] {
            server.set_recv_timeout(timeout).unwrap();
            self.interrupted(P::NAME, || server.recv(&mut buffer).expect("recv goes on"), octet);
            self.interrupted(P::NAME, || server.recv_n(&mut buffer).expect("recv_n goes on"), octet);
            let mut slices = [IoSliceMut::new(&mut buffer)];
            self.interrupted(P::NAME, || server.recv_v(&mut slices).expect("recv_v goes on"), octet);
        }
        self.interrupted(
            P::NAME,
            || server.recv_within(&mut buffer, TEST_TIMEOUT).expect("recv_within goes on"),
            octet,
        );
        self.interrupted(P::NAME, || server.recv_n_within(&mut buffer, TEST_TIMEOUT).expect("it goes on"), octet);
        let readable = || assert!(!wait_ready(&server, Interest::INPUT, Some(TEST_TIMEOUT)).unwrap().is_none());
        self.interrupted(P::NAME, readable, octet);
    }

    fn sending<P: TestFamily>(&self) {
        let (client, server) = connected::<P>();
        let data = vec![7; 1 << 16];
        // The octets sent without a receiver, which must be received before more can be sent.
        let fill = || -> usize { std::iter::from_fn(|| client.try_send(&data).ok()).sum() };
        let drain = |octets: usize| server.recv_n(&mut vec![0; octets]).unwrap();
        for timeout in [None, Some(TEST_TIMEOUT)] {
            client.set_send_timeout(timeout).unwrap();
            let mut full = fill();
            let (sent, ()) = self.interrupted(P::NAME, || client.send(&data).expect("send goes on"), || drain(full));
            full = sent + fill();
            let slices = [IoSlice::new(&data)];
            let send_v = || client.send_v(&slices).expect("send_v goes on");
            let (sent, ()) = self.interrupted(P::NAME, send_v, || drain(full));
            full = sent + fill();
            let all = full + data.len();
            self.interrupted(P::NAME, || client.send_n(&data).expect("send_n goes on"), || drain(all));
        }
        let all = fill() + data.len();
        let send = || client.send_n_within(&data, TEST_TIMEOUT).expect("send_n_within goes on");
        self.interrupted(P::NAME, send, || drain(all));
    }

    fn accepting<P: TestFamily>(&self) {
        let (acceptor, fresh) = listening::<P>();
        let connect = || P::family().connect(&fresh.addr, Some(TEST_TIMEOUT)).unwrap();
        self.interrupted(P::NAME, || acceptor.accept().expect("accept goes on"), connect);
        let waiting = || {
            assert!(!wait_ready(&acceptor, Interest::INPUT, Some(TEST_TIMEOUT)).unwrap().is_none());
            acceptor.accept().unwrap()
        };
        self.interrupted(P::NAME, waiting, connect);
    }

    /// The places where connecting waits: room in a queue, the answer to a first packet, a pipe.
    fn connecting(&self) {
        let short = unix::AcceptorOptions::default().backlog(0);
        let full = unix::Acceptor::open_with(&unix::Addr::unnamed(), &short).unwrap();
        let addr = full.local_addr().unwrap();
        let _queued = unix::Connector::connect(&addr).unwrap();
        for timeout in [None, Some(TEST_TIMEOUT)] {
            let connect = || unix::Unix::default().connect(&addr, timeout).expect("connecting goes on");
            self.interrupted("unix connect", connect, || full.accept().unwrap());
        }

        let (acceptor, fresh) = listening::<Pipe>();
        for timeout in [None, Some(TEST_TIMEOUT)] {
            let connect = || spipe::Spipe::default().connect(&fresh.addr, timeout).expect("connecting goes on");
            self.interrupted("spipe connect", connect, || acceptor.accept().unwrap());
        }

        for timeout in [None, Some(TEST_TIMEOUT)] {
            let short = inet::AcceptorOptions::default().backlog(0);
            let full = inet::Acceptor::open_with(&inet::Addr::loopback(0), &short).unwrap();
            let addr = full.local_addr().unwrap();
            let mut queued = Vec::new();
            while let Ok(stream) = inet::Connector::connect_timeout(&addr, Duration::from_millis(50)) {
                queued.push(stream);
            }
            let connect = || inet::Inet::default().connect(&addr, timeout).expect("connecting goes on");
            // The first packet is sent again after a second, and finds room then.
            self.interrupted("inet connect", connect, || {
                queued.iter().map(|_| full.accept().unwrap()).collect::<Vec<_>>()
            });
        }
    }

    fn one_way(&self) {
        let folder = tempfile::tempdir().unwrap();
        let addr = fifo::Addr::path(folder.path().join("fifo")).unwrap();
        fifo::create(&addr, 0o600).unwrap();
        let open = || fifo::Reader::open(&addr).expect("opening goes on");
        let (reader, writer) = self.interrupted("fifo", open, || fifo::Writer::open(&addr).unwrap());
        drop(reader);
        drop(writer);
        let open = || fifo::Writer::open(&addr).expect("opening goes on");
        let (writer, reader) = self.interrupted("fifo", open, || fifo::Reader::open(&addr).unwrap());
        for timeout in [None, Some(TEST_TIMEOUT)] {
            reader.set_recv_timeout(timeout).unwrap();
            self.interrupted(
                "fifo",
                || reader.recv_n(&mut [0; 1]).expect("it goes on"),
                || writer.send_n(b"x").unwrap(),
            );
            let full = vec![0; writer.capacity().unwrap()];
            writer.send_n(&full).unwrap();
            let drain = || reader.recv_n(&mut full.clone()).unwrap();
            self.interrupted("fifo", || writer.send_n(b"x").expect("it goes on"), drain);
            reader.recv_n(&mut [0; 1]).unwrap();
        }
    }

    fn passing(&self) {
        let (here, there) = unix::pair().unwrap();
        let stream = spipe::pair().unwrap().0;
        let pass = || here.send_handle(&stream).unwrap();
        let receive = || there.recv_handle::<spipe::Stream>().expect("it goes on");
        let (received, ()) = self.interrupted("passing", receive, pass);
        drop(received);
        let receive = || there.recv_handle_within::<spipe::Stream>(TEST_TIMEOUT).expect("it goes on");
        self.interrupted("passing", receive, pass);
    }
}

impl Waits {
    /// A timeout ends the wait, however many signals arrive.
    fn ending_in_time(&self) {
        const BRIEF: Duration = Duration::from_millis(100);
        macro_rules! at_place {
            ($name:ident, $TestFamily:ident) => {
                if $TestFamily::is_available() {
                    let (client, server) = connected::<$TestFamily>();
                    server.set_recv_timeout(Some(BRIEF)).unwrap();
                    let error = self.bombarded($TestFamily::NAME, || server.recv(&mut [0; 1]).unwrap_err());
                    assert!(is_timeout(&error), "{error}");
                    client.set_send_timeout(Some(BRIEF)).unwrap();
                    let data = vec![7; 1 << 16];
                    let full = || std::iter::repeat_with(|| client.send(&data)).find_map(Result::err).unwrap();
                    let error = self.bombarded($TestFamily::NAME, full);
                    assert!(is_timeout(&error), "{error}");
                }
            };
        }
        for_every_place!(at_place);
        let socket = inet::Dgram::open(&inet::Addr::loopback(0)).unwrap();
        socket.set_recv_timeout(Some(BRIEF)).unwrap();
        let error = self.bombarded("datagrams", || socket.recv_from(&mut [0; 1]).unwrap_err());
        assert!(is_timeout(&error), "{error}");
    }

    /// Runs `wait` in the main thread, and interrupts it repeatedly until it has ended.
    fn bombarded<T>(&self, what: &str, wait: impl FnOnce() -> T) -> T {
        self.ended.set(self.ended.get() + 1);
        let has_ended = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let end = Instant::now() + TEST_TIMEOUT;
                while !has_ended.load(Ordering::SeqCst) {
                    if Instant::now() > end {
                        eprintln!("signals: the main thread waits for ever ({what})");
                        process::exit(1);
                    }
                    kill_process(getpid(), Signal::USR1).unwrap();
                    // More often than the timeout.
                    thread::park_timeout(Duration::from_millis(5));
                }
            });
            let result = wait();
            has_ended.store(true, Ordering::SeqCst);
            result
        })
    }
}

fn wait_until_main_sleeps(what: &str) {
    let stat = format!("/proc/self/task/{}/stat", process::id());
    bounded(what, || fs::read_to_string(&stat).unwrap().rsplit_once(") ").unwrap().1.starts_with('S'));
}

/// Waits for a condition; ends the program if it never holds, as the main thread may be waiting for this one.
fn bounded(what: &str, condition: impl Fn() -> bool) {
    if !holds_within(TEST_TIMEOUT, condition) {
        eprintln!("signals: the main thread does not wait any more ({what})");
        process::exit(1);
    }
}

fn sending_to_a_closed_peer_raises_no_signal() {
    let raised = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(SIGPIPE, Arc::clone(&raised)).unwrap();
    macro_rules! at_place {
        ($name:ident, $TestFamily:ident) => {
            if $TestFamily::is_available() {
                let (client, server) = connected::<$TestFamily>();
                drop(server);
                let error = loop {
                    if let Err(error) = client.send(b"to no one") {
                        break error; // a reset may come first, then the pipe is broken
                    }
                };
                assert!(matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe), "{error}");
                let slices = [IoSlice::new(b"to no one")];
                assert_eq!(client.send(b"to no one").unwrap_err().kind(), ErrorKind::BrokenPipe);
                assert_eq!(client.send_v(&slices).unwrap_err().kind(), ErrorKind::BrokenPipe);
                assert_eq!(client.try_send_v(&slices).unwrap_err().kind(), ErrorKind::BrokenPipe);
            }
        };
    }
    for_every_place!(at_place);
    let (client, server) = pair();
    drop(server);
    while client.send_urgent(b'!').is_ok() {}
    let (one, other) = unix::pair().unwrap();
    drop(other);
    assert_eq!(one.send_handle(&client).unwrap_err().kind(), ErrorKind::BrokenPipe);
    assert!(!raised.load(Ordering::SeqCst), "SIGPIPE was raised");
}
