//! The mechanisms of data transfer: one trait, and an implementation per mechanism.
//!
//! A mechanism listens in the receiver's process and connects in the transmitter's. Connecting ends with one
//! exchange between the two, so that the clock, which starts after it, never counts the connection setup.
//! Mechanisms differ only in connecting and transferring; the loops, the clock and the socket options are the
//! same.

#[cfg(target_os = "linux")]
mod c;
mod family;
pub(crate) mod generated;
mod octet_stream;
pub(crate) mod orb;
mod relay;
mod tls;

/// The mechanism `orb` with other generated code.
macro_rules! engine {
    ($(#[$doc:meta])* $module:ident $ttcp:literal $latency:literal) => {
        $(#[$doc])*
        #[path = "."]
        mod $module {
            use super::{Job, Mechanism, Receiver, SocketOptions, Transmitter, Work, relay, tls};

            #[allow(dead_code, unreachable_pub, missing_docs, reason = "generated code offers all that the IDL says")]
            mod generated {
                pub(super) mod ttcp {
                    include!(concat!(env!("OUT_DIR"), $ttcp));
                }

                pub(super) mod latency {
                    include!(concat!(env!("OUT_DIR"), $latency));
                }
            }

            #[allow(clippy::duplicate_mod, reason = "one text, with the generated code that stands beside it")]
            #[path = "orb.rs"]
            pub(super) mod orb;
        }
    };
}

engine! {
    /// Tables, and an interpreter.
    interpretive "/interpretive/ttcp.rs" "/interpretive/latency.rs"
}
engine! {
    /// Structs with the same layout in memory as in messages.
    padded "/padded/ttcp.rs" "/padded/latency.rs"
}

use std::net::IpAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use spandrel::Concurrency;

use crate::LabError;
use crate::call_times::CallTimes;
use crate::workload::{Flood, PingCase, PingPong, named};

/// The names of the mechanisms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum MechanismName {
    /// Plain socket calls through `libc`, over TCP: the base of every ratio.
    C,
    /// The typed endpoints of `spandrel-ipc`, over TCP.
    Ipc,
    /// Plain socket calls through `libc`, in the UNIX domain.
    CUnix,
    /// The typed endpoints of `spandrel-ipc`, in the UNIX domain.
    Unix,
    /// The typed endpoints of `spandrel-ipc`, over STREAM pipes.
    Spipe,
    /// The typed endpoints of `spandrel-ipc`, in shared memory.
    Shm,
    /// The ORB, through generated stubs and skeletons.
    Orb,
    /// The same, with one-ways that are written together (the sync scope NONE).
    OrbBatched,
    /// The same, with a server whose connections have no threads of their own.
    OrbReactor,
    /// The same as `orb`, with tables and an interpreter instead of straight-line code.
    OrbInterpretive,
    /// The same as `orb`, with structs whose padding is explicit.
    OrbPadded,
    /// Plain sockets, with `rustls` on top.
    Tls,
    /// The same as `orb`, over TLS.
    OrbTls,
    /// The same as `orb`, with a server of one thread.
    OrbReactive,
    /// The same as `orb`, with a server that reads into a queue served by other threads.
    OrbQueue,
    /// The same as `orb`, in the UNIX domain.
    OrbUds,
    /// The same as `orb`, in shared memory.
    OrbShm,
}

/// The transport of an ORB's requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Over {
    Tcp,
    Tls,
    /// UNIX-domain sockets.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "measured on Linux only"))]
    Uds,
    /// Shared memory.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "measured on Linux only"))]
    Shm,
}

impl MechanismName {
    /// All of them, the base of the ratios first.
    pub const ALL: [Self; 17] = [
        Self::C,
        Self::Ipc,
        Self::CUnix,
        Self::Unix,
        Self::Spipe,
        Self::Shm,
        Self::Orb,
        Self::OrbBatched,
        Self::OrbReactor,
        Self::OrbInterpretive,
        Self::OrbPadded,
        Self::Tls,
        Self::OrbTls,
        Self::OrbReactive,
        Self::OrbQueue,
        Self::OrbUds,
        Self::OrbShm,
    ];

