//! `spandrel bench timers`: options of the timer experiment.

use std::path::PathBuf;

use spandrel_lab::bench::timers::{self, Settings, Strategy};
use spandrel_lab::placement::{Placement, Role, cores};

use crate::common::{self, PlacementArg};

const EXAMPLES: &str = "\
Examples:
  spandrel bench timers --quick
  spandrel bench timers --strategies wheel,heap --timers 1000000 --rounds 15
  spandrel bench timers --horizon 3600 --out results";

/// Measure what timers cost: schedule, cancel, reschedule and expire, by strategy and number.
///
/// Delays are random, and timers are touched in random order. Strategies are interleaved. The same figures are written as JSON
/// and CSV.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// How timers are kept: heap, wheel, hashed-wheel, list [default: all]
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    strategies: Vec<Strategy>,
    /// How many timers there are [default: 1000,100000,1000000]
    #[arg(long, value_name = "N,..", value_delimiter = ',')]
    timers: Vec<u32>,
    /// Interleaved rounds [default: 11; with --quick: up to 5, as time allows]
    #[arg(long, value_name = "N")]
    rounds: Option<u32>,
    /// The longest delay, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    horizon: u32,
    /// Whether it is pinned to a core: one, or free [default: one, where that can be done]
    #[arg(long, value_enum)]
    placement: Option<PlacementArg>,
    /// Where JSON and CSV files go [default: target/bench-timers in a Cargo workspace, otherwise spandrel-bench-timers]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Finish within 20 seconds: fewer rounds
    #[arg(long)]
    quick: bool,
}

/// Seconds after which a quick series begins no further round.
const QUICK_BUDGET_SECONDS: u64 = 10;

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let settings = self.settings()?;
        settings.check()?;
        let mut directory = common::results_directory(self.out.as_deref(), "bench-timers")?;
        let results = timers::run(&settings)?;
        common::print(&timers::report::text(&results))?;
        timers::report::write(&results, &mut directory)?;
        common::print(&format!(
            "\nWritten to {}: timers.json, runs.csv, summary.csv and report.txt\n",
            directory.path().display()
        ))
    }

    fn settings(&self) -> anyhow::Result<Settings> {
        let cores = cores();
        let pinned = if cores.is_empty() { Placement::Free } else { Placement::One };
        let placement = self.placement.map_or(pinned, Placement::from);
        Ok(Settings {
            strategies: if self.strategies.is_empty() { Strategy::all() } else { self.strategies.clone() },
            counts: if self.timers.is_empty() { vec![1_000, 100_000, 1_000_000] } else { self.timers.clone() },
            rounds: self.rounds.unwrap_or(if self.quick { 5 } else { 11 }),
            horizon_seconds: self.horizon,
            core: placement.core(Role::Transmitter, &cores)?,
            budget_seconds: self.quick.then_some(QUICK_BUDGET_SECONDS),
        })
    }
}
