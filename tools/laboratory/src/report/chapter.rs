//! The chapter of the book on the papers: for each one its findings then, and what holds now.
//!
//! Its texts are in `inventory/chapter.toml`, the papers' figures in the rows of the inventory, and those of today in a
//! folder of results. Peers that are ahead and goals that are missed come first.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{Entry, Report, best, rounded};
use crate::compare::{self, ComparedSeries, LEAST_DIFFERENCE, Verdict};
use crate::folder::{Folder, PointResult};
use crate::inventory::{PaperRatio, State};
use crate::point::Point;
use crate::profile::layers::Layer;
use crate::series::{Series, Unit};

const TEXTS: &str = include_str!("../../inventory/chapter.toml");

/// Contenders of this tree, each with those of other projects that do the same work.
const RIVALS: [(&str, &[&str]); 2] = [("orb", &["omniorb", "jacorb", "tao", "rpc", "rpc-opaque"]), ("ipc", &["ace"])];
/// The chance that any contender of another project is called ahead where none is.
const TAIL: f64 = 0.05;
/// The layers of a profile that a line names: the costliest ones.
const LAYERS: usize = 3;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Texts {
    paper: Vec<PaperText>,
    goal: Vec<Goal>,
}

/// The text about one paper.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PaperText {
    name: String,
    number: String,
    title: String,
    findings: String,
}

/// A goal of the design: a bound of a ratio, or of a value if it has no denominator.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Goal {
    title: String,
    numerator: String,
    numerator_at: Option<String>,
    denominator: Option<String>,
    denominator_at: Option<String>,
    /// Points of both series, each decided by itself.
    #[serde(default)]
    each_at: Vec<String>,
    at_least: Option<f64>,
    at_most: Option<f64>,
}

/// The result of a folder for a goal: the worst value, and the point that measured it.
struct GoalOutcome {
    value: f64,
    at: String,
    measured: usize,
}

impl Goal {
    fn bound(&self) -> String {
        bound(self.at_least, self.at_most)
    }

    fn outcome(&self, results: &[&PointResult]) -> Option<GoalOutcome> {
        let value = |numerator_at: Option<&str>, denominator_at: Option<&str>| {
            let numerator = best(results, &self.numerator, numerator_at)?;
            let Some(denominator) = &self.denominator else { return Some(numerator) };
            let denominator = best(results, denominator, denominator_at).filter(|value| *value > 0.0)?;
            Some(numerator / denominator)
        };
        if self.each_at.is_empty() {
            let (numerator_at, denominator_at) = (self.numerator_at.as_deref(), self.denominator_at.as_deref());
            let at = numerator_at.unwrap_or_default().to_owned();
            return Some(GoalOutcome { value: value(numerator_at, denominator_at)?, at, measured: 1 });
        }
        let values: Vec<(f64, &String)> =
            self.each_at.iter().filter_map(|at| Some((value(Some(at), Some(at))?, at))).collect();
        let is_worse = |one: f64, other: f64| if self.at_most.is_some() { one > other } else { one < other };
        let worst = values.iter().copied().reduce(|worst, one| if is_worse(one.0, worst.0) { one } else { worst })?;
        Some(GoalOutcome { value: worst.0, at: worst.1.clone(), measured: values.len() })
    }
}

fn bound(at_least: Option<f64>, at_most: Option<f64>) -> String {
    let parts = [(at_least, "≥"), (at_most, "≤")];
    let parts: Vec<String> =
        parts.iter().filter_map(|(bound, sign)| bound.map(|bound| format!("{sign} {bound}"))).collect();
    parts.join(", ")
}

fn is_within(value: f64, at_least: Option<f64>, at_most: Option<f64>) -> bool {
    at_least.is_none_or(|bound| value >= bound) && at_most.is_none_or(|bound| value <= bound)
}

/// Formats the report as the chapter of the book.
///
/// # Panics
/// If its texts are not valid, which a test excludes.
#[must_use]
pub fn chapter(report: &Report, folder: &Folder) -> String {
    let texts: Texts = toml::from_str(TEXTS).unwrap_or_else(|error| panic!("chapter: {error}"));
    let results: Vec<&PointResult> = folder.results().collect();
    let mut text = "# Then and now\n\n\
        The five [papers](papers.md) measured machines, networks and ORBs of their time. This chapter says for each\n\
        one what it found, and what the same experiment finds today in [the laboratory](laboratory.md).\n\
        `spandrel lab report RESULTS --chapter docs/then-and-now.md` writes it from a folder of results, and takes all\n\
        figures of today from there.\n\n"
        .to_owned();
    text += &state(report, results.len());
    text += &goals(&texts.goal, &results);
    text += &rivals(report, folder, &results);
    for paper in &texts.paper {
        text += &about(paper, report);
    }
    text.trim_end().to_owned() + "\n"
}

