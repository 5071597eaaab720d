//! The echo servers of this project that run in child processes.

use std::fmt;
use std::str::FromStr;

use spandrel_reactor::Backend;

use crate::LabError;

/// An echo server of this project.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EchoServer {
    /// Event handlers, in one thread, over this back end.
    Handlers(Backend),
    /// The Acceptor pattern, with the default strategies.
    Pattern,
    /// The Acceptor pattern in a reactor for each processor, which share the port.
    Shards,
}

impl EchoServer {
    /// All echo servers of this platform, whether or not the system permits them.
    #[must_use]
    pub fn all() -> Vec<Self> {
        Backend::KNOWN.iter().copied().map(Self::Handlers).chain([Self::Pattern, Self::Shards]).collect()
    }

    /// The name that options and tables use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Handlers(backend) => backend.name(),
            Self::Pattern => "acceptor",
            Self::Shards => "shards",
        }
    }

    /// Whether the system permits it.
    #[must_use]
    pub fn is_available(self) -> bool {
        match self {
            Self::Handlers(backend) => Backend::available().contains(&backend),
            Self::Shards => cfg!(unix), // the port is shared by `SO_REUSEPORT`
            Self::Pattern => true,
        }
    }
}

impl fmt::Display for EchoServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for EchoServer {
    type Err = LabError;

    fn from_str(text: &str) -> Result<Self, LabError> {
        let unknown = || LabError::Settings(format!("`{text}` is not an echo server of this project"));
        Self::all().into_iter().find(|server| server.name() == text).ok_or_else(unknown)
    }
}
