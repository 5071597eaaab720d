//! The ways in which data can travel: one trait, and an implementation per mechanism.
//!
//! A mechanism listens in the receiver's process and connects in the transmitter's. Connecting ends with one exchange
//! between the two, so that the clock, which starts after it, never counts the setting up. What differs between
//! mechanisms is only how they connect and transfer; the loops, the clock and the socket options are the same.

#[cfg(target_os = "linux")]
mod c;
mod generated;
mod ipc;
mod octet_stream;
mod orb;
mod relay;

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::LabError;
use crate::latency::CallTimes;
use crate::workload::{Flood, PingCase, PingPong};

/// The names of the mechanisms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum MechanismName {
    /// Plain socket calls through `libc`: the base of every ratio.
    C,
    /// The typed endpoints of `spandrel-ipc`.
    Ipc,
    /// The ORB, through generated stubs and skeletons.
    Orb,
}

impl MechanismName {
    /// All of them, the base of the ratios first.
    pub const ALL: [Self; 3] = [Self::C, Self::Ipc, Self::Orb];

    /// The name that options and tables use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::C => "c",
            Self::Ipc => "ipc",
            Self::Orb => "orb",
        }
    }

    /// Whether it puts octets of its own around the data, so that the others must be told how many.
    #[must_use]
    pub fn counts_octets(self) -> bool {
        match self {
            Self::C | Self::Ipc => false,
            Self::Orb => true,
        }
    }

    /// The mechanism of this name.
    ///
    /// # Errors
    /// If it does not exist on this platform.
    pub fn mechanism(self) -> Result<&'static dyn Mechanism, LabError> {
        match self {
            #[cfg(target_os = "linux")]
            Self::C => Ok(&octet_stream::Streams::<c::Plain>::NEW),
            #[cfg(not(target_os = "linux"))]
            Self::C => Err(LabError::Unavailable {
                mechanism: "c",
                reason: "its plain socket calls are written for Linux; use --mechanisms ipc,orb".to_owned(),
            }),
            Self::Ipc => Ok(&octet_stream::Streams::<ipc::Inet>::NEW),
            Self::Orb => Ok(&orb::OrbMechanism),
        }
    }
}

impl fmt::Display for MechanismName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for MechanismName {
    type Err = LabError;

    fn from_str(text: &str) -> Result<Self, LabError> {
        Self::ALL.into_iter().find(|mechanism| mechanism.name() == text).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|mechanism| mechanism.name()).collect();
            LabError::Settings(format!("`{text}` is not a mechanism; there are {}", names.join(", ")))
        })
    }
}

/// Options of the data connection's sockets, the same at both ends and for every mechanism. `TCP_NODELAY` is always on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SocketOptions {
    /// Octets of the send and of the receive queue; the system's own choice if absent.
    pub queue_octets: Option<u32>,
}

/// What is to be measured over one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// Throughput: a flood of buffers.
    Flood(Flood),
    /// Latency: calls that wait for their answers.
    PingPong(PingPong),
    /// How many octets such a call takes on the wire.
    Wire(PingCase),
}

/// One measurement: a mechanism, its sockets and its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// How data travel.
    pub mechanism: MechanismName,
    /// With which sockets.
    pub sockets: SocketOptions,
    /// And which data.
    pub work: Work,
}

/// A way in which data travel.
pub trait Mechanism: Sync {
    /// Begins to listen at an address of this machine and to serve one job in the background.
    ///
    /// # Errors
    /// If it cannot listen there.
    fn listen(&self, host: IpAddr, job: &Job) -> Result<Box<dyn Receiver>, LabError>;

    /// Connects to where a [`Receiver`] of the same mechanism and job listens.
    ///
    /// # Errors
    /// If nobody answers there.
    fn connect(&self, endpoint: &str, job: &Job) -> Result<Box<dyn Transmitter>, LabError>;
}

/// The receiving end of one job.
pub trait Receiver {
    /// Where it listens, in words that its mechanism's [`Mechanism::connect`] understands.
    fn endpoint(&self) -> String;

    /// Ends it, once the transmitter has gone, and says how many octets of user data came.
    ///
    /// # Errors
    /// If receiving failed.
    fn finish(self: Box<Self>) -> Result<u64, LabError>;
}

/// The sending end of one job.
pub trait Transmitter {
    /// Sends the flood and waits for the acknowledgement of its end. The time is from the first send to that.
    ///
    /// # Errors
    /// If sending failed, or no acknowledgement came.
    fn flood(&mut self, flood: &Flood) -> Result<Duration, LabError>;

    /// Makes the calls and takes their times.
    ///
    /// # Errors
    /// If a call failed.
    fn ping_pong(&mut self, work: &PingPong) -> Result<CallTimes, LabError>;

    /// How many octets a request and its reply take on the wire; nothing if the mechanism sends what it is told to.
    ///
    /// # Errors
    /// If a call failed.
    fn wire_octets(&mut self, _case: PingCase) -> Result<Option<(u64, u64)>, LabError> {
        Ok(None)
    }
}
