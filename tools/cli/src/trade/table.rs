//! Tables of texts of a trader: escaped, with columns of bounded width.

use spandrel::net::error::escape;

/// The most characters of a cell, apart from those of the last column.
const MAX_CELL: usize = 40;

/// A table of rows, the first of which may be titles.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new<'t>(titles: impl IntoIterator<Item = &'t str>) -> Self {
        let mut table = Self::untitled();
        table.row(titles.into_iter().map(str::to_owned));
        table
    }

    /// A table without titles.
    pub(crate) fn untitled() -> Self {
        Self { rows: Vec::new() }
    }

    /// Adds a row with as many cells as there are titles.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let cells: Vec<String> = cells.into_iter().collect();
        let last = cells.len().saturating_sub(1);
        let shown = |(column, cell): (usize, &String)| match column == last {
            true => escape(cell).to_string(),
            false => escape(cell).at_most(MAX_CELL).to_string(),
        };
        self.rows.push(cells.iter().enumerate().map(shown).collect());
    }

    /// The lines of the table. Columns are two spaces apart.
    pub(crate) fn finish(self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let width = |column: usize| {
            self.rows
                .iter()
                .filter_map(|row| row.get(column))
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or_default()
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(&widths) {
                line += &format!("{cell:width$}  ");
            }
            text += line.trim_end();
            text.push('\n');
        }
        text
    }
}
