//! `spandrel bench demux`: options of the demultiplexing experiment.

use spandrel_lab::bench::demux::{self, Algorithm, Settings, Strategy};

use super::series::{self, SeriesArgs};
use crate::common::{self, whole};

const EXAMPLES: &str = "\
Examples:
  spandrel bench demux --quick
  spandrel bench demux --strategies active,perfect-hash --objects 1,500,1000000 --operations 100
  spandrel bench demux --objects 500 --adapters 100
  spandrel bench demux --algorithms random --calls 0 --out results";

/// Measure the lookup of the object and the operation of a request: by strategy, number, and order of
/// requests.
///
/// Lookups are timed alone; then calls with adaptive demultiplexing and request caching on and off. The same
/// figures are written as JSON, CSV and plots.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Lookup strategy: active, perfect-hash, dynamic-hash, adaptive, binary-search, linear [default: all]
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    strategies: Vec<Strategy>,
    /// Number of objects [default: 1,100,200,300,400,500,10000,1000000; with --quick: 1,500,1000000]
    #[arg(long, value_name = "N,..", value_delimiter = ',', value_parser = whole(0..=u32::MAX))]
    objects: Vec<u32>,
    /// Number of operations of their interface [default: 1,10,20,50,100; with --quick: 10,100]
    #[arg(long, value_name = "N,..", value_delimiter = ',', value_parser = whole(0..=u32::MAX))]
    operations: Vec<u32>,
    /// Number of adapters that the objects are spread over; with more than one, consecutive objects belong to
    /// different adapters [default: 1]
    #[arg(long, value_name = "N", default_value_t = 1, hide_default_value = true, value_parser = whole(0..=u32::MAX))]
    adapters: u32,
    /// Order of requests: request-train, round-robin, random, worst-case [default: all]
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    algorithms: Vec<Algorithm>,
    /// Duration of a run, in microseconds [default: 1000; with --quick: 200]
    #[arg(long, value_name = "US", value_parser = whole(0..=u64::MAX))]
    micros: Option<u64>,
    /// Fixed number of lookups in a run, instead of a duration: for profilers
    #[arg(long, value_name = "N", value_parser = whole(0..=u64::MAX))]
    lookups: Option<u64>,
    /// Whole calls in a run; 0 for none [default: 10000; with --quick: 1000]
    #[arg(long, value_name = "N", value_parser = whole(0..=u32::MAX))]
    calls: Option<u32>,
    #[command(flatten)]
    series: SeriesArgs,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let settings = self.settings()?;
        settings.check()?;
        let mut directory = self.series.directory("bench-demux")?;
        let results = demux::run(&settings)?;
        common::print(&demux::report::text(&results))?;
        demux::report::write(&results, &mut directory)?;
        common::print(&format!(
            "\nWritten to {}: demux.json, runs.csv, summary.csv, calls.csv, report.txt and plots\n",
            directory.path().display()
        ))
    }

    fn settings(&self) -> anyhow::Result<Settings> {
        let quick = self.series.quick;
        let objects: &[u32] =
            if quick { &[1, 500, 1_000_000] } else { &[1, 100, 200, 300, 400, 500, 10_000, 1_000_000] };
        let operations: &[u32] = if quick { &[10, 100] } else { &[1, 10, 20, 50, 100] };
        Ok(Settings {
            strategies: series::or(&self.strategies, &Strategy::ALL),
            objects: series::or(&self.objects, objects),
            operations: series::or(&self.operations, operations),
            adapters: self.adapters,
            algorithms: series::or(&self.algorithms, &Algorithm::ALL),
            rounds: self.series.rounds(),
            run_micros: self.micros.unwrap_or(if quick { 200 } else { 1_000 }),
            lookups: self.lookups,
            calls: self.calls.unwrap_or(if quick { 1_000 } else { 10_000 }),
            core: self.series.core()?,
            budget_seconds: self.series.budget_seconds(),
        })
    }
}
