//! `spandrel ttcp`: options of the throughput experiment.

use std::path::PathBuf;

use clap::ValueEnum;
use spandrel_lab::child_command::launch;
use spandrel_lab::latency::{self, Contender};
use spandrel_lab::mechanism::{MechanismName, SocketOptions};
use spandrel_lab::peer::receiver::ControlServer;
use spandrel_lab::placement::{Placement, Role, cores, pin};
use spandrel_lab::ttcp::{self, Settings};
use spandrel_lab::workload::{CallKind, DataType, PingCase};
use spandrel_measure::units::Octets;

use crate::common::{self, PlacementArg, Sizes, whole};

const EXAMPLES: &str = "\
Examples:
  spandrel ttcp --quick                       a first impression, within 20 seconds
  spandrel ttcp                               the whole series of the papers
  spandrel ttcp --types octet,struct --sizes 8K,64K --placement one
  spandrel ttcp --queue-size 64K --call both --out results

Between two machines:
  there$ spandrel ttcp --receive 0.0.0.0:5001
  here$  spandrel ttcp --transmit there:5001 --quick";

/// Measure throughput: typed data through raw sockets, typed endpoints of every family, and the ORB.
///
/// Transfers buffers of typed data from a transmitter process to a receiver process and reports Mbit/s by
/// buffer size: by default between two processes on this machine, each pinned to its own core.
///
/// Mechanisms are interleaved and compared round by round, so that a noisy machine affects them alike. The
/// same figures are written as JSON, CSV and SVG.
///
/// With `--quick`, single calls are measured as well, and the report is short: a bar for each mechanism, and
/// one sentence. The tables are in the file report.txt.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Only receive: listen for transmitters at this control address (port 0: any)
    #[arg(long, value_name = "HOST:PORT", num_args = 0..=1, default_missing_value = "0.0.0.0:0",
        conflicts_with = "transmit", value_parser = common::host_and_port)]
    receive: Option<String>,
    /// Only transmit: run the series against the receiver at this control address
    #[arg(long, value_name = "HOST:PORT", value_parser = common::host_and_port)]
    transmit: Option<String>,
    /// Data types [default: all; with --quick: octet, struct]
    #[arg(long, value_name = "TYPE,..", value_delimiter = ',')]
    types: Vec<DataType>,
    /// Sizes of the sender's buffers: sizes, or ranges by powers of two [default: 1K..128K; with --quick:
    /// 64K]
    #[arg(long, value_name = "SIZE,..", value_delimiter = ',')]
    sizes: Vec<Sizes>,
    /// User data per run [default: 64M; with --quick: 32M]
    #[arg(long, value_name = "SIZE")]
    bytes: Option<Octets>,
    /// Size of the socket queues: `system`, or octets such as 64K
    #[arg(long, value_name = "SIZE", default_value = "system", value_parser = queue_size)]
    queue_size: QueueSize,
    /// Number of repetitions of each run [default: 10; with --quick: up to 9, as time allows]
    #[arg(long, value_name = "N", value_parser = whole(0..=u32::MAX))]
    repetitions: Option<u32>,
    /// Mechanisms: plain calls over TCP (c) and in the UNIX domain (c-unix), typed endpoints over TCP (ipc)
    /// and of the other families (unix, spipe, shm), the ORB (orb) [default: all available ones;
    /// with --quick: without those in shared memory]
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    mechanisms: Vec<MechanismName>,
    /// Whether each buffer is answered
    #[arg(long, value_enum, default_value = "oneway")]
    call: CallArg,
    /// Cores of the processes [default: two where there are two cores; with a single role: free]
    #[arg(long, value_enum)]
    placement: Option<PlacementArg>,
    /// Folder for JSON, CSV and SVG files [default: target/ttcp in a Cargo workspace, otherwise
    /// spandrel-ttcp]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Finish within 20 seconds, with a short report: fewer types, sizes, mechanisms and octets; and calls
    #[arg(long)]
    quick: bool,
    /// The time limit of a single run, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 120, value_parser = whole(1..=1_000_000_u64))]
    timeout: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CallArg {
    /// Buffers follow each other; the last is acknowledged
    Oneway,
    /// Each buffer is answered before the next is sent
    Twoway,
    /// One series of each
    Both,
}

#[derive(Clone, Copy, Debug)]
struct QueueSize(Option<u32>);

fn queue_size(text: &str) -> Result<QueueSize, String> {
    if text == "system" {
        return Ok(QueueSize(None));
    }
    let octets: Octets = text.parse().map_err(|error| format!("{error}"))?;
    match u32::try_from(octets.0) {
        Ok(octets @ 1..) if i32::try_from(octets).is_ok() => Ok(QueueSize(Some(octets))),
        _ => Err("expected `system`, or from 1 octet to 2G".to_owned()),
    }
}

