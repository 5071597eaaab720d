//! The mechanisms of data transfer: one [trait](Mechanism), and an implementation per mechanism.
//!
//! A mechanism listens in the receiver's process and connects in the transmitter's. Connecting ends with one
//! exchange between the two, so that the clock, which starts after it, never counts the connection setup.
//! Mechanisms differ only in connecting and transferring; the loops, the clock and the socket options are the
//! same.

#[cfg(target_os = "linux")]
mod c;
mod certificate;
mod family;
pub(crate) mod generated;
mod interface;
mod job;
mod octet_stream;
pub(crate) mod orb;
#[cfg(target_os = "linux")]
mod program;
mod relay;
#[cfg(target_os = "linux")]
mod rung;
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

use spandrel::options::Concurrency;

pub use interface::{Mechanism, Receiver, Transmitter};
use job::Over;
pub use job::{Job, MechanismName, SocketOptions, Work};

use crate::LabError;
#[cfg(target_os = "linux")]
use crate::ladder::Rung;

impl MechanismName {
    /// The default mechanisms of this platform, in the same order; between two machines only those over a
    /// network.
    #[must_use]
    pub fn available(between_machines: bool) -> Vec<Self> {
        let usable = |name: &Self| {
            name.mechanism().is_ok() && !name.is_on_demand() && (!between_machines || name.leaves_the_machine())
        };
        Self::ALL.into_iter().filter(usable).collect()
    }

    /// The mechanisms of a quick run: sockets, and the ORB over the same transports. Shared memory is left out,
    /// since it differs by an order of magnitude.
    #[must_use]
    pub fn quick(between_machines: bool) -> Vec<Self> {
        let quick = [Self::C, Self::Ipc, Self::CUnix, Self::Orb, Self::OrbPadded, Self::OrbReactor, Self::OrbUds];
        let is_usable = |name: &Self| name.mechanism().is_ok() && (!between_machines || name.leaves_the_machine());
        quick.into_iter().filter(is_usable).collect()
    }

    /// Whether a run can use it: the platform has it, and its program is built, if it is one of another project.
    ///
    /// # Errors
    /// The reason why not, and the remedy.
    pub fn check(self) -> Result<(), LabError> {
        #[cfg(target_os = "linux")]
        if let Some(program) = self.program() {
            program.command()?;
        }
        self.mechanism().map(drop)
    }

    /// The program that carries out the mechanism, for those of other projects.
    #[cfg(target_os = "linux")]
    fn program(self) -> Option<&'static program::Program> {
        use program::Program;
        match self {
            Self::OmniOrb => Some(&program::OMNIORB),
            Self::Tao => Some(&Program { mechanism: Self::Tao, folder: "tao", program: "tao-ttcp" }),
            Self::Ace => Some(&Program { mechanism: Self::Ace, folder: "ace", program: "ace-ttcp" }),
            Self::Rpc => Some(&Program { mechanism: Self::Rpc, folder: "rpc", program: "rpc" }),
            Self::RpcOpaque => Some(&Program { mechanism: Self::RpcOpaque, folder: "rpc", program: "rpc-opaque" }),
            _ => None,
        }
    }

    /// The implementation of this mechanism.
    ///
    /// # Errors
    /// If it does not exist on this platform.
    pub fn mechanism(self) -> Result<&'static dyn Mechanism, LabError> {
        use octet_stream::Streams;
        #[cfg(target_os = "linux")]
        match self {
            Self::RungOriginal => return Ok(const { &rung::RungMechanism::both_sides(Rung::Original) }),
            Self::RungSimpleInlining => return Ok(const { &rung::RungMechanism::both_sides(Rung::SimpleInlining) }),
            Self::RungInlined => return Ok(const { &rung::RungMechanism::both_sides(Rung::Inlined) }),
            Self::RungPrecomputed => return Ok(const { &rung::RungMechanism::both_sides(Rung::Precomputed) }),
            Self::RungSplitDecoding => return Ok(const { &rung::RungMechanism::both_sides(Rung::SplitDecoding) }),
            Self::RungSplitEncoding => return Ok(const { &rung::RungMechanism::both_sides(Rung::SplitEncoding) }),
            Self::OmniOrbOriginal => return Ok(const { &rung::RungMechanism::of_omniorb(Rung::Original) }),
            Self::OmniOrbOptimised => return Ok(const { &rung::RungMechanism::of_omniorb(Rung::SplitEncoding) }),
            _ => {}
        }
        #[cfg(target_os = "linux")]
        if let Some(program) = self.program() {
            return Ok(program);
        }
        match self {
            Self::Tls => Ok(&Streams::<tls::TlsStream>::NEW),
            Self::Ipc => Ok(&Streams::<family::FamilyStream<spandrel_ipc::inet::Inet>>::NEW),
            Self::Orb => Ok(&orb::OrbMechanism::PLAIN),
            Self::OrbTls => Ok(const { &orb::OrbMechanism { over: Over::Tls, ..orb::OrbMechanism::PLAIN } }),
            Self::OrbDatagrams => {
                Ok(const { &orb::OrbMechanism { over: Over::Datagrams, ..orb::OrbMechanism::PLAIN } })
            }
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
            // Other systems have none of those that remain.
            _ => Err(LabError::Unavailable {
                mechanism: self.name(),
                reason: "it is measured on Linux only; use --mechanisms ipc,orb".to_owned(),
            }),
        }
    }
}

/// The ORB, with a server of this concurrency.
const fn served(concurrency: Concurrency) -> orb::OrbMechanism {
    orb::OrbMechanism { concurrency: Some(concurrency), ..orb::OrbMechanism::PLAIN }
}
