//! Documentation comments: those directly before a token, without a blank line in between.

use crate::lexer::without_splices;
use crate::source::{SourceMap, Span};

/// Comments that may precede a definition.
#[derive(Debug, Default)]
pub(super) struct PendingComments {
    spans: Vec<Span>,
    /// Line ends since the last of them.
    newlines: u32,
    /// Whether a token precedes this position on its line.
    after_token: bool,
    /// Whether a token precedes the last comment on its line: if the line ends after the comment, the comment
    /// describes that token.
    trailing: bool,
}

impl PendingComments {
    pub(super) fn comment(&mut self, span: Span, sources: &SourceMap) {
        // A block comment replaces earlier ones; line comments are joined.
        let is_line = |span: &Span| sources.text(*span).starts_with("//");
        if !is_line(&span) || !self.spans.last().is_some_and(is_line) {
            self.spans.clear();
        }
        self.spans.push(span);
        self.newlines = 0;
        self.trailing = self.after_token;
    }

    pub(super) fn newline(&mut self) {
        self.after_token = false;
        self.newlines += 1;
        if self.newlines > 1 || self.trailing {
            self.spans.clear();
        }
    }

    pub(super) fn token(&mut self) {
        self.spans.clear();
        self.after_token = true;
    }

    pub(super) fn directive(&mut self) {
        self.spans.clear();
        self.after_token = false;
    }

    /// The text of the comments, if the next token follows directly.
    pub(super) fn take(&mut self, sources: &SourceMap) -> Option<Vec<String>> {
        if self.spans.is_empty() {
            return None;
        }
        let spans = std::mem::take(&mut self.spans);
        let texts = spans.iter().map(|&span| sources.text(span));
        let mut lines: Vec<String> = texts.flat_map(comment_lines).collect();
        let blank = |line: &String| line.trim().is_empty();
        let leading = lines.iter().take_while(|line| blank(line)).count();
        lines.drain(..leading);
        while lines.last().is_some_and(blank) {
            lines.pop();
        }
        (!lines.is_empty()).then_some(lines)
    }
}

/// The lines of a comment without its marks, the usual asterisks before each line, and rules.
fn comment_lines(comment: &str) -> Vec<String> {
    let comment = without_splices(comment);
    let lines: Vec<&str> = match comment.strip_prefix("/*") {
        Some(block) => {
            let block = block.strip_suffix("*/").unwrap_or(block);
            let block = block.strip_prefix(['*', '!']).filter(|rest| !rest.starts_with('*')).unwrap_or(block);
            let mut lines = block.lines();
            let first = lines.next();
            first.into_iter().chain(lines.map(without_asterisk)).collect()
        }
        None => {
            let line = comment.trim_start_matches("//");
            vec![line.strip_prefix(['/', '!']).unwrap_or(line)]
        }
    };
    let lines = lines.into_iter().filter(|line| !is_rule(line));
    lines.map(|line| line.trim_end().to_owned()).collect()
}

fn without_asterisk(line: &str) -> &str {
    let trimmed = line.trim_start();
    trimmed.strip_prefix('*').unwrap_or(line)
}

/// A line drawn with characters, such as `----------`.
fn is_rule(line: &str) -> bool {
    let line = line.trim();
    line.len() >= 3 && line.bytes().all(|octet| matches!(octet, b'-' | b'=' | b'*' | b'/' | b'#' | b'_' | b'~' | b'+'))
}

#[cfg(test)]
mod tests {
    use super::comment_lines;

    #[test]
    fn marks_and_decoration_are_removed() {
        assert_eq!(comment_lines("/** One line. */"), [" One line.".to_owned()]);
        assert_eq!(comment_lines("/// Three."), [" Three."]);
        assert_eq!(comment_lines("// Two."), [" Two."]);
        assert_eq!(comment_lines("//--------").len(), 0);
        assert_eq!(comment_lines("/********/").len(), 0);
    }

    #[test]
    fn asterisks_before_lines_are_removed() {
        let lines = comment_lines("/**\n   * First.\n   *\n   *   Indented.\n   */");
        assert_eq!(lines, ["", " First.", "", "   Indented.", ""]);
    }
}
