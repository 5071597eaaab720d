//! Report of the timer experiment: a table per number of timers, a row per strategy.

use std::fmt::Write as _;

use spandrel_measure::stats::Summary;
use spandrel_measure::table;
use spandrel_measure::units::grouped;

use super::cost::OPERATIONS;
use super::results::{Results, Row};
use crate::LabError;
use crate::output::Directory;

/// Formats the results for a terminal.
#[must_use]
pub fn text(results: &Results) -> String {
    let mut text = String::new();
    let settings = &results.settings;
    let rounds = results.rows.iter().filter_map(|row| row.nanos).map(|nanos| nanos[0].count).min().unwrap_or(0);
    _ = writeln!(text, "{}", results.machine.summary());
    _ = writeln!(
        text,
        "Random delays up to {} s, timers touched in random order, {}; medians of {rounds} interleaved rounds, in parentheses from lowest to highest",
        settings.horizon_seconds,
        settings.core.map_or("not pinned".to_owned(), |_| "pinned to a core".to_owned()),
    );
    for count in &settings.counts {
        _ = writeln!(text, "\n{} timers (ns per timer)", grouped(f64::from(*count)));
        let rows: Vec<&Row> = results.rows.iter().filter(|row| row.count == *count).collect();
        _ = writeln!(text, "{}", table(&rows));
        for (strategy, reason) in rows.iter().filter_map(|row| Some((row.strategy, row.absent.as_ref()?))) {
            _ = writeln!(text, "{strategy} is absent: {reason}");
        }
    }
    if let Some(warning) = results.machine.warning() {
        _ = write!(text, "\n{warning}");
    }
    text
}

fn table(rows: &[&Row]) -> table::Table {
    let operations = OPERATIONS.map(|operation| operation.name().to_owned());
    let header: Vec<String> = ["strategy".to_owned()].into_iter().chain(operations).collect();
    let columns = header.len();
    let mut table = table::with_header(header);
    for row in rows {
        let mut cells = vec![row.strategy.to_string()];
        match &row.nanos {
            Some(nanos) => cells.extend(nanos.iter().map(ranged)),
            None => cells.push("absent".to_owned()),
        }
        cells.resize(columns, String::new());
        table.add_row(cells);
    }
    table
}

fn ranged(summary: &Summary) -> String {
    format!("{:.1} ({:.1} to {:.1})", summary.median, summary.low, summary.high)
}

/// Writes the series as JSON, as CSV (the runs and the summaries) and as text.
///
/// # Errors
/// If a file cannot be written.
pub fn write(results: &Results, directory: &mut Directory) -> Result<(), LabError> {
    directory.write_json("timers.json", results)?;
    directory.write("runs.csv", &runs_csv(results))?;
    directory.write("summary.csv", &summary_csv(results))?;
    directory.write("report.txt", &text(results))
}

fn runs_csv(results: &Results) -> String {
    let mut csv = "timers,round,strategy,schedule_ns,cancel_ns,reschedule_ns,expire_ns\n".to_owned();
    for run in &results.measured {
        let nanos = run.nanos.map(|nanos| format!("{nanos:.2}")).join(",");
        _ = writeln!(csv, "{},{},{},{nanos}", run.count, run.round, run.strategy);
    }
    csv
}

fn summary_csv(results: &Results) -> String {
    let mut csv = "timers,strategy,operation,median_ns,low_ns,high_ns\n".to_owned();
    for row in &results.rows {
        for (operation, nanos) in OPERATIONS.iter().zip(row.nanos.iter().flatten()) {
            let (median, low, high) = (nanos.median, nanos.low, nanos.high);
            let name = operation.name();
            _ = writeln!(csv, "{},{},{name},{median:.2},{low:.2},{high:.2}", row.count, row.strategy);
        }
    }
    csv
}

#[cfg(test)]
mod tests {
    use super::super::{Measurement, Settings, Strategy};
    use super::*;
    use crate::machine::Machine;

    fn results() -> Results {
        let settings = Settings {
            strategies: Strategy::all(),
            counts: vec![1_000, 1_000_000],
            rounds: 3,
            horizon_seconds: 300,
            core: Some(0),
            budget_seconds: None,
        };
        let mut measured = Vec::new();
        for round in 0..3 {
            for (index, strategy) in Strategy::all().into_iter().enumerate() {
                for count in [1_000, 1_000_000] {
                    if strategy.unsupported_reason(count).is_none() {
                        let base = f64::from(round) + 10.0 * (index + 1) as f64;
                        let nanos = [base, base + 0.25, base * 2.0, base * 3.0];
                        measured.push(Measurement { count, round, strategy, nanos });
                    }
                }
            }
        }
        Results::from_measurements(Machine::example(), settings, measured)
    }

    #[test]
    fn each_strategy_has_its_row_run_or_not() {
        insta::assert_snapshot!(text(&results()));
    }

    #[test]
    fn the_runs_and_summaries_as_csv() {
        insta::assert_snapshot!(summary_csv(&results()));
        assert_eq!(runs_csv(&results()).lines().count(), 1 + 3 * 7);
    }

    #[test]
    fn measurements_are_parsed_from_their_json() {
        let text = serde_json::to_string(&results()).unwrap();
        assert_eq!(serde_json::from_str::<Results>(&text).unwrap(), results());
    }
}
