//! Drawing of the tables on the terminal.

use std::fmt::Write as _;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use spandrel_error::escape;

use crate::Rows;
use crate::tables::{Table, tables};

/// The rows on the screen, and the part of them that is visible.
#[derive(Debug, Default)]
pub struct View {
    /// The name of the process: where its metrics are read.
    pub source: String,
    /// The seconds between two samples.
    pub interval: f64,
    /// The rows of the last sample.
    pub rows: Rows,
    /// The reason for which there is no newer sample. The rows are then marked as old.
    pub error: Option<String>,
    /// Whether the rows stay as they are.
    pub is_paused: bool,
    /// The first line that is shown.
    pub offset: u16,
    /// The first character of lines that is shown: tables may be wider than the terminal.
    pub left: u16,
}

/// The characters by which lines move to the left and right.
const SIDE_STEP: i32 = 8;

impl View {
    /// Moves the first line that is shown by so many lines.
    pub fn scroll(&mut self, lines: i32) {
        let last = i32::try_from(self.lines().len()).unwrap_or(i32::MAX).saturating_sub(1);
        let offset = i32::from(self.offset).saturating_add(lines).clamp(0, last.max(0));
        self.offset = u16::try_from(offset).unwrap_or(u16::MAX);
    }

    /// Moves the lines by so many steps of some columns, to the left for a negative number.
    pub fn scroll_sideways(&mut self, steps: i32) {
        let last = i32::try_from(self.width()).unwrap_or(i32::MAX).saturating_sub(SIDE_STEP);
        let left = i32::from(self.left).saturating_add(steps.saturating_mul(SIDE_STEP)).clamp(0, last.max(0));
        self.left = u16::try_from(left).unwrap_or(u16::MAX);
    }

    /// Draws the tables in the space of the frame.
    pub fn draw(&self, frame: &mut Frame<'_>) {
        let error = Constraint::Length(self.error.is_some().into());
        let rows = [Constraint::Length(1), error, Constraint::Min(0), Constraint::Length(1)];
        let [head, error, body, foot] = Layout::vertical(rows).areas(frame.area());
        frame.render_widget(Paragraph::new(self.head()), head);
        if let Some(reason) = &self.error {
            let line = format!("no answer: {}", escape(reason));
            frame.render_widget(Paragraph::new(line).style(Style::new().fg(Color::Red)), error);
        }
        frame.render_widget(Paragraph::new(self.lines()).scroll((self.offset, self.left)), body);
        let is_wide = self.width() > usize::from(body.width) || self.left > 0;
        let sideways = if is_wide { "   ← → more columns" } else { "" };
        let keys = format!("q quit   p pause   ↑ ↓ PgUp PgDn scroll{sideways}");
        frame.render_widget(Paragraph::new(keys).style(Style::new().add_modifier(Modifier::DIM)), foot);
    }

    /// The characters of the longest line.
    fn width(&self) -> usize {
        self.lines().iter().map(Line::width).max().unwrap_or_default()
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
        Line::from(spans)
    }

    fn lines(&self) -> Vec<Line<'static>> {
        let tables = tables(&self.rows);
        if tables.is_empty() && self.error.is_none() {
            return vec![Line::raw(""), Line::raw("No streams, channels, services or ORBs in these metrics.")];
        }
        let is_old = self.error.is_some();
        let mut lines: Vec<_> = tables.iter().flat_map(|table| lines(table, is_old)).collect();
        if is_old {
            let dim = Style::new().add_modifier(Modifier::DIM);
            lines.iter_mut().for_each(|line| line.style = line.style.patch(dim));
        }
        lines
    }
}

/// The lines of a table. One of the last answer is old if there is no newer one.
fn lines(table: &Table, is_old: bool) -> Vec<Line<'static>> {
    let widths = table.widths();
    let dim = Style::new().add_modifier(Modifier::DIM);
    let cells = |cells: &mut dyn Iterator<Item = (usize, &str)>| {
        let padded = cells.map(|(at, cell)| Span::styled(table.columns[at].pad(cell, widths[at]) + "  ", style(cell)));
        Line::from(padded.collect::<Vec<_>>())
    };
    let title = Span::styled(table.title, Style::new().fg(Color::Cyan).add_modifier(Modifier::BOLD));
    let age = Span::styled(if is_old { "   of the last answer" } else { "" }, Style::new().fg(Color::Red));
    let mut lines = vec![Line::raw(""), Line::from(vec![title, age])];
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
        for line in lines(&table, false) {
            let line: String = line.spans.iter().map(|span| span.content.as_ref()).collect();
            _ = writeln!(text, "{}", line.trim_end());
        }
    }
    text.trim_start().to_owned()
}
