//! `spandrel latency`: options of the latency experiment.

use std::path::PathBuf;

use clap::ValueEnum;
use spandrel_lab::latency::{self, Contender, Settings};
use spandrel_lab::placement::Placement;
use spandrel_lab::workload::PingCase;

use crate::common::{self, PlacementArg};
use crate::peer::launch;

const EXAMPLES: &str = "\
Examples:
  spandrel latency --quick
  spandrel latency --placement one --mechanisms c,orb --case void
  spandrel latency --omniorb target/interop/omniorb --rounds 9 --out results

Between two machines:
  there$ spandrel ttcp --receive 0.0.0.0:5001
  here$  spandrel latency --connect there:5001";

/// Measure how long calls take, beside raw sockets and omniORB.
///
/// Measures a call without parameters and one with 1,024 structures, through raw sockets,
/// typed endpoints of every family, the ORB, and omniORB where its programs are built.
///
/// The socket mechanisms send and answer as many octets as the ORB does. Mechanisms are interleaved and compared round
/// by round. The same figures are written as JSON and CSV.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// On which cores the processes run; several are measured one after the other [default: one,two as far as there are cores]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "NAME,..")]
    placement: Vec<PlacementArg>,
    /// Who calls: c, ipc, c-unix, unix, spipe, shm, orb, omniorb [default: all]
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    mechanisms: Vec<Contender>,
    /// What a call carries [default: both]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "NAME,..")]
    case: Vec<CaseArg>,
    /// Timed calls per round [default: 50000; with --quick: 5000]
    #[arg(long, value_name = "N")]
    calls: Option<u32>,
    /// Interleaved rounds [default: 7; with --quick: up to 5, as time allows]
    #[arg(long, value_name = "N")]
    rounds: Option<u32>,
    /// Call a receiver that runs already (`spandrel ttcp --receive`) at this control address
    #[arg(long, value_name = "HOST:PORT")]
    connect: Option<String>,
    /// The folder with omniORB's latency-server and latency-client [default: where `cargo xtask interop` builds them]
    #[arg(long, value_name = "DIR", env = "SPANDREL_OMNIORB")]
    omniorb: Option<PathBuf>,
    /// Where JSON and CSV files go [default: target/latency in a Cargo workspace, otherwise spandrel-latency]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Finish within 20 seconds: fewer calls and rounds
    #[arg(long)]
    quick: bool,
    /// The longest that a single run may take, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    timeout: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CaseArg {
    /// No parameters
    Void,
    /// 1,024 structures to the server
    Structs,
}

/// Seconds after which a quick series begins no further round.
const QUICK_BUDGET_SECONDS: u64 = 12;

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let settings = self.settings();
        settings.check()?;
        let mut directory = common::results_directory(self.out.as_deref(), "latency")?;
        let results = latency::run(&settings, &launch)?;
        common::print(&latency::report::text(&results))?;
        latency::report::write(&results, &mut directory)?;
        common::print(&format!(
            "\nWritten to {}: latency.json, rounds.csv, summary.csv and report.txt\n",
            directory.path().display()
        ))
    }

    fn settings(&self) -> Settings {
        let placements = match (self.placement.is_empty(), &self.connect) {
            (false, _) => self.placement.iter().copied().map(Placement::from).collect(),
            (true, Some(_)) => vec![Placement::Free],
            (true, None) => common::pinned_placements(),
        };
        let case = |case: &CaseArg| match case {
            CaseArg::Void => PingCase::Void,
            CaseArg::Structs => PingCase::Structs,
        };
        Settings {
            placements,
            cases: if self.case.is_empty() {
                vec![PingCase::Void, PingCase::Structs]
            } else {
                self.case.iter().map(case).collect()
            },
            contenders: if self.mechanisms.is_empty() { Contender::all() } else { self.mechanisms.clone() },
            calls: self.calls.unwrap_or(if self.quick { 5_000 } else { 50_000 }),
            rounds: self.rounds.unwrap_or(if self.quick { 5 } else { 7 }),
            remote: self.connect.clone(),
            omniorb: self.omniorb.clone(),
            limit_seconds: self.timeout,
            budget_seconds: self.quick.then_some(QUICK_BUDGET_SECONDS),
        }
    }
}
