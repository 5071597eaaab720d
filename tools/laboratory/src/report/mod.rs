//! The report on a folder of results: HTML, Markdown, CSV and JSON with the same figures, and the chapter of the book.

mod chapter;
mod csv;
mod html;
mod markdown;

use serde::Serialize;

use crate::folder::{Folder, Form, PointResult};
use crate::inventory::{Inventory, PaperRatio, Row, State};
use crate::point::Point;
use crate::series::Unit;

pub use chapter::chapter;
pub use csv::csv;
pub use html::html;
pub use markdown::markdown;

/// The results of a folder, by figure and table of the papers.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The machines and programs that measured.
    pub machines: Vec<String>,
    /// The size of the run.
    pub form: Option<Form>,
    /// An entry for each row of the inventory.
    pub entries: Vec<Entry>,
}

/// A figure or table of a paper, with today's figures.
#[derive(Clone, Debug, Serialize)]
pub struct Entry {
    /// The figure or table, as the inventory describes it.
    #[serde(flatten)]
    pub row: Row,
    /// The command line that measures it again.
    pub command: Option<String>,
    /// The measured figures, by point.
    pub figures: Vec<Figure>,
    /// The paper's ratios beside today's.
    pub ratios: Vec<Ratio>,
    /// Its points without results.
    pub missing: Vec<MissingPoint>,
    /// Contenders that were absent, each with the reason.
    pub absent: Vec<String>,
}

/// A point without results.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MissingPoint {
    /// The point of the inventory, as files name it.
    pub point: String,
    /// The reason why its last measurement failed; absent if it was not run.
    pub failure: Option<String>,
}

impl MissingPoint {
    /// The state in words: `not run`, or the failure.
    #[must_use]
    pub fn state(&self) -> String {
        self.failure.as_ref().map_or_else(|| "not run".to_owned(), |reason| format!("failed: {reason}"))
    }
}

/// A measured figure: the median of all rounds, and what was counted.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// The point of the inventory, as files name it.
    pub point: String,
    /// The contender, and which of its figures.
    pub series: String,
    /// The unit of the values.
    pub unit: Unit,
    /// The median of the values, one of each round.
    pub median: f64,
    /// The lowest value of a round.
    pub low: f64,
    /// The highest value of a round.
    pub high: f64,
    /// The number of rounds.
    pub rounds: usize,
    /// The counts over all rounds.
    pub counted: String,
    /// The way in which a bound of time has cut the measurement; absent if it is complete.
    pub cut: Option<String>,
}

/// A ratio of the paper beside today's.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ratio {
    /// The two figures in words.
    pub title: String,
    /// The ratio that the paper states.
    pub paper: f64,
    /// The ratio of this run; absent if one of the two was not measured.
    pub here: Option<f64>,
}

/// The significant digits of figures.
const DIGITS: i32 = 5;

/// A value with five significant digits: what all formats print.
fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let digits = DIGITS - 1 - value.abs().log10().floor() as i32;
    let text = format!("{value:.*}", digits.max(0) as usize);
    if digits >= 0 {
        text.parse().unwrap_or(value)
    } else {
        (value / 10f64.powi(-digits)).round() * 10f64.powi(-digits)
    }
}

impl Report {
    /// Collects the results of a folder by the rows of the inventory.
    #[must_use]
    pub fn new(inventory: &Inventory, folder: &Folder) -> Self {
        let mut machines: Vec<String> = folder.results().map(|result| result.machine.summary()).collect();
        machines.sort();
        machines.dedup();
        let form = folder.results().next().map(|result| result.form);
        let entries = inventory.rows().iter().map(|row| Entry::new(row, folder, form)).collect();
        Self { machines, form, entries }
    }

    /// The entries whose row has this state.
    #[must_use]
    pub fn count(&self, state: State) -> usize {
        self.entries.iter().filter(|entry| entry.row.state == state).count()
    }

    /// Formats the report as JSON.
    ///
    /// # Errors
    /// If a value has no form in JSON.
    pub fn json(&self) -> serde_json::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }
}

impl Entry {
    fn new(row: &Row, folder: &Folder, form: Option<Form>) -> Self {
        let points = if form == Some(Form::Short) { row.short_points() } else { row.points() };
        let results: Vec<&PointResult> = points.iter().filter_map(|point| folder.result(point)).collect();
        let missing = points.iter().filter(|point| folder.result(point).is_none());
        let missing = missing
            .map(|point| MissingPoint { point: point.to_string(), failure: folder.failure(point).map(str::to_owned) });
        let figures = results.iter().flat_map(|result| figures(row, result)).collect();
        let ratios = row.paper.iter().map(|paper| Ratio::new(paper, &results)).collect();
        let mut absent = Vec::new();
        for (name, reason) in results.iter().flat_map(|result| &result.absent) {
            let line = format!("{name}: {reason}");
            let is_shown = row.shows_contender(name);
            if is_shown && !absent.contains(&line) {
                absent.push(line);
            }
        }
        Self { row: row.clone(), command: row.command(), figures, ratios, missing: missing.collect(), absent }
    }
}

fn figures(row: &Row, result: &PointResult) -> Vec<Figure> {
    let shown = result.series.iter().filter(|series| row.shows(&series.name));
    shown
        .filter_map(|series| {
            let summary = series.summary()?;
            let counted: Vec<String> = series.counted.iter().map(|(name, count)| format!("{count} {name}")).collect();
            Some(Figure {
                point: result.point.to_string(),
                series: series.name.clone(),
                unit: series.unit,
                median: rounded(summary.median),
                low: rounded(summary.low),
                high: rounded(summary.high),
                rounds: summary.count,
                counted: counted.join("; "),
                cut: result.cut.clone(),
            })
        })
        .collect()
}

impl Ratio {
    fn new(paper: &PaperRatio, results: &[&PointResult]) -> Self {
        let numerator = best(results, &paper.numerator, paper.numerator_at.as_deref());
        let denominator = best(results, &paper.denominator, paper.denominator_at.as_deref());
        let both = numerator.zip(denominator).filter(|(_, denominator)| *denominator > 0.0);
        let here = both.map(|(numerator, denominator)| rounded(numerator / denominator));
        Self { title: paper.title.clone(), paper: paper.ratio, here }
    }
}

/// The best median of a series among the points that have this part in their names.
fn best(results: &[&PointResult], series: &str, at: Option<&str>) -> Option<f64> {
    let is_there = |point: &Point| at.is_none_or(|at| point.is_at(at));
    let own = results.iter().filter(|result| is_there(&result.point));
    let own = own.filter_map(|result| {
        let series = result.series.iter().find(|one| one.name == series)?;
        Some((series.unit, series.summary()?.median))
    });
    let better = |best: (Unit, f64), other: (Unit, f64)| {
        let is_better = if best.0.is_rate() { other.1 > best.1 } else { other.1 < best.1 };
        if is_better { other } else { best }
    };
    own.reduce(better).map(|(_, value)| value)
}
