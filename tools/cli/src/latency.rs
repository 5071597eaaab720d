//! `spandrel latency`: options of the latency experiment, and of the one with many servants.

use std::path::PathBuf;
use std::str::FromStr;

use clap::ValueEnum;
use spandrel_lab::LabError;
use spandrel_lab::child_command::launch;
use spandrel_lab::latency::{self, Contender, Settings};
use spandrel_lab::placement::Placement;
use spandrel_lab::scalability::{self, Algorithm, Style};
use spandrel_lab::workload::{CallKind, PingCase};

use crate::common::{self, PlacementArg, whole};

const EXAMPLES: &str = "\
Examples:
  spandrel latency --quick
  spandrel latency --placement one --mechanisms c,orb --case void
  spandrel latency --omniorb target/interop/omniorb --rounds 9 --out results

With many servants in the server (static and dynamic calls, beside omniORB and JacORB):
  spandrel latency --servants 1,100,200,300,400,500
  spandrel latency --servants 1,1000,1000000 --algorithm train,random --style static --mechanisms orb
  spandrel latency --servants 1000000 --most-calls 100000000 --timeout 3600 --algorithm round-robin --style static --call twoway

Between two machines:
  there$ spandrel ttcp --receive 0.0.0.0:5001
  here$  spandrel latency --connect there:5001";

/// Measure call times, compared with raw sockets, omniORB and JacORB.
///
/// Measures a call without parameters and one with 1,024 structures, through raw sockets,
/// typed endpoints of every family, the ORB, and omniORB where its programs are built.
///
/// The socket mechanisms transfer as many octets as the ORB does. Mechanisms are interleaved and compared
/// round by round. The same figures are written as JSON and CSV.
///
/// With `--quick` the report is short: a bar for each mechanism, and one sentence. The tables are in the file
/// report.txt.
///
/// With `--servants` the ORBs alone are measured: call times by the number of servants.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Cores of the processes; several placements are measured one after the other [default: one,two as far
    /// as there are cores]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "NAME,..")]
    placement: Vec<PlacementArg>,
    /// Mechanisms: c, ipc, c-unix, unix, spipe, shm, orb, omniorb; with --servants: orb, omniorb, jacorb
    /// [default: all; with --quick: without those in shared memory]
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    mechanisms: Vec<String>,
    /// Parameters of a call [default: both]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "NAME,..")]
    case: Vec<CaseArg>,
    #[command(flatten)]
    servants: ServantsArgs,
    /// Timed calls per round [default: 50000; with --quick: 5000]; with --servants: the minimum [default:
    /// 10000; with --quick: 2000]
    #[arg(long, value_name = "N", value_parser = whole(0..=u32::MAX))]
    calls: Option<u32>,
    /// Interleaved rounds [default: 7; with --quick: up to 9, as time allows; with both --quick and
    /// --servants: 2]
    #[arg(long, value_name = "N", value_parser = whole(0..=u32::MAX))]
    rounds: Option<u32>,
    /// Call a running receiver (`spandrel ttcp --receive`) at this control address
    #[arg(long, value_name = "HOST:PORT", value_parser = common::host_and_port)]
    connect: Option<String>,
    /// The folder with omniORB's latency-server and latency-client [default: where `cargo xtask interop`
    /// builds them]
    #[arg(long, value_name = "DIR", env = "SPANDREL_OMNIORB")]
    omniorb: Option<PathBuf>,
    /// Folder for JSON and CSV files [default: target/latency in a Cargo workspace, otherwise
    /// spandrel-latency]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Finish within 20 seconds, with a short report: fewer calls, rounds and mechanisms
    #[arg(long)]
    quick: bool,
    /// The time limit of a single run, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 120, value_parser = whole(1..=1_000_000_u64))]
    timeout: u64,
}

/// Options for many servants.
#[derive(Debug, clap::Args)]
#[group(skip)]
struct ServantsArgs {
    /// Measure servers with these numbers of servants
    #[arg(long, value_name = "N,..", value_delimiter = ',', conflicts_with = "connect", value_parser = whole(0..=u32::MAX))]
    servants: Vec<u32>,
    /// With --servants: the order of calls: train, round-robin, random, worst-case [default: all]
    #[arg(long, value_name = "NAME,..", value_delimiter = ',', requires = "servants")]
    algorithm: Vec<Algorithm>,
    /// With --servants: the invocation interfaces: static, dii, dii-reused, dsi [default: all]
    #[arg(long, value_name = "NAME,..", value_delimiter = ',', requires = "servants")]
    style: Vec<Style>,
    /// With --servants: oneway, twoway [default: both]
    #[arg(long, value_name = "NAME,..", value_delimiter = ',', requires = "servants")]
    call: Vec<CallKind>,
    /// With --servants: maximum number of timed calls per round; if a hundred on each servant would be more,
    /// other servants are called in each round [default: 100000; with --quick: 2000]
    #[arg(long, value_name = "N", requires = "servants", value_parser = whole(0..=u32::MAX))]
    most_calls: Option<u32>,
    /// The folder with JacORB's servants-server and servants-client [default: where `cargo xtask interop`
    /// builds them]
    #[arg(long, value_name = "DIR", env = "SPANDREL_JACORB", requires = "servants")]
    jacorb: Option<PathBuf>,
}

