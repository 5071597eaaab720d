//! The load on one server: a process with a supplier and all consumers, so that they share a clock and need no messages of
//! their own to agree on what was delivered.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use serde::{Deserialize, Serialize};
use spandrel_error::output;
use spandrel_measure::Times;

use super::corba::{self, Channel};
use super::ledger::Ledger;
use super::plain::{self, PlainSupplier, Protocol};
use super::target::{Supplier, Target};
use super::usage::{ProcessorTime, resident};

/// The most events that are on their way: fewer than the queue of any service holds.
const TURN: u64 = 500;
/// The least events of a turn. A slow service gets fewer at once, so that a turn ends in time.
const LEAST_TURN: u64 = 10;
/// The time that a turn is to take at most.
const TURN_TIME: Duration = Duration::from_millis(100);
/// The longest wait for the delivery of what was pushed.
const DELIVERY: Duration = Duration::from_secs(30);
/// The latencies from which the 99.9th percentile is one of several values.
const ENOUGH_FOR_P999: u64 = 2_000;

/// The quantities that a load measures.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) enum Measurement {
    /// Deliveries to this many consumers, and the latency of single events, for this many milliseconds each.
    FanOut { consumers: usize, millis: u64 },
    /// Events that were acknowledged to this many suppliers at once, for this many milliseconds.
    Suppliers { suppliers: usize, millis: u64 },
    /// Resident memory of the server for this many channels, and consumers of one.
    Memory { channels: usize, consumers: usize },
}

/// The load on one server, as its process gets it.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct LoadSettings {
    pub(super) target: Target,
    /// The process of the server, unless there is none.
    pub(super) server: Option<u32>,
    pub(super) measurement: Measurement,
}

/// The deliveries of a fan-out.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct FanOutOutcome {
    pub(super) deliveries: u64,
    pub(super) seconds: f64,
    /// The seconds of processor time of the server.
    pub(super) processor: f64,
    /// The calls of consumers in the same time.
    pub(super) calls: u64,
    /// Microseconds from the begin of a push to the call of a consumer.
    pub(super) latency: Times,
    pub(super) latencies: u64,
    /// The events that came out of their order.
    pub(super) disordered: u64,
}

impl FanOutOutcome {
    /// The 99.9th percentile in microseconds, if there are enough latencies for one.
    pub(super) fn p999(&self) -> Option<f64> {
        (self.latencies >= ENOUGH_FOR_P999).then_some(self.latency.p999)
    }
}

/// The events of several suppliers.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct SuppliersOutcome {
    pub(super) events: u64,
    pub(super) seconds: f64,
    pub(super) processor: f64,
}

/// The resident memory of a server in KiB.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct MemoryOutcome {
    /// For each channel, if the server has them.
    pub(super) channel: Option<f64>,
    /// For each consumer of one channel, with its connection.
    pub(super) consumer: f64,
}

/// The outcome of a load, by its measurement.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) enum Outcome {
    FanOut(FanOutOutcome),
    Suppliers(SuppliersOutcome),
    Memory(MemoryOutcome),
}

/// Put one server under load; started by `events` itself.
#[derive(Debug, clap::Args)]
pub(crate) struct LoadArgs {
    /// The load as JSON
    settings: String,
}

impl LoadArgs {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let settings: LoadSettings = serde_json::from_str(&self.settings).context("the load is no JSON")?;
        let outcome: Result<Outcome, String> = measure(&settings).map_err(|error| format!("{error:#}"));
        output::print(&(serde_json::to_string(&outcome)? + "\n"))?;
        Ok(ExitCode::SUCCESS)
    }
}

fn measure(settings: &LoadSettings) -> anyhow::Result<Outcome> {
    match settings.measurement {
        Measurement::FanOut { consumers, millis } => fan_out(settings, consumers, Duration::from_millis(millis)),
        Measurement::Suppliers { suppliers, millis } => {
            let time = Duration::from_millis(millis);
            match &settings.target {
                Target::Disk(folder) => synchronize(&folder.join("plain"), time),
                _ => push_by_many(settings, suppliers, time),
            }
        }
        Measurement::Memory { channels, consumers } => memory(settings, channels, consumers),
    }
}

