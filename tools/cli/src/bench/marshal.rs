//! `spandrel bench marshal`: options of the marshaling experiment.

use std::path::PathBuf;

use spandrel_lab::bench::marshal::{self, Contender, Settings};
use spandrel_lab::placement::{Placement, Role, cores};
use spandrel_lab::units::Octets;
use spandrel_lab::workload::DataType;

use crate::common::{self, PlacementArg};

const EXAMPLES: &str = "\
Examples:
  spandrel bench marshal --quick
  spandrel bench marshal --engines original,compiled --types struct --sizes 1K,128K
  spandrel bench marshal --rounds 21 --out results";

/// Measure marshaling alone: an interpreter, optimised step by step, beside the engines of the ORB and a plain copy.
///
/// Sequences of the papers' types are written into a block of octets and read back in one thread. The same figures are
/// written as JSON and CSV.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Who marshals: the ladder's rungs original, inlined, precomputed, split-decoding, split-encoding; the ORB's engines interpretive, adaptive, compiled, padded; copy [default: all]
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    engines: Vec<Contender>,
    /// Element types: short, char, long, octet, double, struct [default: all]
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    types: Vec<DataType>,
    /// Octets of a sequence [default: 1K,64K; with --quick: 64K]
    #[arg(long, value_name = "SIZE,..", value_delimiter = ',')]
    sizes: Vec<Octets>,
    /// How long a run lasts, in milliseconds [default: 20; with --quick: 5]
    #[arg(long, value_name = "MS")]
    millis: Option<u32>,
    /// Interleaved rounds [default: 11; with --quick: up to 5, as time allows]
    #[arg(long, value_name = "N")]
    rounds: Option<u32>,
    /// Whether it is pinned to a core: one, or free [default: one, where that can be done]
    #[arg(long, value_enum)]
    placement: Option<PlacementArg>,
    /// Where JSON and CSV files go [default: target/bench-marshal in a Cargo workspace, otherwise spandrel-bench-marshal]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Finish within 20 seconds: one size, shorter runs, fewer rounds
    #[arg(long)]
    quick: bool,
}

/// Seconds after which a quick series begins no further round.
const QUICK_BUDGET_SECONDS: u64 = 10;

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let settings = self.settings()?;
        settings.check()?;
        let mut directory = common::results_directory(self.out.as_deref(), "bench-marshal")?;
        let results = marshal::run(&settings)?;
        common::print(&marshal::report::text(&results))?;
        marshal::report::write(&results, &mut directory)?;
        common::print(&format!(
            "\nWritten to {}: marshal.json, runs.csv, summary.csv and report.txt\n",
            directory.path().display()
        ))
    }

    fn settings(&self) -> anyhow::Result<Settings> {
        let cores = cores();
        let pinned = if cores.is_empty() { Placement::Free } else { Placement::One };
        let placement = self.placement.map_or(pinned, Placement::from);
        let sizes: Vec<usize> = self.sizes.iter().map(|size| usize::try_from(size.0).unwrap_or(usize::MAX)).collect();
        let usual = if self.quick { vec![65_536] } else { vec![1_024, 65_536] };
        Ok(Settings {
            contenders: if self.engines.is_empty() { Contender::all() } else { self.engines.clone() },
            types: if self.types.is_empty() { DataType::ALL.to_vec() } else { self.types.clone() },
            sizes: if sizes.is_empty() { usual } else { sizes },
            rounds: self.rounds.unwrap_or(if self.quick { 5 } else { 11 }),
            run_micros: u64::from(self.millis.unwrap_or(if self.quick { 5 } else { 20 })) * 1_000,
            core: placement.core(Role::Transmitter, &cores)?,
            budget_seconds: self.quick.then_some(QUICK_BUDGET_SECONDS),
        })
    }
}
