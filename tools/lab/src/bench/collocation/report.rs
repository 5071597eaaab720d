//! Report of the collocation experiment: a row per path.

use std::fmt::Write as _;

use spandrel_measure::stats::Summary;
use spandrel_measure::table;

use super::{OPERATIONS, Results};
use crate::LabError;
use crate::output::Directory;

/// Formats the results for a terminal.
#[must_use]
pub fn text(results: &Results) -> String {
    let mut text = String::new();
    _ = writeln!(text, "{}", results.machine.summary());
    let placed = if results.settings.core.is_some() { "pinned to a core" } else { "not pinned" };
    let rounds = results.settings.rounds;
    _ = writeln!(
        text,
        "A call on an object of the same ORB, ns, {placed}; medians of {rounds} interleaved rounds, in parentheses from lowest to highest\n"
    );
    let header = ["path"].into_iter().chain(OPERATIONS).map(str::to_owned).collect();
    let mut table = table::with_header(header);
    for row in &results.rows {
        let mut cells = vec![row.path.to_string()];
        cells.extend(row.nanos.iter().map(ranged));
        table.add_row(cells);
    }
    _ = writeln!(text, "{table}");
    if let Some(warning) = results.machine.warning() {
        _ = write!(text, "\n{warning}");
    }
    text
}

fn ranged(summary: &Summary) -> String {
    format!("{:.1} ({:.1} to {:.1})", summary.median, summary.low, summary.high)
}

/// Writes the series as JSON and as text.
///
/// # Errors
/// If a file cannot be written.
pub fn write(results: &Results, directory: &mut Directory) -> Result<(), LabError> {
    directory.write_json("collocation.json", results)?;
    directory.write("report.txt", &text(results))
}
