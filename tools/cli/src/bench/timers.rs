//! `spandrel bench timers`: options of the timer experiment.

use spandrel_lab::bench::timers::{self, Settings, Strategy};

use super::series::{self, SeriesArgs};
use crate::common::{self, whole};

const EXAMPLES: &str = "\
Examples:
  spandrel bench timers --quick
  spandrel bench timers --strategies wheel,heap --timers 1000000 --rounds 15
  spandrel bench timers --horizon 3600 --out results";

/// Measure the cost of timers: schedule, cancel, reschedule and expire, by strategy and number.
///
/// Delays are random, and timers are touched in random order. Strategies are interleaved. The same figures
/// are written as JSON and CSV.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Timer queues: heap, wheel, hashed-wheel, list [default: all]
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    strategies: Vec<Strategy>,
    /// Numbers of timers [default: 1000,100000,1000000]
    #[arg(long, value_name = "N,..", value_delimiter = ',', value_parser = whole(0..=u32::MAX))]
    timers: Vec<u32>,
    /// The longest delay, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = whole(0..=u32::MAX))]
    horizon: u32,
    #[command(flatten)]
    series: SeriesArgs,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let settings = self.settings()?;
        settings.check()?;
        let mut directory = self.series.directory("bench-timers")?;
        let results = timers::run(&settings)?;
        common::print(&timers::report::text(&results))?;
        timers::report::write(&results, &mut directory)?;
        common::print(&format!(
            "\nWritten to {}: timers.json, runs.csv, summary.csv and report.txt\n",
            directory.path().display()
        ))
    }

    fn settings(&self) -> anyhow::Result<Settings> {
        Ok(Settings {
            strategies: series::or(&self.strategies, &Strategy::all()),
            counts: series::or(&self.timers, &[1_000, 100_000, 1_000_000]),
            rounds: self.series.rounds(),
            horizon_seconds: self.horizon,
            core: self.series.core()?,
            budget_seconds: self.series.budget_seconds(),
        })
    }
}
