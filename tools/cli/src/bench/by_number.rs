//! Options common to the experiments that measure calls by a number.

use std::path::PathBuf;

use spandrel_lab::bench::by_number::Settings;
use spandrel_lab::output::Directory;
use spandrel_lab::placement::Placement;

use crate::common::{self, PlacementArg, whole};

#[derive(Debug, clap::Args)]
pub(super) struct ByNumberArgs {
    /// Cores of load and server; several placements are measured one after the other [default: two, as far as
    /// there are cores]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "NAME,..")]
    placement: Vec<PlacementArg>,
    /// Interleaved rounds [default: 5; with --quick: up to 3, as time allows]
    #[arg(long, value_name = "N", value_parser = whole(0..=u32::MAX))]
    rounds: Option<u32>,
    /// Duration of a run in seconds [default: 0.5; with --quick: 0.1]
    #[arg(long, value_name = "SECONDS", value_parser = common::above_zero("a number of seconds above zero, such as 0.5"))]
    seconds: Option<f64>,
    /// Processor time of each upcall in microseconds: servants that compute
    #[arg(long, value_name = "MICROSECONDS", default_value_t = 0, value_parser = whole(0..=u32::MAX))]
    work: u32,
    /// A folder with the programs calls-c and calls-tokio [default: calls-c is built from the source tree, and
    /// calls-tokio is in target/extra/release]
    #[arg(long, value_name = "DIR")]
    peers: Option<PathBuf>,
    /// Folder with omniORB's programs [default: target/interop/omniorb]
    #[arg(long, value_name = "DIR")]
    omniorb: Option<PathBuf>,
    /// Folder with JacORB's programs [default: target/interop/jacorb]
    #[arg(long, value_name = "DIR")]
    jacorb: Option<PathBuf>,
    /// Folder for JSON and CSV files and charts [default: target/bench-NAME in a Cargo workspace, otherwise
    /// spandrel-bench-NAME]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Finish within 30 seconds: shorter runs, fewer rounds, and 64 connections at most
    #[arg(long)]
    pub(super) quick: bool,
    /// The longest response time of a server, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 20, value_parser = whole(1..=1_000_000_u32))]
    timeout: u32,
}

/// Seconds after which a quick series begins no further round.
const QUICK_BUDGET_SECONDS: u64 = 12;

impl ByNumberArgs {
    pub(super) fn settings<C>(&self, numbers: Vec<u32>, contenders: Vec<C>) -> Settings<C> {
        let seconds = self.seconds.unwrap_or(if self.quick { 0.1 } else { 0.5 });
        Settings {
            placements: if self.placement.is_empty() {
                common::pinned_placements().pop().into_iter().collect()
            } else {
                self.placement.iter().copied().map(Placement::from).collect()
            },
            numbers,
            contenders,
            run_millis: (seconds * 1000.0) as u64,
            rounds: self.rounds.unwrap_or(if self.quick { 3 } else { 5 }),
            work_micros: self.work,
            peers: self.peers.clone(),
            omniorb: self.omniorb.clone(),
            jacorb: self.jacorb.clone(),
            limit_seconds: self.timeout,
            budget_seconds: self.quick.then_some(QUICK_BUDGET_SECONDS),
        }
    }

    /// The folder for the results of an experiment.
    pub(super) fn directory(&self, experiment: &str) -> anyhow::Result<Directory> {
        common::results_directory(self.out.as_deref(), experiment)
    }
}