    /// The default mechanisms of this platform, in the same order; between two machines only those over a
    /// network.
    #[must_use]
    pub fn available(between_machines: bool) -> Vec<Self> {
        let usable = |name: &Self| {
            name.mechanism().is_ok() && !name.is_on_demand() && (!between_machines || name.leaves_the_machine())
        };
        Self::ALL.into_iter().filter(usable).collect()
    }

    /// The name that options and tables use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::C => "c",
            Self::Ipc => "ipc",
            Self::CUnix => "c-unix",
            Self::Unix => "unix",
            Self::Spipe => "spipe",
            Self::Shm => "shm",
            Self::Orb => "orb",
            Self::OrbBatched => "orb-batched",
            Self::OrbReactor => "orb-reactor",
            Self::OrbInterpretive => "orb-interpretive",
            Self::OrbPadded => "orb-padded",
            Self::Tls => "tls",
            Self::OrbTls => "orb-tls",
            Self::OrbReactive => "orb-reactive",
            Self::OrbQueue => "orb-queue",
            Self::OrbUds => "orb-uds",
            Self::OrbShm => "orb-shm",
        }
    }

    /// The base of the ratios of a series: plain calls over TCP, or else the first one named.
    #[must_use]
    pub fn base(named: &[Self]) -> Self {
        if named.contains(&Self::C) { Self::C } else { named.first().copied().unwrap_or(Self::C) }
    }

    /// Whether it is measured only on request.
    fn is_on_demand(self) -> bool {
        use MechanismName::{OrbBatched, OrbQueue, OrbReactive, OrbShm, OrbTls, OrbUds, Tls};
        matches!(self, Tls | OrbTls | OrbBatched | OrbReactive | OrbQueue | OrbUds | OrbShm)
    }

    /// Whether it adds octets of its own to the data, so that the others must transfer as many.
    #[must_use]
    pub fn counts_octets(self) -> bool {
        let is_an_engine = matches!(self, Self::Orb | Self::OrbInterpretive | Self::OrbPadded);
        is_an_engine || matches!(self, Self::OrbBatched | Self::OrbReactor | Self::OrbReactive | Self::OrbQueue)
    }

    /// Whether transmitter and receiver can be on two machines.
    #[must_use]
    pub fn leaves_the_machine(self) -> bool {
        matches!(self, Self::C | Self::Ipc | Self::Tls | Self::OrbTls) || self.counts_octets()
    }

    /// The mechanism of this name.
    ///
    /// # Errors
    /// If it does not exist on this platform.
    pub fn mechanism(self) -> Result<&'static dyn Mechanism, LabError> {
        use octet_stream::Streams;
        match self {
            Self::Tls => Ok(&Streams::<tls::TlsStream>::NEW),
            Self::Ipc => Ok(&Streams::<family::FamilyStream<spandrel_ipc::inet::Inet>>::NEW),
            Self::Orb => Ok(&orb::OrbMechanism::PLAIN),
            Self::OrbTls => Ok(const { &orb::OrbMechanism { over: Over::Tls, ..orb::OrbMechanism::PLAIN } }),
            Self::OrbBatched => Ok(const { &orb::OrbMechanism { is_batched: true, ..orb::OrbMechanism::PLAIN } }),
            Self::OrbReactor => Ok(const { &served(Concurrency::LeaderFollowers { threads: None }) }),
            Self::OrbReactive => Ok(const { &served(Concurrency::Reactive) }),
            Self::OrbQueue => Ok(const { &served(Concurrency::ThreadPool { threads: 2, queue: 1024 }) }),
            Self::OrbInterpretive => Ok(&interpretive::orb::OrbMechanism::PLAIN),
            Self::OrbPadded => Ok(&padded::orb::OrbMechanism::PLAIN),
            #[cfg(target_os = "linux")]
            Self::OrbUds => Ok(const { &orb::OrbMechanism { over: Over::Uds, ..orb::OrbMechanism::PLAIN } }),
            #[cfg(target_os = "linux")]
            Self::OrbShm => Ok(const { &orb::OrbMechanism { over: Over::Shm, ..orb::OrbMechanism::PLAIN } }),
            #[cfg(target_os = "linux")]
            Self::C => Ok(&Streams::<c::PlainStream<c::Tcp>>::NEW),
            #[cfg(target_os = "linux")]
            Self::CUnix => Ok(&Streams::<c::PlainStream<c::UnixDomain>>::NEW),
            #[cfg(target_os = "linux")]
            Self::Unix => Ok(&Streams::<family::FamilyStream<spandrel_ipc::unix::Unix>>::NEW),
            #[cfg(target_os = "linux")]
            Self::Spipe => Ok(&Streams::<family::FamilyStream<spandrel_ipc::spipe::Spipe>>::NEW),
            #[cfg(target_os = "linux")]
            Self::Shm => Ok(&Streams::<family::FamilyStream<spandrel_ipc::shm::Shm>>::NEW),
            #[cfg(not(target_os = "linux"))]
            Self::C | Self::CUnix | Self::Unix | Self::Spipe | Self::Shm | Self::OrbUds | Self::OrbShm => {
                Err(LabError::Unavailable {
                    mechanism: self.name(),
                    reason: "it is measured on Linux only; use --mechanisms ipc,orb".to_owned(),
                })
            }
        }
    }
}

