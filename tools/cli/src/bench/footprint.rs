//! `spandrel bench footprint`: options of the footprint experiment.

use std::env;
use std::path::PathBuf;

use anyhow::Context as _;
use spandrel_lab::bench::footprint::{self, Part, Settings};
use spandrel_lab::placement::{Placement, Role, cores};

use crate::common::{self, PlacementArg, whole};

const EXAMPLES: &str = "\
Examples:
  spandrel bench footprint
  spandrel bench footprint --parts latency --rounds 21
  spandrel bench footprint --parts minimum";

/// Measure the size of stubs and skeletons, by marshaling engine, and of a client in a program.
///
/// Builds small crates with the interface of the paper's appendix C and with services, for speed and for
/// size, and reads object files (the part `sizes`, with the feature `object-files`). Needs Cargo and the source
/// tree, and some minutes. The same figures are written as JSON and CSV.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Parts of the experiment: sizes, latency, minimum [default: all]
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    parts: Vec<Part>,
    /// Interleaved rounds of calls
    #[arg(long, value_name = "N", default_value_t = 9, value_parser = whole(0..=u32::MAX))]
    rounds: u32,
    /// Calls of an operation in a round, by default as in the paper
    #[arg(long, value_name = "N", default_value_t = 2_000, value_parser = whole(0..=u32::MAX))]
    calls: u32,
    /// Whether calls are pinned to a core: one, or free [default: one, where that is possible]
    #[arg(long, value_enum)]
    placement: Option<PlacementArg>,
    /// Folder for JSON and CSV files and build output [default: target/bench-footprint in a Cargo workspace,
    /// otherwise spandrel-bench-footprint]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let cores = cores();
        let pinned = if cores.is_empty() { Placement::Free } else { Placement::One };
        let placement = self.placement.map_or(pinned, Placement::from);
        let settings = Settings {
            parts: if self.parts.is_empty() { Part::ALL.to_vec() } else { self.parts.clone() },
            rounds: self.rounds,
            calls: self.calls,
            core: placement.core(Role::Transmitter, &cores)?,
        };
        settings.check()?;
        let here = env::current_dir()?;
        let tree = here.ancestors().find(|folder| folder.join("orb/idl/Cargo.toml").is_file());
        let tree = tree.context("this experiment builds Spandrel: run it in the source tree")?;
        let mut directory = common::results_directory(self.out.as_deref(), "bench-footprint")?;
        let built = std::path::absolute(directory.path())?.join("built");
        let results = footprint::run(&settings, tree, &built)?;
        common::print(&footprint::report::text(&results))?;
        footprint::report::write(&results, &mut directory)?;
        common::print(&format!(
            "\nWritten to {}: footprint.json, sizes.csv, calls.csv and report.txt\n",
            directory.path().display()
        ))
    }
}
