//! Diagnostics of the front end, as data.

use std::fmt;
use std::sync::Arc;

use crate::source::{SourceMap, Span};

mod render;

/// Whether a [`Diagnostic`] prevents the use of the IDL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The IDL is usable, but possibly not as intended.
    Warning,
    /// The IDL is not usable.
    Error,
}

/// A position in the source with a short text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The source text that is underlined.
    pub span: Span,
    /// A few words; may be empty.
    pub text: String,
}

/// A message about the IDL, with the positions that it refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Whether the IDL can be used in spite of it.
    pub severity: Severity,
    /// The problem, in one line.
    pub message: String,
    /// The position; `None` only if the main file could not be read.
    pub primary: Option<Label>,
    /// Related positions, such as an earlier definition.
    pub secondary: Vec<Label>,
    /// The rule behind it, or further details.
    pub notes: Vec<String>,
    /// Ways to avoid it, each in one line.
    pub help: Vec<String>,
    /// The scoped name of the interface or value type that it reports as declared and never defined.
    pub(crate) undefined: Option<String>,
}

impl Diagnostic {
    fn new(severity: Severity, message: impl Into<String>) -> Self {
        Diagnostic {
            severity,
            message: message.into(),
            primary: None,
            secondary: Vec::new(),
            notes: Vec::new(),
            help: Vec::new(),
            undefined: None,
        }
    }

    pub(crate) fn error(message: impl Into<String>) -> Self {
        Diagnostic::new(Severity::Error, message)
    }

    pub(crate) fn warning(message: impl Into<String>) -> Self {
        Diagnostic::new(Severity::Warning, message)
    }

    /// Sets the position, with a few words.
    pub(crate) fn at(mut self, span: Span, text: impl Into<String>) -> Self {
        self.primary = Some(Label { span, text: text.into() });
        self
    }

    /// Adds a related position.
    pub(crate) fn also(mut self, span: Span, text: impl Into<String>) -> Self {
        self.secondary.push(Label { span, text: text.into() });
        self
    }

    pub(crate) fn note(mut self, text: impl Into<String>) -> Self {
        self.notes.push(text.into());
        self
    }

    pub(crate) fn help(mut self, text: impl Into<String>) -> Self {
        self.help.push(text.into());
        self
    }
}

/// Maximum number of errors reported in one run.
const MOST_ERRORS: usize = 100;

/// Collects diagnostics during compilation, up to a limit.
#[derive(Debug, Default)]
pub(crate) struct Reporter {
    list: Vec<Diagnostic>,
    errors: usize,
    has_given_up: bool,
}

impl Reporter {
    pub(crate) fn report(&mut self, diagnostic: Diagnostic) {
        if self.has_given_up {
            return;
        }
        let is_error = diagnostic.severity == Severity::Error;
        self.errors += usize::from(is_error);
        if self.list.len() < MOST_ERRORS {
            self.list.push(diagnostic);
        } else if is_error && self.errors == 1 {
            // A hundred warnings must not hide the existence of an error.
            self.list[MOST_ERRORS - 1] = diagnostic;
        } else if self.list.len() == MOST_ERRORS {
            let message = format!("more than {MOST_ERRORS} diagnostics; the rest is left out");
            self.list.push(Diagnostic::new(diagnostic.severity, message));
        }
    }

    /// Reports the error that ends the run. Later diagnostics are dropped: they would be consequences of
    /// unread text.
    pub(crate) fn give_up(&mut self, error: Diagnostic) {
        if !self.has_given_up {
            self.errors += 1;
            self.list.push(error);
            self.has_given_up = true;
        }
    }

    /// Whether the run has ended with an error, so that no later phase starts.
    pub(crate) fn has_given_up(&self) -> bool {
        self.has_given_up
    }

    /// Whether further diagnostics are dropped, so that no work need be spent on them.
    pub(crate) fn is_full(&self) -> bool {
        self.has_given_up || self.list.len() > MOST_ERRORS
    }

    pub(crate) fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// The diagnostics with their sources, in source order; those without a position come last.
    pub(crate) fn finish(self, sources: Arc<SourceMap>) -> Diagnostics {
        let mut list = self.list;
        list.sort_by_cached_key(|diagnostic| {
            let primary = diagnostic.primary.as_ref();
            let reading_position = primary.map(|label| reading_position(label.span, &sources));
            (reading_position.is_none(), reading_position)
        });
        Diagnostics { list, sources }
    }
}

/// The position in reading order: the positions of the inclusions that lead to it, outermost first, and its
/// own.
fn reading_position(span: Span, sources: &SourceMap) -> Vec<u32> {
    let mut reading_position = vec![span.start];
    let mut file = span.file;
    while let Some(inclusion) = sources.file(file).included_from {
        reading_position.push(inclusion.start);
        file = inclusion.file;
    }
    reading_position.reverse();
    reading_position
}

/// All diagnostics of one run, in the reading order of the source, with their sources.
#[derive(Clone, Default)]
pub struct Diagnostics {
    pub(crate) list: Vec<Diagnostic>,
    pub(crate) sources: Arc<SourceMap>,
}

impl Diagnostics {
    /// Errors and warnings in the reading order of the source.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.list.iter()
    }

    /// Whether there are no diagnostics.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The files that were read, also after a failed compilation.
    pub fn sources(&self) -> &SourceMap {
        &self.sources
    }
}

impl fmt::Debug for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.list).finish()
    }
}

/// Prints them without colours, in the form of [`Diagnostics::render`]. The errors come first: the text of a failure begins
/// with its reason.
impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render_errors_first())
    }
}

impl std::error::Error for Diagnostics {}
