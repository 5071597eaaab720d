//! Clients and servers over tokio of a call without parameters, for `spandrel bench inflight` and `bench connections`.
//!
//! `calls-tokio tonic-server MICROSECONDS` prints its port, `spandrel-server MICROSECONDS` the reference of its
//! object; both answer each line of their input with the number of calls so far, and end with their input. Each
//! call computes for that time. `calls-tokio tonic-client PORT` prints `ready`, and answers each line
//! `IN-FLIGHT MILLISECONDS` with a JSON object, times in nanoseconds: so many tasks call one after the other on one
//! connection; 0 are sequential calls of one task. `calls-tokio tonic-connections PORT` does so with a connection for each
//! task.

mod client;
mod orb;
mod server;

use std::io::{BufRead, stdin};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["tonic-server", micros] => server::run(Calls::new(micros.parse()?)),
        ["tonic-client", port] => client::run(port.parse()?, client::Sharing::One),
        ["tonic-connections", port] => client::run(port.parse()?, client::Sharing::Each),
        ["spandrel-server", micros] => orb::run(Calls::new(micros.parse()?)),
        _ => bail!(
            "usage: calls-tokio tonic-server MICROSECONDS | tonic-client PORT | tonic-connections PORT | \
             spandrel-server MICROSECONDS"
        ),
    }
}

/// The path of the call over tonic.
const PATH: &str = "/calls.Ping/Ping";

/// The calls of a server.
#[derive(Debug)]
struct Calls {
    count: AtomicU64,
    /// The time for which each call computes.
    work: Duration,
}

impl Calls {
    fn new(micros: u64) -> Self {
        Self { count: AtomicU64::new(0), work: Duration::from_micros(micros) }
    }

    /// One call.
    fn call(&self) {
        let start = Instant::now();
        while !self.work.is_zero() && start.elapsed() < self.work {
            std::hint::spin_loop();
        }
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// Answers each line of the input with the number of calls so far.
    fn answer_parent(&self) -> Result<()> {
        for line in stdin().lock().lines() {
            line?;
            println!("{}", self.count.load(Ordering::Relaxed));
        }
        Ok(())
    }
}
