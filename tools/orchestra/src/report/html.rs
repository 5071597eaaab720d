//! The report as one HTML page, which loads nothing: tables that are sorted by a click on a heading, and figures
//! whose series are hidden by a click on their names.

use std::fmt::Write as _;

use super::Summary;
use super::figures::Figure;
use super::markdown::{introduction, parts};

const STYLE: &str = "\
body { font-family: sans-serif; margin: 2em auto; max-width: 75em; padding: 0 1em; color: #282828; background: white }
table { border-collapse: collapse; margin: 1em 0 } td, th { border-bottom: 1px solid #e1e1e1; padding: .3em .8em; text-align: right; white-space: nowrap }
td:first-child, th:first-child { text-align: left } th { cursor: pointer } th:hover { background: #e1e1e1 }
p.note { color: #5a5a5a; max-width: 60em } svg { max-width: 100%; height: auto } svg g[data-series] { cursor: pointer }
svg g.hidden { opacity: .25 } svg g.hidden > :nth-last-child(n+3) { display: none }";

const SCRIPT: &str = "\
document.querySelectorAll('th').forEach(th => th.addEventListener('click', () => {
  const table = th.closest('table'), at = th.cellIndex, down = th.dataset.down !== '1';
  th.dataset.down = down ? '1' : '0';
  const value = row => { const text = row.cells[at].textContent, number = parseFloat(text); return isNaN(number) ? text : number; };
  const compare = (a, b) => typeof a === typeof b ? (a < b ? -1 : a > b ? 1 : 0) : typeof a === 'number' ? -1 : 1;
  [...table.tBodies[0].rows].sort((a, b) => (down ? 1 : -1) * compare(value(a), value(b))).forEach(row => table.tBodies[0].append(row));
}));
document.querySelectorAll('svg g[data-series]').forEach(g => g.addEventListener('click', () => g.classList.toggle('hidden')));";

pub(super) fn page(summary: &Summary, figures: &[Figure]) -> String {
    let name = escape(&summary.name);
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>{name}</title>\n\
         <style>\n{STYLE}\n</style>\n</head>\n<body>\n<h1>{name}</h1>\n"
    );
    for paragraph in introduction(summary) {
        _ = writeln!(page, "<p>{}</p>", escape(&paragraph));
    }
    for part in parts(summary) {
        let cells = |cells: &[String], tag: &str| {
            cells.iter().map(|cell| format!("<{tag}>{}</{tag}>", escape(cell))).collect::<String>()
        };
        _ = write!(page, "<h2>{}</h2>\n<table>\n<thead><tr>", escape(&part.heading));
        _ = write!(page, "{}</tr></thead>\n<tbody>\n", cells(&part.header, "th"));
        for row in &part.rows {
            _ = writeln!(page, "<tr>{}</tr>", cells(row, "td"));
        }
        page.push_str("</tbody>\n</table>\n");
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

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
