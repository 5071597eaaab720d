//! `spandrel bench marshal`: options of the marshaling experiment.

use spandrel_lab::bench::marshal::{self, Contender, Settings};
use spandrel_lab::workload::DataType;
use spandrel_measure::units::Octets;

use super::series::{self, SeriesArgs};
use crate::common::{self, whole};

const EXAMPLES: &str = "\
Examples:
  spandrel bench marshal --quick
  spandrel bench marshal --engines original,compiled --types struct --sizes 1K,128K
  spandrel bench marshal --rounds 21 --out results";

/// Measure marshaling alone: an interpreter, optimised step by step, the engines of the ORB, and a plain
/// copy.
///
/// Sequences of the papers' types are written into a block of octets and read back in one thread. The same
/// figures are written as JSON and CSV.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Engines: the ladder's rungs original, simple-inlining, inlined, precomputed, split-decoding, split-encoding;
    /// the ORB's engines interpretive, adaptive, compiled, padded; copy [default: all]
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    engines: Vec<Contender>,
    /// Element types: short, char, long, octet, double, struct [default: all]
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    types: Vec<DataType>,
    /// Octets of a sequence [default: 1K,64K; with --quick: 64K]
    #[arg(long, value_name = "SIZE,..", value_delimiter = ',')]
    sizes: Vec<Octets>,
    /// Duration of a run, in milliseconds [default: 20; with --quick: 5]
    #[arg(long, value_name = "MS", value_parser = whole(0..=u32::MAX))]
    millis: Option<u32>,
    #[command(flatten)]
    series: SeriesArgs,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let settings = self.settings()?;
        settings.check()?;
        let mut directory = self.series.directory("bench-marshal")?;
        let results = marshal::run(&settings)?;
        common::print(&marshal::report::text(&results))?;
        marshal::report::write(&results, &mut directory)?;
        common::print(&format!(
            "\nWritten to {}: marshal.json, runs.csv, summary.csv and report.txt\n",
            directory.path().display()
        ))
    }

    fn settings(&self) -> anyhow::Result<Settings> {
        let sizes: Vec<usize> = self.sizes.iter().map(|size| usize::try_from(size.0).unwrap_or(usize::MAX)).collect();
        let usual: &[usize] = if self.series.quick { &[65_536] } else { &[1_024, 65_536] };
        Ok(Settings {
            contenders: series::or(&self.engines, &Contender::all()),
            types: series::or(&self.types, &DataType::ALL),
            sizes: series::or(&sizes, usual),
            rounds: self.series.rounds(),
            run_micros: u64::from(self.millis.unwrap_or(if self.series.quick { 5 } else { 20 })) * 1_000,
            core: self.series.core()?,
            budget_seconds: self.series.budget_seconds(),
        })
    }
}
