//! The cost of a function call, by its kind (appendix C of paper 004).
//!
//! The paper takes the figures of ACE's test of function calls as the bound of what a portability layer can cost. The
//! kinds here are those that Rust has; each corresponds to a row of the paper where there is one. The time of a loop
//! without a call is measured in the same round and subtracted.

mod call_kind;
mod report;

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use spandrel_measure::stats::Summary;

use crate::LabError;
use crate::machine::Machine;
use crate::placement::on_core;
use crate::progress::Progress;

pub use call_kind::CallKind;
pub use report::{text, write};

/// The calls of a run.
pub const ITERATIONS: u64 = 10_000_000;

/// The number of calls and rounds, and the limits of an experiment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// The calls of each run.
    pub iterations: u64,
    /// The number of rounds, each with every kind.
    pub rounds: u32,
    /// The core of the thread, if it is pinned.
    pub core: Option<usize>,
    /// The time after which no further round begins.
    pub budget_seconds: Option<u64>,
}

/// One run of one kind of call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// The round, in which every kind of call has one run.
    pub round: u32,
    /// The kind of call that was measured.
    pub kind: CallKind,
    /// Nanoseconds for an iteration with the call.
    pub nanos: f64,
}

/// The rounds of a kind of call, summarised.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The kind of call that was measured.
    pub kind: CallKind,
    /// Nanoseconds for a call: an iteration without the empty one of its round, not below zero. For the empty iteration, the
    /// whole.
    pub nanos: Summary,
}

/// The measurements of all rounds with their summaries, as the result file has them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// The machine and program of the measurement.
    pub machine: Machine,
    /// The settings with which these figures were measured.
    pub settings: Settings,
    /// A summary of each kind.
    pub rows: Vec<Row>,
    /// The single runs, in the order in which they were made.
    pub measured: Vec<Measurement>,
}

/// Runs the whole series and summarises it.
///
/// # Errors
/// If there are no rounds or iterations, or the core is not available.
pub fn run(settings: &Settings) -> Result<Results, LabError> {
    if settings.rounds == 0 || settings.iterations == 0 {
        return Err(LabError::Settings("expected at least one round and one iteration".into()));
    }
    let machine = Machine::here();
    let measured = on_core(settings.core, || rounds(settings))?;
    let rows = CallKind::ALL.iter().filter_map(|kind| row(*kind, &measured)).collect();
    Ok(Results { machine, settings: settings.clone(), rows, measured })
}

fn rounds(settings: &Settings) -> Vec<Measurement> {
    let start = Instant::now();
    let mut progress = Progress::begin(u64::from(settings.rounds) * CallKind::ALL.len() as u64);
    let mut measured = Vec::new();
    for round in 0..settings.rounds {
        let is_overdue = settings.budget_seconds.is_some_and(|budget| start.elapsed() >= Duration::from_secs(budget));
        if is_overdue && round > 0 {
            break;
        }
        let mut order = CallKind::ALL;
        order.rotate_left(round as usize % CallKind::ALL.len());
        for kind in order {
            progress.at(kind.name());
            let (time, _) = call_kind::run(kind, settings.iterations);
            let nanos = time.as_nanos() as f64 / settings.iterations as f64;
            progress.step(kind.name(), &format!("{nanos:.2} ns"));
            measured.push(Measurement { round, kind, nanos });
        }
    }
    progress.finish();
    measured
}

fn row(kind: CallKind, measured: &[Measurement]) -> Option<Row> {
    let of = |kind, round| measured.iter().find(|run| run.kind == kind && run.round == round).map(|run| run.nanos);
    let values = measured.iter().filter(|run| run.kind == kind).filter_map(|run| match kind {
        CallKind::Empty => Some(run.nanos),
        _ => Some((run.nanos - of(CallKind::Empty, run.round)?).max(0.0)),
    });
    Some(Row { kind, nanos: Summary::from_values(values)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_row_of_all_rounds() {
        let settings = Settings { iterations: 1_000, rounds: 3, core: None, budget_seconds: None };
        let results = run(&settings).unwrap();
        assert_eq!(results.rows.len(), CallKind::ALL.len());
        assert!(results.rows.iter().all(|row| row.nanos.count == 3));
        let text = text(&results);
        assert!(text.contains("virtual member function call, optimizable"), "{text}");
        assert!(run(&Settings { rounds: 0, ..settings }).is_err());
    }
}
