//! Floods by programs of other projects, which `peers/` has: each side starts one as its own child.
//!
//! Their arguments and answers are those of `peers/flood.h`. The children run on the core of the side that starts them;
//! their processor time is not in that side's.

use std::net::IpAddr;
use std::process::Command;
use std::time::Duration;

use super::{Job, Mechanism, MechanismName, Receiver, Transmitter, Work};
use crate::LabError;
use crate::call_times::CallTimes;
use crate::child_process::ChildHandle;
use crate::peer_programs::find_program;
use crate::workload::{Flood, PingPong};

/// The time limit for a program to start, or to end.
const START_LIMIT: Duration = Duration::from_secs(30);
/// The time limit for one flood.
const FLOOD_LIMIT: Duration = Duration::from_secs(600);

/// A mechanism that a program carries out.
#[derive(Debug)]
pub(super) struct Program {
    /// The mechanism, for errors.
    pub(super) mechanism: MechanismName,
    /// The folder below `peers/` that builds the program.
    pub(super) folder: &'static str,
    /// The name of the program.
    pub(super) program: &'static str,
}

/// omniORB's sender and receiver.
pub(super) static OMNIORB: Program =
    Program { mechanism: MechanismName::OmniOrb, folder: "floods-omniorb", program: "omniorb-ttcp" };

impl Program {
    /// The command of the program, built if the source tree is here.
    ///
    /// # Errors
    /// The reason why it is absent.
    pub(super) fn command(&self) -> Result<Command, LabError> {
        let path = find_program(self.folder, self.program, None);
        let absent = |reason| LabError::Unavailable { mechanism: self.mechanism.name(), reason };
        path.map(Command::new).map_err(absent)
    }

    fn flood(&self, job: &Job) -> Result<Flood, LabError> {
        match job.work {
            Work::Flood(flood) => Ok(flood),
            _ => {
                let reason = "its program sends floods only".to_owned();
                Err(LabError::Unavailable { mechanism: self.mechanism.name(), reason })
            }
        }
    }
}

/// The arguments about the data and the sockets.
fn arguments(flood: &Flood, job: &Job) -> [String; 4] {
    let queue = job.sockets.queue_octets.unwrap_or(0);
    [flood.data.name().to_owned(), flood.call.name().to_owned(), flood.elements().to_string(), queue.to_string()]
}

impl Mechanism for Program {
    fn listen(&self, host: IpAddr, job: &Job) -> Result<Box<dyn Receiver>, LabError> {
        let flood = self.flood(job)?;
        let mut command = self.command()?;
        command.arg("receive").arg(host.to_string()).args(arguments(&flood, job));
        let mut child = ChildHandle::start("receiver's program", command)?;
        let port = child.line(START_LIMIT)?;
        Ok(Box::new(ProgramReceiver { endpoint: format!("{host} {port}"), child }))
    }

    fn connect(&self, endpoint: &str, job: &Job) -> Result<Box<dyn Transmitter>, LabError> {
        let flood = self.flood(job)?;
        let mut command = self.command()?;
        command.arg("transmit").args(endpoint.split(' ')).args(arguments(&flood, job));
        let mut child = ChildHandle::start("transmitter's program", command)?;
        match child.line(START_LIMIT)? {
            ready if ready == "ready" => Ok(Box::new(ProgramTransmitter { child })),
            other => Err(unexpected(other)),
        }
    }
}

fn unexpected(line: String) -> LabError {
    LabError::Protocol { role: "program of floods".to_owned(), found: line }
}

struct ProgramReceiver {
    endpoint: String,
    child: ChildHandle,
}

impl Receiver for ProgramReceiver {
    fn endpoint(&self) -> String {
        self.endpoint.clone()
    }

    fn finish(mut self: Box<Self>) -> Result<u64, LabError> {
        let line = self.child.line(START_LIMIT)?;
        line.parse().map_err(|_| unexpected(line))
    }
}

struct ProgramTransmitter {
    child: ChildHandle,
}

impl Transmitter for ProgramTransmitter {
    fn flood(&mut self, flood: &Flood) -> Result<Duration, LabError> {
        self.child.send_line(&flood.buffers.to_string())?;
        let line = self.child.line(FLOOD_LIMIT)?;
        let seconds = line.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        seconds.ok_or_else(|| unexpected(line))
    }

    fn ping_pong(&mut self, _work: &PingPong) -> Result<CallTimes, LabError> {
        Err(unexpected("calls are not among its floods".to_owned()))
    }
}
