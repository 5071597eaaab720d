//! Warnings of constructs that other IDL compilers do not read. They are those that `omniidl` of omniORB 4.3 refuses, and
//! that this compiler implements.

use std::collections::BTreeSet;

use crate::diagnostic::Diagnostic;
use crate::source::{FileId, Span};

/// The constructs that were reported, if such warnings are wanted.
#[derive(Debug, Default)]
pub(crate) struct Portability {
    pub(crate) is_wanted: bool,
    reported: BTreeSet<&'static str>,
}

impl Portability {
    /// The warning at the first use of a construct in the main file; `since` is the version of IDL that introduced it.
    pub(crate) fn check(&mut self, construct: &'static str, since: &str, span: Span) -> Option<Diagnostic> {
        if !self.is_wanted || span.file != FileId(0) || !self.reported.insert(construct) {
            return None;
        }
        let warning = Diagnostic::warning(format!("omniORB's IDL compiler does not read {construct}"))
            .at(span, "here first")
            .note(format!("{since} has them; without such compilers, switch the warning off (--no-portability)"));
        Some(warning)
    }
}
