//! Errors of executables, and their exit codes.

use std::fmt;
use std::io;
use std::process::ExitCode;

use spandrel::net::error::escape;
use spandrel::net::error::output::remark;

/// The kinds of failures that scripts distinguish by the exit code.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum FailureKind {
    /// An operation failed for a reason without a code of its own.
    Failed = 1,
    /// Wrong options or arguments on the command line.
    Usage = 2,
    /// An address to listen at is in use.
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

    /// The failure of the option `--publish`: a name that could not be bound in the naming service.
    pub fn publication(name: &str, error: impl Into<anyhow::Error>) -> Self {
        Self::failed(error.into().context(format!("cannot publish `{name}` in the naming service (--publish)")))
    }

    /// A failure with the exit code 2.
    pub fn usage(error: impl Into<anyhow::Error>) -> Self {
        Self::new(FailureKind::Usage, error)
    }

    /// The failure to listen: with the exit code 3 if an address is in use.
    pub(crate) fn of_listening(error: impl Into<anyhow::Error>) -> Self {
        let error = error.into();
        let in_use = |cause: &(dyn std::error::Error + 'static)| {
            cause.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::AddrInUse)
        };
        let is_in_use = error.chain().any(in_use);
        Self::new(if is_in_use { FailureKind::AddressInUse } else { FailureKind::Failed }, error)
    }

    /// The failure of a service to listen: with the exit code 3 if an address is in use.
    pub fn cannot_listen(error: impl Into<anyhow::Error>) -> Self {
        Self::of_listening(error.into().context("cannot listen (--listen)"))
    }

    /// The exit code of the process, from 1 to 5, one for each kind of failure.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.kind as u8)
    }

    /// Writes it to standard error, in one line.
    pub fn print(&self) {
        remark(&format!("{self:?}"));
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

/// The error and its causes in one line, [escaped](escape). A cause whose text stands there already is not
/// repeated.
impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::from("error");
        for cause in self.error.chain().map(|cause| cause.to_string().trim_end().replace('\n', "; ")) {
            if !text.contains(&cause) {
                text.push_str(": ");
                text.push_str(&cause);
            }
        }
        writeln!(f, "{}", escape(&text))
    }
}
