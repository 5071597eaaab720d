//! Results of the demultiplexing experiment: the runs, and their summaries.

use serde::{Deserialize, Serialize};
use spandrel_measure::stats::Summary;

use super::calls::{self, CallRow, MeasuredCall};
use super::lookup::{Cost, Costs};
use super::requests::Algorithm;
use super::settings::{Settings, Strategy};
use crate::machine::Machine;

/// One run of one strategy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// The active objects among which a lookup chooses.
    pub objects: u32,
    /// The operations of the objects' interface.
    pub operations: u32,
    /// The order of requests.
    pub algorithm: Algorithm,
    /// The data structures by which the server found them.
    pub strategy: Strategy,
    /// The round; runs that differ in their strategy only followed each other directly.
    pub round: u32,
    /// The costs of the lookups in this run.
    pub costs: Costs,
}

/// The cost of one part of a lookup over all rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// The nanoseconds of one lookup over the rounds.
    pub nanos: Summary,
    /// Instructions in user mode.
    pub instructions: Option<Summary>,
}

impl Figures {
    fn from_costs(costs: &[Cost]) -> Option<Self> {
        let instructions = Summary::from_values(costs.iter().filter_map(|cost| cost.instructions));
        Some(Self { nanos: Summary::from_values(costs.iter().map(|cost| cost.nanos))?, instructions })
    }
}

/// The rounds of one strategy in one situation, summarised.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The active objects among which a lookup chooses.
    pub objects: u32,
    /// The operations of the objects' interface.
    pub operations: u32,
    /// The order of requests.
    pub algorithm: Algorithm,
    /// The data structures by which the server found them.
    pub strategy: Strategy,
    /// Finding the object, its operation, and both; absent if it was not run.
    pub figures: Option<[Figures; 3]>,
    /// The reason, if it was not run.
    pub absent: Option<String>,
}

impl Row {
    /// The figures of finding object and operation together.
    #[must_use]
    pub fn both(&self) -> Option<&Figures> {
        self.figures.as_ref().map(|[_, _, both]| both)
    }
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
    /// The summaries of lookups.
    pub rows: Vec<Row>,
    /// The figures of whole calls, one row for each combination of predictions.
    pub calls: Vec<CallRow>,
    /// The single runs of lookups, in the order in which they were made.
    pub measured: Vec<Measurement>,
    /// The single runs of calls.
    pub measured_calls: Vec<MeasuredCall>,
}

impl Results {
    pub(super) fn from_measurements(
        machine: Machine,
        settings: Settings,
        measured: Vec<Measurement>,
        measured_calls: Vec<MeasuredCall>,
    ) -> Self {
        let mut rows = Vec::new();
        for objects in &settings.objects {
            for operations in &settings.operations {
                for algorithm in &settings.algorithms {
                    for strategy in &settings.strategies {
                        rows.push(row(&measured, *objects, *operations, *algorithm, *strategy));
                    }
                }
            }
        }
        let calls = calls::rows(&measured_calls);
        Self { experiment: "demux".to_owned(), machine, settings, rows, calls, measured, measured_calls }
    }

    /// The figures of one strategy in the experiment; `None` for values that the settings did not name.
    #[must_use]
    pub fn row(&self, objects: u32, operations: u32, algorithm: Algorithm, strategy: Strategy) -> Option<&Row> {
        let situation = (objects, operations, algorithm, strategy);
        self.rows.iter().find(|row| (row.objects, row.operations, row.algorithm, row.strategy) == situation)
    }
}

fn row(measured: &[Measurement], objects: u32, operations: u32, algorithm: Algorithm, strategy: Strategy) -> Row {
    let here = measured.iter().filter(|one| {
        (one.objects, one.operations, one.algorithm, one.strategy) == (objects, operations, algorithm, strategy)
    });
    let costs: Vec<Costs> = here.map(|one| one.costs).collect();
    let part = |part: fn(&Costs) -> Cost| Figures::from_costs(&costs.iter().map(part).collect::<Vec<_>>());
    let figures = (|| Some([part(|all| all.object)?, part(|all| all.operation)?, part(|all| all.both)?]))();
    Row { objects, operations, algorithm, strategy, figures, absent: strategy.unsupported_reason(objects) }
}
