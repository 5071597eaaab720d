//! Report of the growth experiment: a row per kind of call.

use std::fmt::Write as _;

use spandrel_measure::table;
use spandrel_measure::units::grouped;

use super::Results;
use crate::LabError;
use crate::output::Directory;

/// Formats the results for a terminal.
#[must_use]
pub fn text(results: &Results) -> String {
    let mut text = format!("{}\n", results.machine.summary());
    let header =
        ["", "calls", "calls/s", "KiB at first", "at last", "most", "descriptors", "threads", "objects", "grew"];
    let mut table = table::with_header(header.map(str::to_owned).to_vec());
    for row in &results.rows {
        let (Some(first), Some(last)) = (row.looks.first(), row.looks.last()) else { continue };
        let most = row.looks.iter().map(|look| look.resident).max().unwrap_or(0);
        let grown = row.grown();
        table.add_row([
            row.kind.to_string(),
            grouped(row.calls as f64),
            grouped(row.calls as f64 / row.seconds),
            grouped((first.resident / 1024) as f64),
            grouped((last.resident / 1024) as f64),
            grouped((most / 1024) as f64),
            format!("{} to {}", first.descriptors, last.descriptors),
            format!("{} to {}", first.threads, last.threads),
            format!("{} to {}", first.objects, last.objects),
            if grown.is_empty() { "nothing".to_owned() } else { grown.join(", ") },
        ]);
    }
    _ = writeln!(text, "{table}");
    text
}

/// Writes the run as JSON and as text.
///
/// # Errors
/// If a file cannot be written.
pub fn write(results: &Results, directory: &mut Directory) -> Result<(), LabError> {
    directory.write_json("growth.json", results)?;
    directory.write("report.txt", &text(results))
}
