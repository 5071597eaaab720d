//! The report as Markdown.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use spandrel::net::error::escape;
use spandrel_measure::stats::{Comparison, LARGE_SAMPLE, Moments};
use spandrel_measure::table::{Table, with_header};

use super::figures::Figure;
use super::{Compared, CpuMoments, Row, Summary};

/// The note about the two scopes of processor time.
const SCOPES: &str = "The time of the server is that of its control group: all processes and threads that \
it has started, also ended ones (without control groups: its process tree). The time of the machine is that of all \
processors (5.5.1); load that runs on the same machine is in it.";
/// The note about Z.
const SCORES: &str = "Z below 1.65: nothing suggests that the means differ at the level of 5 % (5.7); valid \
from 30 samples on. Noise lowers Z: the interval, of Student's t, shows how much the means may differ.";
/// The note about comparisons of small samples.
const SMALL: &str = "Comparisons of fewer than 30 samples are marked *: their Z is not valid, and they differ if the \
interval excludes zero.";

/// A part of a report: a heading, and a table or a text.
pub(super) struct Part {
    pub(super) heading: String,
    pub(super) header: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
    pub(super) note: String,
}

impl Part {
    fn new(heading: impl Into<String>, header: &[&str]) -> Self {
        let header = header.iter().map(|&cell| cell.to_owned()).collect();
        Self { heading: heading.into(), header, rows: Vec::new(), note: String::new() }
    }
}

pub(super) fn text(summary: &Summary, figures: &[Figure]) -> String {
    let mut text = format!("# {}\n", escaped(&summary.name));
    for paragraph in introduction(summary) {
        _ = write!(text, "\n{}\n", escaped(&paragraph));
    }
    for part in parts(summary) {
        let cells = |cells: &[String]| cells.iter().map(|cell| escaped(cell)).collect::<Vec<String>>();
        let mut table: Table = with_header(cells(&part.header));
        part.rows.iter().for_each(|row| table.add_row(cells(row)));
        _ = write!(text, "\n## {}\n\n{table}\n", escaped(&part.heading));
        if !part.note.is_empty() {
            _ = write!(text, "\n{}\n", escaped(&part.note));
        }
    }
    if !figures.is_empty() {
        text.push_str("\n## Figures\n");
    }
    for Figure { file, title, .. } in figures {
        _ = write!(text, "\n![{}]({file})\n", escaped(title));
    }
    text
}

/// A text in one line, [without control characters](escape), and without a meaning for Markdown, its tables or HTML.
fn escaped(text: &str) -> String {
    let text = escape(text).to_string();
    let mut escaped = String::with_capacity(text.len());
    let mut before = ' ';
    for (at, letter) in text.char_indices() {
        let after = text[at + letter.len_utf8()..].chars().next().unwrap_or(' ');
        let has_meaning = match letter {
            '\\' | '|' | '<' | '`' | '*' | '[' | ']' | '~' => true,
            '_' => !(before.is_alphanumeric() && after.is_alphanumeric()), // else it is a part of a word
            '&' => after.is_alphanumeric() || after == '#',
            '#' | '>' => at == 0,
            '-' | '+' => at == 0 && text[1..].starts_with(' '), // an item of a list
            _ => false,
        };
        if has_meaning {
            escaped.push('\\');
        }
        escaped.push(letter);
        before = letter;
    }
    escaped
}

/// The paragraphs before the tables.
pub(super) fn introduction(summary: &Summary) -> Vec<String> {
    let Summary { requests, octets, workers, samples, slices, .. } = summary;
    let first = format!(
        "{samples} samples of each server: {requests} requests of {octets} octets by {workers} parallel workers, unless \
         a load has other values. Times are in seconds: mean ± standard deviation. {SCOPES}"
    );
    let absent: Vec<String> = summary.absent.iter().map(|(target, load)| format!("{target} ({load})")).collect();
    let absent = (!absent.is_empty()).then(|| format!("No sample could be taken yet of {}.", absent.join(", ")));
    let sliced = (*slices > 1).then(|| {
        format!(
            "Each sample is the sum of {slices} slices. Servers that are compared ran at the same time, and their slices \
             alternated in random order. The difference of two such servers is the mean of the relative differences of \
             the rounds, and its 95 % interval is that of Student's t over the rounds."
        )
    });
    [first].into_iter().chain(sliced).chain(absent).chain(summary.notes.iter().cloned()).collect()
}

/// The tables of a report, in its order.
pub(super) fn parts(summary: &Summary) -> Vec<Part> {
    let mut parts = Vec::new();
    let loads = summary.loads();
    for load in &loads {
        for picture in summary.pictures(load) {
            let suffix = if loads.len() > 1 { format!(", {load}") } else { String::new() };
            let rows: Vec<&Row> =
                summary.rows.iter().filter(|row| row.load == *load && row.picture == picture).collect();
            parts.push(times(&format!("{picture}{suffix}"), &rows));
        }
    }
    if !summary.pairs.is_empty() {
        parts.push(pairs(summary));
    }
    parts.push(latencies(summary));
    if summary.rows.iter().any(|row| row.failed > 0) {
        parts.push(errors(summary));
    }
    if !summary.failures.is_empty() {
        parts.push(failures(summary));
    }
    if !summary.hosts.is_empty() {
        parts.push(machines(summary));
    }
    if !summary.versions.is_empty() {
        parts.push(versions(summary));
    }
    parts
}

