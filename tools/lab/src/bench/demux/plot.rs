//! Plots of lookups: one per invocation algorithm, time by number of objects, a line per strategy (figures
//! 6.4 and 6.5).

use spandrel_measure::plot::{Line, Picture, Scale};
use spandrel_measure::units::grouped;

use super::requests::Algorithm;
use super::results::Results;
use super::settings::Strategy;
use crate::LabError;
use crate::output::Directory;

/// Draws all plots of a series into a folder: each with all strategies, and once more without linear search,
/// next to which the others cannot be distinguished.
///
/// # Errors
/// If one cannot be written.
pub(super) fn write(results: &Results, directory: &mut Directory) -> Result<(), LabError> {
    for algorithm in &results.settings.algorithms {
        for with_linear in [true, false] {
            let name = format!("{algorithm}{}.svg", if with_linear { "" } else { "-without-linear" });
            directory.write(&name, &picture(results, *algorithm, with_linear).svg())?;
        }
    }
    Ok(())
}

fn picture(results: &Results, algorithm: Algorithm, with_linear: bool) -> Picture {
    let settings = &results.settings;
    let operations = settings.operations.iter().copied().max().unwrap_or(1);
    let strategies = settings.strategies.iter().copied();
    let line = |strategy: Strategy| {
        let point = |(index, objects): (usize, &u32)| {
            let both = results.row(*objects, operations, algorithm, strategy)?.both()?.nanos;
            Some((index as f64, both))
        };
        Line { label: strategy.to_string(), points: settings.objects.iter().enumerate().filter_map(point).collect() }
    };
    Picture {
        title: format!("Demultiplexing overhead, {algorithm}, {operations} operations"),
        subtitle: "object and operation; medians, bars from lowest to highest".to_owned(),
        x_title: "objects".to_owned(),
        x_labels: settings.objects.iter().map(|count| grouped(f64::from(*count))).collect(),
        y_title: "ns per lookup".to_owned(),
        scale: Scale::Linear,
        lines: strategies.filter(|one| with_linear || *one != Strategy::Linear).map(line).collect(),
    }
}
