//! Settings of the experiment with priorities: contenders, loads and sockets.

use std::fmt;
use std::path::PathBuf;
use std::process::Command;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use spandrel::rt::{LinearMapping, Priority, Scheduling, SchedulingClass};

use crate::LabError;
use crate::interop;
use crate::peer::child::{ChildKind, ChildRole};
use crate::peer::pair::Launch;
use crate::peer_programs;
use crate::placement::Placement;
use crate::workload::named;

/// A server whose response times are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Contender {
    /// Plain sockets in C: a thread for each connection, at the native priority of its requests.
    C,
    /// Our ORB without priorities.
    Spandrel,
    /// Our ORB with a lane for each kind of request.
    SpandrelRt,
    /// As [`SpandrelRt`](Self::SpandrelRt), with servants that may take 5 ms: longer ones are demoted.
    SpandrelWatched,
    /// omniORB, which has no priorities.
    #[serde(rename = "omniorb")]
    OmniOrb,
    /// JacORB, which has no priorities.
    #[serde(rename = "jacorb")]
    JacOrb,
}

named!(Contender, "server");

impl Contender {
    /// All contenders, the base of the ratios first.
    pub const ALL: [Self; 6] =
        [Self::C, Self::Spandrel, Self::SpandrelRt, Self::SpandrelWatched, Self::OmniOrb, Self::JacOrb];

    /// The name that options and tables use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::C => "c",
            Self::Spandrel => "spandrel",
            Self::SpandrelRt => "spandrel-rt",
            Self::SpandrelWatched => "spandrel-watched",
            Self::OmniOrb => "omniorb",
            Self::JacOrb => "jacorb",
        }
    }

    /// The command that starts its server, which listens at the path as well if there is one; or the reason why there is
    /// none. With a next server, it is an intermediary, which calls that one.
    pub(super) fn server(
        self,
        settings: &Settings,
        launch: Launch<'_>,
        path: Option<&str>,
        next: Option<&str>,
    ) -> Result<Command, String> {
        const SERVER: &str = "latency-server";
        let micros = |time: Duration| time.as_micros().to_string();
        let [high, low, spin] = [settings.high_work(), settings.low_work(), settings.run_time()].map(micros);
        match self {
            Self::C => {
                let program = peer_programs::find_program("calls-c", "priorities-c", settings.peers.as_deref())?;
                let [readers, of_high, of_low, of_spin] = [READERS, HIGH, LOW, SPIN].map(native);
                let mut command = Command::new(program);
                command.args([path.unwrap_or("tcp"), &OCTETS.to_string(), &readers]);
                command.args([of_high, high, of_low, low, of_spin, spin]).args(next);
                Ok(command)
            }
            Self::Spandrel | Self::SpandrelRt | Self::SpandrelWatched => {
                let kind = ChildKind::PrioritiesServer {
                    contender: self.name().to_owned(),
                    path: path.map(str::to_owned),
                    next: next.map(str::to_owned),
                    work_micros: [settings.high_work_micros, settings.low_work_micros],
                    spin_millis: settings.run_millis,
                };
                Ok(launch(&ChildRole { kind, core: None }))
            }
            Self::OmniOrb => {
                let folder = interop::find("omniorb", &[SERVER], settings.omniorb.as_deref())?;
                let mut command = Command::new(folder.join(SERVER));
                command.args(["--work", &high, "--octets-work", &low, "-ORBendPoint", "giop:tcp:127.0.0.1:"]);
                if let Some(path) = path {
                    command.args(["-ORBendPoint", &format!("giop:unix:{path}")]);
                }
                command.args(next.iter().flat_map(|next| ["--next", next]));
                Ok(command)
            }
            Self::JacOrb if path.is_some() => Err("it has no UNIX-domain sockets".to_owned()),
            Self::JacOrb => {
                let folder = interop::find("jacorb", &[SERVER], settings.jacorb.as_deref())?;
                let mut command = Command::new(folder.join(SERVER));
                command.args(["--work", &high, "--octets-work", &low]);
                command.args(next.iter().flat_map(|next| ["--next", next]));
                Ok(command)
            }
        }
    }

    /// Whether its messages are those of an ORB.
    pub(super) fn has_orb(self) -> bool {
        self != Self::C
    }

    /// Whether its threads have priorities, so that one that spins above the others means something.
    pub(super) fn has_priorities(self) -> bool {
        matches!(self, Self::C | Self::SpandrelRt | Self::SpandrelWatched)
    }
}

/// Octets of a plain request, and of its reply.
pub(super) const OCTETS: usize = 64;
/// The priority of the threads that read connections, and that of the measured client.
pub(super) const READERS: i16 = 30_000;
/// The priority of the request that spins.
pub(super) const SPIN: i16 = 20_000;
/// The priority of the measured requests.
pub(super) const HIGH: i16 = 16_000;
/// The priority of the flood.
pub(super) const LOW: i16 = 0;

/// The native scheduling of servers and clients, as far as there are rights.
pub(super) fn scheduling() -> Scheduling {
    Scheduling::new(SchedulingClass::Fifo, Arc::new(LinearMapping))
}

/// The native priority of `SCHED_FIFO` for the program in C; 0 without rights.
fn native(priority: i16) -> String {
    let scheduling = scheduling();
    let native = Priority::from_number(priority).and_then(|priority| scheduling.to_native(priority).ok());
    native.filter(|_| scheduling.class() == SchedulingClass::Fifo).unwrap_or(0).to_string()
}

