//! Acceptors in a process without free descriptors: they refuse connections instead of spinning, and recover.
//!
//! Each case runs this program again as a process of its own, since running out of descriptors disturbs the
//! whole process.
#![cfg(target_os = "linux")]

use crate::{for_every_place, support};

use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::process::Stdio;
use std::str::FromStr;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};
use spandrel_ipc::{Accept, Family, Receive, Transmit, inet};
use spandrel_test_support::{ChildProcess, TEST_TIMEOUT, alone, holds_within, this_program};
use support::test_families::*;

/// Environment variable: the family that the child process is to test.
const ROLE: &str = "SPANDREL_EXHAUSTED";
/// The descriptor limit of the server.
const LIMIT: u64 = 64;

macro_rules! at_place {
    ($name:ident, $TestFamily:ident) => {
        #[test]
        fn $name() {
            if !$TestFamily::is_available() {
                return eprintln!("left out: this machine has no {}", $TestFamily::NAME);
            }
            match std::env::var(ROLE) {
                Ok(_) => serve::<$TestFamily>(),
                Err(_) => exhaust::<$TestFamily>(concat!("exhausted::", stringify!($name))),
            }
        }
    };
}
for_every_place!(at_place);

/// The process under test. It takes commands on its standard input and reports on its standard output.
fn serve<P: TestFamily>() {
    setrlimit(Resource::Nofile, Rlimit { current: Some(LIMIT), maximum: Some(LIMIT) }).unwrap();
    let (acceptor, fresh) = listening::<P>();
    let acceptor = Arc::new(acceptor);
    let mut kept = Vec::new();
    let report = |what: &dyn std::fmt::Display| {
        println!("report {what}");
        std::io::stdout().flush().unwrap();
    };
    report(&fresh.addr);
    for order in std::io::stdin().lines() {
        match order.unwrap().as_str() {
            "fill" => {
                while let Ok(file) = File::open("/dev/null") {
                    kept.push(file);
                }
                report(&kept.len());
            }
            "accept" => {
                // Echoes one octet to each accepted client.
                let acceptor = Arc::clone(&acceptor);
                thread::spawn(move || {
                    loop {
                        let Ok((stream, _)) = acceptor.accept() else { return };
                        let mut octet = [0];
                        if stream.recv_n_within(&mut octet, TEST_TIMEOUT).is_ok() {
                            stream.send_n(&octet).unwrap();
                        }
                    }
                });
                report(&"accepting");
            }
            "time" => {
                let used = clock_gettime(ClockId::ProcessCPUTime);
                report(&(used.tv_sec as u64 * 1_000 + used.tv_nsec as u64 / 1_000_000));
            }
            "free" => {
                kept.clear();
                report(&"freed");
            }
            order => panic!("an order of {order}"),
        }
    }
    acceptor.shutdown().unwrap();
}

/// The process under test, seen from the test.
struct Server {
    child: ChildProcess,
    reports: Box<dyn Iterator<Item = String>>,
}

impl Server {
    fn start(test: &str) -> Self {
        let mut program = this_program();
        program.args(["--exact", test, "--nocapture"]).env(ROLE, test).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = ChildProcess::start(&mut program);
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        // The harness writes too, even into the same line.
        let reports = lines.filter_map(|line| line.split_once("report ").map(|(_, report)| report.to_owned()));
        Self { child, reports: Box::new(reports) }
    }

    fn report(&mut self) -> String {
        self.reports.next().expect("the server goes on")
    }

    fn order(&mut self, order: &str) -> String {
        writeln!(self.child.stdin.as_mut().unwrap(), "{order}").unwrap();
        self.report()
    }

    /// The processor time that it has used, in milliseconds.
    fn time(&mut self) -> u64 {
        self.order("time").parse().unwrap()
    }
}

/// It may remove its socket files.
impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        _ = holds_within(TEST_TIMEOUT, || !matches!(self.child.try_wait(), Ok(None)));
    }
}

fn exhaust<P: TestFamily>(test: &str)
where
    AddrOf<P>: FromStr<Err: std::fmt::Debug>,
{
    let mut server = Server::start(test);
    let addr: AddrOf<P> = server.report().parse().unwrap();
    let is_served = || -> bool {
        let Ok(client) = P::family().connect(&addr, Some(TEST_TIMEOUT)) else { return false };
        let mut octet = [7];
        client.send_n(&octet).is_ok() && client.recv_n_within(&mut octet, TEST_TIMEOUT).is_ok()
    };
    assert!(server.order("fill").parse::<u64>().unwrap() > 8, "there were descriptors to use up");
    server.order("accept");

    // Without clients it waits, although the system refuses even to wait without a descriptor.
    let before = server.time();
    thread::sleep(Duration::from_millis(300)); // the measured interval
    let used = server.time() - before;
    assert!(used < 100, "an idle acceptor used {used} ms of 300");

    // Clients are refused at once, not left waiting.
    for _ in 0..20 {
        let start = std::time::Instant::now();
        assert!(!is_served());
        assert!(start.elapsed() < TEST_TIMEOUT / 2, "a refusal took {:?}", start.elapsed());
    }
    let before = server.time();
    thread::sleep(Duration::from_millis(300));
    let used = server.time() - before;
    assert!(used < 100, "an idle acceptor used {used} ms of 300");

    server.order("free");
    assert!((0..100).any(|_| is_served()), "it recovers");
    assert!((0..10).all(|_| is_served()));
}

/// What else the process opens may take the spare descriptor just while the acceptor uses it. Here, the acceptor has none
/// from the start.
#[test]
fn a_lost_spare_descriptor_is_replaced_before_a_client_is_served() {
    alone(|| {
        setrlimit(Resource::Nofile, Rlimit { current: Some(LIMIT), maximum: Some(LIMIT) }).unwrap();
        let mut files: Vec<_> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
        files.pop();
        let acceptor = inet::Acceptor::open(&inet::Addr::loopback(0)).expect("one descriptor is free");
        acceptor.set_nonblocking(true).unwrap();
        let addr = acceptor.local_addr().unwrap();
        files.truncate(files.len() - 4);
        let clients: Vec<_> = (0..4).map(|_| inet::Connector::connect(&addr).unwrap()).collect();
        let error = acceptor.accept().expect_err("no descriptor is free");
        assert_eq!(error.raw_os_error(), Some(Errno::MFILE.raw_os_error()));
        // The first is closed for the spare descriptor, and the others by means of it.
        files.pop();
        let error = acceptor.accept().expect_err("only the spare descriptor is free");
        assert_eq!((error.kind(), acceptor.shed()), (ErrorKind::WouldBlock, 4));
        for client in &clients {
            assert_eq!(client.recv_within(&mut [0], TEST_TIMEOUT).unwrap(), 0);
        }
        // With two free descriptors, one is for the next client.
        files.truncate(files.len() - 2);
        let _client = inet::Connector::connect(&addr).unwrap();
        acceptor.accept().expect("a descriptor is free");
        assert_eq!(acceptor.shed(), 4);
    });
}
