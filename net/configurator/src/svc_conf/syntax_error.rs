//! Errors in the text of a file.

use std::fmt;

use super::directive::Position;

/// A fault in the text of a file, with its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// The line and column of the error.
    pub position: Position,
    /// The fault, and the form that was expected in its place.
    pub text: String,
}

impl SyntaxError {
    pub(super) fn new(position: Position, text: String) -> Self {
        Self { position, text }
    }
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.position.line, self.position.column, self.text)
    }
}
