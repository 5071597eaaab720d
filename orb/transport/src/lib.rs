//! The transports of GIOP: connections, the protocols that make them, and the reading of whole messages.
//!
//! A [`Transport`] carries the octets of one connection; every stream of `spandrel-ipc` is one. A
//! [`Protocol`] finds the [`Address`]es of a server in its profiles and connects to them. A
//! [`ServerProtocol`] opens [`Endpoint`]s and supplies the addresses that references publish. A
//! [`MessageReader`] divides received octets into messages within limits and a [`MemoryBudget`].
//!
//! The sides are separate traits, because a vtable keeps every method of its trait: a client-only program
//! links no code that listens, and one without a reactor no code for a reactor. There are no Cargo features.
//! A program consists of the protocols registered in its [`Protocols`] and [`ServerProtocols`]; the linker
//! drops the rest.
//!
//! This crate knows neither requests nor servants. Pools of connections, and replies, belong to
//! `spandrel-orb`, the reactor that accepts connections to `spandrel-server`. TLS is a protocol of its own
//! crate, `spandrel-ssliop`.
#![forbid(unsafe_code)]

mod address;
mod bidirectional;
mod budget;
mod datagram;
mod deadline;
mod decoded_memory;
mod endpoint;
mod host_name;
mod iiop;
mod inet_endpoint;
mod keep_alive;
mod listener;
#[cfg(unix)]
mod local;
mod prefix;
mod protocol;
mod protocols;
mod read_error;
mod reader;
mod rules;
mod socket_tuning;
mod transport;

pub use address::{Address, IIOP, scheme_of};
pub use bidirectional::{BidirectionalOnly, is_bidirectional_only};
pub use budget::{Charge, MemoryBudget, MemoryLimitExceeded, ReceiveBudget};
pub use datagram::{DIOP, Diop};
pub use deadline::Deadline;
pub use decoded_memory::DecodedMemory;
pub use endpoint::{Endpoint, EndpointError};
pub use host_name::host_name;
pub use iiop::{Iiop, connect_inet};
pub use inet_endpoint::{INET_OPTIONS, listen_inet};
pub use keep_alive::KeepAlive;
pub use listener::{ConnectionAcceptor, Listener, ListenerSource, PendingConnection, PublishedAddresses};
#[cfg(target_os = "linux")]
pub use local::Shm;
#[cfg(unix)]
pub use local::Uds;
pub use prefix::Prefix;
pub use protocol::{OptionError, Protocol, ServerProtocol, SocketSettings, cost};
pub use protocols::{DynProtocol, FromStream, OfferedAddress, Protocols, ServerProtocols};
pub use read_error::{DiscardedRequest, ReadError, RejectReason};
pub use reader::{MessageReader, ReceiveMonitor, ServerMonitor, Unmonitored};
pub use rules::{AddressSelection, TransportRules, TransportSelection, is_own_host};
pub use socket_tuning::{PacketPriority, SocketTuning};
pub use transport::{ReactorTransport, Transport, is_timeout, send_message, send_octets, send_slices};
