//! The event service beside omniEvents, in interleaved rounds: `cargo bench -p spandrel-event [ROUNDS]`.
//!
//! One supplier pushes values of 64 octets to 1, 10 and 100 consumers of this process, 500 at a time, and waits for their
//! delivery, so that no queue discards events. The latency is that of single events: from the beginning of the push to the
//! call of the only consumer. Processor time and memory are those of the server's process, read from `/proc`. omniEvents
//! collects the events of a cycle, of 1 ms here (its default is 100 ms).

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use spandrel::services::cos_event_channel_admin::{EventChannel, ProxyPushConsumer};
use spandrel::services::cos_event_comm::push_consumer::PushError;
use spandrel::services::cos_event_comm::{PushConsumer, PushConsumerServant, PushConsumerSkeleton};
use spandrel::services::cos_life_cycle::{GenericFactory, Nvp};
use spandrel::services::cos_naming::NameComponent;
use spandrel::types::Any;
use spandrel::{Endpoint, ObjectRef, Orb, Poa, SystemException};
use spandrel_measure::stats::Summary;
use spandrel_test_support::free_port;

/// The events of one turn: fewer than the queues of both services hold.
const TURN: u32 = 500;
const CONSUMERS: [usize; 3] = [1, 10, 100];
/// The events whose latency is measured in a round.
const SINGLE: usize = 1_000;
/// The time that the delivery of one turn may take.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A server's process and the reference to its factory.
struct Server {
    process: Child,
    factory: ObjectRef,
}

impl Drop for Server {
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

impl Server {
    fn own(orb: &Orb) -> Result<Self> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_spandrel-event"));
        command.args(["--transient", "--listen", "iiop://127.0.0.1:0"]).stdout(Stdio::piped());
        let mut process = command.spawn().context("cannot start spandrel-event")?;
        let mut line = String::new();
        BufReader::new(process.stdout.take().context("no output")?).read_line(&mut line)?;
        let url = line.trim().strip_prefix("ready: omniEvents ").with_context(|| format!("no URL in {line:?}"))?;
        Ok(Self { process, factory: orb.string_to_object(url)? })
    }

    fn omni_events(orb: &Orb, folder: &Path) -> Result<Self> {
        let port = free_port();
        let mut command = Command::new("/usr/sbin/omniEvents");
        command.args(["-f", "-p", &port.to_string(), "-l"]).arg(folder).arg("-t").arg(folder.join("trace"));
        command.args(["-ORBInitRef", "NameService=corbaloc::127.0.0.1:1/x"]); // without a naming service
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let process = process.context("cannot start omniEvents (package omnievents)")?;
        let factory = orb.string_to_object(&format!("corbaloc::127.0.0.1:{port}/omniEvents"))?;
        let server = Self { process, factory };
        let deadline = Instant::now() + Duration::from_secs(10);
        while server.factory.non_existent().unwrap_or(true) {
            ensure!(Instant::now() < deadline, "omniEvents did not answer within 10 s");
            thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }

    fn channel(&self) -> Result<EventChannel> {
        let factory: GenericFactory = self.factory.narrow()?;
        let key = [NameComponent { id: "EventChannel".to_owned(), kind: "object interface".to_owned() }];
        let criterion = |name: &str, value: u32| Ok(Nvp { name: name.to_owned(), value: Any::new(value)? });
        let criteria: Result<Vec<Nvp>> = [("CyclePeriod_ns", 1_000_000), ("MaxQueueLength", 4 * TURN)]
            .map(|(name, value)| criterion(name, value))
            .into_iter()
            .collect();
        Ok(factory.create_object(&key, &criteria?)?.context("no channel")?.narrow()?)
    }

    /// The processor time of the process.
    fn cpu(&self) -> Result<Duration> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.process.id()))?;
        let fields: Vec<&str> = stat.rsplit(')').next().context("no fields")?.split_whitespace().collect();
        let ticks: u64 = fields[11].parse::<u64>()? + fields[12].parse::<u64>()?;
        Ok(Duration::from_millis(ticks * 10)) // 100 ticks a second on Linux
    }

    /// The resident memory of the process, in KiB.
    fn resident(&self) -> Result<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
        Ok(line.trim().trim_end_matches(" kB").parse()?)
    }
}

/// The deliveries to all consumers of a channel.
#[derive(Default)]
struct Deliveries {
    count: Mutex<u64>,
    changed: Condvar,
}

impl Deliveries {
    fn wait_for(&self, expected: u64) -> Result<()> {
        let count = self.count.lock().expect("no consumer panicked");
        let wait = self.changed.wait_timeout_while(count, TIMEOUT, |count| *count < expected);
        let (count, _) = wait.expect("no consumer panicked");
        ensure!(*count == expected, "{} of {expected} events were delivered", *count);
        Ok(())
    }
}

struct Consumer(Arc<Deliveries>);

impl PushConsumerServant for Consumer {
    fn push(&self, _data: &Any) -> Result<(), PushError> {
        *self.0.count.lock().expect("no consumer panicked") += 1;
        self.0.changed.notify_one();
        Ok(())
    }

    fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

/// A channel with consumers and a supplier.
struct FanOut {
    channel: EventChannel,
    supplier: ProxyPushConsumer,
    deliveries: Arc<Deliveries>,
    consumers: usize,
    expected: u64,
}

impl FanOut {
    fn new(server: &Server, orb: &Orb, consumers: usize) -> Result<Self> {
        let (channel, deliveries) = (server.channel()?, Arc::<Deliveries>::default());
        let admin = channel.for_consumers()?.context("no administrator")?;
        let root = Poa::root(orb)?;
        for _ in 0..consumers {
            let consumer = root.activate(PushConsumerSkeleton::new(Consumer(Arc::clone(&deliveries))))?;
            let consumer: PushConsumer = consumer.unchecked_narrow();
            admin.obtain_push_supplier()?.context("no proxy")?.connect_push_consumer(Some(&consumer))?;
        }
        let supplier = channel.for_suppliers()?.context("no administrator")?.obtain_push_consumer()?;
        let supplier = supplier.context("no proxy")?;
        supplier.connect_push_supplier(None)?;
        let mut fan_out = Self { channel, supplier, deliveries, consumers, expected: 0 };
        fan_out.push(1)?; // all connections are open
        Ok(fan_out)
    }

    /// Pushes events, and waits for their delivery.
    fn push(&mut self, events: u32) -> Result<()> {
        let value = Any::new(vec![7_u8; 64])?;
        for _ in 0..events {
            self.supplier.push(&value)?;
        }
        self.expected += u64::from(events) * self.consumers as u64;
        self.deliveries.wait_for(self.expected)
    }

    /// Pushes turns of events for a second: deliveries a second, and the server's processor time for each in microseconds.
    fn measure(&mut self, server: &Server) -> Result<(f64, f64)> {
        let (start, cpu, before) = (Instant::now(), server.cpu()?, self.expected);
        while start.elapsed() < Duration::from_secs(1) {
            self.push(TURN)?;
        }
        let deliveries = (self.expected - before) as f64;
        let cpu = (server.cpu()? - cpu).as_secs_f64() * 1e6 / deliveries;
        Ok((deliveries / start.elapsed().as_secs_f64(), cpu))
    }
}

fn median(samples: Vec<f64>) -> Option<f64> {
    Summary::from_values(samples).map(|summary| summary.median)
}

/// Prints a row: the medians of the rounds of both services.
fn row(title: &str, [own, other]: [Vec<f64>; 2], unit: &str) {
    let (Some(own), other) = (median(own), median(other)) else { return };
    let (text, ratio) = match other {
        Some(other) => (format!("{other:.1}"), format!("{:.2}", own / other)),
        None => ("-".to_owned(), "-".to_owned()),
    };
    println!("{title:<46} {own:>11.1} {text:>11} {unit:<12} {ratio:>6}");
}

fn main() -> Result<()> {
    let rounds: usize = std::env::args().skip(1).find_map(|arg| arg.parse().ok()).unwrap_or(5);
    let folder = tempfile::tempdir()?;
    let orb = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build()?;
    let mut servers = vec![Server::own(&orb)?];
    if Path::new("/usr/sbin/omniEvents").exists() {
        servers.push(Server::omni_events(&orb, folder.path())?);
    } else {
        println!("absent: omniEvents (package omnievents)");
    }
    println!("{:<46} {:>11} {:>11} {:<12} {:>6}", "", "Spandrel", "omniEvents", "", "ratio");
    for consumers in CONSUMERS {
        let [mut rates, mut costs, mut memory] = [const { [const { Vec::new() }; 2] }; 3];
        let mut latencies = [const { [const { Vec::new() }; 2] }; 3];
        for _ in 0..rounds {
            for (nth, server) in servers.iter().enumerate() {
                let before = server.resident()?;
                let mut fan_out = FanOut::new(server, &orb, consumers)?;
                memory[nth].push((server.resident()? - before) / consumers as f64);
                let (rate, cost) = fan_out.measure(server)?;
                rates[nth].push(rate);
                costs[nth].push(cost);
                if consumers == 1 {
                    let mut times = Vec::with_capacity(SINGLE);
                    for _ in 0..SINGLE {
                        let start = Instant::now();
                        fan_out.push(1)?;
                        times.push(start.elapsed().as_secs_f64() * 1e6);
                    }
                    times.sort_by(f64::total_cmp);
                    for (share, of_share) in [500, 990, 999].iter().zip(&mut latencies) {
                        of_share[nth].push(times[SINGLE * share / 1_000]);
                    }
                }
                // Seldom a channel of omniEvents ends before it has replied.
                if let Err(error) = fan_out.channel.destroy() {
                    eprintln!("destroy: {error}");
                }
            }
        }
        row(&format!("deliveries to {consumers} consumers"), rates, "1/s");
        row(&format!("processor time, {consumers} consumers"), costs, "us each");
        row(&format!("memory for each of {consumers} consumers"), memory, "KiB");
        for (title, of_share) in ["p50", "p99", "p99.9"].iter().zip(latencies) {
            row(&format!("latency of single events, {title}"), of_share, "us");
        }
    }
    drop(servers);
    Ok(orb.shutdown()?)
}
