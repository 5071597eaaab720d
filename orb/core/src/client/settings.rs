//! What the client side of an ORB is configured with.

use std::time::Duration;

use spandrel_transport::SocketSettings;

use super::{CacheSettings, ConnectionLimits, FragmentSizes};

/// What the client side of an ORB is configured with.
#[derive(Clone, Debug)]
pub(crate) struct ClientSettings {
    /// One-ways go by datagram where a server reads them.
    #[cfg(feature = "server")]
    pub(crate) sends_datagrams: bool,
    /// Connections to one peer before calls share them.
    pub(crate) connections_per_peer: usize,
    /// Requests that wait for their replies on one connection before further asynchronous ones are refused.
    #[cfg(feature = "asynchronous")]
    pub(crate) max_pending: usize,
    /// Octets that wait to be written to one connection before further ones are refused or have to wait.
    #[cfg(feature = "asynchronous")]
    pub(crate) max_unsent: usize,
    /// Enforces the limits of `cache`; without it there are none.
    pub(crate) limits: Option<&'static ConnectionLimits>,
    pub(crate) cache: CacheSettings,
    pub(crate) connect_timeout: Option<Duration>,
    pub(crate) max_message: usize,
    pub(crate) max_unfinished: usize,
    /// Octets from which on messages are sent in fragments.
    pub(crate) fragment_sizes: FragmentSizes,
    pub(crate) sockets: SocketSettings,
}
