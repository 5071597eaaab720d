//! `spandrel bench functions`: options of the experiment with function calls.

use spandrel_lab::bench::functions::{self, ITERATIONS, Settings};

use super::series::SeriesArgs;
use crate::common;

/// Measure the cost of a function call: inline, plain, by a type parameter, a trait object, a closure.
///
/// The rows of appendix C of paper 004 stand beside those of Rust.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    series: SeriesArgs,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let settings = Settings {
            iterations: ITERATIONS,
            rounds: self.series.rounds(),
            core: self.series.core()?,
            budget_seconds: self.series.budget_seconds(),
        };
        let mut directory = self.series.directory("bench-functions")?;
        let results = functions::run(&settings)?;
        common::print(&functions::text(&results))?;
        functions::write(&results, &mut directory)?;
        let folder = directory.path().display();
        common::print(&format!("\nWritten to {folder}: functions.json, runs.csv and report.txt\n"))
    }
}
