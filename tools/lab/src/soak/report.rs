//! Report of a soak run: a row per kind of traffic, and a row per process and sample.

use std::fmt::Write as _;

use spandrel_measure::table;
use spandrel_measure::units::grouped;

use super::Results;
use crate::LabError;
use crate::output::Directory;

/// Formats the results for a terminal.
#[must_use]
pub fn text(results: &Results) -> String {
    let settings = &results.settings;
    let mut text = format!("{}\n", results.machine.summary());
    _ = writeln!(
        text,
        "{} s of traffic by {} clients, drawn from seed {}\n",
        settings.seconds, settings.clients, settings.seed
    );
    let mut table = table::with_header(["traffic", "calls", "octets compared"].map(str::to_owned).to_vec());
    for row in &results.rows {
        table.add_row([row.kind.to_string(), grouped(row.calls as f64), grouped(row.octets as f64)]);
    }
    _ = writeln!(text, "{table}\n");
    let header = ["at rest after cycle", "", "KiB of memory", "threads", "descriptors", "objects"];
    let mut table = table::with_header(header.map(str::to_owned).to_vec());
    for process in &results.processes {
        for (cycle, look) in process.looks.iter().enumerate() {
            table.add_row([
                (cycle + 1).to_string(),
                process.name.clone(),
                grouped((look.resident / 1024) as f64),
                grouped(look.threads as f64),
                grouped(look.descriptors as f64),
                grouped(look.objects as f64),
            ]);
        }
    }
    _ = writeln!(text, "{table}");
    for failure in &results.first_failures {
        _ = writeln!(text, "failed: {failure}");
    }
    if results.complaints().is_empty() {
        _ = writeln!(text, "Every answer was right, and nothing grew.");
    }
    text
}

/// Writes the run as JSON and as text.
///
/// # Errors
/// If a file cannot be written.
pub fn write(results: &Results, directory: &mut Directory) -> Result<(), LabError> {
    directory.write_json("soak.json", results)?;
    directory.write("report.txt", &text(results))
}
