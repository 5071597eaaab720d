//! Plots of a series: one per data type, throughput by buffer size, a line per mechanism.

use spandrel_measure::plot::{Line, Picture, Scale};
use spandrel_measure::units::Octets;

use super::report::heading;
use super::results::Results;
use crate::LabError;
use crate::output::Directory;
use crate::workload::{CallKind, DataType};

/// Draws all plots of a series into a folder.
///
/// # Errors
/// If one cannot be written.
pub fn write(results: &Results, directory: &mut Directory) -> Result<(), LabError> {
    for call in &results.settings.calls {
        for data in &results.settings.types {
            let name = format!("{call}-{data}.svg");
            directory.write(&name, &picture(results, *call, *data).svg())?;
        }
    }
    Ok(())
}

fn picture(results: &Results, call: CallKind, data: DataType) -> Picture {
    let sizes = &results.settings.sizes;
    let line = |mechanism: &crate::mechanism::MechanismName| {
        let point = |(index, size): (usize, &Octets)| {
            let rate = results.cell(call, data, size.0 as usize, *mechanism)?.mbps;
            Some((index as f64, rate))
        };
        Line { label: mechanism.to_string(), points: sizes.iter().enumerate().filter_map(point).collect() }
    };
    Picture {
        title: heading(call, data),
        subtitle: format!(
            "{}; medians of {} rounds, bars from lowest to highest",
            results.settings.placement.description(),
            results.rounds()
        ),
        x_title: "buffer size (octets)".to_owned(),
        x_labels: sizes.iter().map(ToString::to_string).collect(),
        y_title: "Mbit/s".to_owned(),
        scale: Scale::Linear,
        lines: results.settings.mechanisms.iter().map(line).collect(),
    }
}
