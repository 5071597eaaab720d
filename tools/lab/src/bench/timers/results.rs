//! What the timer experiment has measured, and what it comes to.

use serde::{Deserialize, Serialize};

use super::settings::{Settings, Strategy};
use crate::machine::Machine;
use crate::stats::Summary;

/// One run of one strategy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// How many timers there were.
    pub count: u32,
    /// The round; runs with as many timers in one round followed each other directly.
    pub round: u32,
    /// Who kept them.
    pub strategy: Strategy,
    /// Nanoseconds per timer, for each of [`OPERATIONS`](super::OPERATIONS).
    pub nanos: [f64; 4],
}

/// The rounds of one strategy with one number of timers, summarised.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// How many timers there were.
    pub count: u32,
    /// Who kept them.
    pub strategy: Strategy,
    /// Nanoseconds per timer, for each of [`OPERATIONS`](super::OPERATIONS); absent if it was not run.
    pub nanos: Option<[Summary; 4]>,
    /// Why it was not run, if it was not.
    pub absent: Option<String>,
}

/// A whole series.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// The experiment's name, for programs that read the file.
    pub experiment: String,
    /// What it was measured on.
    pub machine: Machine,
    /// What was to be run.
    pub settings: Settings,
    /// The summaries.
    pub rows: Vec<Row>,
    /// The single runs, in the order in which they were made.
    pub measured: Vec<Measured>,
}

impl Results {
    pub(super) fn of(machine: Machine, settings: Settings, measured: Vec<Measured>) -> Self {
        let row = |count: u32, strategy: Strategy| {
            let here = || measured.iter().filter(move |m| m.count == count && m.strategy == strategy);
            let summary = |operation: usize| Summary::of(here().map(|m| m.nanos[operation]));
            let nanos: Option<Vec<Summary>> = (0..4).map(summary).collect();
            let nanos = nanos.and_then(|nanos| nanos.try_into().ok());
            Row { count, strategy, nanos, absent: strategy.unbearable(count) }
        };
        let by_strategy = |count: &u32| {
            let count = *count;
            settings.strategies.iter().map(move |strategy| row(count, *strategy)).collect::<Vec<_>>()
        };
        let rows = settings.counts.iter().flat_map(by_strategy).collect();
        Self { experiment: "timers".to_owned(), machine, settings, rows, measured }
    }
}
