//! Tables of figures, in the syntax of Markdown.

use std::fmt;

/// The side of its column at which a cell stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Words begin at the left.
    Left,
    /// Numbers end at the right.
    Right,
}

/// A table with a header.
///
/// `{table}` has columns of equal width, for terminals; `{table:#}` has no padding, and marks the columns that are aligned
/// to the right, for pages.
#[derive(Clone, Debug)]
pub struct Table {
    /// The alignment of each column; those beyond are aligned to the right.
    alignment: Vec<Align>,
    /// The header, then the rows. A row may be shorter than the header.
    rows: Vec<Vec<String>>,
}

/// An empty table with these headings. All columns but the first are aligned to the right.
#[must_use]
pub fn with_header(header: Vec<String>) -> Table {
    Table { alignment: vec![Align::Left], rows: vec![header] }
}

/// An empty table with these columns.
#[must_use]
pub fn with_columns(columns: &[(&str, Align)]) -> Table {
    let (header, alignment) = columns.iter().map(|(name, align)| ((*name).to_owned(), *align)).unzip();
    Table { alignment, rows: vec![header] }
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

    fn fmt_page(&self, f: &mut fmt::Formatter<'_>, align: impl Fn(usize) -> Align) -> fmt::Result {
        for (number, row) in self.rows.iter().enumerate() {
            if number > 0 {
                writeln!(f)?;
            }
            row.iter().try_for_each(|cell| write!(f, "| {cell} "))?;
            f.write_str("|")?;
            if number == 0 {
                writeln!(f)?;
                let mark = |column| if align(column) == Align::Left { "| --- " } else { "| ---: " };
                (0..row.len()).try_for_each(|column| f.write_str(mark(column)))?;
                f.write_str("|")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Table {
    /// Writes the lines of the table, without a line end after the last.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let align = |column: usize| self.alignment.get(column).copied().unwrap_or(Align::Right);
        if f.alternate() {
            return self.fmt_page(f, align);
        }
        let widths = self.widths();
        for (number, row) in self.rows.iter().enumerate() {
            if number > 0 {
                writeln!(f)?;
            }
            for (column, width) in widths.iter().enumerate() {
                let cell = row.get(column).map_or("", String::as_str);
                match align(column) {
                    Align::Left => write!(f, "| {cell:<width$} ")?,
                    Align::Right => write!(f, "| {cell:>width$} ")?,
                }
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

    #[test]
    fn a_table_of_a_page_has_marks_in_place_of_padding() {
        let mut table = with_columns(&[("n", Align::Right), ("queue", Align::Left), ("time", Align::Right)]);
        table.add_row(["1", "plain", "20 ns"].map(str::to_owned));
        assert_eq!(format!("{table:#}"), "| n | queue | time |\n| ---: | --- | ---: |\n| 1 | plain | 20 ns |");
        assert_eq!(table.to_string().lines().last(), Some("| 1 | plain | 20 ns |"));
    }
}
