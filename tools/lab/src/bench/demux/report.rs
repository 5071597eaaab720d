//! Report of the demultiplexing experiment: the figures of chapter 6 as tables, the table of overheads, the
//! goals, and calls.

use std::fmt::Write as _;

use spandrel_measure::stats::Summary;
use spandrel_measure::table;
use spandrel_measure::units::grouped;

use super::plot;
use super::requests::Algorithm;
use super::results::{Figures, Results, Row};
use super::settings::Strategy;
use crate::LabError;
use crate::output::Directory;

/// The goal for a lookup by active demultiplexing with the table in cache, in nanoseconds.
const GOAL_NANOS: f64 = 20.0;
/// The largest number of objects whose table is in the cache.
const MAX_CACHED_OBJECTS: u32 = 500;
/// The situation of table 6.1, if it was measured.
const PAPER_OBJECTS: u32 = 500;
const PAPER_OPERATIONS: u32 = 100;

/// Formats the results for a terminal.
#[must_use]
pub fn text(results: &Results) -> String {
    let mut text = String::new();
    let settings = &results.settings;
    let counts = results.rows.iter().filter_map(|row| Some(row.both()?.nanos.count));
    _ = writeln!(text, "{}", results.machine.summary());
    _ = writeln!(
        text,
        "Lookups one after the other without messages, by {}, {}; medians of {} interleaved rounds or more, in parentheses from lowest to highest",
        match settings.adapters {
            1 => "one adapter".to_owned(),
            adapters => format!("{} adapters in turn", grouped(f64::from(adapters))),
        },
        settings.core.map_or("not pinned", |_| "pinned to a core"),
        counts.min().unwrap_or(0),
    );
    let most = settings.operations.iter().copied().max().unwrap_or(1);
    for algorithm in &settings.algorithms {
        _ = writeln!(text, "\n{algorithm}, {most} operations (ns per lookup of object and operation, by objects)");
        _ = writeln!(text, "{}", by_objects(results, *algorithm, most));
    }
    for (strategy, reason) in absences(results) {
        _ = writeln!(text, "{strategy} is absent where so many objects are that {reason}");
    }
    let fewest = settings.objects.iter().copied().min().unwrap_or(1);
    _ = writeln!(text, "\nOperations alone, random (ns per lookup, by operations of the interface)");
    _ = writeln!(text, "{}", by_operations(results, fewest));
    overheads(results, &mut text);
    goals(results, &mut text);
    if !results.calls.is_empty() {
        calls(results, &mut text);
    }
    if let Some(warning) = results.machine.warning() {
        _ = write!(text, "\n{warning}");
    }
    text
}

fn by_objects(results: &Results, algorithm: Algorithm, operations: u32) -> table::Table {
    let counts = results.settings.objects.iter().map(|count| grouped(f64::from(*count)));
    let mut table = table::with_header(["strategy".to_owned()].into_iter().chain(counts).collect());
    for strategy in &results.settings.strategies {
        let cell = |objects: &u32| {
            let row = results.row(*objects, operations, algorithm, *strategy);
            row.and_then(Row::both).map_or("absent".to_owned(), |both| ranged(&both.nanos))
        };
        table.add_row([strategy.to_string()].into_iter().chain(results.settings.objects.iter().map(cell)));
    }
    table
}

fn by_operations(results: &Results, objects: u32) -> table::Table {
    let counts = results.settings.operations.iter().map(|count| grouped(f64::from(*count)));
    let mut table = table::with_header(["strategy".to_owned()].into_iter().chain(counts).collect());
    let algorithm = chosen(&results.settings.algorithms, Algorithm::Random);
    for strategy in &results.settings.strategies {
        let cell = |operations: &u32| {
            let row = results.row(objects, *operations, algorithm, *strategy);
            let figures = row.and_then(|row| row.figures.as_ref());
            figures.map_or("absent".to_owned(), |[_, operation, _]| ranged(&operation.nanos))
        };
        table.add_row([strategy.to_string()].into_iter().chain(results.settings.operations.iter().map(cell)));
    }
    table
}

/// Table 6.1: the parts of a lookup, in the worst case.
fn overheads(results: &Results, text: &mut String) {
    let settings = &results.settings;
    let objects = chosen(&settings.objects, PAPER_OBJECTS);
    let operations = chosen(&settings.operations, PAPER_OPERATIONS);
    let algorithm = chosen(&settings.algorithms, Algorithm::WorstCase);
    _ = writeln!(
        text,
        "\nDemultiplexing overhead (table 6.1): {} objects, {operations} operations, {algorithm}; ns, instructions in brackets",
        grouped(f64::from(objects)),
    );
    let call = two_way(results);
    let mut header = ["strategy", "object", "operation", "both"].map(str::to_owned).to_vec();
    if call.is_some() {
        header.push("% of a call".to_owned());
    }
    let mut table = table::with_header(header);
    for strategy in &settings.strategies {
        let Some(row) = results.row(objects, operations, algorithm, *strategy) else { continue };
        let mut cells = vec![strategy.to_string()];
        match &row.figures {
            Some(figures) => {
                cells.extend(figures.iter().map(counted));
                cells.extend(call.map(|call| {
                    // A lookup by this strategy instead of that of the measured calls: a part of either.
                    let both = figures[2].nanos.median;
                    format!("{:.1}", both / (call + both) * 100.0)
                }));
            }
            None => cells.push("absent".to_owned()),
        }
        cells.resize(4 + usize::from(call.is_some()), String::new());
        table.add_row(cells);
    }
    _ = writeln!(text, "{table}");
}

