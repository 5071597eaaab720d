//! `spandrel bench collocation`: options of the collocation experiment.

use spandrel_lab::bench::collocation::{self, Path, Settings};

use super::series::{self, SeriesArgs};
use crate::common::{self, whole};

const EXAMPLES: &str = "\
Examples:
  spandrel bench collocation --quick
  spandrel bench collocation --paths virtual,direct --rounds 31
  valgrind --tool=callgrind spandrel bench collocation --paths direct --rounds 1 --calls 100000";

/// Measure the cost of a call to an object of the same ORB: as a virtual call, directly, through the adapter,
/// through a socket.
///
/// The paths run in turn. The same figures are written as JSON.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Call path: virtual, direct, through-poa, socket [default: all]
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    paths: Vec<Path>,
    /// Calls in each run [default: as many as take some milliseconds]
    #[arg(long, value_name = "N", value_parser = whole(0..=u64::MAX))]
    calls: Option<u64>,
    #[command(flatten)]
    series: SeriesArgs,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let settings = Settings {
            paths: series::or(&self.paths, &Path::ALL),
            rounds: self.series.rounds(),
            calls: self.calls,
            core: self.series.core()?,
        };
        let mut directory = self.series.directory("bench-collocation")?;
        let results = collocation::run(&settings)?;
        common::print(&collocation::report::text(&results))?;
        collocation::report::write(&results, &mut directory)?;
        common::print(&format!("\nWritten to {}: collocation.json and report.txt\n", directory.path().display()))
    }
}
