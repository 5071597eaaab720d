//! Jobs: the mechanism, the sockets and the work of one measurement.

use serde::{Deserialize, Serialize};

use crate::workload::{Flood, PingCase, PingPong, named};

/// The mechanisms that transfer the data of an experiment, as command lines name them.
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
    /// The same as `orb`, with one-ways that are written together (the sync scope NONE).
    OrbBatched,
    /// The same as `orb`, with a server whose connections have no threads of their own.
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
    /// The same as `orb`, with one-ways as datagrams, some of which may be lost.
    OrbDatagrams,
    /// omniORB over TCP, through its stubs and skeletons.
    OmniOrb,
    /// TAO over TCP, through its stubs and skeletons.
    Tao,
    /// The ORB with the first rung of the marshaling ladder in place of stub and skeleton.
    RungOriginal,
    /// The same as `RungOriginal`, with the rung whose primitives are declared inline.
    RungSimpleInlining,
    /// The same as `RungOriginal`, with the rung whose primitives are in line.
    RungInlined,
    /// The same as `RungOriginal`, with the rung that has all sizes precomputed.
    RungPrecomputed,
    /// The same as `RungOriginal`, with the rung that reads by small functions.
    RungSplitDecoding,
    /// The same as `RungOriginal`, with the last rung.
    RungSplitEncoding,
    /// omniORB's client with our server, whose skeleton is the original rung of the marshaling ladder.
    OmniOrbOriginal,
    /// The same as `OmniOrbOriginal`, with the last rung.
    OmniOrbOptimised,
    /// ACE's socket wrappers, over TCP.
    Ace,
    /// TI-RPC over TCP, with the stubs of `rpcgen`.
    Rpc,
    /// The same as `rpc`, with opaque octets in place of converted values.
    RpcOpaque,
}

