//! Lines and columns of many positions: each file is divided into lines only once, and the characters of a long line
//! are not counted from its beginning again and again.

use std::cell::Cell;

use crate::source::{FileId, SourceMap, Span};

pub(super) struct Lines<'m> {
    sources: &'m SourceMap,
    /// The offsets of line starts for each file.
    starts: Vec<Vec<u32>>,
    /// The last position, and the characters before it in its line.
    last: Cell<(Span, usize)>,
}

impl<'m> Lines<'m> {
    pub(super) fn new(sources: &'m SourceMap) -> Self {
        let starts = sources.files().iter().map(|file| {
            let newlines = file.text.bytes().enumerate().filter(|(_, octet)| *octet == b'\n');
            std::iter::once(0).chain(newlines.map(|(index, _)| index as u32 + 1)).collect()
        });
        let nowhere = Span { file: FileId(u32::MAX), start: 0, end: 0 };
        Lines { sources, starts: starts.collect(), last: Cell::new((nowhere, 0)) }
    }

    /// Line and column as [`SourceMap::line_column`] has them, by the known starts of lines.
    pub(super) fn line_column(&self, span: Span) -> (usize, usize) {
        let starts = &self.starts[span.file.0 as usize];
        let line = starts.partition_point(|&start| start <= span.start);
        let start = starts[line - 1];
        let (last, counted) = self.last.get();
        let is_behind = last.file == span.file && (start..=span.start).contains(&last.start);
        let (from, counted) = if is_behind { (last.start, counted) } else { (start, 0) };
        let before = self.sources.text(Span { start: from, end: span.start, ..span });
        let count = counted + before.chars().count();
        self.last.set((span, count));
        (line, count + 1)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::source::SourceFile;

    #[test]
    fn positions_are_those_of_the_source_map() {
        let mut sources = SourceMap::default();
        for text in ["", "\n", "a\nbä c\n\nd", "one line"] {
            let text: Arc<str> = text.into();
            sources.add(SourceFile { path: "x".into(), text, included_from: None, built_in: false });
        }
        let lines = Lines::new(&sources);
        for (number, file) in sources.files().iter().enumerate() {
            for start in (0..=file.text.len()).filter(|&it| file.text.is_char_boundary(it)) {
                let span = Span { file: FileId(number as u32), start: start as u32, end: start as u32 };
                assert_eq!(lines.line_column(span), sources.line_column(span), "{number}:{start}");
            }
        }
    }
}
