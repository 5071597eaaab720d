//! Errors that end an experiment.

use std::io;
use std::path::PathBuf;

use spandrel::SystemException;

/// The reason why an experiment could not be run, or its results not written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// A system call failed.
    #[error("cannot {action}")]
    Io {
        /// The attempted action, in words that follow "cannot".
        action: String,
        /// The error of the operating system.
        #[source]
        cause: io::Error,
    },
    /// A CORBA call, or the making of a reference, failed.
    #[error("cannot {action}")]
    Call {
        /// The attempted action, in words that follow "cannot".
        action: String,
        /// The exception of the call.
        #[source]
        cause: SystemException,
    },
    /// A bulk transfer ended before its end.
    #[cfg(feature = "bulk")]
    #[error("cannot {action}")]
    Bulk {
        /// The attempted action, in words that follow "cannot".
        action: String,
        /// The reason of the end.
        #[source]
        cause: spandrel::bulk::BulkError,
    },
    /// A result file could not be written.
    #[error("cannot write {}", path.display())]
    Write {
        /// The path of the result file.
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        cause: io::Error,
    },
    /// A process or peer of the experiment failed, with a reason.
    #[error("the {role} failed: {detail}")]
    Peer {
        /// The process or peer.
        role: String,
        /// Its own error text.
        detail: String,
    },
    /// A process or peer of the experiment did not answer in time.
    #[error("the {role} did not answer within {seconds} s")]
    TimedOut {
        /// The process or peer.
        role: String,
        /// The time limit in seconds.
        seconds: f64,
    },
    /// A message on the control connection violates the protocol.
    #[error("the {role} sent unexpected text: {found}")]
    Protocol {
        /// The process or peer that sent it.
        role: String,
        /// The text of the message.
        found: String,
    },
    /// The mechanism does not exist on this platform or in this build.
    #[error("mechanism `{mechanism}` is not available here: {reason}")]
    Unavailable {
        /// The name of the mechanism.
        mechanism: &'static str,
        /// The reason, and the remedy.
        reason: String,
    },
    /// The receiver counted other data than were sent.
    #[error("{sent} octets were sent and {received} were received")]
    LostData {
        /// Octets sent by the transmitter.
        sent: u64,
        /// Octets counted by the receiver.
        received: u64,
    },
    /// The settings contradict each other, or one is out of range.
    #[error("{0}")]
    Settings(String),
}

impl LabError {
    /// Wraps a system error with the attempted action: `map_err(LabError::io("listen on port 7"))`.
    pub(crate) fn io(action: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        move |cause| Self::Io { action: action.into(), cause }
    }

    /// Wraps an exception with the attempted action.
    pub(crate) fn call(action: impl Into<String>) -> impl FnOnce(SystemException) -> Self {
        move |cause| Self::Call { action: action.into(), cause }
    }

    /// The error and its causes in one line, for a peer that gets only text.
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
