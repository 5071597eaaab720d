//! The servers of the reactor experiment.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::LabError;
use crate::peer::EchoServer;

/// An echo server that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "&'static str", try_from = "String")]
#[non_exhaustive]
pub enum Contender {
    /// One thread of plain C over level-triggered epoll: the base of every ratio.
    C,
    /// ACE's reactor over epoll, with its acceptor and service handlers.
    Ace,
    /// A server with standalone Asio, in C++.
    Asio,
    /// A server of this project.
    Ours(EchoServer),
    /// The ORB: its connections share the reactor's threads, and the message is a call without parameters.
    Orb,
}

impl Contender {
    /// The server to which the others are compared.
    pub const BASE: Self = Self::C;

    /// All servers, the base of the ratios first.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let ours = EchoServer::all().into_iter().map(Self::Ours);
        [Self::C, Self::Ace, Self::Asio].into_iter().chain(ours).chain([Self::Orb]).collect()
    }

    /// The name that options and tables use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::C => "c",
            Self::Ace => "ace",
            Self::Asio => "asio",
            Self::Ours(server) => server.name(),
            Self::Orb => "orb",
        }
    }

    /// The folder below `peers` with its program, which has the same name; none if it is part of this
    /// program.
    #[must_use]
    pub fn peer(self) -> Option<&'static str> {
        match self {
            Self::C => Some("reactor-c"),
            Self::Ace => Some("ace"),
            Self::Asio => Some("asio"),
            Self::Ours(_) | Self::Orb => None,
        }
    }
}

impl From<Contender> for &'static str {
    fn from(contender: Contender) -> Self {
        contender.name()
    }
}

impl TryFrom<String> for Contender {
    type Error = LabError;

    fn try_from(text: String) -> Result<Self, LabError> {
        text.parse()
    }
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Contender {
    type Err = LabError;

    fn from_str(text: &str) -> Result<Self, LabError> {
        Self::all().into_iter().find(|contender| contender.name() == text).ok_or_else(|| {
            let names: Vec<_> = Self::all().iter().map(|contender| contender.name()).collect();
            LabError::Settings(format!("`{text}` is not an echo server; there are {}", names.join(", ")))
        })
    }
}
