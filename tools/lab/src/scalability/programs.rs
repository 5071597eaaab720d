//! The two processes of a contender, and their programs.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::contender::Contender;
use super::job::JobRun;
use crate::LabError;
use crate::call_times::Printed;
use crate::interop;
use crate::peer::child::{ChildHandle, ChildKind, ChildRole};
use crate::peer::pair::Launch;
use crate::placement::{Placement, Role, cores};

const SERVER: &str = "servants-server";
const CLIENT: &str = "servants-client";

/// The names of a peer's programs: its server and its client.
pub const PROGRAMS: [&str; 2] = [SERVER, CLIENT];

/// The folder with the programs of a peer. `None`: they are this program.
///
/// # Errors
/// The missing programs and how to build them, as text.
pub fn program_folder(contender: Contender) -> Result<Option<PathBuf>, String> {
    Ok(match Programs::find(contender, None)? {
        Programs::Ours { .. } => None,
        Programs::Folder(folder) => Some(folder),
    })
}

/// The two programs of a contender; ours are this one.
#[derive(Clone, Debug)]
pub(super) enum Programs {
    Ours {
        /// Whether each reference has a connection of its own.
        is_private: bool,
    },
    Folder(PathBuf),
}

impl Programs {
    /// Finds a contender's programs.
    ///
    /// # Errors
    /// The missing programs and how to build them, as text.
    pub(super) fn find(contender: Contender, given: Option<&Path>) -> Result<Self, String> {
        let orb = match contender {
            Contender::Orb => return Ok(Self::Ours { is_private: false }),
            Contender::OrbPrivate => return Ok(Self::Ours { is_private: true }),
            Contender::OmniOrb => "omniorb",
            Contender::JacOrb => "jacorb",
            Contender::Tao => "tao",
        };
        interop::find(orb, &[SERVER, CLIENT], given).map(Self::Folder)
    }

    fn server(&self, launch: Launch<'_>, core: Option<usize>, servants: u32, is_dynamic: bool) -> Command {
        match self {
            Self::Ours { .. } => launch(&ChildRole { kind: ChildKind::ServantsServer { servants, is_dynamic }, core }),
            Self::Folder(folder) => {
                let mut command = Command::new(folder.join(SERVER));
                pin(&mut command, core);
                command.args(["--servants", &servants.to_string()]);
                command.args(["--dynamic", if is_dynamic { "1" } else { "0" }]);
                command
            }
        }
    }

    fn client(&self, launch: Launch<'_>, core: Option<usize>, reference: String) -> Command {
        match self {
            Self::Ours { is_private } => {
                launch(&ChildRole { kind: ChildKind::ServantsClient { reference, is_private: *is_private }, core })
            }
            Self::Folder(folder) => {
                let mut command = Command::new(folder.join(CLIENT));
                pin(&mut command, core);
                command.arg(reference);
                command
            }
        }
    }
}

fn pin(command: &mut Command, core: Option<usize>) {
    if let Some(core) = core {
        command.args(["--cpu", &core.to_string()]);
    }
}

/// The result of a job's calls.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Timed {
    #[serde(flatten)]
    pub(super) times: Printed,
    /// The number of servants reached by the timed calls, as counted by their server.
    pub(super) servants_called: u32,
}

/// The answer of a client to a job.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum ClientReply {
    Timed(Timed),
    /// Its ORB does not support such calls.
    Absent {
        absent: String,
    },
}

/// A server with all its servants, and a client with references to them.
#[derive(Debug)]
pub(super) struct Running {
    server: ChildHandle,
    client: ChildHandle,
}

impl Running {
    /// Starts both; then the client has all references.
    ///
    /// # Errors
    /// If one fails, or is not ready within `limit`.
    pub(super) fn start(
        programs: &Programs,
        launch: Launch<'_>,
        placement: Placement,
        servants: u32,
        is_dynamic: bool,
        limit: Duration,
    ) -> Result<Self, LabError> {
        let cores = cores();
        let server = programs.server(launch, placement.core(Role::Receiver, &cores)?, servants, is_dynamic);
        let mut server = ChildHandle::start("server of servants", server)?;
        let reference = server.line(limit)?;
        let mut client = programs.client(launch, placement.core(Role::Transmitter, &cores)?, reference);
        client.stderr(Stdio::inherit());
        let mut client = ChildHandle::start("client of servants", client)?;
        match client.line(limit)? {
            ready if ready == format!("ready {servants}") => Ok(Self { server, client }),
            found => Err(LabError::Protocol { role: "client of servants".to_owned(), found }),
        }
    }

    /// Makes calls with the client.
    ///
    /// # Errors
    /// If it fails, or takes longer than `limit`.
    pub(super) fn run(&mut self, run: &JobRun, limit: Duration) -> Result<ClientReply, LabError> {
        self.client.send_line(&run.to_string())?;
        let line = self.client.line(limit)?;
        let reply = serde_json::from_str(&line);
        reply.map_err(|_| LabError::Protocol { role: "client of servants".to_owned(), found: line })
    }

    /// Octets of memory of the server, where the system reports them.
    pub(super) fn resident(&self) -> Option<u64> {
        crate::machine::resident_octets(self.server.id())
    }
}