/// How much of the whole is measured, and by which machines.
fn state(report: &Report, measured: usize) -> String {
    if measured == 0 {
        return "**The full run is still to be made**: no figure of today stands on this page.\n".to_owned();
    }
    let mut missing: Vec<&str> =
        report.entries.iter().flat_map(|entry| &entry.missing).map(|missing| missing.point.as_str()).collect();
    missing.sort_unstable();
    missing.dedup();
    let mut text = match missing.len() {
        0 => format!("All {measured} points of the inventory are measured.\n"),
        left => format!("{measured} points are measured; **{left} are not run** or failed.\n"),
    };
    for machine in &report.machines {
        text += &format!("\n- {machine}");
    }
    text + "\n"
}

/// The goals that are missed, and a count of all.
fn goals(goals: &[Goal], results: &[&PointResult]) -> String {
    let mut text = "\n## Goals that are missed\n\n".to_owned();
    let outcomes: Vec<(&Goal, GoalOutcome)> =
        goals.iter().filter_map(|goal| Some((goal, goal.outcome(results)?))).collect();
    let is_missed = |(goal, outcome): &&(&Goal, GoalOutcome)| !is_within(outcome.value, goal.at_least, goal.at_most);
    let missed: Vec<_> = outcomes.iter().filter(is_missed).collect();
    if !missed.is_empty() {
        text += "| goal | bound | here | at | points measured |\n| --- | ---: | ---: | --- | ---: |\n";
        for (goal, outcome) in &missed {
            let points = goal.each_at.len().max(1);
            text += &format!(
                "| {} | {} | {} | `{}` | {} of {points} |\n",
                goal.title,
                goal.bound(),
                rounded(outcome.value),
                outcome.at,
                outcome.measured
            );
        }
        text += "\n";
    }
    text += &format!(
        "The laboratory decides {} goals of the design: {} are measured, {} of these are missed.\n",
        goals.len(),
        outcomes.len(),
        missed.len()
    );
    text
}

/// The points at which a contender of another project is ahead of ours.
fn rivals(report: &Report, folder: &Folder, results: &[&PointResult]) -> String {
    let mut text = "\n## Peers that are ahead\n\n".to_owned();
    let pairs: Vec<(&Point, &Series, &Series)> = results.iter().flat_map(|result| pairs_at(result)).collect();
    let tail = TAIL / pairs.len().max(1) as f64;
    let mut behind: BTreeMap<(String, String), Vec<(&Point, ComparedSeries)>> = BTreeMap::new();
    for (point, ours, rival) in &pairs {
        let judged = compare::judge(point.to_string(), ours, rival, tail);
        if let Some(compared) = judged.filter(|compared| compared.verdict == Verdict::Worse) {
            behind.entry((group(point), rival.name.clone())).or_default().push((*point, compared));
        }
    }
    if !behind.is_empty() {
        text += "| points | peer | our figure over the peer's | rows | what the profile shows |\n";
        text += "| --- | --- | --- | --- | --- |\n";
    }
    for ((group, rival), compared) in &behind {
        let ratios: Vec<String> = compared
            .iter()
            .map(|(point, compared)| format!("{}: {}", last_part(point), rounded(1.0 + compared.relative)))
            .collect();
        let (point, first) = &compared[0];
        let unit = if first.unit.is_rate() { "rate" } else { "time" };
        text += &format!(
            "| `{group}` | {rival} | {unit} {} | {} | {} |\n",
            ratios.join(", "),
            rows_with(report, compared.iter().map(|(point, _)| *point)),
            layers(folder, point, &first.series)
        );
    }
    if !behind.is_empty() {
        text += "\n";
    }
    text += &format!(
        "{} pairs of our figures and those of peers are compared. A peer is ahead if the difference is at least {:.0} %\n\
         and the confidence interval, corrected for the number of pairs, excludes zero.\n",
        pairs.len(),
        LEAST_DIFFERENCE * 100.0
    );
    text
}

/// The series of a point that are ours, each with those of peers.
fn pairs_at(result: &PointResult) -> Vec<(&Point, &Series, &Series)> {
    let is_time_or_rate = |series: &Series| {
        !matches!(series.unit, Unit::Octets | Unit::Count | Unit::Instructions | Unit::Percent)
            && !matches!(result.point, Point::FloodProfile { .. } | Point::CallProfile { .. })
    };
    let mut pairs = Vec::new();
    for (ours, rivals) in RIVALS {
        for own in result.series.iter().filter(|series| is_time_or_rate(series)) {
            let Some(rest) = own.name.strip_prefix(ours).filter(|rest| rest.is_empty() || rest.starts_with(' ')) else {
                continue;
            };
            let is_rival = |series: &&Series| {
                rivals.iter().any(|rival| series.name.strip_prefix(rival) == Some(rest)) && series.unit == own.unit
            };
            pairs.extend(result.series.iter().filter(is_rival).map(|rival| (&result.point, own, rival)));
        }
    }
    pairs
}

/// The name of a point without its last parameter.
fn group(point: &Point) -> String {
    let name = point.to_string();
    name.rsplit_once('/').map_or(name.clone(), |(group, _)| group.to_owned())
}

fn last_part(point: &Point) -> String {
    let name = point.to_string();
    name.rsplit('/').next().unwrap_or_default().to_owned()
}