/// One two-way call in trains, in nanoseconds, with a prediction for each lookup: demultiplexing is a
/// negligible part of it.
fn two_way(results: &Results) -> Option<f64> {
    let rows = || results.calls.iter().filter(|row| row.algorithm == Algorithm::RequestTrain);
    rows().find(|row| row.predictions.adaptive && row.predictions.caching).map(|row| row.nanos.median)
}

fn goals(results: &Results, text: &mut String) {
    let settings = &results.settings;
    let in_cache = settings.objects.iter().copied().filter(|count| *count <= MAX_CACHED_OBJECTS).max();
    let operations = settings.operations.iter().copied().max().unwrap_or(1);
    let Some(objects) = in_cache else { return };
    for algorithm in &settings.algorithms {
        let row = results.row(objects, operations, *algorithm, Strategy::Active);
        let Some(both) = row.and_then(Row::both) else { continue };
        let nanos = both.nanos.median;
        let verdict = if nanos <= GOAL_NANOS { "met" } else { "missed" };
        _ = writeln!(
            text,
            "Goal: active demultiplexing with {objects} objects and {operations} operations in cache takes at most {GOAL_NANOS} ns; {algorithm}: {nanos:.1} ns, {verdict}",
        );
    }
    if settings.objects.contains(&1_000_000) {
        _ = writeln!(
            text,
            "Goal: with 1,000,000 objects at random at most two cold lines; a cache simulation counts them (docs/experiments.md)"
        );
    }
}

fn calls(results: &Results, text: &mut String) {
    _ = writeln!(
        text,
        "\nTwo-way calls on objects in a hash table (both sides; in brackets instructions in user mode)"
    );
    let mut table =
        table::with_header(vec!["remembered".to_owned(), "request-train".to_owned(), "round-robin".to_owned()]);
    for predictions in super::CallPredictions::ALL {
        let cell = |algorithm| {
            let row = results.calls.iter().find(|row| row.predictions == predictions && row.algorithm == algorithm);
            row.map_or(String::new(), |row| counted(&Figures { nanos: row.nanos, instructions: row.instructions }))
        };
        table.add_row([predictions.name().to_owned(), cell(Algorithm::RequestTrain), cell(Algorithm::RoundRobin)]);
    }
    _ = writeln!(text, "{table}");
}

/// The strategies that were not run, with the numbers of objects.
fn absences(results: &Results) -> Vec<(Strategy, &str)> {
    let mut absent: Vec<(Strategy, &str)> =
        results.rows.iter().filter_map(|row| Some((row.strategy, row.absent.as_deref()?))).collect();
    absent.dedup();
    absent.sort_by_key(|(strategy, _)| strategy.name());
    absent.dedup();
    absent
}

/// The wanted value, or the last one.
fn chosen<T: Copy + PartialEq>(all: &[T], wanted: T) -> T {
    all.iter().copied().find(|one| *one == wanted).or(all.last().copied()).unwrap_or(wanted)
}

fn ranged(summary: &Summary) -> String {
    format!("{:.1} ({:.1} to {:.1})", summary.median, summary.low, summary.high)
}

fn counted(figures: &Figures) -> String {
    match figures.instructions {
        Some(instructions) => format!("{} [{:.0}]", ranged(&figures.nanos), instructions.median),
        None => ranged(&figures.nanos),
    }
}

/// Writes the series as JSON, as CSV (the runs and the summaries), as text and as plots.
///
/// # Errors
/// If a file cannot be written.
pub fn write(results: &Results, directory: &mut Directory) -> Result<(), LabError> {
    directory.write_json("demux.json", results)?;
    directory.write("runs.csv", &runs_csv(results))?;
    directory.write("summary.csv", &summary_csv(results))?;
    directory.write("calls.csv", &calls_csv(results))?;
    directory.write("report.txt", &text(results))?;
    plot::write(results, directory)
}

const PARTS: [&str; 3] = ["object", "operation", "both"];

