//! The report as Markdown: the ratios of the papers beside today's, then the figures.

use super::{Entry, Figure, Report};
use crate::folder::Form;
use crate::inventory::State;

/// Formats the report as Markdown.
#[must_use]
pub fn markdown(report: &Report) -> String {
    let mut text = "# Report of the laboratory\n\n".to_owned();
    for machine in &report.machines {
        text += &format!("- {machine}\n");
    }
    if report.form == Some(Form::Short) {
        text += "- a short run: its figures show that everything runs, and nothing else\n";
    }
    text += "\n| state | figures and tables |\n| --- | ---: |\n";
    for state in State::ALL {
        text += &format!("| {state} | {} |\n", report.count(state));
    }
    let measured: Vec<&Entry> = report.entries.iter().filter(|entry| !entry.figures.is_empty()).collect();
    let ratios: Vec<String> = measured
        .iter()
        .flat_map(|entry| entry.ratios.iter().map(|ratio| (&entry.row.name, ratio)))
        .map(|(name, ratio)| {
            let here = ratio.here.map_or("-".to_owned(), |here| here.to_string());
            format!("| {name} | {} | {} | {here} |\n", cell(&ratio.title), ratio.paper)
        })
        .collect();
    if !ratios.is_empty() {
        text += "\n## Ratios\n\n| | ratio of | in the paper | here |\n| --- | --- | ---: | ---: |\n";
        text += &ratios.concat();
    }
    for entry in measured {
        text += &figures(entry);
    }
    text += "\n## Not measured\n\n| | title | state | reason |\n| --- | --- | --- | --- |\n";
    for entry in report.entries.iter().filter(|entry| entry.figures.is_empty()) {
        let row = &entry.row;
        let failure = entry.missing.iter().find(|missing| missing.failure.is_some());
        let reason = match (&row.reason, failure) {
            (Some(reason), _) => reason.clone(),
            (None, Some(failure)) => format!("{}: {}", failure.point, failure.state()),
            (None, None) if entry.missing.is_empty() => entry.absent.join("; "),
            (None, None) => format!("not run: `{}`", row.command().unwrap_or_default()),
        };
        text += &format!("| {} | {} | {} | {} |\n", row.name, cell(&row.title), row.state, cell(&reason));
    }
    text
}

fn figures(entry: &Entry) -> String {
    let row = &entry.row;
    let mut text = format!("\n## {}: {}\n\n", row.name, row.title);
    if let Some(note) = &row.note {
        text += &format!("Note: {note}.\n\n");
    }
    let not_run = entry.missing.iter().filter(|missing| missing.failure.is_none()).count();
    if not_run > 0 {
        text += &format!("{not_run} of its points are not run.\n\n");
    }
    for missing in entry.missing.iter().filter(|missing| missing.failure.is_some()) {
        text += &format!("{}: {}.\n\n", missing.point, missing.state());
    }
    text += &by_queue(entry);
    text += "| point | series | median | lowest | highest | rounds | counted | cut |\n";
    text += "| --- | --- | ---: | ---: | ---: | ---: | --- | --- |\n";
    for figure in &entry.figures {
        text += &format!(
            "| {} | {} | {} {} | {} | {} | {} | {} | {} |\n",
            figure.point,
            cell(&figure.series),
            figure.median,
            figure.unit.symbol(),
            figure.low,
            figure.high,
            figure.rounds,
            cell(&figure.counted),
            cell(figure.cut.as_deref().unwrap_or_default())
        );
    }
    for absent in &entry.absent {
        text += &format!("\nAbsent: {absent}.\n");
    }
    text
}

/// The medians of floods with several queues in one table, as tables 1 and 2 of paper 000 have them: a row for each series
/// and queue, a column for each size of buffers. Empty for a row with one queue.
fn by_queue(entry: &Entry) -> String {
    let floods: Vec<([&str; 4], &Figure)> = entry
        .figures
        .iter()
        .filter_map(|figure| {
            let parts: Vec<&str> = figure.point.split('/').collect();
            let ["throughput", link, queue, "oneway", data, size] = parts[..] else { return None };
            Some(([link, queue, data, size], figure))
        })
        .collect();
    let distinct = |nth: usize| {
        let mut values = Vec::new();
        for (parts, _) in &floods {
            if !values.contains(&parts[nth]) {
                values.push(parts[nth]);
            }
        }
        values
    };
    let [links, queues, types, sizes] = [0, 1, 2, 3].map(distinct);
    if queues.len() < 2 {
        return String::new();
    }
    let mut series: Vec<&str> = Vec::new();
    for (_, figure) in &floods {
        if !series.contains(&&*figure.series) {
            series.push(&figure.series);
        }
    }
    let mut text = String::new();
    for (link, data) in links.iter().flat_map(|link| types.iter().map(move |data| (*link, *data))) {
        text += &format!("Mbit/s over {link}, sequences of {data}, by size of buffers:\n\n");
        text += &format!("| series | queue | {} |\n", sizes.join(" | "));
        text += &format!("| --- | ---: |{}\n", " ---: |".repeat(sizes.len()));
        for (name, queue) in series.iter().flat_map(|name| queues.iter().map(move |queue| (*name, *queue))) {
            let median = |size: &&str| {
                let own = floods.iter().find(|(parts, one)| *parts == [link, queue, data, *size] && one.series == name);
                own.map_or(String::new(), |(_, figure)| figure.median.to_string())
            };
            let medians: Vec<String> = sizes.iter().map(median).collect();
            text += &format!("| {} | {queue} | {} |\n", cell(name), medians.join(" | "));
        }
        text += "\n";
    }
    text
}

/// A text within a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace(['\n', '\r'], " ")
}
