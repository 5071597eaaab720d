//! The report as one HTML file, without any other file or network: the data as JSON, and a script that shows them.

use super::Report;

const PAGE: &str = include_str!("page.html");
const SCRIPT: &str = include_str!("page.js");
const STYLE: &str = include_str!("page.css");

/// Formats the report as one HTML page that contains all its data.
///
/// # Errors
/// If a value has no form in JSON.
pub fn html(report: &Report) -> serde_json::Result<String> {
    // In a script element, only `<` could begin markup.
    let data = serde_json::to_string(report)?.replace('<', "\\u003c");
    let mut text = String::new();
    let mut rest = PAGE;
    // The parts are inserted in one pass, so that no part is searched for the marks.
    for (mark, part) in [("/*STYLE*/", STYLE), ("/*DATA*/", data.as_str()), ("/*SCRIPT*/", SCRIPT)] {
        let (before, after) = rest.split_once(mark).unwrap_or((rest, ""));
        text = text + before + part;
        rest = after;
    }
    Ok(text + rest)
}
