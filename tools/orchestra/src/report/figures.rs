//! Scatter plots of processor time against elapsed time, one for each architecture (figures 5.3 to 5.11).

use spandrel_measure::plot::{ScatterPlot, ScatterSeries};

use super::Summary;
use crate::results::{Cpu, Results, Sample};

/// A figure and the name of its file.
pub(super) struct Figure {
    pub(super) file: String,
    pub(super) title: String,
    pub(super) svg: String,
}

/// Draws the figures of a report, in its order.
pub(super) fn draw(results: &Results, summary: &Summary) -> Vec<Figure> {
    let mut figures = Vec::new();
    let loads = summary.loads();
    for load in &loads {
        for picture in summary.pictures(load) {
            let title = if loads.len() > 1 { format!("{picture}, {load}") } else { picture.to_owned() };
            for (scope, of) in
                [("server", Sample::server_cpu as fn(&Sample) -> Option<Cpu>), ("machine", Sample::machine_cpu)]
            {
                let series = series(results, summary, load, picture, of);
                if series.iter().all(|series| series.points.is_empty()) {
                    continue;
                }
                let plot = ScatterPlot {
                    title: title.clone(),
                    subtitle: format!("user + system time of the {scope}; a point for each sample"),
                    x_title: "elapsed time (s)".to_owned(),
                    y_title: format!("CPU time of the {scope} (s)"),
                    series,
                };
                let file = format!("{}-{}-{scope}.svg", file_name(picture), file_name(load));
                figures.push(Figure { file, title: format!("{title}: CPU time of the {scope}"), svg: plot.svg() });
            }
        }
    }
    figures
}

fn series(
    results: &Results,
    summary: &Summary,
    load: &str,
    picture: &str,
    of: fn(&Sample) -> Option<Cpu>,
) -> Vec<ScatterSeries> {
    let rows = summary.rows.iter().filter(|row| row.load == load && row.picture == picture);
    let series = rows.map(|row| {
        let samples = results.samples.iter().filter(|sample| sample.load == load && sample.target == row.target);
        let point = |sample: &Sample| Some((sample.elapsed, of(sample)?.total()));
        ScatterSeries { label: row.target.clone(), points: samples.filter_map(point).collect() }
    });
    series.collect()
}

/// A name without characters that a file cannot have.
fn file_name(name: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' };
    name.chars().map(plain).collect()
}
