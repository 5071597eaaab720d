//! Charts as SVG: lines, and scatter plots.

mod scatter;

use std::fmt::Write as _;

pub use scatter::{ScatterPlot, ScatterSeries};

use crate::stats::Summary;
use crate::units::grouped;

/// One line of a chart: a summary at each position on the horizontal axis.
#[derive(Clone, Debug)]
pub struct Line {
    /// Its name in the legend.
    pub label: String,
    /// Positions on the horizontal axis, the first one 0, each with the values measured there.
    pub points: Vec<(f64, Summary)>,
}

/// The steps and the begin of a vertical axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// From 0, with equal steps.
    Linear,
    /// From the power of ten below the lowest value, for values of several magnitudes. Values of 0 are at the bottom.
    Logarithmic,
}

/// A chart whose horizontal axis has equally spaced, named positions.
#[derive(Clone, Debug)]
pub struct Picture {
    /// The large text at the top.
    pub title: String,
    /// The small text below the title: what a point shows.
    pub subtitle: String,
    /// The quantity of the horizontal axis.
    pub x_title: String,
    /// The names of the positions on the horizontal axis, from left to right.
    pub x_labels: Vec<String>,
    /// The quantity and unit of the vertical axis.
    pub y_title: String,
    /// The steps and the begin of the vertical axis.
    pub scale: Scale,
    /// The lines, in the order of the legend.
    pub lines: Vec<Line>,
}

