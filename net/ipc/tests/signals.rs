//! Signals: waits go on after them, and sending to a peer that is gone raises none.
//!
//! A program of its own, without the test harness: a signal to the process goes to its main thread, which is the
//! one that waits here. Receiving with a time-out set is never restarted by Linux itself (signal(7)), so every
//! signal that arrives during the wait is one `EINTR` that the stream must handle.

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
#[path = "support/mod.rs"]
#[allow(dead_code, reason = "shared with other test programs")]
mod support;

#[cfg(target_os = "linux")]
fn main() {
    linux::waits_go_on_after_signals();
    linux::sending_to_a_peer_that_is_gone_is_an_error_only();
    println!("signals: 2 passed");
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs;
    use std::io::ErrorKind;
    use std::process;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;
    use std::time::{Duration, Instant};

    use rustix::process::{Signal, getpid, kill_process};
    use signal_hook::consts::{SIGPIPE, SIGUSR1};
    use spandrel_ipc::inet::{Acceptor, Addr, Connector};

    use super::support::{LONG, pair};

    pub(super) fn waits_go_on_after_signals() {
        let handled = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(SIGUSR1, Arc::clone(&handled)).unwrap();
        let (client, server) = pair();
        let acceptor = Acceptor::open(&Addr::loopback(0)).unwrap();
        let addr = acceptor.local_addr().unwrap();

        let interrupter = thread::spawn(move || {
            for _ in 0..50 {
                interrupt(&handled);
            }
            wait_until_main_sleeps();
            client.send_n(b"at last").unwrap();
            for _ in 0..50 {
                interrupt(&handled);
            }
            Connector::connect(&addr).unwrap()
        });
        server.set_recv_timeout(Some(LONG)).unwrap();
        let mut octets = [0; 7];
        server.recv_n(&mut octets).expect("the wait goes on after signals");
        assert_eq!(&octets, b"at last");
        acceptor.accept().expect("the wait goes on after signals");
        interrupter.join().unwrap();
    }

    /// Sends a signal to the main thread while that waits, and returns when its handler has run.
    fn interrupt(handled: &AtomicBool) {
        wait_until_main_sleeps();
        handled.store(false, Ordering::SeqCst);
        kill_process(getpid(), Signal::USR1).unwrap();
        bounded(|| handled.load(Ordering::SeqCst));
    }

    fn wait_until_main_sleeps() {
        let stat = format!("/proc/self/task/{}/stat", process::id());
        bounded(|| fs::read_to_string(&stat).unwrap().rsplit_once(") ").unwrap().1.starts_with('S'));
    }

    /// Waits for a condition; ends the program if it never holds, as the main thread may be waiting for this one.
    fn bounded(condition: impl Fn() -> bool) {
        let end = Instant::now() + LONG;
        while !condition() {
            if Instant::now() > end {
                eprintln!("signals: the main thread does not wait for the stream any more");
                process::exit(1);
            }
            thread::yield_now();
        }
    }

    pub(super) fn sending_to_a_peer_that_is_gone_is_an_error_only() {
        let raised = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(SIGPIPE, Arc::clone(&raised)).unwrap();
        let (client, server) = pair();
        client.set_send_timeout(Some(Duration::from_secs(5))).unwrap();
        drop(server);
        let error = loop {
            if let Err(error) = client.send(b"to no one") {
                break error; // a reset comes first, then the pipe is known to be broken
            }
        };
        assert!(matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe), "{error}");
        let slices = [std::io::IoSlice::new(b"to no one")];
        assert_eq!(client.send(b"to no one").unwrap_err().kind(), ErrorKind::BrokenPipe);
        assert_eq!(client.send_v(&slices).unwrap_err().kind(), ErrorKind::BrokenPipe);
        assert!(!raised.load(Ordering::SeqCst), "SIGPIPE was raised");
    }
}