/// The clients beside the measured one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Load {
    /// No client beside the measured one.
    Alone,
    /// That many clients of low priority.
    Flood(u32),
    /// One client, whose request computes for the whole run at a higher priority.
    Spin,
    /// All calls go through an intermediary, another server of the same kind, which that many clients of low priority
    /// flood. Without any it is the base of the others.
    Nested(u32),
    /// That many clients of omniORB, whose requests carry no priority.
    Foreign(u32),
}

impl Load {
    /// The load to which the times beside this one are compared.
    pub(super) fn base(self) -> Self {
        if matches!(self, Self::Nested(_)) { Self::Nested(0) } else { Self::Alone }
    }

    /// Clients beside the measured one.
    pub(super) fn others(self) -> u32 {
        match self {
            Self::Alone => 0,
            Self::Spin => 1,
            Self::Flood(clients) | Self::Nested(clients) | Self::Foreign(clients) => clients,
        }
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Alone => f.write_str("alone"),
            Self::Flood(clients) => write!(f, "flood of {clients}"),
            Self::Spin => f.write_str("spin"),
            Self::Nested(0) => f.write_str("nested"),
            Self::Nested(clients) => write!(f, "nested, flood of {clients}"),
            Self::Foreign(clients) => write!(f, "foreign flood of {clients}"),
        }
    }
}

/// The sockets between clients and server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sockets {
    /// TCP over the loopback interface.
    Tcp,
    /// Sockets of the UNIX-domain family.
    Unix,
}

impl fmt::Display for Sockets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp => "tcp",
            Self::Unix => "unix",
        })
    }
}

impl FromStr for Sockets {
    type Err = LabError;

    fn from_str(text: &str) -> Result<Self, LabError> {
        match text {
            "tcp" => Ok(Self::Tcp),
            "unix" => Ok(Self::Unix),
            other => Err(LabError::Settings(format!("`{other}` is no kind of sockets; there are tcp and unix"))),
        }
    }
}

/// The configurations to measure, and the number and length of their runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// The cores of clients (transmitter) and server (receiver), one series each.
    pub placements: Vec<Placement>,
    /// The kinds of sockets over which the contenders are compared, one series each.
    pub sockets: Vec<Sockets>,
    /// The loads, in the order of the report. [`Load::Alone`] is always measured.
    pub loads: Vec<Load>,
    /// The contenders, in the order of the report.
    pub contenders: Vec<Contender>,
    /// The duration of a run, in milliseconds.
    pub run_millis: u64,
    /// The runs of each configuration; they take turns with those of the others.
    pub rounds: u32,
    /// The time between the beginnings of two measured calls, and their deadline.
    pub period_micros: u32,
    /// Processor time of a measured upcall in microseconds.
    pub high_work_micros: u32,
    /// Processor time of an upcall of the flood in microseconds.
    pub low_work_micros: u32,
    /// The folder with the plain C server, if it is not built from the source tree.
    pub peers: Option<PathBuf>,
    /// The folder with omniORB's programs, if it is not where the source tree builds them.
    pub omniorb: Option<PathBuf>,
    /// The folder with JacORB's programs, if it is not where the source tree builds them.
    pub jacorb: Option<PathBuf>,
    /// The longest response time of a server, in seconds.
    pub limit_seconds: u32,
    /// After this many seconds no further round is begun.
    pub budget_seconds: Option<u64>,
}

/// The most clients of a flood.
const MAX_FLOOD: u32 = 1_000;
/// The longest run in milliseconds.
const MAX_RUN: u64 = 600_000;
/// The longest period and upcall in microseconds.
const MAX_MICROS: u32 = 1_000_000;

impl Settings {
    /// Finds faults of the settings before anything is measured.
    ///
    /// # Errors
    /// If a list is empty, or a number out of range.
    pub fn check(&self) -> Result<(), LabError> {
        let refuse = |reason: String| Err(LabError::Settings(reason));
        if self.placements.is_empty() || self.sockets.is_empty() || self.contenders.is_empty() {
            return refuse("nothing to run: there must be a placement, a kind of sockets and a contender".to_owned());
        }
        if self.rounds == 0 || self.limit_seconds == 0 || !(1..=MAX_RUN).contains(&self.run_millis) {
            return refuse(format!("rounds and limit must be above zero, and a run between 1 and {MAX_RUN} ms"));
        }
        let has_clients = |load: &&Load| load.others() > 0 || load.base() == **load;
        if let Some(load) = self.loads.iter().find(|load| load.others() > MAX_FLOOD || !has_clients(load)) {
            let clients = load.others();
            return refuse(format!("a flood has between 1 and {MAX_FLOOD} clients, not {clients}"));
        }
        for micros in [self.period_micros, self.high_work_micros, self.low_work_micros] {
            if !(1..=MAX_MICROS).contains(&micros) {
                return refuse(format!("period and upcalls are between 1 and {MAX_MICROS} µs, not {micros}"));
            }
        }
        Ok(())
    }

    pub(super) fn run_time(&self) -> Duration {
        Duration::from_millis(self.run_millis)
    }

    pub(super) fn limit(&self) -> Duration {
        Duration::from_secs(self.limit_seconds.into())
    }

    pub(super) fn period(&self) -> Duration {
        Duration::from_micros(self.period_micros.into())
    }

    pub(super) fn high_work(&self) -> Duration {
        Duration::from_micros(self.high_work_micros.into())
    }

    pub(super) fn low_work(&self) -> Duration {
        Duration::from_micros(self.low_work_micros.into())
    }
}
