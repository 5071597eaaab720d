//! Line charts as SVG, through `plotters`, which is used here only.
//!
//! Without a font engine the plotter estimates the widths of texts, so labels are placed where a wrong
//! estimate does not show: the names of the lines stand in a separate column, right of the chart.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::stats::Summary;
use crate::units::grouped;

/// One line of a chart: a summary at each position on the horizontal axis.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub label: String,
    pub points: Vec<(f64, Summary)>,
}

/// A chart whose horizontal axis has equally spaced, named positions.
#[derive(Clone, Debug)]
pub(crate) struct Picture {
    pub title: String,
    pub subtitle: String,
    pub x_title: String,
    pub x_labels: Vec<String>,
    pub y_title: String,
    pub lines: Vec<Line>,
}

/// Colours that remain distinct for readers with red-green colour blindness, and in grey (Okabe and Ito).
const COLOURS: [RGBColor; 8] = [
    RGBColor(40, 40, 40),
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(150, 140, 0),
];
const SIZE: (u32, u32) = (860, 500);
/// The minimum width of the column of names, and the width of each character of a longer one.
const LEGEND_WIDTH: u32 = 110;
const CHARACTER_WIDTH: u32 = 8;
const HEADER_HEIGHT: u32 = 66;
const GREY: RGBColor = RGBColor(90, 90, 90);
const FONT: &str = "sans-serif";

impl Picture {
    /// Draws it.
    ///
    /// # Errors
    /// The plotter's error, as text.
    pub(crate) fn svg(&self) -> Result<String, String> {
        let mut svg = String::new();
        {
            let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
            self.draw(&root).map_err(|error| error.to_string())?;
            root.present().map_err(|error| error.to_string())?;
        }
        Ok(svg)
    }

    fn draw<'a>(&self, root: &DrawingArea<SVGBackend<'a>, Shift>) -> Result<(), Box<dyn std::error::Error + 'a>> {
        root.fill(&WHITE)?;
        let (header, below) = root.split_vertically(HEADER_HEIGHT);
        header.draw_text(&self.title, &text(20, &BLACK, HPos::Left), (24, 12))?;
        header.draw_text(&self.subtitle, &text(13, &GREY, HPos::Left), (24, 40))?;
        let (area, legend) = below.split_horizontally(SIZE.0 - self.legend_width());
        self.draw_chart(&area)?;
        self.draw_legend(&legend)
    }

    fn draw_chart<'a>(&self, area: &DrawingArea<SVGBackend<'a>, Shift>) -> Result<(), Box<dyn std::error::Error + 'a>> {
        let last = self.x_labels.len().saturating_sub(1) as f64;
        let top = self.top();
        let mut chart = ChartBuilder::on(area)
            .margin(8)
            .margin_right(16)
            .x_label_area_size(48)
            .y_label_area_size(84)
            .build_cartesian_2d(-0.3..last + 0.3, 0.0..top)?;
        let label = |x: &f64| {
            let index = x.round();
            let shown = (x - index).abs() < 1e-6 && index >= 0.0;
            shown.then(|| self.x_labels.get(index as usize).cloned()).flatten().unwrap_or_default()
        };
        let marks: Vec<f64> = (0..self.x_labels.len()).map(|index| index as f64).collect();
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(RGBColor(225, 225, 225))
            .axis_style(GREY)
            .x_labels(marks.len().max(2))
            .x_label_formatter(&label)
            .y_label_formatter(&|y| grouped(*y))
            .x_desc(&self.x_title)
            .y_desc(&self.y_title)
            .label_style((FONT, 13))
            .axis_desc_style((FONT, 14))
            .draw()?;
        for (line, colour) in self.lines.iter().zip(COLOURS.iter().cycle()) {
            let points = || line.points.iter().map(|(x, summary)| (*x, summary.median));
            let ranges = line.points.iter().map(|(x, summary)| {
                PathElement::new([(*x, summary.low), (*x, summary.high)], colour.mix(0.45).stroke_width(2))
            });
            chart.draw_series(ranges)?;
            chart.draw_series(LineSeries::new(points(), colour.stroke_width(2)))?;
            chart.draw_series(points().map(|point| Circle::new(point, 4, colour.filled())))?;
        }
        Ok(())
    }

    fn draw_legend<'a>(
        &self,
        area: &DrawingArea<SVGBackend<'a>, Shift>,
    ) -> Result<(), Box<dyn std::error::Error + 'a>> {
        for (index, (line, colour)) in self.lines.iter().zip(COLOURS.iter().cycle()).enumerate() {
            let y = 24 + 24 * index as i32;
            area.draw(&PathElement::new([(0, y), (22, y)], colour.stroke_width(2)))?;
            area.draw(&Circle::new((11, y), 4, colour.filled()))?;
            let style = text(14, &BLACK, HPos::Left).pos(Pos::new(HPos::Left, VPos::Center));
            area.draw_text(&line.label, &style, (30, y))?;
        }
        Ok(())
    }

    fn legend_width(&self) -> u32 {
        let longest = self.lines.iter().map(|line| line.label.chars().count()).max().unwrap_or(0);
        LEGEND_WIDTH.max(36 + CHARACTER_WIDTH * longest as u32).min(SIZE.0 / 2)
    }

    /// The top of the vertical axis: a little above the highest value.
    fn top(&self) -> f64 {
        let highest =
            self.lines.iter().flat_map(|line| &line.points).map(|(_, summary)| summary.high).fold(0.0, f64::max);
        if highest > 0.0 { highest * 1.08 } else { 1.0 }
    }
}

fn text<'a>(size: u32, colour: &'a RGBColor, side: HPos) -> TextStyle<'a> {
    (FONT, size).into_font().color(colour).pos(Pos::new(side, VPos::Top))
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
        let svg = picture(vec![line("c", 100.0), line("orb", 90.0)]).svg().unwrap();
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{svg}");
        assert_eq!(svg.matches("<circle").count(), 2 * 3 + 2, "three points and one mark in the legend each");
        for name in [">\nc\n<", ">\norb\n<", "1K", "4K", "octet sequences &lt;&amp;&gt;"] {
            assert!(svg.contains(name), "{name} is missing in {svg}");
        }
    }

    #[test]
    fn a_picture_without_points_is_drawn() {
        assert!(picture(Vec::new()).svg().unwrap().contains("</svg>"));
        let one = Picture {
            x_labels: vec!["1K".to_owned()],
            ..picture(vec![Line { label: "c".to_owned(), points: vec![(0.0, summary(0.0))] }])
        };
        assert!(one.svg().unwrap().contains("</svg>"));
    }
}