/// The clients of one channel.
struct Clients {
    suppliers: Vec<Box<dyn Supplier>>,
    ledger: Arc<Ledger>,
    /// The channel of an ORB's service.
    channel: Option<Channel>,
}

impl Clients {
    fn connect(target: &Target, suppliers: usize, consumers: usize) -> anyhow::Result<Self> {
        let ledger = Arc::new(Ledger::new(suppliers, consumers));
        let (protocol, address) = match target {
            Target::Plain(address) => (Protocol::Plain, *address),
            Target::Nats(address) => (Protocol::Nats, *address),
            Target::Mqtt(address, quality) => (Protocol::Mqtt(*quality), *address),
            Target::Event(_) | Target::EventChannel(_) | Target::Notification { .. } => {
                let channel = corba::create_channel(target)?;
                channel.connect_consumers(&ledger)?;
                let suppliers = (0..suppliers).map(|_| channel.connect_supplier()).collect::<Result<_, _>>()?;
                return Ok(Self { suppliers, ledger, channel: Some(channel) });
            }
            Target::Disk(_) => bail!("a file has no consumers"),
        };
        plain::connect_consumers(protocol, address, &ledger)?;
        let connect =
            |_| -> anyhow::Result<Box<dyn Supplier>> { Ok(Box::new(PlainSupplier::connect(protocol, address)?)) };
        let suppliers = (0..suppliers).map(connect).collect::<anyhow::Result<_>>()?;
        Ok(Self { suppliers, ledger, channel: None })
    }

    fn close(self) -> anyhow::Result<()> {
        drop(self.suppliers);
        self.channel.map_or(Ok(()), Channel::destroy)
    }
}

/// Pushes events from the number `next` on by the first supplier, and waits for their delivery.
fn push(clients: &mut Clients, next: &mut u64, events: u64) -> anyhow::Result<()> {
    let Clients { suppliers, ledger, .. } = clients;
    let supplier = suppliers.first_mut().context("no supplier")?;
    for _ in 0..events {
        supplier.push(&ledger.event(0, *next))?;
        *next += 1;
    }
    supplier.flush()?;
    ledger.wait(DELIVERY)
}

fn fan_out(settings: &LoadSettings, consumers: usize, time: Duration) -> anyhow::Result<Outcome> {
    let server = settings.server.context("no server")?;
    let mut clients = Clients::connect(&settings.target, 1, consumers)?;
    let mut next = 0;
    push(&mut clients, &mut next, 1)?; // all connections are open
    // A quarter of the time warms the server up, and finds the events of a turn.
    let (warm_up, mut turn) = (Instant::now(), LEAST_TURN);
    while warm_up.elapsed() < time / 4 {
        let begin = Instant::now();
        push(&mut clients, &mut next, turn)?;
        let of_time = turn as f64 * TURN_TIME.as_secs_f64() / begin.elapsed().as_secs_f64();
        turn = (of_time as u64).clamp(LEAST_TURN, TURN.min(2 * turn));
    }
    let before = ProcessorTime::read(server)?;
    let (begin, delivered, calls) = (Instant::now(), clients.ledger.delivered(), clients.ledger.calls());
    while begin.elapsed() < time {
        push(&mut clients, &mut next, turn)?;
    }
    let seconds = begin.elapsed().as_secs_f64();
    let processor = ProcessorTime::read(server)?.seconds_since(&before);
    let deliveries = clients.ledger.delivered() - delivered;
    let calls = clients.ledger.calls() - calls;

    clients.ledger.record_times(true);
    let begin = Instant::now();
    while begin.elapsed() < time {
        push(&mut clients, &mut next, 1)?;
    }
    let disordered = clients.ledger.verify()?;
    let (latency, latencies) = {
        let times = clients.ledger.times();
        (Times::of(&times, Duration::from_micros(1)).context("no latencies")?, times.count())
    };
    clients.close()?;
    Ok(Outcome::FanOut(FanOutOutcome { deliveries, seconds, processor, calls, latency, latencies, disordered }))
}

