//! Report of the experiment with function calls.

use std::fmt::Write as _;

use spandrel_measure::table;
use spandrel_measure::units::grouped;

use super::{Results, Row};
use crate::LabError;
use crate::output::Directory;

/// Formats the results for a terminal.
#[must_use]
pub fn text(results: &Results) -> String {
    let (settings, mut text) = (&results.settings, results.machine.summary());
    let rounds = results.rows.iter().map(|row| row.nanos.count).min().unwrap_or_default();
    _ = writeln!(
        text,
        "\n{} calls in each run, {}; medians of {rounds} interleaved rounds, in parentheses from lowest to highest",
        grouped(settings.iterations as f64),
        settings.core.map_or("not pinned", |_| "pinned to a core"),
    );
    let header = ["call", "nanoseconds beyond an empty iteration", "row of paper 004, appendix C"];
    let mut table = table::with_header(header.map(str::to_owned).to_vec());
    for Row { kind, nanos } in &results.rows {
        let cell = format!("{:.2} ({:.2} to {:.2})", nanos.median, nanos.low, nanos.high);
        table.add_row([kind.name().to_owned(), cell, kind.paper_row().unwrap_or("-").to_owned()]);
    }
    _ = writeln!(text, "\n{table}");
    _ = writeln!(text, "\nThe row of the empty iteration is its whole time.");
    text.extend(results.machine.warning().map(|warning| format!("\n{warning}")));
    text
}

/// Writes the series as JSON, as CSV (the runs), and as text.
///
/// # Errors
/// If a file cannot be written.
pub fn write(results: &Results, directory: &mut Directory) -> Result<(), LabError> {
    let mut csv = "round,call,iteration_ns\n".to_owned();
    for run in &results.measured {
        _ = writeln!(csv, "{},{},{:.3}", run.round, run.kind.name(), run.nanos);
    }
    directory.write_json("functions.json", results)?;
    directory.write("runs.csv", &csv)?;
    directory.write("report.txt", &text(results))
}
