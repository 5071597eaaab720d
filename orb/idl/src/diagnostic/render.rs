//! Rendering of a diagnostic as text; only this module uses the rendering library.

use std::ops::Range;

use annotate_snippets::{Annotation, AnnotationKind, Level, Renderer, Snippet};
use spandrel_error::{escape, escape_lines};

use super::{Diagnostic, Diagnostics, Label, Severity};
use crate::source::{FileId, SourceMap};

/// Maximum number of inclusions shown of a longer chain.
const MOST_INCLUSIONS: usize = 4;

/// Octets shown around the first label of a very long range of text.
const LONGEST_EXCERPT: usize = 16 * 1024;

impl Diagnostics {
    /// Renders all of them as text: each with its source lines, cause, notes and suggestions.
    ///
    /// `colour` adds ANSI escape sequences.
    pub fn render(&self, colour: bool) -> String {
        let rendered = self.list.iter();
        rendered.map(|diagnostic| render(diagnostic, &self.sources, colour) + "\n\n").collect()
    }

    /// As [`render`](Self::render) without colours, with the errors before the warnings.
    pub(super) fn render_errors_first(&self) -> String {
        let (errors, warnings): (Vec<_>, Vec<_>) =
            self.list.iter().partition(|diagnostic| diagnostic.severity == Severity::Error);
        errors.into_iter().chain(warnings).map(|diagnostic| render(diagnostic, &self.sources, false) + "\n\n").collect()
    }

    /// The first error in one line with its place, and the number of the others: ``bank.idl:3:7: `Strin` is not defined;
    /// 2 more errors``. Empty without errors.
    pub fn in_line(&self) -> String {
        let mut errors = self.list.iter().filter(|diagnostic| diagnostic.severity == Severity::Error);
        let Some(first) = errors.next() else { return String::new() };
        let position = first.primary.as_ref().map_or_else(String::new, |label| {
            let (line, column) = self.sources.line_column(label.span);
            format!("{}:{line}:{column}: ", self.sources.file(label.span.file).path.display())
        });
        let others = match errors.count() {
            0 => String::new(),
            1 => "; 1 more error".to_owned(),
            count => format!("; {count} more errors"),
        };
        escape(&format!("{position}{}{others}", first.message)).to_string()
    }
}

fn render(diagnostic: &Diagnostic, sources: &SourceMap, colour: bool) -> String {
    let level = match diagnostic.severity {
        Severity::Warning => Level::WARNING,
        Severity::Error => Level::ERROR,
    };
    let mut group =
        level.primary_title(escape(&diagnostic.message).to_string()).elements(snippets(diagnostic, sources));
    for note in notes(diagnostic, sources) {
        group = group.element(Level::NOTE.message(escape(&note).to_string()));
    }
    for help in &diagnostic.help {
        group = group.element(Level::HELP.message(escape(help).to_string()));
    }
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    renderer.render(&[group])
}

/// One snippet for each file that has labels, the primary label's first.
fn snippets<'s>(diagnostic: &'s Diagnostic, sources: &'s SourceMap) -> Vec<Snippet<'s, Annotation<'s>>> {
    let mut by_file: Vec<(FileId, Vec<(AnnotationKind, &Label)>)> = Vec::new();
    let primary = diagnostic.primary.iter().map(|label| (AnnotationKind::Primary, label));
    let secondary = diagnostic.secondary.iter().map(|label| (AnnotationKind::Context, label));
    for (kind, label) in primary.chain(secondary) {
        match by_file.iter_mut().find(|(file, _)| *file == label.span.file) {
            Some((_, labels)) => labels.push((kind, label)),
            None => by_file.push((label.span.file, vec![(kind, label)])),
        }
    }
    by_file.into_iter().map(|(file, labels)| snippet(file, &labels, sources)).collect()
}

