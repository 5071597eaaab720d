//! `spandrel latency --servants`: call times by number of servants.

use std::path::PathBuf;

use spandrel_lab::LabError;
use spandrel_lab::scalability::{self, Algorithm, Contender, Settings, Style};
use spandrel_lab::workload::CallKind;

use crate::common;
use crate::peer::launch;

/// Options for many servants.
#[derive(Debug, clap::Args)]
#[group(skip)] // it would have the name of the one that it is flattened into
pub(super) struct Args {
    /// Measure servers with these numbers of servants
    #[arg(long, value_name = "N,..", value_delimiter = ',', conflicts_with = "connect")]
    servants: Vec<u32>,
    /// With --servants: the order of calls: train, round-robin, random, worst-case [default: all]
    #[arg(long, value_name = "NAME,..", value_delimiter = ',', requires = "servants")]
    algorithm: Vec<Algorithm>,
    /// With --servants: the invocation interfaces: static, dii, dii-reused, dsi [default: all]
    #[arg(long, value_name = "NAME,..", value_delimiter = ',', requires = "servants")]
    style: Vec<Style>,
    /// With --servants: oneway, twoway [default: both]
    #[arg(long, value_name = "NAME,..", value_delimiter = ',', requires = "servants")]
    call: Vec<CallKind>,
    /// With --servants: maximum number of timed calls per round; if a hundred on each servant would be more,
    /// other servants are called in each round [default: 100000; with --quick: 2000]
    #[arg(long, value_name = "N", requires = "servants")]
    most_calls: Option<u32>,
    /// The folder with JacORB's servants-server and servants-client [default: where `cargo xtask interop`
    /// builds them]
    #[arg(long, value_name = "DIR", env = "SPANDREL_JACORB", requires = "servants")]
    jacorb: Option<PathBuf>,
}

impl Args {
    pub(super) fn are_wanted(&self) -> bool {
        !self.servants.is_empty()
    }
}

fn or_all<T: Copy>(given: &[T], all: &[T]) -> Vec<T> {
    if given.is_empty() { all.to_vec() } else { given.to_vec() }
}

impl super::Args {
    pub(super) fn run_servants(&self) -> anyhow::Result<()> {
        let settings = self.servants_settings()?;
        settings.check()?;
        let mut directory = common::results_directory(self.out.as_deref(), "latency")?;
        let results = scalability::run(&settings, &launch)?;
        common::print(&scalability::report::text(&results))?;
        scalability::report::write(&results, &mut directory)?;
        common::print(&format!(
            "\nWritten to {}: servants.json, .txt, servants-rounds.csv, servants-summary.csv and plots\n",
            directory.path().display()
        ))
    }

    fn servants_settings(&self) -> Result<Settings, LabError> {
        let given = &self.servants;
        Ok(Settings {
            servants: given.servants.clone(),
            placements: self.placements(),
            algorithms: or_all(&given.algorithm, &Algorithm::ALL),
            calls: or_all(&given.call, &[CallKind::OneWay, CallKind::TwoWay]),
            cases: self.cases(),
            styles: or_all(&given.style, &Style::ALL),
            contenders: self.contenders(Contender::ALL.to_vec())?,
            calls_per_round: self.calls.unwrap_or(if self.quick { 2_000 } else { 10_000 }),
            most_calls: given.most_calls.unwrap_or(if self.quick { 2_000 } else { 100_000 }),
            rounds: self.rounds.unwrap_or(if self.quick { 2 } else { 7 }),
            omniorb: self.omniorb.clone(),
            jacorb: given.jacorb.clone(),
            limit_seconds: self.timeout,
        })
    }
}
