//! Points: the measurements that rows share.

use std::fmt;

use serde::{Deserialize, Serialize};
use spandrel_lab::bench::demux;
use spandrel_lab::bench::footprint::Optimisation;
use spandrel_lab::scalability::{self, Style};
use spandrel_lab::workload::{CallKind, DataType};
use spandrel_measure::units::Octets;
use spandrel_stacks::architecture::Protocol;

/// One measurement with all its contenders, which take turns in each round.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", tag = "kind")]
pub enum Point {
    /// A flood of one-way buffers.
    Throughput {
        /// The network between sender and receiver.
        link: Link,
        /// The size of the sockets' queues.
        queue_octets: usize,
        /// The element type of the sequences.
        data: DataType,
        /// The size of the sender's buffers.
        buffer_octets: usize,
    },
    /// A flood of one-way buffers as datagrams, beside the same over connections.
    Datagrams {
        /// The element type of the sequences.
        data: DataType,
        /// The size of the sender's buffers.
        buffer_octets: usize,
    },
    /// Calls to the servants of one server.
    Servants {
        /// One-way or two-way calls.
        call: CallKind,
        /// The order in which servants are called.
        algorithm: scalability::Algorithm,
        /// The parameters of a call.
        case: String,
        /// The number of servants.
        servants: u32,
    },
    /// Two-way calls to one object, and the same octets over plain sockets.
    Calls {
        /// The parameters of a call.
        case: String,
    },
    /// Sequences written to memory and read from it, by each engine.
    Marshaling {
        /// The element type of the sequences.
        data: DataType,
        /// The size of a sequence.
        octets: usize,
    },
    /// Look-ups of an object and its operation, by each strategy.
    Lookups {
        /// The order of requests.
        algorithm: demux::Algorithm,
        /// The number of objects.
        objects: u32,
        /// The number of operations.
        operations: u32,
    },
    /// The operations of appendix C of paper 001, by each engine.
    Stubs,
    /// Octets of the stubs and skeletons of these operations, and of the functions that write and read their types.
    Sizes {
        /// The goal for which the compiler optimises.
        optimisation: Optimisation,
    },
    /// Calls with and without cached headers and predicted look-ups.
    Predictions,
    /// Counts of definitions in the IDL of services.
    Definitions,
    /// Protocol stacks of each process architecture.
    Stacks {
        /// The transport protocol of the stacks.
        protocol: StackProtocol,
        /// The number of processing elements.
        threads: usize,
    },
    /// Servers of every architecture.
    Servers,
    /// The ladder of engines under a profiler: each rung by function.
    LadderProfile {
        /// The element type of the sequences.
        data: DataType,
        /// The size of a sequence.
        octets: usize,
    },
    /// Floods under profilers: each mechanism by layer and by function.
    FloodProfile {
        /// The element type of the sequences.
        data: DataType,
        /// The size of the sender's buffers.
        buffer_octets: usize,
    },
    /// Calls to servants under profilers: each ORB by layer and by function.
    CallProfile {
        /// The interfaces by which requests are made and served.
        style: Style,
        /// One-way or two-way calls.
        call: CallKind,
        /// The order in which servants are called.
        algorithm: scalability::Algorithm,
        /// The parameters of a call.
        case: String,
        /// The number of servants.
        servants: u32,
    },
}

/// The device and its speed between two processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Link {
    /// The loopback device of this machine.
    Loopback,
    /// 10 Mbit/s with an MTU of 1,500 octets.
    Ethernet,
    /// 155 Mbit/s with an MTU of 9,180 octets.
    Atm,
}

impl Link {
    /// The word for it in the names of points.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Loopback => "loopback",
            Self::Ethernet => "ethernet",
            Self::Atm => "atm",
        }
    }
}

/// The transport protocol of a stack, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StackProtocol {
    /// Connection-oriented, with retransmission: TCP.
    Tcp,
    /// Connectionless, without retransmission: UDP.
    Udp,
}

impl From<StackProtocol> for Protocol {
    fn from(protocol: StackProtocol) -> Self {
        match protocol {
            StackProtocol::Tcp => Self::Tcp,
            StackProtocol::Udp => Self::Udp,
        }
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = |octets: &usize| Octets(*octets as u64);
        match self {
            Self::Throughput { link, queue_octets, data, buffer_octets } => {
                write!(f, "throughput/{}/{}/oneway/{data}/{}", link.name(), size(queue_octets), size(buffer_octets))
            }
            Self::Datagrams { data, buffer_octets } => write!(f, "datagrams/oneway/{data}/{}", size(buffer_octets)),
            Self::Servants { call, algorithm, case, servants } => {
                write!(f, "servants/{call}/{algorithm}/{case}/{servants}")
            }
            Self::Calls { case } => write!(f, "calls/twoway/{case}"),
            Self::Marshaling { data, octets } => write!(f, "marshaling/{data}/{}", size(octets)),
            Self::Lookups { algorithm, objects, operations } => {
                write!(f, "lookups/{}/{objects}/{operations}", algorithm.name())
            }
            Self::Stubs => f.write_str("stubs"),
            Self::Sizes { optimisation } => write!(f, "sizes/{}", optimisation.name()),
            Self::Predictions => f.write_str("predictions"),
            Self::Definitions => f.write_str("definitions"),
            Self::Stacks { protocol, threads } => write!(f, "stacks/{}/{threads}", Protocol::from(*protocol)),
            Self::Servers => f.write_str("servers"),
            Self::LadderProfile { data, octets } => write!(f, "ladder-profile/{data}/{}", size(octets)),
            Self::FloodProfile { data, buffer_octets } => {
                write!(f, "flood-profile/oneway/{data}/{}", size(buffer_octets))
            }
            Self::CallProfile { style, call, algorithm, case, servants } => {
                write!(f, "call-profile/{style}/{call}/{algorithm}/{case}/{servants}")
            }
        }
    }
}

impl Point {
    /// The name of its file of results: its own, with `.` in place of `/`.
    #[must_use]
    pub fn file_name(&self) -> String {
        format!("{}.json", self.to_string().replace('/', "."))
    }

    /// The kind of its experiment, whose points last about equally long.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Throughput { .. } => "throughput",
            Self::Datagrams { .. } => "datagrams",
            Self::Servants { .. } => "servants",
            Self::Calls { .. } => "calls",
            Self::Marshaling { .. } => "marshaling",
            Self::Lookups { .. } => "lookups",
            Self::Stubs => "stubs",
            Self::Sizes { .. } => "sizes",
            Self::Predictions => "predictions",
            Self::Definitions => "definitions",
            Self::Stacks { .. } => "stacks",
            Self::Servers => "servers",
            Self::LadderProfile { .. } => "ladder-profile",
            Self::FloodProfile { .. } => "flood-profile",
            Self::CallProfile { .. } => "call-profile",
        }
    }

    /// Whether the name of this point has these parts, side by side: `64K/oneway` is part of
    /// `throughput/atm/64K/oneway/octet/1K`.
    #[must_use]
    pub fn is_at(&self, part: &str) -> bool {
        format!("/{self}/").contains(&format!("/{part}/"))
    }
}
