//! The collocation experiment: the cost of a call to an object of the same ORB, by strategy, compared with a
//! virtual call.
//!
//! One thread of one process does everything; only calls through a socket have another one at their end. The
//! strategies run in turn.

mod calls;
pub mod report;

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use spandrel_measure::stats::Summary;

use crate::LabError;
use crate::machine::Machine;
use crate::placement::on_core;
use crate::progress::Progress;
use calls::Callee;
pub use calls::Path;

/// The names of the operations called.
pub const OPERATIONS: [&str; 3] = ["void", "two numbers", "128 doubles"];

/// The configurations to measure, and the number and length of their runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// The ways to call, in the order of the report.
    pub paths: Vec<Path>,
    /// The runs of each configuration; they take turns with those of the others.
    pub rounds: u32,
    /// Calls per run and operation; by default as many as take a few milliseconds.
    pub calls: Option<u64>,
    /// The core to which the experiment is pinned; without one, the scheduler chooses.
    pub core: Option<usize>,
}

/// The time of one path in one round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// The way that the calls took.
    pub path: Path,
    /// The round of the series in which it was measured.
    pub round: u32,
    /// Nanoseconds per call, for each of [`OPERATIONS`].
    pub nanos: [f64; 3],
}

/// The runs of one path, summarised.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The way that the calls took.
    pub path: Path,
    /// Nanoseconds per call, for each of [`OPERATIONS`].
    pub nanos: [Summary; 3],
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
    /// A summary of each path.
    pub rows: Vec<Row>,
    /// The single runs, in the order in which they were made.
    pub measured: Vec<Measurement>,
}

/// Runs the whole series and summarises it.
///
/// # Errors
/// If the settings are invalid, the core is not available, or a call fails.
pub fn run(settings: &Settings) -> Result<Results, LabError> {
    if settings.paths.is_empty() || settings.rounds == 0 || settings.calls == Some(0) {
        let reason = "nothing to run: the settings need at least one path, round and call";
        return Err(LabError::Settings(reason.to_owned()));
    }
    let machine = Machine::here();
    let measured = on_core(settings.core, || rounds(settings))??;
    let row = |path: &Path| {
        let here = || measured.iter().filter(|run| run.path == *path);
        let nanos: Option<Vec<Summary>> =
            (0..3).map(|nth| Summary::from_values(here().map(|run| run.nanos[nth]))).collect();
        Some(Row { path: *path, nanos: nanos?.try_into().ok()? })
    };
    let rows = settings.paths.iter().filter_map(row).collect();
    Ok(Results { experiment: "collocation".to_owned(), machine, settings: settings.clone(), rows, measured })
}

fn rounds(settings: &Settings) -> Result<Vec<Measurement>, LabError> {
    let callees = settings.paths.iter().map(|path| Callee::new(*path).map(|callee| (*path, callee)));
    let callees = callees.collect::<Result<Vec<_>, LabError>>()?;
    let mut progress = Progress::begin(callees.len() as u64 * u64::from(settings.rounds));
    let mut measured = Vec::new();
    for round in 0..settings.rounds {
        for (path, callee) in &callees {
            progress.at(path.name());
            let mut nanos = [0.0; 3];
            for (nth, place) in nanos.iter_mut().enumerate() {
                *place = per_call(settings.calls, |calls| callee.call(nth, calls))?;
            }
            progress.step(path.name(), &format!("{:.1} ns", nanos[0]));
            measured.push(Measurement { path: *path, round, nanos });
        }
    }
    progress.finish();
    Ok(measured)
}

/// Long enough for the clock, and short enough for many rounds.
const RUN: Duration = Duration::from_millis(10);

/// Nanoseconds per call, over the given number of calls, or as many as take long enough.
fn per_call(calls: Option<u64>, call: impl Fn(u64) -> Result<(), LabError>) -> Result<f64, LabError> {
    let mut count = calls.unwrap_or(64);
    loop {
        let start = Instant::now();
        call(count)?;
        let taken = start.elapsed();
        if calls.is_some() || taken >= RUN {
            return Ok(taken.as_nanos() as f64 / count as f64);
        }
        count *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_is_run_in_every_round() {
        let settings = Settings { paths: Path::ALL.to_vec(), rounds: 2, calls: Some(100), core: None };
        let results = run(&settings).unwrap();
        assert_eq!(results.rows.len(), 4);
        for row in &results.rows {
            assert!(row.nanos.iter().all(|nanos| nanos.count == 2 && nanos.median > 0.0), "{row:?}");
        }
        let text = serde_json::to_string(&results).unwrap();
        assert_eq!(serde_json::from_str::<Results>(&text).unwrap().rows.len(), 4);
        assert!(run(&Settings { rounds: 0, ..settings }).is_err());
    }

    #[test]
    fn paths_are_parsed() {
        for path in Path::ALL {
            assert_eq!(path.name().parse::<Path>().unwrap(), path);
        }
        assert!("elsewhere".parse::<Path>().is_err());
    }
}
