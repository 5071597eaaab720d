//! Scatter plots as SVG images.

use std::fmt::Write as _;

use super::{
    BOTTOM, CHARACTER_WIDTH, COLOURS, GREY, HEIGHT, LABEL_GAP, LABEL_SIZE, LEGEND_WIDTH, LIGHT_GREY, TOP, WIDTH,
};
use super::{escape, label, left, number_width, segment, step, text};

/// The distance between two names of series.
const NAME_HEIGHT: f64 = 24.0;

/// The points that one entry of the legend stands for.
#[derive(Clone, Debug)]
pub struct ScatterSeries {
    /// The name in the legend.
    pub label: String,
    /// The points, each with its horizontal and its vertical value.
    pub points: Vec<(f64, f64)>,
}

/// A chart of single points. Both axes show the range of the values, and need not begin at zero.
///
/// The points and the name of each series are a group with the attribute `data-series`, the number of the series, so
/// that a page can hide them. Each point has a title with its values.
#[derive(Clone, Debug)]
pub struct ScatterPlot {
    /// The title above the plot.
    pub title: String,
    /// The line below it.
    pub subtitle: String,
    /// The name of the horizontal axis.
    pub x_title: String,
    /// The name of the vertical axis.
    pub y_title: String,
    /// The series of points, in the order of the legend.
    pub series: Vec<ScatterSeries>,
}

/// The range of an axis, and the distance of its marks.
struct Axis {
    low: f64,
    high: f64,
    step: f64,
}

impl Axis {
    fn covering(values: impl Iterator<Item = f64> + Clone) -> Self {
        let low = values.clone().fold(f64::INFINITY, f64::min);
        let high = values.fold(f64::NEG_INFINITY, f64::max);
        if !(low.is_finite() && high.is_finite()) {
            return Self { low: 0.0, high: 1.0, step: 0.2 };
        }
        let width = if high > low { high - low } else { high.abs().max(1e-9) * 0.1 };
        let step = step(width * 1.1);
        let beginning = ((low - width * 0.05) / step).floor() * step;
        // Quantities that are never negative get no negative marks.
        let beginning = if low >= 0.0 { beginning.max(0.0) } else { beginning };
        Self { low: beginning, high: high + width * 0.05, step }
    }

    /// The part of the axis below a value, from 0 to 1.
    fn part(&self, value: f64) -> f64 {
        (value - self.low) / (self.high - self.low)
    }

    fn marks(&self) -> impl Iterator<Item = f64> + '_ {
        let count = ((self.high - self.low) / self.step + 1e-9) as u32;
        (0..=count).map(|number| self.low + f64::from(number) * self.step)
    }

    /// Every so many marks of a horizontal axis of this length have a label, so that labels do not touch each other.
    fn labelled(&self, length: f64) -> usize {
        let widest = self.marks().map(|value| number_width(&label(value, self.step))).fold(0.0, f64::max);
        let distance = length * self.step / (self.high - self.low);
        ((widest + LABEL_GAP) / distance).ceil().max(1.0) as usize
    }
}

impl ScatterPlot {
    /// Returns the plot as an SVG document.
    #[must_use]
    pub fn svg(&self) -> String {
        let right = self.right();
        let width = WIDTH.max(right + self.names_width());
        let height = HEIGHT.max(TOP + NAME_HEIGHT * (self.series.len() as f64 + 1.0));
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\">\n"
        );
        _ = writeln!(svg, "<rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>");
        text(&mut svg, (24.0, 30.0), 20, "black", "start", &self.title);
        text(&mut svg, (24.0, 53.0), 13, GREY, "start", &self.subtitle);
        let points = || self.series.iter().flat_map(|series| series.points.iter());
        let (x, y) = (Axis::covering(points().map(|point| point.0)), Axis::covering(points().map(|point| point.1)));
        let left = left(y.marks().map(|value| label(value, y.step)));
        self.draw_axes(&mut svg, &x, &y, (left, right));
        for (number, series) in self.series.iter().enumerate() {
            let colour = COLOURS[number % COLOURS.len()];
            _ = writeln!(svg, "<g data-series=\"{number}\" fill=\"{colour}\">");
            for (at_x, at_y) in &series.points {
                let place = (left + (right - left) * x.part(*at_x), BOTTOM - (BOTTOM - TOP) * y.part(*at_y));
                let title = format!("{}: {at_x:.4}, {at_y:.4}", escape(&series.label));
                mark(&mut svg, number, place, &title);
            }
            let at = (right + 24.0, TOP + 16.0 + NAME_HEIGHT * number as f64);
            mark(&mut svg, number, at, &escape(&series.label));
            text(&mut svg, (at.0 + 14.0, at.1 + 5.0), 14, "black", "start", &series.label);
            svg.push_str("</g>\n");
        }
        svg + "</svg>\n"
    }

    fn draw_axes(&self, svg: &mut String, x: &Axis, y: &Axis, (left, right): (f64, f64)) {
        let middle = (TOP + BOTTOM) / 2.0;
        for value in y.marks() {
            let at = BOTTOM - (BOTTOM - TOP) * y.part(value);
            segment(svg, (left, at), (right, at), LIGHT_GREY, 1);
            text(svg, (left - LABEL_GAP, at + 4.0), LABEL_SIZE, GREY, "end", &label(value, y.step));
        }
        let every = x.labelled(right - left);
        for (number, value) in x.marks().enumerate() {
            let at = left + (right - left) * x.part(value);
            segment(svg, (at, TOP), (at, BOTTOM + 5.0), LIGHT_GREY, 1);
            if number % every == 0 {
                text(svg, (at, BOTTOM + 20.0), LABEL_SIZE, GREY, "middle", &label(value, x.step));
            }
        }
        segment(svg, (left, TOP), (left, BOTTOM), GREY, 1);
        segment(svg, (left, BOTTOM), (right, BOTTOM), GREY, 1);
        text(svg, ((left + right) / 2.0, BOTTOM + 44.0), 14, "black", "middle", &self.x_title);
        _ = write!(svg, "<g transform=\"rotate(-90 20 {middle})\">");
        text(svg, (20.0, middle), 14, "black", "middle", &self.y_title);
        svg.push_str("</g>\n");
    }

    /// The width of the column of names.
    fn names_width(&self) -> f64 {
        let longest = self.series.iter().map(|series| series.label.chars().count()).max().unwrap_or(0);
        LEGEND_WIDTH.max(48.0 + CHARACTER_WIDTH * longest as f64)
    }

    /// The right end of the chart, before the column of names. Longer names make the drawing wider.
    fn right(&self) -> f64 {
        WIDTH - self.names_width().min(WIDTH / 2.0)
    }
}

