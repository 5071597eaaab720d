//! Plots of a series: one per kind of call, time by number of servants, a line per contender and style.

use spandrel_measure::plot::{Line, Picture, Scale};
use spandrel_measure::units::grouped;

use super::results::{Results, Row};
use crate::LabError;
use crate::output::Directory;

/// Draws all plots of a series into a folder.
///
/// # Errors
/// If one cannot be written.
pub(super) fn write(results: &Results, directory: &mut Directory) -> Result<(), LabError> {
    for placement in &results.settings.placements {
        for job in results.settings.jobs() {
            if Some(&job.style) != results.settings.styles.first() {
                continue; // all styles are in one plot
            }
            let rows: Vec<&Row> = results
                .rows
                .iter()
                .filter(|row| {
                    (row.placement, row.case, row.call, row.algorithm)
                        == (*placement, job.case, job.call, job.algorithm)
                })
                .collect();
            let name = format!("servants-{placement}-{}-{}-{}.svg", job.call, job.case, job.algorithm);
            let picture = Picture {
                title: rows[0].heading(),
                subtitle: format!("{}; medians and ranges of rounds", placement.description()),
                x_title: "servants".to_owned(),
                x_labels: results.settings.servants.iter().map(|n| grouped(f64::from(*n))).collect(),
                y_title: "µs".to_owned(),
                scale: Scale::Linear,
                lines: lines(results, &rows),
            };
            directory.write(&name, &picture.svg())?;
        }
    }
    Ok(())
}

fn lines(results: &Results, rows: &[&Row]) -> Vec<Line> {
    let mut lines = Vec::new();
    for contender in &results.settings.contenders {
        for style in &results.settings.styles {
            let own = rows.iter().filter(|row| row.contender == *contender && row.style == *style);
            let points: Vec<_> =
                own.enumerate().filter_map(|(index, row)| Some((index as f64, row.median_us?))).collect();
            if !points.is_empty() {
                lines.push(Line { label: format!("{contender} {style}"), points });
            }
        }
    }
    lines
}