impl MechanismName {
    /// All mechanisms, the base of the ratios first.
    pub const ALL: [Self; 31] = [
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
        Self::OrbDatagrams,
        Self::OmniOrb,
        Self::Tao,
        Self::RungOriginal,
        Self::RungSimpleInlining,
        Self::RungInlined,
        Self::RungPrecomputed,
        Self::RungSplitDecoding,
        Self::RungSplitEncoding,
        Self::OmniOrbOriginal,
        Self::OmniOrbOptimised,
        Self::Ace,
        Self::Rpc,
        Self::RpcOpaque,
    ];

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
            Self::OrbDatagrams => "orb-datagrams",
            Self::OmniOrb => "omniorb",
            Self::Tao => "tao",
            Self::RungOriginal => "rung-original",
            Self::RungSimpleInlining => "rung-simple-inlining",
            Self::RungInlined => "rung-inlined",
            Self::RungPrecomputed => "rung-precomputed",
            Self::RungSplitDecoding => "rung-split-decoding",
            Self::RungSplitEncoding => "rung-split-encoding",
            Self::OmniOrbOriginal => "omniorb-original",
            Self::OmniOrbOptimised => "omniorb-optimised",
            Self::Ace => "ace",
            Self::Rpc => "rpc",
            Self::RpcOpaque => "rpc-opaque",
        }
    }

    /// The meaning for a legend, in less than 80 columns.
    #[must_use]
    pub fn description(self) -> &'static str {
        match self {
            Self::C => "plain socket calls over TCP, without a library: the base of the ratios",
            Self::Ipc => "typed endpoints of spandrel-ipc over TCP",
            Self::CUnix => "plain socket calls in the UNIX domain",
            Self::Unix => "typed endpoints in the UNIX domain",
            Self::Spipe => "typed endpoints over STREAM pipes",
            Self::Shm => "typed endpoints in shared memory: two copies, mostly without a system call",
            Self::Orb => "the ORB over TCP: generated stubs and skeletons, messages of GIOP 1.2",
            Self::OrbBatched => "orb, with several one-ways in one write",
            Self::OrbReactor => "orb, with a server that serves all connections from a reactor's threads",
            Self::OrbInterpretive => "orb, with marshaling by tables and an interpreter: less code",
            Self::OrbPadded => "orb, with structs whose padding is explicit: sent without a copy by member",
            Self::Tls => "plain socket calls with rustls on top",
            Self::OrbTls => "the ORB over TLS",
            Self::OrbReactive => "orb, with a server of one thread",
            Self::OrbQueue => "orb, with a server of one reading thread, a request queue and two workers",
            Self::OrbUds => "the ORB in the UNIX domain",
            Self::OrbShm => "the ORB in shared memory",
            Self::OrbDatagrams => "the ORB, one-ways as datagrams, of which some may be lost; floods only",
            Self::OmniOrb => "omniORB over TCP: its stubs and skeletons; floods only",
            Self::Tao => "TAO over TCP: its stubs and skeletons; floods only",
            Self::RungOriginal => "the ORB, marshaling by the ladder's first rung on both sides; floods only",
            Self::RungSimpleInlining => "the same by the rung with primitives declared inline; floods only",
            Self::RungInlined => "the same by the rung with primitives in line; floods only",
            Self::RungPrecomputed => "the same by the rung with precomputed sizes; floods only",
            Self::RungSplitDecoding => "the same by the rung that reads by small functions; floods only",
            Self::RungSplitEncoding => "the same by the ladder's last rung; floods only",
            Self::OmniOrbOriginal => "omniORB's client, our server on the ladder's first rung; floods only",
            Self::OmniOrbOptimised => "omniORB's client, our server on the ladder's last rung; floods only",
            Self::Ace => "the socket wrappers of ACE over TCP; floods only",
            Self::Rpc => "TI-RPC over TCP with the stubs of rpcgen; floods only",
            Self::RpcOpaque => "rpc, with opaque octets in place of converted values; floods only",
        }
    }

    /// The base of the ratios of a series: plain calls over TCP, or else the first one named.
    #[must_use]
    pub fn base(named: &[Self]) -> Self {
        if named.contains(&Self::C) { Self::C } else { named.first().copied().unwrap_or(Self::C) }
    }

    /// Whether it sends floods and makes no calls: programs of other projects, rungs of the ladder, and datagrams.
    #[must_use]
    pub fn sends_floods_only(self) -> bool {
        let is_rung = matches!(self, Self::RungOriginal | Self::RungSimpleInlining | Self::RungInlined)
            || matches!(self, Self::RungPrecomputed | Self::RungSplitDecoding | Self::RungSplitEncoding);
        let is_omniorb = matches!(self, Self::OmniOrb | Self::OmniOrbOriginal | Self::OmniOrbOptimised);
        is_rung || is_omniorb || matches!(self, Self::Tao | Self::Ace | Self::Rpc | Self::RpcOpaque) || self.may_lose()
    }

    /// Whether octets may be lost on the way; those that arrive are counted.
    #[must_use]
    pub fn may_lose(self) -> bool {
        self == Self::OrbDatagrams
    }

    /// Whether it is measured only on request.
    pub(super) fn is_on_demand(self) -> bool {
        use MechanismName::{OrbBatched, OrbQueue, OrbReactive, OrbShm, OrbTls, OrbUds, Tls};
        self.sends_floods_only() || matches!(self, Tls | OrbTls | OrbBatched | OrbReactive | OrbQueue | OrbUds | OrbShm)
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
        matches!(self, Self::C | Self::Ipc | Self::Tls | Self::OrbTls | Self::Ace | Self::Rpc | Self::RpcOpaque)
            || self.counts_octets()
            || self.may_lose()
    }
}

named!(MechanismName, "mechanism");

/// The transport of an ORB's requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Over {
    Tcp,
    Tls,
    /// Connections over UNIX-domain sockets.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "measured on Linux only"))]
    Uds,
    /// Connections over shared memory.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "measured on Linux only"))]
    Shm,
    /// One-ways as datagrams, all else over TCP.
    Datagrams,
}

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
    /// The sockets, ORB or rung by which the data travels.
    pub mechanism: MechanismName,
    /// The options of its sockets.
    pub sockets: SocketOptions,
    /// The data or calls to send.
    pub work: Work,
}
