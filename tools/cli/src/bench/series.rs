//! Options common to all experiments that measure in rounds, in one thread of this process.

use std::path::PathBuf;

use spandrel_lab::LabError;
use spandrel_lab::output::Directory;
use spandrel_lab::placement::{Placement, Role, cores};

use crate::common::{self, PlacementArg, whole};

#[derive(Debug, clap::Args)]
pub(super) struct SeriesArgs {
    /// Interleaved rounds [default: 11; with --quick: up to 5, as time allows]
    #[arg(long, value_name = "N", value_parser = whole(0..=u32::MAX))]
    rounds: Option<u32>,
    /// Whether the thread is pinned to a core: one, or free [default: one, where that is possible]
    #[arg(long, value_enum)]
    placement: Option<PlacementArg>,
    /// Folder for JSON and CSV files [default: target/bench-NAME in a Cargo workspace, otherwise
    /// spandrel-bench-NAME]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Finish within 20 seconds: fewer rounds, and fewer slow measurements
    #[arg(long)]
    pub(super) quick: bool,
}

/// Seconds after which a quick series begins no further round.
const QUICK_BUDGET_SECONDS: u64 = 10;

impl SeriesArgs {
    pub(super) fn rounds(&self) -> u32 {
        self.rounds.unwrap_or(if self.quick { 5 } else { 11 })
    }

    pub(super) fn core(&self) -> Result<Option<usize>, LabError> {
        let cores = cores();
        let pinned = if cores.is_empty() { Placement::Free } else { Placement::One };
        self.placement.map_or(pinned, Placement::from).core(Role::Transmitter, &cores)
    }

    pub(super) fn budget_seconds(&self) -> Option<u64> {
        self.quick.then_some(QUICK_BUDGET_SECONDS)
    }

    /// The folder for the results of an experiment.
    pub(super) fn directory(&self, experiment: &str) -> anyhow::Result<Directory> {
        common::results_directory(self.out.as_deref(), experiment)
    }
}

/// The given values, or the usual ones.
pub(super) fn or<T: Clone>(given: &[T], usual: &[T]) -> Vec<T> {
    if given.is_empty() { usual.to_vec() } else { given.to_vec() }
}
