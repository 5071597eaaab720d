//! Results of a series: the runs, and their summaries.
//!
//! `report` writes the files with these results.

use serde::{Deserialize, Serialize};
use spandrel_measure::stats::Summary;

use super::settings::Settings;
use crate::machine::Machine;
use crate::mechanism::MechanismName;
use crate::peer::Outcome;
use crate::workload::{CallKind, DataType, Flood};

/// A flood by one mechanism, and its outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The round; runs of a cell in one round followed each other directly.
    pub round: u32,
    /// The mechanism that carried the data.
    pub mechanism: MechanismName,
    /// The data that was sent.
    pub flood: Flood,
    /// The time and figures, or the failure.
    pub outcome: Outcome,
}

/// The runs of one mechanism with one type and size, summarised.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// One-way or two-way calls.
    pub call: CallKind,
    /// The IDL type of the elements.
    pub data: DataType,
    /// Nominal size of a buffer.
    pub buffer_octets: usize,
    /// The mechanism that carried the data.
    pub mechanism: MechanismName,
    /// Throughput of user data in Mbit/s.
    pub mbps: Summary,
    /// The ratio to mechanism `c`, formed within each round; absent if `c` was not run.
    pub ratio: Option<Summary>,
    /// Processor time per MiB of user data in milliseconds, both processes together; none where it is not
    /// known.
    pub cpu_ms_per_mib: Option<Summary>,
}

/// The measurements of all rounds with their summaries, as the result file has them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// The experiment's name, for programs that read the file.
    pub experiment: String,
    /// The machine and program of the measurement.
    pub machine: Machine,
    /// The settings with which these figures were measured.
    pub settings: Settings,
    /// The runs of each combination, summarised.
    pub cells: Vec<Cell>,
    /// The single runs, in the order in which they were made.
    pub runs: Vec<Run>,
}

impl Results {
    pub(super) fn from_measurements(machine: Machine, settings: Settings, runs: Vec<Run>) -> Self {
        let mut cells = Vec::new();
        let base = MechanismName::base(&settings.mechanisms);
        for call in &settings.calls {
            for data in &settings.types {
                for size in &settings.sizes {
                    let here: Vec<&Run> =
                        runs.iter().filter(|run| key(run) == (*call, *data, size.0 as usize)).collect();
                    cells.extend(settings.mechanisms.iter().filter_map(|mechanism| summarise(&here, *mechanism, base)));
                }
            }
        }
        Self { experiment: "ttcp".to_owned(), machine, settings, cells, runs }
    }

    /// The mechanism by whose throughput all others are divided.
    #[must_use]
    pub fn base(&self) -> MechanismName {
        MechanismName::base(&self.settings.mechanisms)
    }

    /// The summary of a mechanism's runs, if it was run.
    #[must_use]
    pub fn cell(
        &self,
        call: CallKind,
        data: DataType,
        buffer_octets: usize,
        mechanism: MechanismName,
    ) -> Option<&Cell> {
        let wanted = (call, data, buffer_octets, mechanism);
        self.cells.iter().find(|cell| (cell.call, cell.data, cell.buffer_octets, cell.mechanism) == wanted)
    }

    /// The number of runs of the least repeated cell.
    #[must_use]
    pub fn rounds(&self) -> usize {
        self.cells.iter().map(|cell| cell.mbps.count).min().unwrap_or(0)
    }
}

fn key(run: &Run) -> (CallKind, DataType, usize) {
    (run.flood.call, run.flood.data, run.flood.buffer_octets)
}

fn summarise(runs: &[&Run], mechanism: MechanismName, base: MechanismName) -> Option<Cell> {
    let of = |mechanism| runs.iter().filter(move |run| run.mechanism == mechanism).copied();
    let rates = |mechanism| of(mechanism).map(|run: &Run| (run.round, run.outcome.mbps())).collect::<Vec<_>>();
    let (own, base) = (rates(mechanism), rates(base));
    let (call, data, buffer_octets) = key(of(mechanism).next()?);
    let cpu = of(mechanism).map(|run| {
        let mib = run.outcome.octets as f64 / f64::from(1 << 20);
        (run.outcome.transmitter_cpu + run.outcome.receiver_cpu) * 1000.0 / mib
    });
    Some(Cell {
        call,
        data,
        buffer_octets,
        mechanism,
        mbps: Summary::from_values(own.iter().map(|(_, rate)| *rate))?,
        ratio: Summary::of_ratios(&own, &base),
        cpu_ms_per_mib: Summary::from_values(cpu).filter(|cpu| cpu.high > 0.0),
    })
}