/// Pushes events by several suppliers for this time; each waits for its acknowledgments. One consumer gets all.
fn push_by_many(settings: &LoadSettings, suppliers: usize, time: Duration) -> anyhow::Result<Outcome> {
    let server = settings.server.context("no server")?;
    let Clients { suppliers, ledger, channel } = Clients::connect(&settings.target, suppliers, 1)?;
    let barrier = Barrier::new(suppliers.len() + 1);
    let before = ProcessorTime::read(server)?;
    let (events, seconds) = thread::scope(|scope| {
        let (ledger, barrier) = (&ledger, &barrier);
        let run = |(nth, mut supplier): (usize, Box<dyn Supplier>)| {
            scope.spawn(move || -> anyhow::Result<u64> {
                barrier.wait();
                let (begin, mut events) = (Instant::now(), 0);
                while begin.elapsed() < time {
                    supplier.push(&ledger.event(nth, events))?;
                    supplier.flush()?;
                    events += 1;
                }
                Ok(events)
            })
        };
        let threads: Vec<_> = suppliers.into_iter().enumerate().map(run).collect();
        barrier.wait();
        let begin = Instant::now();
        let join = |thread: thread::ScopedJoinHandle<'_, anyhow::Result<u64>>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        let events: anyhow::Result<u64> = threads.into_iter().map(join).sum();
        events.map(|events| (events, begin.elapsed().as_secs_f64()))
    })?;
    ledger.wait(DELIVERY)?;
    let processor = ProcessorTime::read(server)?.seconds_since(&before);
    let disordered = ledger.verify()?;
    ensure!(disordered == 0, "{disordered} events came out of their order");
    channel.map_or(Ok(()), Channel::destroy)?;
    Ok(Outcome::Suppliers(SuppliersOutcome { events, seconds, processor }))
}

/// Writes events to a file, each followed by one `fdatasync`.
fn synchronize(path: &Path, time: Duration) -> anyhow::Result<Outcome> {
    let mut file = File::create(path).with_context(|| format!("cannot create {}", path.display()))?;
    let own = std::process::id();
    let (ledger, before, begin) = (Ledger::new(1, 0), ProcessorTime::read(own)?, Instant::now());
    let mut events = 0;
    while begin.elapsed() < time {
        file.write_all(&ledger.event(0, events))?;
        file.sync_data()?;
        events += 1;
    }
    let seconds = begin.elapsed().as_secs_f64();
    let processor = ProcessorTime::read(own)?.seconds_since(&before);
    Ok(Outcome::Suppliers(SuppliersOutcome { events, seconds, processor }))
}

fn memory(settings: &LoadSettings, channels: usize, consumers: usize) -> anyhow::Result<Outcome> {
    let server = settings.server.context("no server")?;
    // What the first channel and its clients use remains.
    let mut first = Clients::connect(&settings.target, 1, 1)?;
    push(&mut first, &mut 0, TURN)?;
    let before = resident(server)?;
    let mut clients = Clients::connect(&settings.target, 1, consumers)?;
    push(&mut clients, &mut 0, 1)?;
    let after = resident(server)?;
    let consumer = (after - before) / consumers as f64;
    let has_factory = matches!(settings.target, Target::Event(_) | Target::Notification { .. });
    let channel = if has_factory {
        let create = |_| corba::create_channel(&settings.target);
        let created: Vec<Channel> = (0..channels).map(create).collect::<Result<_, _>>()?;
        let each = (resident(server)? - after) / channels as f64;
        created.into_iter().try_for_each(Channel::destroy)?;
        Some(each)
    } else {
        None
    };
    clients.close()?;
    first.close()?;
    Ok(Outcome::Memory(MemoryOutcome { channel, consumer }))
}
