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
        let (from, counted) = self.counted_before(span, starts[line - 1]);
        let before = self.sources.text(Span { start: from, end: span.start, ..span });
        let count = counted + before.chars().count();
        self.last.set((span, count));
        (line, count + 1)
    }

    /// The offset from which characters are to be counted in the line that begins at `start`, and the characters
    /// before it.
    fn counted_before(&self, span: Span, start: u32) -> (u32, usize) {
        let (last, counted) = self.last.get();
        let is_behind = last.file == span.file && (start..=span.start).contains(&last.start);
        if is_behind { (last.start, counted) } else { (start, 0) }
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
    #[test]
    fn each_character_of_a_long_line_is_counted_once() {
        let names: Vec<String> = (0..10_000).map(|number| format!("e{number}, ")).collect();
        let text: Arc<str> = format!("enum E {{ {}last }};", names.concat()).into();
        let mut sources = SourceMap::default();
        let length = text.len() as u32;
        sources.add(SourceFile { path: "x".into(), text, included_from: None, built_in: false });
        let lines = Lines::new(&sources);
        let mut counted = 0;
        let mut start = "enum E { ".len() as u32;
        for name in &names {
            let span = Span { file: FileId(0), start, end: start + name.len() as u32 - 2 };
            counted += start - lines.counted_before(span, 0).0;
            assert_eq!(lines.line_column(span), (1, start as usize + 1));
            start += name.len() as u32;
        }
        assert!(counted <= length, "{counted} octets were read to count the characters of {length}");
    }
}
