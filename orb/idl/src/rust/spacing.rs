//! Blank lines between items, which the formatter omits.

/// A text that is built from one or more lines at a time.
#[derive(Debug)]
pub(super) struct SpacedText {
    text: String,
    /// The offset of the last line.
    last: usize,
    /// The length of the header, which the formatter did not write.
    header: usize,
}

impl SpacedText {
    /// A text that begins with these lines.
    pub(super) fn new(header: String) -> Self {
        Self { last: header.len(), header: header.len(), text: header }
    }

    /// Adds lines, each with a line feed.
    pub(super) fn push(&mut self, lines: &str) {
        for line in lines.lines() {
            let before = if self.last < self.header { "" } else { self.text[self.last..].trim_end_matches('\n') };
            let in_table = before.ends_with("::interpret! {");
            let gap = is_gap(before, line);
            if gap {
                self.text.push('\n');
            }
            self.last = self.text.len();
            if in_table {
                // The formatter treats a macro's tokens as an expression at most.
                self.text.push_str(&line.replace(" : ", ": "));
            } else {
                self.text.push_str(line);
            }
            self.text.push('\n');
        }
    }

    /// The lines added so far, with blank lines between items.
    pub(super) fn finish(self) -> String {
        self.text
    }
}

/// Whether a blank line belongs between these lines.
fn is_gap(before: &str, line: &str) -> bool {
    let line_start = line.trim_start();
    let is_table = line_start.ends_with("::interpret! {");
    let begins = is_table || ["///", "#[", "pub ", "impl", "fn "].iter().any(|start| line_start.starts_with(start));
    let one_liners = before.ends_with(';') && !["///", "#[", "fn "].iter().any(|start| line_start.starts_with(start));
    let ended = before.ends_with('}') || (before.ends_with(';') && !before.trim_start().starts_with("out"));
    begins && ended && !(one_liners && line.ends_with(';'))
}
