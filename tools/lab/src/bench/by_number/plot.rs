//! Charts of a series: rate, cost and time by number, a line per contender.

use std::fmt::Display;

use spandrel_measure::plot::{Line, Picture, Scale};
use spandrel_measure::stats::Summary;

use super::experiment::Experiment;
use super::results::{Results, Row};
use crate::LabError;
use crate::output::Directory;

/// A chart's file name, title and unit, and the value of a row.
type Chart = (&'static str, &'static str, &'static str, fn(&Row) -> Option<Summary>);

const CHARTS: [Chart; 3] = [
    ("rate", "Calls per second", "calls/s", |row| row.calls_per_second),
    ("cost", "Processor time of the server per call", "µs", |row| row.server_us),
    ("p99", "99th percentile of a call's time", "µs", |row| row.p99_us),
];

/// Draws the charts of each placement into a folder.
///
/// # Errors
/// If one cannot be written.
pub(super) fn write<E: Experiment>(results: &Results<E::Contender>, directory: &mut Directory) -> Result<(), LabError> {
    for placement in &results.settings.placements {
        let rows: Vec<&Row> = results.rows.iter().filter(|row| row.placement == *placement).collect();
        for (file, title, unit, value) in CHARTS {
            let picture = Picture {
                title: format!("{title} by number of {}", E::UNIT),
                subtitle: format!("{}; medians and ranges of rounds", placement.description()),
                x_title: E::UNIT.to_owned(),
                x_labels: results.settings.numbers.iter().map(|number| E::label(*number)).collect(),
                y_title: unit.to_owned(),
                // Contenders differ by magnitudes.
                scale: Scale::Logarithmic,
                lines: lines(&results.settings.contenders, &rows, value),
            };
            directory.write(&format!("{file}-{placement}.svg"), &picture.svg())?;
        }
    }
    Ok(())
}

fn lines(contenders: &[impl Display], rows: &[&Row], value: fn(&Row) -> Option<Summary>) -> Vec<Line> {
    let line = |contender: &dyn Display| {
        let label = contender.to_string();
        let own = rows.iter().filter(|row| row.contender == label).enumerate();
        let points = own.filter_map(|(index, row)| Some((index as f64, value(row)?))).collect();
        Line { label, points }
    };
    contenders.iter().map(|contender| line(contender)).filter(|line| !line.points.is_empty()).collect()
}
