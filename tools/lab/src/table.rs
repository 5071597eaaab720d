//! Tables of figures, in the syntax of Markdown.

use comfy_table::{CellAlignment, Table, presets};

/// An empty table; all columns but the first are aligned to the right.
pub(crate) fn with_header(header: Vec<String>) -> Table {
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN).set_header(header);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
