//! Event channels beside those of others: a fan-out in C, omniEvents, JacORB, NATS and MQTT, in interleaved rounds.
//!
//! Each contender has a server in a process of its own, which lives through all rounds. Each point has a process with the
//! supplier and all consumers ([`load`]). A round has each point of each contender once, in an order that rotates.

mod contender;
mod corba;
mod ledger;
mod load;
mod plain;
mod report;
mod servers;
mod target;
mod usage;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use spandrel_error::output;
use spandrel_lab::output::{Directory, default_directory};
use spandrel_lab::peer::child::ChildHandle;

use self::contender::Contender;
pub(crate) use self::load::LoadArgs;
use self::load::{LoadSettings, Measurement, Outcome};
use self::report::{Report, Sample};
use self::servers::Server;
pub(crate) use self::servers::ServerArgs;

/// The time that a load may take besides its measurements: connections, and deliveries that are late.
const LOAD_LIMIT: Duration = Duration::from_secs(120);
/// The channels and the consumers whose memory is measured.
const MANY: usize = 100;
const QUICK_MANY: usize = 10;
/// The rounds that measure memory, each with fresh servers.
const MEMORY_ROUNDS: u32 = 3;

/// Measure event channels beside a fan-out in C, omniEvents, JacORB, NATS and MQTT.
#[derive(Debug, clap::Args)]
pub(crate) struct EventsArgs {
    /// The contenders, in place of all
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_enum)]
    contenders: Vec<Contender>,
    /// The numbers of consumers
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [1, 10, 100], value_parser = clap::value_parser!(u32).range(1..=300))]
    consumers: Vec<u32>,
    /// The rounds, of which the medians are shown
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    rounds: u32,
    /// The seconds of each measurement: throughput, and latency of single events
    #[arg(long, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=600))]
    seconds: u32,
    /// One round of 100 ms, 1 and 10 consumers unless --consumers is given: shows that everything runs
    #[arg(long)]
    quick: bool,
    /// Folder of samples and pictures [default: target/events in a Cargo workspace, otherwise spandrel-events]; stores are
    /// on its disk
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// A server, and the folder of its files, which is removed after the end of its process.
struct RunningServer {
    server: Server,
    _folder: tempfile::TempDir,
}

/// The servers that run, and the folder with those of their files.
struct Servers<'f> {
    folder: &'f Path,
    running: BTreeMap<Contender, RunningServer>,
}

impl Servers<'_> {
    fn start(&self, contender: Contender) -> anyhow::Result<RunningServer> {
        let folder = tempfile::tempdir_in(self.folder).context("cannot make a folder for a server")?;
        let server = Server::start(contender, folder.path());
        let server = server.with_context(|| format!("cannot start {}", contender.name()))?;
        Ok(RunningServer { server, _folder: folder })
    }

    /// Puts the server of a contender under load. A server that has failed is started again for the next point.
    fn measure(&mut self, contender: Contender, measurement: Measurement) -> anyhow::Result<Outcome> {
        if contender == Contender::OmniEvents {
            // Now and then its channel and the destruction of that wait for each other, and the server is of no more use.
            return self.measure_fresh(contender, measurement);
        }
        let running = match self.running.remove(&contender) {
            Some(running) => running,
            None => self.start(contender)?,
        };
        let outcome = put_under_load(contender, &running.server, measurement)?;
        self.running.insert(contender, running);
        Ok(outcome)
    }

    /// The same with a server of its own, which has served no client before.
    fn measure_fresh(&self, contender: Contender, measurement: Measurement) -> anyhow::Result<Outcome> {
        put_under_load(contender, &self.start(contender)?.server, measurement)
    }
}

