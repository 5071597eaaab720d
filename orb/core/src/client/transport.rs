//! Transports and protocols, for programs that choose them or add their own.

#[cfg(target_os = "linux")]
pub use spandrel_transport::Shm;
#[cfg(unix)]
pub use spandrel_transport::Uds;
pub use spandrel_transport::{
    Address, ConnectionAcceptor, Endpoint, EndpointError, INET_OPTIONS, Iiop, KeepAlive, Listener, ListenerSource,
    OptionError, PacketPriority, PendingConnection, Prefix, Protocol, PublishedAddresses, ReactorTransport,
    ServerProtocol, SocketSettings, SocketTuning, Transport, connect_inet, cost, listen_inet,
};
use spandrel_transport::{DynProtocol, Protocols};

/// As much of a transport as connections of this ORB need.
#[cfg(feature = "asynchronous")]
pub(crate) use spandrel_transport::ReactorTransport as ConnectionTransport;
/// As much of a transport as connections of this ORB need.
#[cfg(not(feature = "asynchronous"))]
pub(crate) use spandrel_transport::Transport as ConnectionTransport;

/// A protocol by which this ORB calls.
pub(crate) type ClientProtocol = dyn DynProtocol<dyn ConnectionTransport>;

/// The protocols by which this ORB calls.
pub(crate) type ClientProtocols = Protocols<dyn ConnectionTransport>;
