//! Results of the timer experiment: the runs, and their summaries.

use serde::{Deserialize, Serialize};
use spandrel_measure::stats::Summary;

use super::settings::{Settings, Strategy};
use crate::machine::Machine;

/// One run of one strategy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// The timers in the queue.
    pub count: u32,
    /// The round; runs with as many timers in one round followed each other directly.
    pub round: u32,
    /// The data structure of the queue.
    pub strategy: Strategy,
    /// Nanoseconds per timer, for each of [`OPERATIONS`](super::OPERATIONS).
    pub nanos: [f64; 4],
}

/// The rounds of one strategy with one number of timers, summarised.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The timers in the queue.
    pub count: u32,
    /// The data structure of the queue.
    pub strategy: Strategy,
    /// Nanoseconds per timer, for each of [`OPERATIONS`](super::OPERATIONS); absent if it was not run.
    pub nanos: Option<[Summary; 4]>,
    /// The reason, if it was not run.
    pub absent: Option<String>,
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
    /// A summary of each configuration.
    pub rows: Vec<Row>,
    /// The single runs, in the order in which they were made.
    pub measured: Vec<Measurement>,
}

impl Results {
    pub(super) fn from_measurements(machine: Machine, settings: Settings, measured: Vec<Measurement>) -> Self {
        let row = |count: u32, strategy: Strategy| {
            let here = || measured.iter().filter(move |m| m.count == count && m.strategy == strategy);
            let summary = |operation: usize| Summary::from_values(here().map(|m| m.nanos[operation]));
            let nanos: Option<Vec<Summary>> = (0..4).map(summary).collect();
            let nanos = nanos.and_then(|nanos| nanos.try_into().ok());
            Row { count, strategy, nanos, absent: strategy.unsupported_reason(count) }
        };
        let by_strategy = |count: &u32| {
            let count = *count;
            settings.strategies.iter().map(move |strategy| row(count, *strategy)).collect::<Vec<_>>()
        };
        let rows = settings.counts.iter().flat_map(by_strategy).collect();
        Self { experiment: "timers".to_owned(), machine, settings, rows, measured }
    }
}
