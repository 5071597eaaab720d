//! The clients and servers of the experiment with calls in flight.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::bench::by_number::Settings;
use crate::bench::driver::exchange::Exchange;
use crate::interop;
use crate::peer::child::{ChildKind, ChildRole};
use crate::peer::pair::Launch;
use crate::workload::named;

/// A pair of client and server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Contender {
    /// Plain sockets and a server over epoll in C, pipelined: the base of every ratio.
    C,
    /// The pipelined client of [`C`](Self::C), and a server in C with a thread for its connection.
    Threads,
    /// Our ORB: futures, and a server with default settings.
    Spandrel,
    /// Our ORB: futures, and an asynchronous servant polled by the ORB's threads.
    SpandrelAsync,
    /// Our ORB: futures, and an asynchronous servant in tasks of tokio.
    SpandrelTokio,
    /// omniORB, by its asynchronous method invocation.
    #[serde(rename = "omniorb")]
    OmniOrb,
    /// JacORB, by its asynchronous method invocation.
    #[serde(rename = "jacorb")]
    JacOrb,
    /// tonic: gRPC over tokio.
    Tonic,
}

const CLIENT: &str = "inflight-client";

/// The most calls in flight. Our limits of calls that wait for replies, and of requests that are answered later, are set
/// to it.
pub(super) const MOST_IN_FLIGHT: u32 = 10_000;

named!(Contender, "client and server");

impl Contender {
    /// All contenders, the base of the ratios first.
    pub const ALL: [Self; 8] = [
        Self::C,
        Self::Threads,
        Self::Spandrel,
        Self::SpandrelAsync,
        Self::SpandrelTokio,
        Self::OmniOrb,
        Self::JacOrb,
        Self::Tonic,
    ];

    /// The name that options and tables use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::C => "c",
            Self::Threads => "threads",
            Self::Spandrel => "spandrel",
            Self::SpandrelAsync => "spandrel-async",
            Self::SpandrelTokio => "spandrel-tokio",
            Self::OmniOrb => "omniorb",
            Self::JacOrb => "jacorb",
            Self::Tonic => "tonic",
        }
    }

    /// The command that starts its server, without a core; or the reason why there is none.
    pub(super) fn server(
        self,
        settings: &Settings<Self>,
        launch: Launch<'_>,
        plain: &Exchange,
    ) -> Result<Command, String> {
        match self {
            Self::C => settings.plain_c("epoll", plain),
            Self::Threads => settings.plain_c("threads", plain),
            Self::Spandrel => Ok(settings.spandrel(launch, Vec::new(), false)),
            Self::SpandrelAsync => {
                let limit = ["-ORBMaxDeferredRequests".to_owned(), MOST_IN_FLIGHT.to_string()];
                Ok(settings.spandrel(launch, limit.into(), true))
            }
            Self::OmniOrb => settings.omniorb(&[], &[CLIENT]),
            Self::JacOrb => settings.jacorb(&[CLIENT]),
            Self::SpandrelTokio => settings.tokio_server("spandrel-server"),
            Self::Tonic => settings.tokio_server("tonic-server"),
        }
    }

    /// The command that starts its client with the server's first line, or the reason why there is none. None
    /// if the client is a thread of this program.
    pub(super) fn client(
        self,
        settings: &Settings<Self>,
        launch: Launch<'_>,
        server: &str,
    ) -> Option<Result<Command, String>> {
        let command = |folder: Result<PathBuf, String>| {
            folder.map(|folder| {
                let mut command = Command::new(folder.join(CLIENT));
                command.arg(server);
                command
            })
        };
        match self {
            Self::C | Self::Threads => None,
            Self::Spandrel | Self::SpandrelAsync | Self::SpandrelTokio => {
                let kind = ChildKind::InFlightClient { reference: server.to_owned() };
                Some(Ok(launch(&ChildRole { kind, core: None })))
            }
            Self::OmniOrb => Some(command(self.interop(settings.omniorb.as_deref()))),
            Self::JacOrb => Some(command(self.interop(settings.jacorb.as_deref()))),
            Self::Tonic => Some(settings.tokio_client("tonic-client", server)),
        }
    }

    fn interop(self, folder: Option<&Path>) -> Result<PathBuf, String> {
        interop::find(self.name(), &[CLIENT], folder)
    }
}
