//! The client and the server of another ORB, built from `peers`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::LabError;
use crate::call_times::{CallTimes, Printed};
use crate::interop;
use crate::peer::child::ChildHandle;
use crate::placement::{Placement, Role, cores};
use crate::workload::{PING_STRUCTS, PingCase};

const SERVER: &str = "latency-server";
const CLIENT: &str = "latency-client";
/// The time limit for the server to print its reference.
const START_LIMIT: Duration = Duration::from_secs(10);

/// An ORB of another project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OrbName {
    OmniOrb,
    Tao,
}

impl OrbName {
    /// The folder with the two programs: the given one, or else that in the source tree's build folder.
    ///
    /// # Errors
    /// The missing programs and how to build them, as text.
    pub(super) fn find(self, folder: Option<&Path>) -> Result<PathBuf, String> {
        let orb = if self == Self::Tao { "tao" } else { "omniorb" };
        interop::find(orb, &[SERVER, CLIENT], folder)
    }
}

/// A running server of another ORB, and its client.
#[derive(Debug)]
pub(super) struct ForeignOrb {
    /// The process of the server, which ends with this value.
    _server: ChildHandle,
    client: PathBuf,
    reference: String,
    core: Option<usize>,
}

impl ForeignOrb {
    /// Starts the server of a folder that [`OrbName::find`] has returned.
    ///
    /// # Errors
    /// If it does not start, or cannot be placed.
    pub(super) fn start(orb: OrbName, folder: &Path, placement: Placement) -> Result<Self, LabError> {
        let cores = cores();
        let mut command = Command::new(folder.join(SERVER));
        pin(&mut command, placement.core(Role::Receiver, &cores)?);
        if orb == OrbName::OmniOrb {
            command.args(["-ORBendPoint", "giop:tcp:127.0.0.1:"]);
        }
        let mut server = ChildHandle::start("server of another ORB", command)?;
        let reference = server.line(START_LIMIT)?;
        Ok(Self {
            _server: server,
            client: folder.join(CLIENT),
            reference,
            core: placement.core(Role::Transmitter, &cores)?,
        })
    }

    /// Makes calls with the client.
    ///
    /// # Errors
    /// If it fails, or takes longer than `limit`.
    pub(super) fn run(
        &mut self,
        case: PingCase,
        warm_up: u32,
        calls: u32,
        limit: Duration,
    ) -> Result<CallTimes, LabError> {
        let mut command = Command::new(&self.client);
        pin(&mut command, self.core);
        command.arg(&self.reference).stderr(Stdio::inherit());
        let operation = match case {
            PingCase::Void => "ping",
            PingCase::Structs => "structs",
        };
        command.args(["--operation", operation, "--elements", &PING_STRUCTS.to_string()]);
        command.args(["--warm-up", &warm_up.to_string(), "--calls", &calls.to_string()]);
        let mut client = ChildHandle::start("client of another ORB", command)?;
        let line = client.line(limit)?;
        let printed = serde_json::from_str::<Printed>(&line);
        let printed =
            printed.map_err(|_| LabError::Protocol { role: "client of another ORB".to_owned(), found: line })?;
        Ok(printed.times())
    }
}

fn pin(command: &mut Command, core: Option<usize>) {
    if let Some(core) = core {
        command.arg("--cpu").arg(core.to_string());
    }
}