fn snippet<'s>(
    file: FileId,
    labels: &[(AnnotationKind, &'s Label)],
    sources: &'s SourceMap,
) -> Snippet<'s, Annotation<'s>> {
    let source = sources.file(file);
    let text: &str = &source.text;
    let excerpt = excerpt(text, labels);
    let newlines = text[..excerpt.start].bytes().filter(|&it| it == b'\n');
    let shown = escaped_source(&text[excerpt.clone()]);
    // The offset in the escaped text.
    let offset = |position: u32| {
        let before = text.get(excerpt.start..position as usize).filter(|_| position as usize <= excerpt.end)?;
        Some(escaped_source(before).len().min(shown.len()))
    };
    let annotations: Vec<Annotation<'s>> = labels
        .iter()
        .filter_map(|(kind, label)| {
            let words = (!label.text.is_empty()).then(|| escape(&label.text).to_string());
            Some(kind.span(offset(label.span.start)?..offset(label.span.end)?).label(words))
        })
        .collect();
    Snippet::source(shown)
        .line_start(newlines.count() + 1)
        .path(escape(&source.path.to_string_lossy()).to_string())
        .annotations(annotations)
}

/// Lines of a source file without characters that have an effect; the ends of lines stay.
fn escaped_source(text: &str) -> String {
    let text = text.strip_suffix('\r').unwrap_or(text);
    text.split("\r\n").map(escape_lines).collect::<Vec<_>>().join("\r\n")
}

/// The whole lines of the labels; if that is too much, those of the first label, truncated if necessary.
fn excerpt(text: &str, labels: &[(AnnotationKind, &Label)]) -> Range<usize> {
    let lines = |labels: &[(AnnotationKind, &Label)]| {
        let starts = labels.iter().map(|(_, label)| label.span.start as usize);
        let ends = labels.iter().map(|(_, label)| label.span.end as usize);
        let (start, end) = (starts.min().unwrap_or(0), ends.max().unwrap_or(0));
        let before = text.get(..start).unwrap_or("");
        let after = text.get(end..).unwrap_or("");
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        start..after.find('\n').map_or(text.len(), |newline| end + newline)
    };
    let all = lines(labels);
    if all.len() <= LONGEST_EXCERPT {
        return all;
    }
    let first = lines(&labels[..1]);
    if first.len() <= LONGEST_EXCERPT {
        return first;
    }
    let centre = labels[0].1.span.start as usize;
    let start = centre.saturating_sub(LONGEST_EXCERPT / 2).max(first.start);
    let end = (centre + LONGEST_EXCERPT / 2).min(first.end);
    text.ceil_char_boundary(start)..text.floor_char_boundary(end)
}

/// Its own notes, and the chain of inclusions of its file.
fn notes(diagnostic: &Diagnostic, sources: &SourceMap) -> Vec<String> {
    let mut notes = diagnostic.notes.clone();
    let mut file = diagnostic.primary.as_ref().map(|label| label.span.file);
    for _ in 0..MOST_INCLUSIONS {
        let Some(span) = file.and_then(|file| sources.file(file).included_from) else {
            break;
        };
        let path = sources.file(span.file).path.display();
        let (line, _) = sources.line_column(span);
        notes.push(format!("in a file included from {path}:{line}"));
        file = Some(span.file);
    }
    notes
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::{FrontEndOptions, MemoryFiles, compile_with};

    /// The characters of a text that have an effect on a terminal, except line feeds.
    fn effects(text: &str) -> String {
        text.chars().filter(|it| it.is_control() && *it != '\n' || matches!(it, '\u{200e}' | '\u{202e}')).collect()
    }

    #[test]
    fn texts_of_files_have_no_effect_on_a_terminal() {
        let path = "a\u{1b}[2J\u{9b}\u{200e}.idl";
        for text in [
            "struct S { /* \u{1b}[2J\u{9b}2J\u{85}\u{202e}\u{200e}\0\r */ Missing\tm; };\r\n",
            "const string S = \"\u{9b}\\q\";",
            "#error \u{1b}]0;title\u{7}\u{9b}",
            "#include \"\u{9b}1m\u{1b}.idl\"",
            "#pragma \u{9b}x\n\u{9b}",
        ] {
            let files = MemoryFiles::new().with(path, text);
            let errors = compile_with(&FrontEndOptions::default(), &files, Path::new(path)).expect_err("no IDL");
            assert_eq!(effects(&errors.to_string()), "", "{text:?}");
            assert_eq!(effects(&errors.in_line()), "", "{text:?}");
            // The sequences of the renderer are of this form only.
            let coloured = errors.render(true);
            let mut styles = coloured.split('\u{1b}');
            assert_eq!(effects(styles.next().unwrap_or_default()), "");
            for style in styles {
                let end = style.find('m').unwrap_or_default();
                assert!(style[1..end].bytes().all(|it| it.is_ascii_digit() || it == b';'), "{style:?}");
                assert_eq!(effects(style), "", "{text:?}");
            }
        }
        let missing = compile_with(&FrontEndOptions::default(), &MemoryFiles::new(), Path::new(path));
        assert_eq!(effects(&missing.expect_err("no file").to_string()), "");
    }

    #[test]
    fn labels_stay_at_their_words() {
        let text = "/* \u{1b}\u{9b} */ typedef Missing T;\r\ntypedef Other U;\r\n";
        let files = MemoryFiles::new().with("a.idl", text);
        let errors = compile_with(&FrontEndOptions::default(), &files, Path::new("a.idl")).expect_err("no IDL");
        let shown = errors.to_string();
        let lines: Vec<&str> = shown.lines().collect();
        for (word, marks) in [("Missing", "^^^^^^^"), ("Other", "^^^^^")] {
            let line = lines.iter().position(|line| line.contains(&format!("typedef {word}"))).expect("the line");
            assert_eq!(lines[line].find(word), lines[line + 1].find(marks), "{shown}");
            assert!(!lines[line].contains(r"\r"), "{shown}");
        }
    }
}
