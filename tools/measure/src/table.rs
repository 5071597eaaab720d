//! Tables of figures, in the syntax of Markdown.

use std::fmt;

/// A table with a header. All columns but the first are aligned to the right.
#[derive(Clone, Debug)]
pub struct Table {
    /// The header, then the rows. A row may be shorter than the header.
    rows: Vec<Vec<String>>,
}

/// An empty table with these headings.
#[must_use]
pub fn with_header(header: Vec<String>) -> Table {
    Table { rows: vec![header] }
}

impl Table {
    /// Adds a row. Missing cells at its end are empty.
    pub fn add_row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// The width of each column in characters.
    fn widths(&self) -> Vec<usize> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        (0..columns).map(width).collect()
    }
}

impl fmt::Display for Table {
    /// Writes the lines of the table, without a line end after the last.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths = self.widths();
        for (number, row) in self.rows.iter().enumerate() {
            if number > 0 {
                writeln!(f)?;
            }
            for (column, width) in widths.iter().enumerate() {
                let cell = row.get(column).map_or("", String::as_str);
                if column == 0 { write!(f, "| {cell:<width$} ")? } else { write!(f, "| {cell:>width$} ")? }
            }
            f.write_str("|")?;
            if number == 0 {
                writeln!(f)?;
                widths.iter().try_for_each(|width| write!(f, "|{:-<1$}", "", width + 2))?;
                f.write_str("|")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = with_header(["", "p50 µs"].map(str::to_owned).to_vec());
        table.add_row(["c".to_owned(), "3.39 ±  1 %".to_owned()]);
        table.add_row(["shared memory".to_owned()]);
        let expected = "\
            |               |      p50 µs |\n\
            |---------------|-------------|\n\
            | c             | 3.39 ±  1 % |\n\
            | shared memory |             |";
        assert_eq!(table.to_string(), expected);
    }
}
