//! The configuration of an ORB's client side.

use std::time::Duration;

use spandrel_transport::SocketSettings;

use super::{CacheSettings, ConnectionLimits, FragmentSizes};
use crate::datagrams::OpenDatagrams;

/// The configuration of an ORB's client side.
#[derive(Clone, Debug)]
pub(crate) struct ClientSettings {
    /// Opens the peers of one-ways by datagram, if these are enabled.
    pub(crate) open_datagrams: Option<OpenDatagrams>,
    /// Connections to one peer before calls share them.
    pub(crate) connections_per_peer: usize,
    /// The most requests that wait for replies on one connection, before further asynchronous ones fail.
    #[cfg(feature = "asynchronous")]
    pub(crate) max_pending: usize,
    /// The most octets that wait to be written to one connection, before further messages fail or wait.
    #[cfg(feature = "asynchronous")]
    pub(crate) max_unsent: usize,
    /// Enforces the limits of `cache`; without it there are none.
    pub(crate) limits: Option<&'static ConnectionLimits>,
    pub(crate) cache: CacheSettings,
    pub(crate) connect_timeout: Option<Duration>,
    pub(crate) max_message: usize,
    pub(crate) max_unfinished: usize,
    /// The lengths beyond which messages are sent in fragments.
    pub(crate) fragment_sizes: FragmentSizes,
    pub(crate) sockets: SocketSettings,
}
