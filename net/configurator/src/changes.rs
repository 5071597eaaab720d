//! The outcome of a change.

use std::fmt;

use crate::svc_conf::{Origin, ReadError};

/// A fault of one directive: its text is wrong, or its service refused it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file and the line of the directive.
    pub origin: Origin,
    /// The cause, as text for people.
    pub text: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.origin, self.text)
    }
}

/// The reason for which a change was not made. The services that ran before still run, except for those that the error names.
///
/// It is not logged, so that the caller reports it once. [`Reload`](crate::Reload), which has no caller, logs it.
#[derive(thiserror::Error)]
pub enum ConfigureError {
    /// A file cannot be read, or its text is wrong.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Directives cannot be carried out.
    #[error("{}", join(.0))]
    Directives(Vec<Problem>),
    /// No running service has this name.
    #[error("there is no service `{0}`")]
    NoService(String),
    /// A method of a service has failed: `init`, `suspend`, `resume` or `fini`.
    #[error("the service `{service}` cannot be {change}: {reason}")]
    Service {
        /// The name of the service.
        service: String,
        /// The change that was asked for: `suspended`, `resumed`.
        change: &'static str,
        /// The reason that the service gave.
        reason: String,
    },
}

spandrel_error::debug_as_report!(ConfigureError);

impl ConfigureError {
    /// The error and its causes, separated by `; ` instead of line ends.
    #[must_use]
    pub fn in_line(&self) -> String {
        spandrel_error::report_in_line(self).replace('\n', "; ")
    }
}

fn join(problems: &[Problem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// The services that a change has touched, by their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Services that were linked.
    pub added: Vec<String>,
    /// Services that were unlinked and linked again, with other parameters or from a library that has changed.
    pub replaced: Vec<String>,
    /// Services that were unlinked.
    pub removed: Vec<String>,
    /// Services that were suspended.
    pub suspended: Vec<String>,
    /// Services that were resumed.
    pub resumed: Vec<String>,
    /// Streams whose modules have changed.
    pub streams: Vec<String>,
    /// Failures of services that were removed, which are also logged: the services are gone all the same.
    pub warnings: Vec<String>,
}

impl Changes {
    /// Adds the changes that came after these.
    pub(crate) fn append(&mut self, later: Self) {
        let Self { added, replaced, removed, suspended, resumed, streams, warnings } = later;
        self.added.extend(added);
        self.replaced.extend(replaced);
        self.removed.extend(removed);
        self.suspended.extend(suspended);
        self.resumed.extend(resumed);
        self.streams.extend(streams);
        self.warnings.extend(warnings);
    }

    /// Whether the directives had no effect.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl fmt::Display for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = [
            ("added", &self.added),
            ("replaced", &self.replaced),
            ("removed", &self.removed),
            ("suspended", &self.suspended),
            ("resumed", &self.resumed),
            ("changed the modules of", &self.streams),
        ];
        let texts: Vec<_> = kinds
            .into_iter()
            .filter(|(_, names)| !names.is_empty())
            .map(|(kind, names)| format!("{kind} {}", names.join(", ")))
            .chain(self.warnings.iter().cloned())
            .collect();
        f.write_str(if texts.is_empty() { "nothing has changed".into() } else { texts.join("; ") }.as_str())
    }
}