/// A point. Its form depends on the series, so that series differ without colours, too. Series of the same colour
/// differ in their forms.
fn mark(svg: &mut String, series: usize, (x, y): (f64, f64), title: &str) {
    let shape = match (series + series / COLOURS.len()) % 4 {
        0 => format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\">"),
        1 => format!("<rect x=\"{:.1}\" y=\"{:.1}\" width=\"7\" height=\"7\">", x - 3.5, y - 3.5),
        2 => {
            let (left, right, top, bottom) = (x - 4.5, x + 4.5, y - 4.5, y + 3.5);
            format!("<polygon points=\"{left:.1},{bottom:.1} {right:.1},{bottom:.1} {x:.1},{top:.1}\">")
        }
        _ => {
            let (left, right, top, bottom) = (x - 4.5, x + 4.5, y - 4.5, y + 4.5);
            format!("<polygon points=\"{left:.1},{y:.1} {x:.1},{top:.1} {right:.1},{y:.1} {x:.1},{bottom:.1}\">")
        }
    };
    let name = shape[1..].split(' ').next().unwrap_or_default();
    _ = writeln!(svg, "{shape}<title>{title}</title></{name}>");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(series: Vec<ScatterSeries>) -> ScatterPlot {
        let [title, subtitle, x_title, y_title] =
            ["iterative", "50 samples", "elapsed (s)", "CPU (s)"].map(str::to_owned);
        ScatterPlot { title, subtitle, x_title, y_title, series }
    }

    #[test]
    fn each_series_is_a_group_with_its_points() {
        let series = |label: &str, from: f64| ScatterSeries {
            label: label.to_owned(),
            points: (0..3).map(|number| (from + f64::from(number), from * 2.0)).collect(),
        };
        let svg = plot(vec![series("c <native>", 164.0), series("ours", 165.0)]).svg();
        assert_eq!(svg.matches("<g data-series=").count(), 2);
        assert_eq!((svg.matches("<circle").count(), svg.matches("<title>").count()), (3 + 1, 2 * (3 + 1)));
        for text in ["c &lt;native&gt;: 164.0000, 328.0000", ">ours<", "elapsed (s)"] {
            assert!(svg.contains(text), "{text} is missing in {svg}");
        }
        assert!(svg.trim_end().ends_with("</svg>"));
    }

    #[test]
    fn long_names_and_many_series_enlarge_the_drawing() {
        let series = |label: String| ScatterSeries { label, points: vec![(0.001, 0.0)] };
        let all = (0..30).map(|number| series(format!("{}{number}", "x".repeat(100)))).collect();
        let svg = plot(all).svg();
        let width = WIDTH / 2.0 + 48.0 + CHARACTER_WIDTH * 102.0;
        let size = format!("viewBox=\"0 0 {width} {}\"", TOP + NAME_HEIGHT * 31.0);
        assert!(svg.contains(&size), "{size} is missing in {svg}");
        assert!(!svg.contains(">-0"), "neither axis begins below zero: {svg}");
        let form = |series: usize| {
            let mut svg = String::new();
            mark(&mut svg, series, (0.0, 0.0), "");
            (series % COLOURS.len(), svg)
        };
        let forms: std::collections::BTreeSet<_> = (0..32).map(form).collect();
        assert_eq!(forms.len(), 32);
    }

    #[test]
    fn labels_of_the_horizontal_axis_do_not_touch_each_other() {
        for (low, high) in [(0.0, 9.9), (0.8001, 0.8009), (1e6, 9e6), (0.0, 1e-7)] {
            let axis = Axis::covering([low, high].into_iter());
            for length in [300.0, 700.0] {
                let every = axis.labelled(length);
                let labels: Vec<_> = axis.marks().step_by(every).collect();
                for pair in labels.windows(2) {
                    let distance = length * (axis.part(pair[1]) - axis.part(pair[0]));
                    let width = number_width(&label(pair[1], axis.step));
                    assert!(distance >= width + LABEL_GAP - 1e-6, "{low} to {high}, {length}: {distance} for {width}");
                }
            }
        }
        assert_eq!(Axis::covering([0.0, 9.9].into_iter()).labelled(700.0), 1);
    }

    #[test]
    fn points_lie_inside_the_axes() {
        for values in [vec![1.0, 1.0], vec![0.0], vec![-3.0, 1e6], vec![0.001, 0.002]] {
            let axis = Axis::covering(values.iter().copied());
            assert!(values.iter().all(|value| (0.0..=1.0).contains(&axis.part(*value))), "{values:?}");
            assert!((1..=13).contains(&axis.marks().count()), "{values:?}");
        }
        assert!(plot(Vec::new()).svg().contains("</svg>"));
    }
}