/// The ORB, with a server of this concurrency.
const fn served(concurrency: Concurrency) -> orb::OrbMechanism {
    orb::OrbMechanism { concurrency: Some(concurrency), ..orb::OrbMechanism::PLAIN }
}

named!(MechanismName, "mechanism");

/// Options of the data connection's sockets, the same at both ends and for every mechanism. `TCP_NODELAY` is
/// always on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SocketOptions {
    /// Octets of the send and of the receive queue; the system's own choice if absent.
    pub queue_octets: Option<u32>,
}

/// The measurement to make over one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// Throughput: a flood of buffers.
    Flood(Flood),
    /// Latency: calls that wait for their answers.
    PingPong(PingPong),
    /// The number of octets of such a call on the wire.
    Wire(PingCase),
}

/// One measurement: a mechanism, its sockets and its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// The mechanism.
    pub mechanism: MechanismName,
    /// The socket options.
    pub sockets: SocketOptions,
    /// The work.
    pub work: Work,
}

/// A mechanism of data transfer.
pub trait Mechanism: Sync {
    /// Starts to listen at an address of this machine, and serves one job in the background.
    ///
    /// # Errors
    /// If it cannot listen there.
    fn listen(&self, host: IpAddr, job: &Job) -> Result<Box<dyn Receiver>, LabError>;

    /// Connects to the address of a [`Receiver`] of the same mechanism and job.
    ///
    /// # Errors
    /// If no receiver answers there.
    fn connect(&self, endpoint: &str, job: &Job) -> Result<Box<dyn Transmitter>, LabError>;
}

/// The receiving end of one job.
pub trait Receiver {
    /// The address at which it listens, in the syntax of its mechanism's [`Mechanism::connect`].
    fn endpoint(&self) -> String;

    /// Ends it, once the transmitter has closed, and returns the number of octets of user data received.
    ///
    /// # Errors
    /// If receiving failed.
    fn finish(self: Box<Self>) -> Result<u64, LabError>;
}

/// The sending end of one job.
pub trait Transmitter {
    /// Sends the flood and waits for the acknowledgement of its end. Returns the time from the first send to
    /// that.
    ///
    /// # Errors
    /// If sending failed, or no acknowledgement came.
    fn flood(&mut self, flood: &Flood) -> Result<Duration, LabError>;

    /// Makes the calls and returns their times.
    ///
    /// # Errors
    /// If a call failed.
    fn ping_pong(&mut self, work: &PingPong) -> Result<CallTimes, LabError>;

    /// The number of octets of a request and its reply on the wire; none if the mechanism sends exactly the
    /// given octets.
    ///
    /// # Errors
    /// If a call failed.
    fn wire_octets(&mut self, _case: PingCase) -> Result<Option<(u64, u64)>, LabError> {
        Ok(None)
    }
}
