//! Shows the latency experiment: a table per placement and kind of call, a row per contender.

use std::fmt::Write as _;

use super::results::{Results, Row};
use crate::LabError;
use crate::output::Directory;
use crate::stats::Summary;
use crate::table;
use crate::units::grouped;

/// The whole report as text.
#[must_use]
pub fn text(results: &Results) -> String {
    let mut text = String::new();
    let settings = &results.settings;
    let rounds = results.rows.iter().filter_map(|row| row.median_us).map(|median| median.count).min().unwrap_or(0);
    _ = writeln!(text, "{}", results.machine.summary());
    _ = writeln!(
        text,
        "{} calls per round; medians of {rounds} interleaved rounds, in parentheses from lowest to highest",
        grouped(f64::from(settings.calls))
    );
    for placement in &settings.placements {
        for case in &settings.cases {
            let rows: Vec<&Row> =
                results.rows.iter().filter(|row| row.placement == *placement && row.case == *case).collect();
            _ = writeln!(text, "\n{}, {}", case.description(), placement.description());
            _ = writeln!(text, "{}", table(&rows));
        }
    }
    text
}

fn table(rows: &[&Row]) -> comfy_table::Table {
    let header = ["", "median µs", "p99 µs", "calls/s", "ratio to c", "octets out + in"];
    let mut table = table::with_header(header.map(str::to_owned).to_vec());
    for row in rows {
        let mut cells = vec![row.contender.to_string()];
        match &row.absent {
            Some(why) => {
                cells.extend([format!("absent: {why}"), String::new(), String::new(), String::new(), String::new()])
            }
            None => {
                cells.push(row.median_us.map_or("-".to_owned(), |us| ranged(&us, 2)));
                cells.push(row.p99_us.map_or("-".to_owned(), |us| format!("{:.2}", us.median)));
                cells.push(row.calls_per_second.map_or("-".to_owned(), |rate| grouped(rate.median)));
                cells.push(row.ratio.map_or("-".to_owned(), |ratio| ranged(&ratio, 2)));
                cells.push(row.wire.map_or("-".to_owned(), |(request, reply)| format!("{request} + {reply}")));
            }
        }
        table.add_row(cells);
    }
    table
}

fn ranged(summary: &Summary, digits: usize) -> String {
    format!("{:.digits$} ({:.digits$} to {:.digits$})", summary.median, summary.low, summary.high)
}

/// Writes the series as JSON, as CSV (the rounds and the summaries) and as text.
///
/// # Errors
/// If a file cannot be written.
pub fn write(results: &Results, directory: &mut Directory) -> Result<(), LabError> {
    directory.write_json("latency.json", results)?;
    directory.write("rounds.csv", &rounds_csv(results))?;
    directory.write("summary.csv", &summary_csv(results))?;
    directory.write("report.txt", &text(results))
}

fn rounds_csv(results: &Results) -> String {
    let mut csv =
        "placement,case,round,mechanism,calls,min_us,median_us,p90_us,p99_us,max_us,mean_us,calls_per_second\n"
            .to_owned();
    for one in &results.measured {
        let times = &one.times;
        _ = write!(csv, "{},{},{},{},{},", one.placement, one.case, one.round, one.contender, times.calls);
        _ = write!(csv, "{:.3},{:.3},{:.3},{:.3},{:.3},", times.min, times.median, times.p90, times.p99, times.max);
        _ = writeln!(csv, "{:.3},{:.1}", times.mean, times.calls_per_second());
    }
    csv
}

fn summary_csv(results: &Results) -> String {
    let mut csv = "placement,case,mechanism,present,median_us,median_low_us,median_high_us,p99_us,calls_per_second,ratio,ratio_low,ratio_high\n".to_owned();
    let three = |summary: Option<Summary>| {
        summary.map_or(",,".to_owned(), |s| format!("{:.3},{:.3},{:.3}", s.median, s.low, s.high))
    };
    let one = |summary: Option<Summary>| summary.map_or(String::new(), |s| format!("{:.3}", s.median));
    for row in &results.rows {
        let present = if row.absent.is_some() { "no" } else { "yes" };
        _ = write!(csv, "{},{},{},{present},", row.placement, row.case, row.contender);
        _ = writeln!(
            csv,
            "{},{},{},{}",
            three(row.median_us),
            one(row.p99_us),
            one(row.calls_per_second),
            three(row.ratio)
        );
    }
    csv
}
