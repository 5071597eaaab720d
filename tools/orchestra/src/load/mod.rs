//! The load generator: the paper's client (5.5.3), in many parallel workers.
//!
//! In a *closed loop* each worker sends its next request after the answer to the one before. The server so sets the
//! pace, as in the paper. In an *open loop* requests are due at scheduled times, whether or not earlier ones were
//! answered. The latency of a request then counts from the time at which it was due: a server that stalls delays, and
//! shows in, all requests that were due during the stall (no coordinated omission).
//!
//! Each request is either answered, or failed by one [`FailureKind`].

mod distribution;
mod exchange;
mod failure;
mod record;

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fastrand::Rng;
use spandrel_measure::load::{Arrival, LoadStop, Request, Schedule, Worker, drive};

pub use exchange::{GREETING, MAX_OCTETS};
pub use failure::FailureKind;
pub(crate) use record::HIGHEST;

use crate::idl::orchestra::{Address, ArrivalKind, Distribution, InvalidLoad, Load, LoadResult};
use distribution::MAX_THINK_TIME;
use exchange::Exchange;
use record::Record;

/// The reason why a load that was cancelled has no result.
pub(crate) const CANCELLED: &str = "the load was cancelled, as another supervisor does before a load of its own";
/// The greatest number of workers of one load.
pub const MAX_WORKERS: u32 = 4096;
/// The longest load, in seconds: a week.
pub const MAX_SECONDS: f64 = 604_800.0;

/// A running load, as other threads see it.
#[derive(Debug, Default)]
pub struct Control {
    stop: LoadStop,
    answered: AtomicU64,
    failed: AtomicU64,
}

impl Control {
    /// Lets the load end after the requests that are being made.
    pub fn cancel(&self) {
        self.stop.stop();
    }

    /// The numbers of answered and failed requests so far.
    #[must_use]
    pub fn counts(&self) -> (u64, u64) {
        (self.answered.load(Ordering::Relaxed), self.failed.load(Ordering::Relaxed))
    }

    /// Whether the load was cancelled.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.stop.is_stopped()
    }
}

/// A load of one request size without think time, in a closed loop: that of the paper.
#[must_use]
pub fn paper_load(host: &str, port: u16, requests: u64, octets: u32, workers: u32) -> Load {
    use crate::idl::orchestra::DistributionKind;

    let constant = |mean: f64| Distribution { kind: DistributionKind::Constant, mean, spread: 0.0 };
    Load {
        target: Address { host: host.to_owned(), port },
        requests,
        seconds: 0.0,
        workers,
        arrival: ArrivalKind::Closed,
        rate: 0.0,
        size: constant(f64::from(octets)),
        think_time: constant(0.0),
        greeting: true,
        timeout: 30.0,
        seed: 1,
    }
}

/// Checks the ranges of a load's values.
///
/// # Errors
/// The first value that is out of its range.
pub fn check(load: &Load) -> Result<(), InvalidLoad> {
    let is_open = !matches!(load.arrival, ArrivalKind::Closed);
    let checks = [
        (load.target.port != 0, "the port of the server is 0"),
        (load.requests > 0 || load.seconds > 0.0, "neither a number of requests nor a time is given"),
        ((0.0..=MAX_SECONDS).contains(&load.seconds), "the time is not from 0 s to a week"),
        ((1..=MAX_WORKERS).contains(&load.workers), "the number of workers is not from 1 to 4096"),
        (
            !is_open || (1e-3..=1e7).contains(&load.rate),
            "the rate of an open loop is not from 0.001 to 10,000,000 per second",
        ),
        ((1e-3..=3600.0).contains(&load.timeout), "the timeout is not from 0.001 s to an hour"),
        (
            distribution::has_mean_in(&load.size, 1.0, f64::from(MAX_OCTETS)),
            "the size of an answer is not from 1 to 9999 octets",
        ),
        (
            distribution::has_spread_below(&load.size, f64::from(MAX_OCTETS)),
            "the spread of the size of an answer is not from 0 to 9999 octets",
        ),
        (
            distribution::has_bounded_values(&load.size, f64::from(MAX_OCTETS)),
            "the greatest size of an answer (mean + spread) exceeds 9999 octets",
        ),
        (distribution::has_mean_in(&load.think_time, 0.0, MAX_THINK_TIME), "the think time is not from 0 s to an hour"),
        (
            distribution::has_spread_below(&load.think_time, MAX_THINK_TIME),
            "the spread of the think time is not from 0 s to an hour",
        ),
        (
            distribution::has_bounded_values(&load.think_time, MAX_THINK_TIME),
            "the greatest think time (mean + spread) exceeds an hour",
        ),
    ];
    match checks.into_iter().find(|(is_right, _)| !is_right) {
        Some((_, reason)) => Err(InvalidLoad { reason: reason.to_owned() }),
        None => Ok(()),
    }
}

