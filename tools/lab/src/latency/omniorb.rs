//! omniORB's client and server, built from `peers/omniorb` by `cargo xtask interop`.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::LabError;
use crate::call_times::{CallTimes, Printed};
use crate::peer::child::ChildHandle;
use crate::placement::{Placement, Role, cores};
use crate::workload::{PING_STRUCTS, PingCase};

const SERVER: &str = "latency-server";
const CLIENT: &str = "latency-client";
/// The folder into which `cargo xtask interop` builds them, relative to the root of the source tree and to
/// its build folder.
const BUILT: &str = "interop/omniorb";
/// The time limit for the server to print its reference.
const START_LIMIT: Duration = Duration::from_secs(10);

/// The folder with the two programs: the given one, or else that in the source tree's build folder.
///
/// # Errors
/// The missing programs and how to build them, as text.
pub fn find(given: Option<&Path>) -> Result<PathBuf, String> {
    let has = |folder: &Path| folder.join(SERVER).is_file() && folder.join(CLIENT).is_file();
    if let Some(folder) = given {
        let missing = || format!("{} has no {SERVER} and {CLIENT}", folder.display());
        return if has(folder) { Ok(folder.to_owned()) } else { Err(missing()) };
    }
    let beside_program = env::current_exe().ok().and_then(|program| Some(program.parent()?.parent()?.join(BUILT)));
    let in_tree = Some(Path::new("target").join(BUILT));
    let programs = [in_tree, beside_program].into_iter().flatten().find(|folder| has(folder));
    programs.ok_or_else(|| "its programs are not built: run `cargo xtask interop` in the source tree".to_owned())
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
