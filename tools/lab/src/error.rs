//! Why an experiment failed.

use std::io;
use std::path::PathBuf;

use spandrel::SystemException;

/// Why an experiment could not be run, or its results not be kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// A system call failed.
    #[error("cannot {action}")]
    Io {
        /// What was attempted, in words that follow "cannot".
        action: String,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
    /// A CORBA call, or the making of a reference, failed.
    #[error("cannot {action}")]
    Call {
        /// What was attempted, in words that follow "cannot".
        action: String,
        /// The exception.
        #[source]
        cause: SystemException,
    },
    /// A result file could not be written.
    #[error("cannot write {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
    /// One of the experiment's processes or peers failed; it said why.
    #[error("the {role} failed: {detail}")]
    Peer {
        /// Which of them.
        role: String,
        /// Its own words.
        detail: String,
    },
    /// One of the experiment's processes or peers did not answer in time.
    #[error("the {role} did not answer within {seconds} s")]
    TimedOut {
        /// Which of them.
        role: String,
        /// How long it was waited for.
        seconds: f64,
    },
    /// What came over the control connection is not what the protocol says.
    #[error("the {role} said what was not expected: {found}")]
    Protocol {
        /// Who spoke.
        role: String,
        /// What it said.
        found: String,
    },
    /// The mechanism does not exist on this platform or in this build.
    #[error("mechanism `{mechanism}` is not available here: {reason}")]
    Unavailable {
        /// The mechanism's name.
        mechanism: &'static str,
        /// Why, and what to do about it.
        reason: String,
    },
    /// The receiver counted other data than were sent.
    #[error("{sent} octets were sent and {received} were received")]
    LostData {
        /// What the transmitter sent.
        sent: u64,
        /// What the receiver counted.
        received: u64,
    },
    /// The settings contradict themselves.
    #[error("{0}")]
    Settings(String),
    /// A plot could not be drawn.
    #[error("cannot draw {}: {detail}", path.display())]
    Plot {
        /// The file that it would have been.
        path: PathBuf,
        /// What the plotter said.
        detail: String,
    },
}

impl LabError {
    /// Says what was attempted when a system call failed: `map_err(LabError::io("listen on port 7"))`.
    pub(crate) fn io(action: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        move |cause| Self::Io { action: action.into(), cause }
    }

    /// Says what was attempted when a call failed.
    pub(crate) fn call(action: impl Into<String>) -> impl FnOnce(SystemException) -> Self {
        move |cause| Self::Call { action: action.into(), cause }
    }

    /// The error and its causes in one line, for a peer that can only be told text.
    #[must_use]
    pub fn chain(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            text.push_str(": ");
            text.push_str(&error.to_string());
            cause = error.source();
        }
        text
    }
}