/// Colours that remain distinct for readers with red-green colour blindness, and in grey (Okabe and Ito).
const COLOURS: [&str; 8] = ["#282828", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#968c00"];
const GREY: &str = "#5a5a5a";
const LIGHT_GREY: &str = "#e1e1e1";
const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 500.0;
/// The borders of the chart inside the picture. The left one moves to the right for long labels ([`left`]).
const LEFT: f64 = 92.0;
const TOP: f64 = 74.0;
const BOTTOM: f64 = HEIGHT - 56.0;
/// The minimum width of the column of names, and the width of each character of a longer one.
const LEGEND_WIDTH: f64 = 110.0;
const CHARACTER_WIDTH: f64 = 8.0;
/// The font size of labels on axes, and their distance from the vertical axis.
const LABEL_SIZE: u32 = 13;
const LABEL_GAP: f64 = 8.0;
/// The dashes of lines beyond the number of colours.
const DASHES: &str = "7 4";
/// The number of decades up to which a logarithmic axis has marks between the powers of ten.
const FEW_DECADES: f64 = 3.0;
/// The greatest number of steps on the vertical axis.
const MOST_STEPS: f64 = 10.0;

impl Picture {
    /// Draws the chart as a complete SVG document.
    #[must_use]
    pub fn svg(&self) -> String {
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{HEIGHT}\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\">\n"
        );
        _ = writeln!(svg, "<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>");
        text(&mut svg, (24.0, 30.0), 20, "black", "start", &self.title);
        text(&mut svg, (24.0, 53.0), 13, GREY, "start", &self.subtitle);
        self.draw_axes(&mut svg);
        for (index, line) in self.lines.iter().enumerate() {
            self.draw_line(&mut svg, line, index);
        }
        self.draw_legend(&mut svg);
        svg + "</svg>\n"
    }

    fn draw_axes(&self, svg: &mut String) {
        let (left, right, middle) = (self.left(), self.right(), (TOP + BOTTOM) / 2.0);
        for (value, label) in self.marks() {
            let y = self.y(value);
            segment(svg, (left, y), (right, y), LIGHT_GREY, 1);
            text(svg, (left - LABEL_GAP, y + 4.0), LABEL_SIZE, GREY, "end", &label);
        }
        segment(svg, (left, TOP), (left, BOTTOM), GREY, 1);
        segment(svg, (left, BOTTOM), (right, BOTTOM), GREY, 1);
        for (index, name) in self.x_labels.iter().enumerate() {
            let x = self.x(index as f64);
            segment(svg, (x, BOTTOM), (x, BOTTOM + 5.0), GREY, 1);
            text(svg, (x, BOTTOM + 20.0), LABEL_SIZE, GREY, "middle", name);
        }
        text(svg, ((left + right) / 2.0, BOTTOM + 44.0), 14, "black", "middle", &self.x_title);
        _ = write!(svg, "<g transform=\"rotate(-90 20 {middle})\">");
        text(svg, (20.0, middle), 14, "black", "middle", &self.y_title);
        svg.push_str("</g>\n");
    }

    /// The ranges, the line through the medians, and a circle for each.
    fn draw_line(&self, svg: &mut String, line: &Line, index: usize) {
        let colour = COLOURS[index % COLOURS.len()];
        let mut path = String::new();
        for (x, summary) in &line.points {
            let x = self.x(*x);
            let y = self.y(summary.median);
            _ = write!(path, "{x:.1},{y:.1} ");
            segment(svg, (x, self.y(summary.low)), (x, self.y(summary.high)), colour, 1);
            circle(svg, (x, y), colour);
        }
        let path = path.trim_end();
        _ = write!(svg, "<polyline points=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"");
        _ = writeln!(svg, "{}/>", dashes(index));
    }

    fn draw_legend(&self, svg: &mut String) {
        let left = self.right() + 16.0;
        for (index, line) in self.lines.iter().enumerate() {
            let (y, colour) = (TOP + 16.0 + 24.0 * index as f64, COLOURS[index % COLOURS.len()]);
            _ = write!(svg, "<path d=\"M {left:.1} {y:.1} h 22\" stroke=\"{colour}\" stroke-width=\"2\"");
            _ = writeln!(svg, "{}/>", dashes(index));
            circle(svg, (left + 11.0, y), colour);
            text(svg, (left + 30.0, y + 5.0), 14, "black", "start", &line.label);
        }
    }

    /// The marks on the vertical axis, with their labels.
    fn marks(&self) -> Vec<(f64, String)> {
        let (bottom, top) = (self.bottom(), self.top());
        match self.scale {
            Scale::Linear => {
                let step = step(top);
                let values = (0..=(top / step) as u32).map(|number| f64::from(number) * step);
                values.map(|value| (value, label(value, step))).collect()
            }
            Scale::Logarithmic => {
                let decades = (top / bottom).log10();
                let factors = if decades <= FEW_DECADES { &[1.0, 2.0, 5.0][..] } else { &[1.0] };
                let powers = (0..=decades as i32).map(|power| bottom * 10f64.powi(power));
                let values = powers.flat_map(|power| factors.iter().map(move |factor| (power * factor, power)));
                values.filter(|(value, _)| *value <= top).map(|(value, power)| (value, label(value, power))).collect()
            }
        }
    }

    fn left(&self) -> f64 {
        left(self.marks().into_iter().map(|(_, label)| label))
    }

    /// The right end of the chart. The widths of texts are estimates, so the names of the lines have a column
    /// of their own beside it.
    fn right(&self) -> f64 {
        let longest = self.lines.iter().map(|line| line.label.chars().count()).max().unwrap_or(0);
        WIDTH - LEGEND_WIDTH.max(54.0 + CHARACTER_WIDTH * longest as f64).min(WIDTH / 2.0)
    }

    /// The horizontal place of a position.
    fn x(&self, position: f64) -> f64 {
        const MARGIN: f64 = 0.3;
        let last = self.x_labels.len().saturating_sub(1) as f64;
        let left = self.left();
        left + (self.right() - left) * (position + MARGIN) / (last + 2.0 * MARGIN)
    }

    /// The vertical place of a value.
    fn y(&self, value: f64) -> f64 {
        let (bottom, top) = (self.bottom(), self.top());
        let part = match self.scale {
            Scale::Linear => value / top,
            Scale::Logarithmic => (value.max(bottom) / bottom).log10() / (top / bottom).log10(),
        };
        BOTTOM - (BOTTOM - TOP) * part
    }

    /// The value at the bottom of the vertical axis: 0, or the power of ten below the lowest value above 0.
    fn bottom(&self) -> f64 {
        let values = self.lines.iter().flat_map(|line| &line.points).map(|(_, summary)| summary.low);
        let lowest = values.filter(|low| *low > 0.0).fold(self.top(), f64::min);
        match self.scale {
            Scale::Linear => 0.0,
            Scale::Logarithmic => 10f64.powf(lowest.log10().floor()),
        }
    }

    /// The top of the vertical axis: a little above the highest value.
    fn top(&self) -> f64 {
        let highest =
            self.lines.iter().flat_map(|line| &line.points).map(|(_, summary)| summary.high).fold(0.0, f64::max);
        if highest > 0.0 { highest * 1.08 } else { 1.0 }
    }
}

/// The distance of the marks on an axis from 0 to `top`: 1, 2 or 5 times a power of ten.
fn step(top: f64) -> f64 {
    let power = 10f64.powf((top / MOST_STEPS).log10().floor());
    [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power).into_iter().find(|step| top / step <= MOST_STEPS).unwrap_or(top)
}

/// A value on the axis, with as many decimals as its step needs.
fn label(value: f64, step: f64) -> String {
    if step >= 1.0 { grouped(value) } else { format!("{value:.0$}", (-step.log10()).ceil() as usize) }
}

/// The left border of a chart with these labels on its vertical axis: the labels do not reach the axis title.
fn left(labels: impl Iterator<Item = String>) -> f64 {
    const TITLE_RIGHT: f64 = 32.0; // the base line of the title, its descent and a gap
    let longest = labels.map(|label| number_width(&label)).fold(0.0, f64::max);
    LEFT.max(TITLE_RIGHT + longest + LABEL_GAP)
}

/// The width of a number as a label. The factors are those of DejaVu Sans; other sans-serif fonts are narrower.
fn number_width(label: &str) -> f64 {
    let factor = |letter: char| if ",.-".contains(letter) { 0.37 } else { 0.64 };
    label.chars().map(factor).sum::<f64>() * f64::from(LABEL_SIZE)
}

/// The attribute of dashes of the line with this index: lines with the same colour differ by it.
fn dashes(index: usize) -> String {
    if index < COLOURS.len() { String::new() } else { format!(" stroke-dasharray=\"{DASHES}\"") }
}

fn segment(svg: &mut String, from: (f64, f64), to: (f64, f64), colour: &str, width: u32) {
    _ = write!(svg, "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" ", from.0, from.1, to.0, to.1);
    _ = writeln!(svg, "stroke=\"{colour}\" stroke-width=\"{width}\"/>");
}

fn circle(svg: &mut String, at: (f64, f64), colour: &str) {
    _ = writeln!(svg, "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"4\" fill=\"{colour}\"/>", at.0, at.1);
}

/// A text inside an element.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// A text whose `anchor` (`start`, `middle` or `end`) is at this place on its base line.
fn text(svg: &mut String, at: (f64, f64), size: u32, colour: &str, anchor: &str, text: &str) {
    let text = escape(text);
    _ = write!(svg, "<text x=\"{:.1}\" y=\"{:.1}\" font-size=\"{size}\" ", at.0, at.1);
    _ = writeln!(svg, "fill=\"{colour}\" text-anchor=\"{anchor}\">{text}</text>");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(lines: Vec<Line>) -> Picture {
        Picture {
            title: "octet sequences <&>".to_owned(),
            subtitle: "medians".to_owned(),
            x_title: "buffer".to_owned(),
            x_labels: vec!["1K".to_owned(), "2K".to_owned(), "4K".to_owned()],
            y_title: "Mbit/s".to_owned(),
            scale: Scale::Linear,
            lines,
        }
    }

    fn summary(median: f64) -> Summary {
        Summary { median, low: median * 0.9, high: median * 1.1, count: 3 }
    }

    #[test]
    fn each_curve_has_its_points_and_its_label() {
        let line = |label: &str, scale: f64| Line {
            label: label.to_owned(),
            points: (0..3).map(|x| (f64::from(x), summary(scale))).collect(),
        };
        let svg = picture(vec![line("c", 100.0), line("orb", 90.0)]).svg();
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{svg}");
        assert_eq!(svg.matches("<circle").count(), 2 * 3 + 2, "three points and one mark in the legend each");
        for name in [">c<", ">orb<", "1K", "4K", "octet sequences &lt;&amp;&gt;"] {
            assert!(svg.contains(name), "{name} is missing in {svg}");
        }
    }

    #[test]
    fn lines_of_one_colour_differ_by_dashes() {
        let line = |_| Line { label: "c".to_owned(), points: vec![(0.0, summary(1.0))] };
        let dashed = |count: usize| picture((0..count).map(line).collect()).svg().matches("stroke-dasharray").count();
        assert_eq!((dashed(8), dashed(10)), (0, 2 * 2), "the line and its mark in the legend");
    }

    #[test]
    fn a_logarithmic_axis_has_equal_distances_for_equal_ratios() {
        let exact = |value: f64| Summary { median: value, low: value, high: value, count: 1 };
        let points = vec![(0.0, exact(30.0)), (1.0, exact(3_000.0)), (2.0, exact(0.0))];
        let lines = vec![Line { label: "c".to_owned(), points }];
        let chart = Picture { scale: Scale::Logarithmic, ..picture(lines) };
        let labels: Vec<String> = chart.marks().into_iter().map(|(_, label)| label).collect();
        assert_eq!(labels, ["10", "20", "50", "100", "200", "500", "1,000", "2,000"]);
        assert!((chart.y(10.0) - chart.y(100.0) - (chart.y(100.0) - chart.y(1_000.0))).abs() < 1e-9);
        assert!((chart.y(0.0) - BOTTOM).abs() < 1e-9 && (chart.y(10.0) - BOTTOM).abs() < 1e-9);
        assert!(Picture { scale: Scale::Logarithmic, ..picture(Vec::new()) }.svg().contains("</svg>"));
    }

    #[test]
    fn a_picture_without_points_is_drawn() {
        assert!(picture(Vec::new()).svg().contains("</svg>"));
        let one = Picture {
            x_labels: vec!["1K".to_owned()],
            ..picture(vec![Line { label: "c".to_owned(), points: vec![(0.0, summary(0.0))] }])
        };
        assert!(one.svg().contains("</svg>"));
    }

    #[test]
    fn long_labels_move_the_axis_away_from_its_title() {
        let left = |labels: [&str; 2]| left(labels.into_iter().map(str::to_owned));
        assert!((left(["0", "50,000"]) - LEFT).abs() < 1e-9);
        for labels in [["0", "10,000,000"], ["164.00005", "9"]] {
            let width = labels.iter().map(|label| number_width(label)).fold(0.0, f64::max);
            assert!(left(labels) - LABEL_GAP - width >= 32.0, "{labels:?}");
        }
        let line = |top: f64| Line { label: "c".to_owned(), points: vec![(0.0, summary(top))] };
        let first_x = |top: f64| picture(vec![line(top)]).x(0.0);
        assert!(first_x(1e7) > first_x(1e3) + 10.0);
    }

    #[test]
    fn an_axis_has_at_most_ten_steps_of_round_size() {
        for (top, distance, shown) in
            [(1.0, 0.1, "0.1"), (0.049, 0.005, "0.005"), (54_000.0, 10_000.0, "10,000"), (9.0, 1.0, "1")]
        {
            assert!((step(top) / distance - 1.0).abs() < 1e-9, "{top}: {}", step(top));
            assert_eq!(label(step(top), step(top)), shown);
        }
    }
}
