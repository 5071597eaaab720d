//! A picture of a received flow as SVG: lateness and jitter over the time, with marks at losses.

use std::time::{Duration, Instant};

use spandrel_avstreams::{FlowStatistics, ReceivedFrame};

/// The points of a curve at most: of more frames, those between two points are drawn by their greatest values.
const MAX_POINTS: usize = 1_000;
const WIDTH: f64 = 800.0;
const HEIGHT: f64 = 300.0;
/// The space around the axes, for their numbers.
const MARGIN: f64 = 50.0;

/// The measurements of a flow.
#[derive(Clone, Debug)]
pub(crate) struct Picture {
    flow: String,
    begin: Option<Instant>,
    points: Vec<Point>,
    /// The frames that one point stands for.
    frames_per_point: usize,
    /// The frames in the last point.
    in_last: usize,
}

/// The greatest values of some frames.
#[derive(Clone, Copy, Debug, Default)]
struct Point {
    time: Duration,
    lateness: Duration,
    jitter: Duration,
    lost: u64,
}

impl Point {
    fn merge(&mut self, other: Self) {
        self.time = other.time;
        self.lateness = self.lateness.max(other.lateness);
        self.jitter = self.jitter.max(other.jitter);
        self.lost += other.lost;
    }
}

impl Picture {
    pub(crate) fn new(flow: &str) -> Self {
        Self { flow: flow.to_owned(), begin: None, points: Vec::new(), frames_per_point: 1, in_last: 0 }
    }

    /// Takes the measurements of a frame.
    pub(crate) fn add(&mut self, frame: &ReceivedFrame) {
        let begin = *self.begin.get_or_insert(frame.arrival);
        let time = frame.arrival.saturating_duration_since(begin);
        let point = Point { time, lateness: frame.lateness, jitter: frame.jitter, lost: frame.lost };
        match self.points.last_mut() {
            Some(last) if self.in_last < self.frames_per_point => last.merge(point),
            _ => {
                if self.points.len() >= MAX_POINTS {
                    self.halve();
                }
                self.points.push(point);
                self.in_last = 0;
            }
        }
        self.in_last += 1;
    }

    /// Joins each two points.
    fn halve(&mut self) {
        let join = |pair: &[Point]| {
            let mut joined = pair[0];
            pair[1..].iter().for_each(|other| joined.merge(*other));
            joined
        };
        self.points = self.points.chunks(2).map(join).collect();
        self.frames_per_point *= 2;
    }

    /// The picture as SVG.
    pub(crate) fn svg(&self, statistics: &FlowStatistics) -> String {
        let longest = self.points.last().map_or(0.0, |point| point.time.as_secs_f64()).max(1e-3);
        let millis = |time: Duration| time.as_secs_f64() * 1e3;
        let greatest = self.points.iter().map(|point| millis(point.lateness.max(point.jitter))).fold(1.0, f64::max);
        let x = |point: &Point| MARGIN + point.time.as_secs_f64() / longest * (WIDTH - 2.0 * MARGIN);
        let y = |value: Duration| HEIGHT - MARGIN - millis(value) / greatest * (HEIGHT - 2.0 * MARGIN);
        let curve = |value: fn(&Point) -> Duration| {
            let points = self.points.iter().map(|point| format!("{:.1},{:.1}", x(point), y(value(point))));
            points.collect::<Vec<_>>().join(" ")
        };
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
             font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
        );
        let (left, right, top, bottom) = (MARGIN, WIDTH - MARGIN, MARGIN, HEIGHT - MARGIN);
        let mut line = |text: String| {
            svg += &text;
            svg.push('\n');
        };
        line(format!("<path d=\"M{left} {top}V{bottom}H{right}\" fill=\"none\" stroke=\"black\"/>"));
        line(format!(
            "<text x=\"{left}\" y=\"20\">{}: {}</text>",
            escaped(&self.flow),
            crate::progress::counts(false, statistics)
        ));
        line(format!("<text x=\"{left}\" y=\"40\" fill=\"#1f77b4\">lateness</text>"));
        line(format!("<text x=\"{}\" y=\"40\" fill=\"#ff7f0e\">jitter</text>", left + 70.0));
        line(format!("<text x=\"{}\" y=\"40\" fill=\"#d62728\">lost packets</text>", left + 120.0));
        line(format!("<text x=\"4\" y=\"{top}\">{greatest:.1} ms</text>"));
        line(format!("<text x=\"{}\" y=\"{}\">0</text>", left - 12.0, bottom));
        line(format!("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{longest:.1} s</text>", right, bottom + 18.0));
        for point in self.points.iter().filter(|point| point.lost > 0) {
            let at = x(point);
            line(format!(
                "<line x1=\"{at:.1}\" y1=\"{top}\" x2=\"{at:.1}\" y2=\"{bottom}\" stroke=\"#d62728\"><title>{} lost</title></line>",
                point.lost
            ));
        }
        line(format!("<polyline points=\"{}\" fill=\"none\" stroke=\"#1f77b4\"/>", curve(|point| point.lateness)));
        line(format!("<polyline points=\"{}\" fill=\"none\" stroke=\"#ff7f0e\"/>", curve(|point| point.jitter)));
        line("</svg>".to_owned());
        svg
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}