/// Seconds after which a quick series begins no further round of throughput.
const QUICK_BUDGET_SECONDS: u64 = 9;
/// Seconds after which it begins no further round of calls. The last round, and drawing, fit into the rest of
/// 20.
const QUICK_CALLS_BUDGET_SECONDS: u64 = 7;
/// Timed calls of a mechanism in a round of a quick series.
const QUICK_CALLS: u32 = 2_000;

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        if let Some(addr) = &self.receive {
            return self.serve(addr);
        }
        let settings = self.settings();
        settings.check()?;
        let mut directory = common::results_directory(self.out.as_deref(), "ttcp")?;
        let results = ttcp::run(&settings, &launch)?;
        let calls = self.quick.then(|| self.calls(&settings)).filter(|calls| !calls.contenders.is_empty());
        let calls = calls.map(|calls| latency::run(&calls, &launch)).transpose()?;
        if !self.quick {
            common::print(&ttcp::report::text(&results))?;
        }
        ttcp::report::write(&results, &mut directory)?;
        ttcp::plot::write(&results, &mut directory)?;
        if let Some(calls) = &calls {
            latency::report::write_beside(calls, &mut directory)?;
        }
        let folder = directory.path();
        if self.quick {
            let files = format!(
                "Full report: {} (tables), calls.txt, and JSON, CSV and SVG beside them. All types, sizes and \
                mechanisms of the papers: `spandrel ttcp`.",
                folder.join("report.txt").display()
            );
            return common::print(&ttcp::overview::text(&results, calls.as_ref(), &files));
        }
        common::print(&format!(
            "\nWritten to {}: ttcp.json, runs.csv, summary.csv, report.txt and a plot (SVG) per data type\n",
            folder.display()
        ))
    }

    /// The calls of a quick series: by the same mechanisms, except those for floods only, at the same placement.
    fn calls(&self, settings: &Settings) -> latency::Settings {
        let mechanisms = settings.mechanisms.iter().copied().filter(|name| !name.sends_floods_only());
        latency::Settings {
            placements: vec![settings.placement],
            cases: vec![PingCase::Void],
            contenders: mechanisms.map(Contender::Mechanism).collect(),
            calls: QUICK_CALLS,
            rounds: settings.repetitions,
            remote: settings.remote.clone(),
            omniorb: None,
            limit_seconds: settings.limit_seconds,
            budget_seconds: Some(QUICK_CALLS_BUDGET_SECONDS),
        }
    }

    fn serve(&self, addr: &str) -> anyhow::Result<()> {
        let placement = self.placement.map_or(Placement::Free, Placement::from);
        if let Some(core) = placement.core(Role::Receiver, &cores())? {
            pin(core)?;
        }
        let server = ControlServer::open(addr)?;
        common::print(&format!("receiving; control address {}\n", server.local_addr()))?;
        Ok(server.run(|line| spandrel::net::error::output::remark(&format!("{line}\n")))?)
    }

    fn settings(&self) -> Settings {
        let quick = |quick: &[DataType], all: &[DataType]| if self.quick { quick.to_vec() } else { all.to_vec() };
        let types = quick(&[DataType::Octet, DataType::Struct], &DataType::ALL);
        let sizes = if self.quick { "64K" } else { "1K..128K" };
        let sizes = || sizes.split(' ').map(|item| item.parse::<Sizes>().expect("a constant"));
        let sizes = if self.sizes.is_empty() { sizes().collect() } else { self.sizes.clone() };
        let placement = match (self.placement, &self.transmit) {
            (Some(asked), _) => asked.into(),
            (None, Some(_)) => Placement::Free,
            (None, None) => common::best_placement(),
        };
        Settings {
            types: if self.types.is_empty() { types } else { self.types.clone() },
            sizes: sizes.into_iter().flat_map(|item| item.0).collect(),
            calls: match self.call {
                CallArg::Oneway => vec![CallKind::OneWay],
                CallArg::Twoway => vec![CallKind::TwoWay],
                CallArg::Both => vec![CallKind::OneWay, CallKind::TwoWay],
            },
            mechanisms: match (self.mechanisms.is_empty(), self.quick) {
                (true, true) => MechanismName::quick(self.transmit.is_some()),
                (true, false) => MechanismName::available(self.transmit.is_some()),
                (false, _) => self.mechanisms.clone(),
            },
            bytes: self.bytes.unwrap_or(Octets(if self.quick { 32 << 20 } else { 64 << 20 })),
            repetitions: self.repetitions.unwrap_or(if self.quick { 9 } else { 10 }),
            sockets: SocketOptions { queue_octets: self.queue_size.0 },
            placement,
            remote: self.transmit.clone(),
            limit_seconds: self.timeout,
            budget_seconds: self.quick.then_some(QUICK_BUDGET_SECONDS),
        }
    }
}