/// The names of the figures and tables that have one of the points: at most four.
fn rows_with<'p>(report: &Report, points: impl Iterator<Item = &'p Point>) -> String {
    const MOST: usize = 4;
    let names: Vec<String> = points.map(ToString::to_string).collect();
    let has_point = |entry: &&Entry| entry.figures.iter().any(|figure| names.contains(&figure.point));
    let rows: Vec<&str> = report.entries.iter().filter(has_point).map(|entry| entry.row.name.as_str()).collect();
    let shown = rows.iter().take(MOST).copied().collect::<Vec<_>>().join(", ");
    if rows.len() > MOST { format!("{shown} and {} more", rows.len() - MOST) } else { shown }
}

/// The costliest layers of our sender and receiver, from a profile of the same kind of work.
fn layers(folder: &Folder, point: &Point, series: &str) -> String {
    let contender = match point {
        // `orb static 99th percentile`: of a call profile only the style counts.
        Point::Servants { .. } => series.split(' ').take(2).collect::<Vec<_>>().join(" "),
        _ => series.split(' ').next().unwrap_or_default().to_owned(),
    };
    let is_same_work = |profile: &Point| match (point, profile) {
        (Point::Throughput { data, .. }, Point::FloodProfile { data: profiled, .. }) => data == profiled,
        (Point::Servants { call, .. }, Point::CallProfile { call: profiled, .. }) => call == profiled,
        _ => false,
    };
    let name = |side: &str, layer: Layer| format!("{contender} {side} {layer} share");
    let share = |result: &PointResult, side: &str, layer: Layer| {
        let name = name(side, layer);
        result.series.iter().find(|one| one.name == name)?.values.first().copied()
    };
    let profile = folder
        .results()
        .filter(|result| is_same_work(&result.point))
        .find(|result| Layer::ALL.iter().any(|layer| share(result, "sender", *layer).is_some()));
    let Some(profile) = profile else { return "not profiled".to_owned() };
    let sides = ["sender", "receiver"].map(|side| {
        let mut shares: Vec<(f64, Layer)> =
            Layer::ALL.iter().filter_map(|layer| Some((share(profile, side, *layer)?, *layer))).collect();
        shares.sort_by(|one, other| other.0.total_cmp(&one.0));
        let shares: Vec<String> =
            shares.iter().take(LAYERS).map(|(share, layer)| format!("{layer} {share:.0} %")).collect();
        format!("{side}: {}", shares.join(", "))
    });
    format!("{} (`{}`)", sides.join("; "), profile.point)
}

/// A paper: its findings, and its ratios beside today's.
fn about(paper: &PaperText, report: &Report) -> String {
    let mut text = format!("\n## Paper {}: {}\n\n{}\n\n", paper.number, paper.title, paper.findings.trim());
    let entries: Vec<&Entry> = report.entries.iter().filter(|entry| entry.row.paper_name() == paper.name).collect();
    let ratios: Vec<(&str, &PaperRatio, Option<f64>)> = entries
        .iter()
        .flat_map(|entry| {
            let name = entry.row.name.as_str();
            entry.row.paper.iter().zip(&entry.ratios).map(move |(paper, ratio)| (name, paper, ratio.here))
        })
        .collect();
    let here = |value: Option<f64>| value.map_or("not run".to_owned(), |value| value.to_string());
    let findings: Vec<_> = ratios.iter().filter(|(_, ratio, _)| ratio.finding.is_some()).collect();
    if !findings.is_empty() {
        text += "| | finding | then | holds if | now | |\n| --- | --- | ---: | ---: | ---: | --- |\n";
    }
    for (row, ratio, now) in findings {
        let verdict = match now.map(|now| is_within(now, ratio.at_least, ratio.at_most)) {
            Some(true) => "holds",
            Some(false) => "does not hold",
            None => "open",
        };
        text += &format!(
            "| {row} | {} | {} | {} | {} | {verdict} |\n",
            ratio.finding.as_deref().unwrap_or_default(),
            ratio.ratio,
            bound(ratio.at_least, ratio.at_most),
            here(*now)
        );
    }
    let others: Vec<_> = ratios.iter().filter(|(_, ratio, now)| ratio.finding.is_none() && now.is_some()).collect();
    if !others.is_empty() {
        text += "\n| | ratio of | then | now |\n| --- | --- | ---: | ---: |\n";
    }
    for (row, ratio, now) in others {
        text += &format!("| {row} | {} | {} | {} |\n", ratio.title.replace('|', "\\|"), ratio.ratio, here(*now));
    }
    let runs = entries.iter().copied().filter(|entry| entry.row.state == State::Runs);
    let (whole, part): (Vec<&Entry>, Vec<&Entry>) = runs.partition(|entry| entry.missing.is_empty());
    let begun = part.iter().filter(|entry| !entry.figures.is_empty()).count();
    text += &format!(
        "\nOf {} figures and tables {} run here: {} are measured whole, {begun} in part, {} not run. The others have no\n\
         living counterpart, or their mechanism is not built: `spandrel lab list {} --notes` has the reasons.\n",
        entries.len(),
        whole.len() + part.len(),
        whole.len(),
        part.len() - begun,
        paper.name
    );
    text
}
