//! The report as one HTML page, which loads nothing: tables that are sorted by a click on a heading, and figures
//! whose series are hidden by a click on their names and stand out below the mouse.

use std::fmt::Write as _;

use super::Summary;
use super::figures::Figure;
use super::markdown::{introduction, parts};

const STYLE: &str = "\
body { font-family: sans-serif; margin: 2em auto; max-width: 84em; padding: 0 1em; color: #282828; background: white }
div.table { overflow-x: auto } table { border-collapse: collapse; margin: .5em 0 } td, th { border-bottom: 1px solid #e1e1e1; padding: .3em .55em; text-align: right; white-space: nowrap }
td:first-child, th:first-child { text-align: left; padding-left: 0 } td.text, th.text { text-align: left }
td.long { white-space: normal; min-width: 20em } th { cursor: pointer } th:hover { background: #e1e1e1 }
th[aria-sort=ascending]::after { content: ' \\25b2' } th[aria-sort=descending]::after { content: ' \\25bc' }
p.note { color: #5a5a5a; max-width: 60em } svg { max-width: 100%; height: auto } svg g[data-series] { cursor: pointer }
svg:has(g[data-series]:hover) g[data-series]:not(:hover), svg g.hidden { opacity: .25 } svg g.hidden > :nth-last-child(n+3) { display: none }";

const SCRIPT: &str = "\
document.querySelectorAll('th').forEach(th => th.addEventListener('click', () => {
  const table = th.closest('table'), at = th.cellIndex, down = th.getAttribute('aria-sort') !== 'ascending';
  table.querySelectorAll('th').forEach(other => other.removeAttribute('aria-sort'));
  th.setAttribute('aria-sort', down ? 'ascending' : 'descending');
  const value = row => { const text = row.cells[at].textContent, number = parseFloat(text); return isNaN(number) ? text : number; };
  const compare = (a, b) => typeof a === typeof b ? (a < b ? -1 : a > b ? 1 : 0) : typeof a === 'number' ? -1 : 1;
  [...table.tBodies[0].rows].sort((a, b) => (down ? 1 : -1) * compare(value(a), value(b))).forEach(row => table.tBodies[0].append(row));
}));
document.querySelectorAll('svg g[data-series]').forEach(g => g.addEventListener('click', () => g.classList.toggle('hidden')));";

/// The length of the longest text, in characters, that is not wrapped.
const LONG: usize = 60;

pub(super) fn page(summary: &Summary, figures: &[Figure]) -> String {
    let name = escape(&summary.name);
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{name}</title>\n\
         <style>\n{STYLE}\n</style>\n</head>\n<body>\n<h1>{name}</h1>\n"
    );
    for paragraph in introduction(summary) {
        _ = writeln!(page, "<p>{}</p>", escape(&paragraph));
    }
    for part in parts(summary) {
        let classes: Vec<&str> = (0..part.header.len()).map(|column| class(&part.rows, column)).collect();
        let cells = |cells: &[String], tag: &str| {
            let cell = |(cell, class): (&String, &&str)| format!("<{tag}{class}>{}</{tag}>", escape(cell));
            cells.iter().zip(&classes).map(cell).collect::<String>()
        };
        _ = write!(page, "<h2>{}</h2>\n<div class=\"table\"><table>\n<thead><tr>", escape(&part.heading));
        _ = write!(page, "{}</tr></thead>\n<tbody>\n", cells(&part.header, "th"));
        for row in &part.rows {
            _ = writeln!(page, "<tr>{}</tr>", cells(row, "td"));
        }
        page.push_str("</tbody>\n</table></div>\n");
        if !part.note.is_empty() {
            _ = writeln!(page, "<p class=\"note\">{}</p>", escape(&part.note));
        }
    }
    if !figures.is_empty() {
        page.push_str(
            "<h2>Figures</h2>\n<p class=\"note\">A click on a series hides it; a point shows its values.</p>\n",
        );
    }
    for Figure { title, svg, .. } in figures {
        _ = writeln!(page, "<h3>{}</h3>\n{svg}", escape(title));
    }
    _ = write!(page, "<script>\n{SCRIPT}\n</script>\n</body>\n</html>\n");
    page
}

/// The attribute of the cells of a column: numbers stand at the right, and only long texts are wrapped.
fn class(rows: &[Vec<String>], column: usize) -> &'static str {
    let mut cells = rows.iter().filter_map(|row| row.get(column)).filter(|cell| !cell.is_empty());
    let is_number = |cell: &String| cell.starts_with(|first: char| first.is_ascii_digit() || "+-".contains(first));
    if cells.clone().all(is_number) {
        ""
    } else if cells.any(|cell| cell.chars().count() > LONG) {
        " class=\"text long\""
    } else {
        " class=\"text\""
    }
}

/// A text in one line, without a meaning for HTML.
fn escape(text: &str) -> String {
    spandrel::net::error::escape(text).to_string().replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
