//! Errors of executables, and their exit codes.

use std::fmt;
use std::io::{self, Write as _};
use std::process::ExitCode;

/// The exit code of a failure.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum FailureKind {
    /// Any other reason.
    Failed = 1,
    /// Wrong usage.
    Usage = 2,
    /// An address is in use.
    AddressInUse = 3,
    /// The data folder or a store cannot be used.
    Data = 4,
    /// The policy of authorization cannot be used.
    Policy = 5,
}

/// The reason why an executable ends, with its exit code.
pub struct Failure {
    kind: FailureKind,
    error: anyhow::Error,
}

impl Failure {
    /// A failure with the exit code of this kind.
    pub fn new(kind: FailureKind, error: impl Into<anyhow::Error>) -> Self {
        Self { kind, error: error.into() }
    }

    /// A failure with the exit code 1.
    pub fn failed(error: impl Into<anyhow::Error>) -> Self {
        Self::new(FailureKind::Failed, error)
    }

    /// A failure with the exit code 2.
    pub fn usage(error: impl Into<anyhow::Error>) -> Self {
        Self::new(FailureKind::Usage, error)
    }

    /// Its exit code.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.kind as u8)
    }

    /// Writes it to standard error: one line, and a line for each cause.
    pub fn print(&self) {
        _ = write!(io::stderr(), "{self:?}");
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

/// The error in one line, and a line for each cause that the one above does not contain.
impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut above = self.error.to_string();
        writeln!(f, "error: {above}")?;
        for cause in self.error.chain().skip(1).map(ToString::to_string) {
            if !above.ends_with(&cause) {
                writeln!(f, "  cause: {cause}")?;
            }
            above = cause;
        }
        Ok(())
    }
}