impl ServantsArgs {
    fn are_wanted(&self) -> bool {
        !self.servants.is_empty()
    }
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
        if self.servants.are_wanted() {
            return self.run_servants();
        }
        let settings = self.settings()?;
        settings.check()?;
        let mut directory = common::results_directory(self.out.as_deref(), "latency")?;
        let results = latency::run(&settings, &launch)?;
        latency::report::write(&results, &mut directory)?;
        if self.quick {
            let files = format!(
                "Full report: {} (tables), and JSON and CSV beside it. All mechanisms: `spandrel latency`.",
                directory.path().join("report.txt").display()
            );
            return common::print(&latency::overview::text(&results, &files));
        }
        common::print(&latency::report::text(&results))?;
        common::print(&format!(
            "\nWritten to {}: latency.json, rounds.csv, summary.csv and report.txt\n",
            directory.path().display()
        ))
    }

    fn placements(&self) -> Vec<Placement> {
        match (self.placement.is_empty(), &self.connect) {
            (false, _) => self.placement.iter().copied().map(Placement::from).collect(),
            (true, Some(_)) => vec![Placement::Free],
            (true, None) => common::pinned_placements(),
        }
    }

    fn cases(&self) -> Vec<PingCase> {
        let case = |case: &CaseArg| match case {
            CaseArg::Void => PingCase::Void,
            CaseArg::Structs => PingCase::Structs,
        };
        match self.case.is_empty() {
            true => vec![PingCase::Void, PingCase::Structs],
            false => self.case.iter().map(case).collect(),
        }
    }

    /// The named ones, or all.
    fn contenders<C: FromStr<Err = LabError>>(&self, all: Vec<C>) -> Result<Vec<C>, LabError> {
        if self.mechanisms.is_empty() { Ok(all) } else { self.mechanisms.iter().map(|name| name.parse()).collect() }
    }

    fn settings(&self) -> Result<Settings, LabError> {
        Ok(Settings {
            placements: self.placements(),
            cases: self.cases(),
            contenders: self.contenders(if self.quick {
                Contender::quick(self.connect.is_some())
            } else {
                Contender::usual()
            })?,
            calls: self.calls.unwrap_or(if self.quick { 5_000 } else { 50_000 }),
            rounds: self.rounds.unwrap_or(if self.quick { 9 } else { 7 }),
            remote: self.connect.clone(),
            omniorb: self.omniorb.clone(),
            limit_seconds: self.timeout,
            budget_seconds: self.quick.then_some(QUICK_BUDGET_SECONDS),
        })
    }

    fn run_servants(&self) -> anyhow::Result<()> {
        let settings = self.servants_settings()?;
        settings.check()?;
        let mut directory = common::results_directory(self.out.as_deref(), "latency")?;
        let results = scalability::run(&settings, &launch)?;
        common::print(&scalability::report::text(&results))?;
        scalability::report::write(&results, &mut directory)?;
        common::print(&format!(
            "\nWritten to {}: servants.json, .txt, servants-rounds.csv, servants-summary.csv and plots\n",
            directory.path().display()
        ))
    }

    fn servants_settings(&self) -> Result<scalability::Settings, LabError> {
        let servant_args = &self.servants;
        Ok(scalability::Settings {
            servants: servant_args.servants.clone(),
            placements: self.placements(),
            algorithms: or_all(&servant_args.algorithm, &Algorithm::ALL),
            calls: or_all(&servant_args.call, &[CallKind::OneWay, CallKind::TwoWay]),
            cases: self.cases().into_iter().map(Into::into).collect(),
            styles: or_all(&servant_args.style, &Style::ALL),
            contenders: self.contenders(scalability::Contender::USUAL.to_vec())?,
            calls_per_round: self.calls.unwrap_or(if self.quick { 2_000 } else { 10_000 }),
            most_calls: servant_args.most_calls.unwrap_or(if self.quick { 2_000 } else { 100_000 }),
            rounds: self.rounds.unwrap_or(if self.quick { 2 } else { 7 }),
            omniorb: self.omniorb.clone(),
            jacorb: servant_args.jacorb.clone(),
            limit_seconds: self.timeout,
            budget_seconds: None,
        })
    }
}

fn or_all<T: Copy>(given: &[T], all: &[T]) -> Vec<T> {
    if given.is_empty() { all.to_vec() } else { given.to_vec() }
}
