//! The report as CSV (RFC 4180): a line for each figure, and one for each point without results.

use std::borrow::Cow;

use super::Report;

/// The columns of the file.
const HEADER: &str = "row,title,point,series,unit,median,low,high,rounds,counted,cut,state\n";

/// A line for each figure of each entry, and for each of its points that are not measured.
#[must_use]
pub fn csv(report: &Report) -> String {
    let mut text = HEADER.to_owned();
    for entry in &report.entries {
        for figure in &entry.figures {
            let (median, low, high) = (figure.median.to_string(), figure.low.to_string(), figure.high.to_string());
            let rounds = figure.rounds.to_string();
            let cells: [&str; 12] = [
                &entry.row.name,
                &entry.row.title,
                &figure.point,
                &figure.series,
                figure.unit.symbol(),
                &median,
                &low,
                &high,
                &rounds,
                &figure.counted,
                figure.cut.as_deref().unwrap_or_default(),
                "measured",
            ];
            text += &line(&cells);
        }
        for missing in &entry.missing {
            let (row, state) = (&entry.row, missing.state());
            text += &line(&[&row.name, &row.title, &missing.point, "", "", "", "", "", "", "", "", &state]);
        }
    }
    text
}

fn line(cells: &[&str]) -> String {
    let cells: Vec<Cow<'_, str>> = cells.iter().copied().map(quoted).collect();
    cells.join(",") + "\n"
}

fn quoted(cell: &str) -> Cow<'_, str> {
    if cell.contains([',', '"', '\n', '\r']) {
        Cow::Owned(format!("\"{}\"", cell.replace('"', "\"\"")))
    } else {
        Cow::Borrowed(cell)
    }
}
