//! omniORB's client and server, built from `peers/omniorb` by `cargo xtask interop`.

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

/// The folder with the two programs: the given one, or else that in the source tree's build folder.
///
/// # Errors
/// The missing programs and how to build them, as text.
pub fn find(given: Option<&Path>) -> Result<PathBuf, String> {
    interop::find("omniorb", &[SERVER, CLIENT], given)
}

/// A running omniORB server, and its client.
#[derive(Debug)]
pub struct OmniOrb {
    server: ChildHandle,
    client: PathBuf,
    reference: String,
    core: Option<usize>,
}

impl OmniOrb {
    /// Starts the server of a folder found by [`find`].
    ///
    /// # Errors
    /// If it does not start, or cannot be placed.
    pub fn start(folder: &Path, placement: Placement) -> Result<Self, LabError> {
        let cores = cores();
        let mut command = Command::new(folder.join(SERVER));
        pin(&mut command, placement.core(Role::Receiver, &cores)?);
        command.args(["-ORBendPoint", "giop:tcp:127.0.0.1:"]);
        let mut server = ChildHandle::start("omniORB server", command)?;
        let reference = server.line(START_LIMIT)?;
        Ok(Self { server, client: folder.join(CLIENT), reference, core: placement.core(Role::Transmitter, &cores)? })
    }

    /// Makes calls with the client.
    ///
    /// # Errors
    /// If it fails, or takes longer than `limit`.
    pub fn run(&mut self, case: PingCase, warm_up: u32, calls: u32, limit: Duration) -> Result<CallTimes, LabError> {
        let mut command = Command::new(&self.client);
        pin(&mut command, self.core);
        command.arg(&self.reference).stderr(Stdio::inherit());
        let operation = match case {
            PingCase::Void => "ping",
            PingCase::Structs => "structs",
        };
        command.args(["--operation", operation, "--elements", &PING_STRUCTS.to_string()]);
        command.args(["--warm-up", &warm_up.to_string(), "--calls", &calls.to_string()]);
        let mut client = ChildHandle::start("omniORB client", command)?;
        let line = client.line(limit)?;
        let printed = serde_json::from_str::<Printed>(&line);
        let printed = printed.map_err(|_| LabError::Protocol { role: "omniORB client".to_owned(), found: line })?;
        Ok(printed.times())
    }

    /// The server's process id.
    #[must_use]
    pub fn server_id(&self) -> u32 {
        self.server.id()
    }
}

fn pin(command: &mut Command, core: Option<usize>) {
    if let Some(core) = core {
        command.arg("--cpu").arg(core.to_string());
    }
}