fn put_under_load(contender: Contender, server: &Server, measurement: Measurement) -> anyhow::Result<Outcome> {
    let settings = LoadSettings { target: server.target.clone(), server: server.process(), measurement };
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["events-load", &serde_json::to_string(&settings)?]);
    let time = match measurement {
        Measurement::FanOut { millis, .. } | Measurement::Suppliers { millis, .. } => 3 * Duration::from_millis(millis),
        Measurement::Memory { .. } => Duration::ZERO,
    };
    let line = ChildHandle::start("load", command)?.line(LOAD_LIMIT + time)?;
    let outcome: Result<Outcome, String> =
        serde_json::from_str(&line).with_context(|| format!("no outcome: {line}"))?;
    match outcome.map_err(|reason| anyhow!(reason))? {
        Outcome::FanOut(fan_out) if fan_out.disordered > 0 && !contender.may_disorder() => {
            bail!("{} events came out of their order", fan_out.disordered)
        }
        outcome => Ok(outcome),
    }
}

impl EventsArgs {
    /// The numbers of consumers, each once, in ascending order.
    fn consumer_counts(&self) -> Vec<u32> {
        let mut counts = self.consumers.clone();
        if self.quick && counts == [1, 10, 100] {
            counts.pop();
        }
        counts.sort_unstable();
        counts.dedup();
        counts
    }

    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let consumers = self.consumer_counts();
        let (rounds, millis) = if self.quick { (1, 100) } else { (self.rounds, u64::from(self.seconds) * 1_000) };
        let is_selected = |contender: &Contender| self.contenders.is_empty() || self.contenders.contains(contender);
        let (mut present, mut absent) = (Vec::new(), Vec::new());
        for contender in Contender::ALL.into_iter().filter(is_selected) {
            match servers::absence(contender) {
                None => present.push(contender),
                Some(reason) => absent.push((contender, reason)),
            }
        }
        let out = self.out.clone().unwrap_or_else(|| default_directory("events"));
        let mut directory = Directory::create(&out)?;
        let mut servers = Servers { folder: &out, running: BTreeMap::new() };
        let mut report = Report { rounds, millis, consumers, absent, samples: Vec::new() };
        for round in 0..rounds {
            let mut order = present.clone();
            if !order.is_empty() {
                let first = round as usize % order.len();
                order.rotate_left(first);
            }
            let (on_disk, in_memory): (Vec<_>, Vec<_>) = order.into_iter().partition(|one| one.suppliers().is_some());
            let mut add = |contender: Contender, consumers, outcome: anyhow::Result<Outcome>| {
                let outcome = outcome.map_err(|error| format!("{error:#}"));
                if let Err(reason) = &outcome {
                    output::remark(&format!("failed: {}: {reason}\n", contender.name()));
                }
                report.samples.push(Sample { contender, consumers, round, outcome });
            };
            let remark = |point: &str| output::remark(&format!("round {} of {rounds}: {point}\n", round + 1));
            if round < MEMORY_ROUNDS {
                remark("memory");
                let many = if self.quick { QUICK_MANY } else { MANY };
                for contender in &in_memory {
                    let memory = Measurement::Memory { channels: many, consumers: many };
                    add(*contender, many as u32, servers.measure_fresh(*contender, memory));
                }
            }
            for consumers in self.consumer_counts() {
                remark(&format!("{consumers} consumers"));
                for contender in &in_memory {
                    let fan_out = Measurement::FanOut { consumers: consumers as usize, millis };
                    add(*contender, consumers, servers.measure(*contender, fan_out));
                }
            }
            if !on_disk.is_empty() {
                remark("events on a disk");
            }
            for contender in on_disk {
                let suppliers = contender.suppliers().unwrap_or(1);
                add(contender, 1, servers.measure(contender, Measurement::Suppliers { suppliers, millis }));
            }
        }
        drop(servers);
        report.write(&mut directory)?;
        let files: Vec<String> = directory.files().iter().map(|file| file.display().to_string()).collect();
        output::print(&format!("{}\nWritten: {}\n", report.text(), files.join(", ")))?;
        let has_failed = report.samples.iter().any(|sample| sample.outcome.is_err());
        Ok(if has_failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}
