//! `spandrel bench growth`: options of the long run.

use std::path::PathBuf;

use anyhow::bail;
use spandrel_lab::bench::growth::{self, Kind, Settings};

use crate::common::{self, whole};

const EXAMPLES: &str = "\
Examples:
  spandrel bench growth
  spandrel bench growth --kinds churn,call-back --calls 1000000";

/// Make millions of calls of every kind, and check whether memory, descriptors, threads or objects grow.
///
/// The calls are divided among the kinds. The first fifth of them is warm-up. The command fails if anything
/// grew.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Calls of all kinds together
    #[arg(long, value_name = "N", default_value_t = 10_000_000, value_parser = whole(0..=u64::MAX))]
    calls: u64,
    /// Kinds of calls: two-way, echo, exception, one-way, locate, churn, call-back, asynchronous, deferred,
    /// dynamic, collocated [default: all]
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    kinds: Vec<Kind>,
    /// Folder for JSON and text [default: target/bench-growth in a Cargo workspace, otherwise
    /// spandrel-bench-growth]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let kinds = if self.kinds.is_empty() { Kind::ALL.to_vec() } else { self.kinds };
        let mut directory = common::results_directory(self.out.as_deref(), "bench-growth")?;
        let results = growth::run(&Settings { calls: self.calls, kinds })?;
        common::print(&growth::report::text(&results))?;
        growth::report::write(&results, &mut directory)?;
        common::print(&format!("\nWritten to {}: growth.json and report.txt\n", directory.path().display()))?;
        if !results.is_steady() {
            bail!("memory, descriptors, threads or objects grew: see the report");
        }
        Ok(())
    }
}