fn runs_csv(results: &Results) -> String {
    let mut csv =
        "objects,operations,algorithm,round,strategy,object_ns,operation_ns,both_ns,object_instructions,operation_instructions,both_instructions\n"
            .to_owned();
    for run in &results.measured {
        let costs = [run.costs.object, run.costs.operation, run.costs.both];
        let nanos = costs.map(|cost| format!("{:.2}", cost.nanos)).join(",");
        let instructions =
            costs.map(|cost| cost.instructions.map_or(String::new(), |count| format!("{count:.1}"))).join(",");
        _ = writeln!(
            csv,
            "{},{},{},{},{},{nanos},{instructions}",
            run.objects, run.operations, run.algorithm, run.round, run.strategy
        );
    }
    csv
}

fn summary_csv(results: &Results) -> String {
    let mut csv =
        "objects,operations,algorithm,strategy,part,median_ns,low_ns,high_ns,median_instructions\n".to_owned();
    for row in &results.rows {
        for (part, figures) in PARTS.iter().zip(row.figures.iter().flatten()) {
            let Figures { nanos: Summary { median, low, high, .. }, instructions } = figures;
            let instructions = instructions.map_or(String::new(), |count| format!("{:.1}", count.median));
            _ = writeln!(
                csv,
                "{},{},{},{},{part},{median:.2},{low:.2},{high:.2},{instructions}",
                row.objects, row.operations, row.algorithm, row.strategy
            );
        }
    }
    csv
}

fn calls_csv(results: &Results) -> String {
    let mut csv = "adaptive,caching,algorithm,median_ns,low_ns,high_ns,median_instructions\n".to_owned();
    for row in &results.calls {
        let Summary { median, low, high, .. } = row.nanos;
        let instructions = row.instructions.map_or(String::new(), |count| format!("{:.1}", count.median));
        _ = writeln!(
            csv,
            "{},{},{},{median:.1},{low:.1},{high:.1},{instructions}",
            row.predictions.adaptive, row.predictions.caching, row.algorithm
        );
    }
    csv
}

#[cfg(test)]
mod tests {
    use super::super::calls::MeasuredCall;
    use super::super::lookup::{Cost, Costs};
    use super::super::{CallPredictions, Measurement, Settings};
    use super::*;
    use crate::machine::Machine;

    fn results() -> Results {
        let settings = Settings {
            strategies: Strategy::ALL.to_vec(),
            objects: vec![1, 500, 1_000_000],
            operations: vec![10, 100],
            adapters: 1,
            algorithms: Algorithm::ALL.to_vec(),
            rounds: 3,
            run_micros: 1_000,
            lookups: None,
            calls: 1_000,
            core: Some(0),
            budget_seconds: None,
        };
        let (mut measured, mut calls) = (Vec::new(), Vec::new());
        for round in 0..3 {
            for (objects, operations) in [(1, 10), (500, 10), (1_000_000, 10), (1, 100), (500, 100), (1_000_000, 100)] {
                for algorithm in Algorithm::ALL {
                    for (index, strategy) in Strategy::ALL.into_iter().enumerate() {
                        if strategy.unsupported_reason(objects).is_some() {
                            continue;
                        }
                        let base = f64::from(round) + 7.0 * (index + 1) as f64;
                        let cost = |nanos: f64| Cost { nanos, instructions: Some(4.0 * nanos) };
                        let costs = Costs { object: cost(base), operation: cost(base / 2.0), both: cost(base * 1.5) };
                        measured.push(Measurement { objects, operations, algorithm, strategy, round, costs });
                    }
                }
            }
            for algorithm in super::super::calls::ALGORITHMS {
                for (index, predictions) in CallPredictions::ALL.into_iter().enumerate() {
                    let cost = Cost { nanos: 3_000.0 - 40.0 * index as f64 + f64::from(round), instructions: None };
                    calls.push(MeasuredCall { predictions, algorithm, round, cost });
                }
            }
        }
        Results::from_measurements(Machine::example(), settings, measured, calls)
    }

    #[test]
    fn the_figures_and_the_table_of_the_paper() {
        insta::assert_snapshot!(text(&results()));
    }

    #[test]
    fn the_runs_and_summaries_as_csv() {
        let summary = summary_csv(&results());
        insta::assert_snapshot!(summary.lines().take(20).collect::<Vec<_>>().join("\n"));
        insta::assert_snapshot!(calls_csv(&results()));
        assert_eq!(runs_csv(&results()).lines().count(), 1 + 3 * 2 * 4 * (6 + 6 + 5));
    }

    #[test]
    fn every_algorithm_has_its_pictures() {
        let folder = tempfile::tempdir().unwrap();
        let mut directory = Directory::create(folder.path()).unwrap();
        write(&results(), &mut directory).unwrap();
        assert_eq!(directory.files().iter().filter(|path| path.extension().is_some_and(|it| it == "svg")).count(), 8);
    }

    #[test]
    fn measurements_are_parsed_from_their_json() {
        let text = serde_json::to_string(&results()).unwrap();
        assert_eq!(serde_json::from_str::<Results>(&text).unwrap(), results());
    }
}
