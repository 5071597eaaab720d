//! The servers of the experiment with busy connections.

use std::fmt;
use std::process::Command;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use spandrel::options::Concurrency;

use crate::LabError;
use crate::bench::by_number::Settings;
use crate::bench::driver::exchange::Exchange;
use crate::peer::pair::Launch;

/// A server that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
#[non_exhaustive]
pub enum Contender {
    /// One thread of plain C over level-triggered epoll: the base of every ratio.
    Epoll,
    /// Plain C with a thread for each connection.
    Threads,
    /// Our ORB with this concurrency strategy; the default one if none.
    Spandrel(Option<Concurrency>),
    /// omniORB with a thread for each connection, its default.
    OmniOrb,
    /// omniORB with a pool of threads.
    OmniOrbPool,
    /// JacORB with default settings.
    JacOrb,
    /// tonic: gRPC over tokio, with a client of its own.
    Tonic,
}

impl Contender {
    /// The usual ones, the base first.
    #[must_use]
    pub fn usual() -> Vec<Self> {
        let strategies = [
            Concurrency::Reactive,
            Concurrency::LeaderFollowers { threads: Some(2) },
            Concurrency::ThreadPool { threads: 2, queue: 1024 },
            // As many as there can be connections.
            Concurrency::ThreadPerConnection { limit: 30_000 },
        ];
        let ours = [None].into_iter().chain(strategies.map(Some)).map(Self::Spandrel);
        let others = [Self::OmniOrb, Self::OmniOrbPool, Self::JacOrb, Self::Tonic];
        [Self::Epoll, Self::Threads].into_iter().chain(ours).chain(others).collect()
    }

    /// The command that starts its server, without a core; or the reason why there is none.
    pub(super) fn server(
        self,
        settings: &Settings<Self>,
        launch: Launch<'_>,
        plain: &Exchange,
    ) -> Result<Command, String> {
        match self {
            Self::Epoll => settings.plain_c("epoll", plain),
            Self::Threads => settings.plain_c("threads", plain),
            Self::Spandrel(concurrency) => {
                let option = |concurrency: Concurrency| ["-ORBConcurrency".to_owned(), concurrency.to_string()];
                let options = concurrency.map(option).into_iter().flatten().collect();
                Ok(settings.spandrel(launch, options, false))
            }
            Self::OmniOrb => settings.omniorb(&[], &[]),
            Self::OmniOrbPool => settings.omniorb(&["-ORBthreadPerConnectionPolicy", "0"], &[]),
            Self::JacOrb => settings.jacorb(&[]),
            Self::Tonic => settings.tokio_server("tonic-server"),
        }
    }
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Epoll => f.pad("epoll"),
            Self::Threads => f.pad("threads"),
            Self::Spandrel(None) => f.pad("spandrel"),
            Self::Spandrel(Some(concurrency)) => f.pad(&concurrency.to_string()),
            Self::OmniOrb => f.pad("omniorb"),
            Self::OmniOrbPool => f.pad("omniorb-pool"),
            Self::JacOrb => f.pad("jacorb"),
            Self::Tonic => f.pad("tonic"),
        }
    }
}

impl From<Contender> for String {
    fn from(contender: Contender) -> Self {
        contender.to_string()
    }
}

impl TryFrom<String> for Contender {
    type Error = LabError;

    fn try_from(text: String) -> Result<Self, LabError> {
        text.parse()
    }
}

impl FromStr for Contender {
    type Err = LabError;

    fn from_str(text: &str) -> Result<Self, LabError> {
        let named = [Self::Epoll, Self::Threads, Self::Spandrel(None), Self::OmniOrb, Self::OmniOrbPool, Self::JacOrb];
        let named = named.into_iter().chain([Self::Tonic]).find(|contender| contender.to_string() == text);
        named.or_else(|| text.parse().ok().map(|concurrency| Self::Spandrel(Some(concurrency)))).ok_or_else(|| {
            LabError::Settings(format!(
                "`{text}` is not a server; there are epoll, threads, spandrel, omniorb, omniorb-pool, jacorb, tonic, \
                 and values of -ORBConcurrency"
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_parsed_from_its_display_form() {
        for contender in Contender::usual() {
            assert_eq!(contender.to_string().parse::<Contender>().unwrap(), contender);
        }
        let two = Contender::Spandrel(Some(Concurrency::ThreadPool { threads: 2, queue: 1024 }));
        assert_eq!("thread-pool:2".parse::<Contender>().unwrap(), two);
        assert!("inetd".parse::<Contender>().unwrap_err().to_string().contains("values of -ORBConcurrency"));
    }
}