/// The rows of tables 5.3 and 5.4, side by side.
fn times(heading: &str, rows: &[&Row]) -> Part {
    let header = ["server", "n", "elapsed", "user", "system", "user+system", "µs/request", "machine", "failed"];
    let mut part = Part::new(heading, &header);
    for row in rows {
        let cpu = |cpu: &Option<CpuMoments>, of: fn(&CpuMoments) -> Moments| {
            cpu.as_ref().map(of).map_or_else(|| "-".to_owned(), |moments| moments_text(&moments))
        };
        part.rows.push(vec![
            row.target.clone(),
            row.count.to_string(),
            moments_text(&row.elapsed),
            cpu(&row.server, |cpu| cpu.user),
            cpu(&row.server, |cpu| cpu.system),
            cpu(&row.server, |cpu| cpu.total),
            row.cpu_per_request.map_or_else(|| "-".to_owned(), |micros| format!("{micros:.1}")),
            cpu(&row.machine, |cpu| cpu.total),
            row.failed.to_string(),
        ]);
    }
    part
}

fn moments_text(moments: &Moments) -> String {
    match moments.count {
        1 => format!("{:.3}", moments.mean), // its deviation is unknown
        _ => format!("{:.3} ± {:.3}", moments.mean, moments.deviation),
    }
}

fn pairs(summary: &Summary) -> Part {
    let header = ["pair", "load", "time of", "means", "Z", "difference", "95 % interval", "differ"];
    let mut part = Part::new("Comparisons", &header);
    for pair in &summary.pairs {
        for (scope, compared) in [("server", &pair.server), ("machine", &pair.machine)] {
            let Some(Compared { first, second, comparison }) = compared else { continue };
            let mut cells = vec![
                format!("{} : {}", pair.first, pair.second),
                pair.load.clone(),
                scope.to_owned(),
                format!("{first:.3} : {second:.3}"),
            ];
            cells.extend(match comparison {
                Some(found) => [
                    format!("{:.2}", found.z),
                    format!("{:+.1} %", found.relative * 100.0),
                    format!("{:+.1} % to {:+.1} %", found.interval.0 * 100.0, found.interval.1 * 100.0),
                    format!("{}{}", if found.differs() { "yes" } else { "no" }, if is_small(found) { "*" } else { "" }),
                ],
                None => ["-"; 4].map(str::to_owned),
            });
            part.rows.push(cells);
        }
    }
    let all = summary.pairs.iter().flat_map(|pair| [&pair.server, &pair.machine]).flatten();
    let has_small = all.filter_map(|compared| compared.comparison.as_ref()).any(is_small);
    part.note = if has_small { format!("{SCORES} {SMALL}") } else { SCORES.to_owned() };
    part
}

fn is_small(comparison: &Comparison) -> bool {
    comparison.values < LARGE_SAMPLE
}

fn latencies(summary: &Summary) -> Part {
    let mut part =
        Part::new("Latencies and memory", &["server", "load", "p50 ms", "p99 ms", "highest ms", "resident MiB"]);
    for row in &summary.rows {
        let mut cells = vec![row.target.clone(), row.load.clone()];
        cells.extend(row.latency.map(|seconds| format!("{:.3}", seconds * 1000.0)));
        cells.push(format!("{:.1}", row.resident / f64::from(1 << 20)));
        part.rows.push(cells);
    }
    part.note =
        "Means over the samples. Latencies of an open loop count from the time at which a request was due.".to_owned();
    part
}

fn errors(summary: &Summary) -> Part {
    let mut part = Part::new("Failed requests", &["server", "load", "kind", "requests"]);
    for row in &summary.rows {
        for (kind, count) in &row.errors {
            part.rows.push(vec![row.target.clone(), row.load.clone(), kind.clone(), count.to_string()]);
        }
    }
    part
}

fn failures(summary: &Summary) -> Part {
    let mut part = Part::new("Samples that could not be taken at first", &["server", "load", "sample", "reason"]);
    for failure in &summary.failures {
        let (number, reason) = ((failure.round + 1).to_string(), failure.reason.clone());
        part.rows.push(vec![failure.target.clone(), failure.load.clone(), number, reason]);
    }
    part
}

/// Table B.1: the versions of tools.
fn versions(summary: &Summary) -> Part {
    let mut part = Part::new("Versions", &["tool", "version"]);
    let row = |(tool, versions): (&String, &Vec<String>)| vec![tool.clone(), versions.join(", then ")];
    part.rows = summary.versions.iter().map(row).collect();
    part
}

/// The machines as their agents describe them, and their commands.
fn machines(summary: &Summary) -> Part {
    let mut part = Part::new("Machines", &[""]);
    let heading = |host: &crate::results::Host| format!("{} ({})", host.host, host.role);
    part.header.extend(summary.hosts.iter().map(heading));
    let names = |of: fn(&crate::results::Host) -> &std::collections::BTreeMap<String, String>| {
        summary.hosts.iter().flat_map(of).map(|(name, _)| name.clone()).collect::<BTreeSet<String>>()
    };
    for name in names(|host| &host.properties) {
        let values = summary.hosts.iter().map(|host| host.properties.get(&name).cloned().unwrap_or_default());
        part.rows.push([name.clone()].into_iter().chain(values).collect());
    }
    for name in names(|host| &host.versions) {
        let values = summary.hosts.iter().map(|host| match host.versions.get(&name) {
            Some(version) if version.is_empty() => "prints no version".to_owned(),
            Some(version) => version.clone(),
            None => String::new(),
        });
        part.rows.push([format!("command {name}")].into_iter().chain(values).collect());
    }
    part
}
