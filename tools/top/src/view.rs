//! The screen.

use std::fmt::Write as _;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use crate::Rows;
use crate::tables::{Table, tables};

/// The content of the screen.
#[derive(Debug, Default)]
pub struct View {
    /// The name of the process: where its metrics are read.
    pub source: String,
    /// The interval in seconds.
    pub interval: f64,
    /// The rows of the last sample.
    pub rows: Rows,
    /// The reason for which there is no newer sample.
    pub error: Option<String>,
    /// Whether the rows stay as they are.
    pub is_paused: bool,
    /// The first line that is shown.
    pub offset: u16,
}

impl View {
    /// Moves the first line that is shown by so many lines.
    pub fn scroll(&mut self, lines: i32) {
        let last = i32::try_from(self.lines().len()).unwrap_or(i32::MAX).saturating_sub(1);
        let offset = i32::from(self.offset).saturating_add(lines).clamp(0, last.max(0));
        self.offset = u16::try_from(offset).unwrap_or(u16::MAX);
    }

    /// Draws the screen.
    pub fn draw(&self, frame: &mut Frame<'_>) {
        let rows = [Constraint::Length(1), Constraint::Min(0), Constraint::Length(1)];
        let [head, body, foot] = Layout::vertical(rows).areas(frame.area());
        frame.render_widget(Paragraph::new(self.head()), head);
        frame.render_widget(Paragraph::new(self.lines()).scroll((self.offset, 0)), body);
        let keys = "q quit   p pause   ↑ ↓ PgUp PgDn scroll";
        frame.render_widget(Paragraph::new(keys).style(Style::new().add_modifier(Modifier::DIM)), foot);
    }

    fn head(&self) -> Line<'static> {
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let mut spans = vec![
            Span::styled("spandrel top", bold),
            Span::raw(format!("   {}   every {} s", self.source, self.interval)),
        ];
        if self.is_paused {
            spans.push(Span::styled("   paused", Style::new().fg(Color::Yellow)));
        }
        if let Some(error) = &self.error {
            spans.push(Span::styled(format!("   {error}"), Style::new().fg(Color::Red)));
        }
        Line::from(spans)
    }

    fn lines(&self) -> Vec<Line<'static>> {
        let tables = tables(&self.rows);
        if tables.is_empty() && self.error.is_none() {
            return vec![Line::raw(""), Line::raw("No streams, services or ORBs in these metrics.")];
        }
        tables.iter().flat_map(lines).collect()
    }
}

/// The lines of a table.
fn lines(table: &Table) -> Vec<Line<'static>> {
    let widths = table.widths();
    let dim = Style::new().add_modifier(Modifier::DIM);
    let cells = |cells: &mut dyn Iterator<Item = (usize, &str)>| {
        let padded = cells.map(|(at, cell)| Span::styled(table.columns[at].pad(cell, widths[at]) + "  ", style(cell)));
        Line::from(padded.collect::<Vec<_>>())
    };
    let title = Span::styled(table.title, Style::new().fg(Color::Cyan).add_modifier(Modifier::BOLD));
    let mut lines = vec![Line::raw(""), Line::from(title)];
    lines.push(cells(&mut table.columns.iter().map(|column| column.head).enumerate()).style(dim));
    lines.extend(table.rows.iter().map(|row| cells(&mut row.iter().map(String::as_str).enumerate())));
    lines.extend(table.remark.map(|remark| Line::styled(remark, dim)));
    lines
}

/// The style of a cell: states that need attention stand out.
fn style(cell: &str) -> Style {
    match cell {
        "full" | "no answer" => Style::new().fg(Color::Red).add_modifier(Modifier::BOLD),
        "stopped" | "suspended" => Style::new().fg(Color::Yellow),
        _ => Style::new(),
    }
}

/// The rows as text without styles.
#[must_use]
pub fn text(rows: &Rows) -> String {
    let mut text = String::new();
    for table in tables(rows) {
        for line in lines(&table) {
            let line: String = line.spans.iter().map(|span| span.content.as_ref()).collect();
            _ = writeln!(text, "{}", line.trim_end());
        }
    }
    text.trim_start().to_owned()
}
