//! What the front end has to say about a file, as data.

use std::fmt;
use std::sync::Arc;

use crate::source::{SourceMap, Span};

/// How grave a [`Diagnostic`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The IDL is usable, and perhaps not what was meant.
    Warning,
    /// The IDL is not usable.
    Error,
}

/// A place in the source and what is to be said there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The place.
    pub span: Span,
    /// A few words beside it; may be empty.
    pub text: String,
}

/// One thing to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How grave it is.
    pub severity: Severity,
    /// What is wrong, in one line.
    pub message: String,
    /// Where; `None` only when the main file could not be read.
    pub primary: Option<Label>,
    /// Other places that belong to it, such as an earlier definition.
    pub secondary: Vec<Label>,
    /// The rule behind it, or further circumstances.
    pub notes: Vec<String>,
    /// What to do about it.
    pub help: Vec<String>,
}

impl Diagnostic {
    pub(crate) fn error(message: impl Into<String>) -> Self {
        Diagnostic {
            severity: Severity::Error,
            message: message.into(),
            primary: None,
            secondary: Vec::new(),
            notes: Vec::new(),
            help: Vec::new(),
        }
    }
}

/// All that was found in one run, in the order in which it was found, and the sources that it speaks of.
#[derive(Clone, Default)]
pub struct Diagnostics {
    pub(crate) list: Vec<Diagnostic>,
    pub(crate) sources: Arc<SourceMap>,
}

impl Diagnostics {
    /// The diagnostics.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.list.iter()
    }

    /// The files that were read, also when compilation failed.
    pub fn sources(&self) -> &SourceMap {
        &self.sources
    }
}

impl fmt::Debug for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.list).finish()
    }
}

/// As they are to be read by people, without colours.
impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for diagnostic in &self.list {
            let word = match diagnostic.severity {
                Severity::Warning => "warning",
                Severity::Error => "error",
            };
            writeln!(f, "{word}: {}", diagnostic.message)?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}