/// The address of a load's server.
///
/// # Errors
/// A host without an address.
pub fn resolve(target: &Address) -> Result<SocketAddr, InvalidLoad> {
    let addresses = (target.host.as_str(), target.port).to_socket_addrs();
    let failed = |reason: String| InvalidLoad { reason: format!("{} has no address{reason}", target.host) };
    addresses.map_err(|error| failed(format!(": {error}")))?.next().ok_or_else(|| failed(String::new()))
}

/// Applies a load to this address, with a thread for each worker, and returns its outcome.
///
/// # Errors
/// A value that is out of its range; a thread that cannot be started.
pub fn run(load: &Load, target: &SocketAddr, control: &Control) -> Result<LoadResult, InvalidLoad> {
    check(load)?;
    let schedule = schedule(load, Instant::now());
    let workers = (0..load.workers).map(|_| Client::new(load, *target, &schedule, control));
    let clients = drive(&schedule, &control.stop, workers);
    let clients = clients.map_err(|error| InvalidLoad { reason: error.to_string() })?;
    let record = |client: std::thread::Result<Client>| client.unwrap_or_else(|panic| resume_unwind(panic)).record;
    let records: Vec<Record> = clients.into_iter().map(record).collect();
    Ok(Record::total(&records).result(schedule.start()))
}

/// The requests of a load that begins at this time.
fn schedule(load: &Load, start: Instant) -> Schedule {
    let arrival = match load.arrival {
        ArrivalKind::Closed => Arrival::Closed,
        ArrivalKind::OpenPaced => Arrival::Paced { rate: load.rate },
        ArrivalKind::OpenPoisson => Arrival::Poisson { rate: load.rate, seed: load.seed },
    };
    let requests = if load.requests == 0 { u64::MAX } else { load.requests };
    let window = (load.seconds > 0.0).then(|| Duration::from_secs_f64(load.seconds));
    Schedule::new(arrival, requests, window, start)
}

/// The random numbers of a request: equal seeds give each request its size and think time again, by whichever
/// worker it is made.
fn random(seed: u64, number: u64) -> Rng {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15; // spreads neighbouring numbers over all seeds
    Rng::with_seed(seed ^ number.wrapping_add(1).wrapping_mul(GOLDEN))
}

/// A worker: a client that connects for each of its requests.
struct Client<'l> {
    load: &'l Load,
    /// The longest time from the begin of a request to its sending, and of each of its steps.
    timeout: Duration,
    schedule: &'l Schedule,
    control: &'l Control,
    exchange: Exchange,
    record: Record,
}

impl<'l> Client<'l> {
    fn new(load: &'l Load, target: SocketAddr, schedule: &'l Schedule, control: &'l Control) -> Self {
        let timeout = Duration::from_secs_f64(load.timeout);
        let exchange = Exchange::new(target, timeout, load.greeting);
        Self { load, timeout, schedule, control, exchange, record: Record::default() }
    }
}

impl Worker for Client<'_> {
    fn make(&mut self, Request { number, begin }: Request) {
        let Self { load, control, record, .. } = self;
        let mut random = random(load.seed, number);
        let octets = distribution::octets(&load.size, &mut random);
        let is_late = begin.elapsed() > self.timeout;
        match if is_late { Err(FailureKind::NotSent) } else { self.exchange.run(octets) } {
            Ok(()) => {
                control.answered.fetch_add(1, Ordering::Relaxed);
                record.answered(begin.elapsed(), octets);
            }
            Err(kind) => {
                control.failed.fetch_add(1, Ordering::Relaxed);
                record.failed(kind);
            }
        }
        if matches!(load.arrival, ArrivalKind::Closed) {
            let think_time = distribution::seconds(&load.think_time, &mut random);
            if think_time > Duration::ZERO {
                let next = Instant::now() + think_time;
                control.stop.wait_until(self.schedule.end().map_or(next, |end| next.min(end)));
            }
        }
    }
}
