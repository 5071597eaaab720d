//! The configuration of an ORB's client side.

use std::time::Duration;

use spandrel_transport::SocketSettings;

use super::{CacheSettings, ConnectionLimits, FragmentSizes};
use crate::client::datagrams::OpenDatagrams;

/// The configuration of an ORB's client side.
#[derive(Clone, Debug)]
pub(crate) struct ClientSettings {
    /// Opens the peers of one-ways by datagram, if these are enabled.
    pub(crate) open_datagrams: Option<OpenDatagrams>,
    /// Connections to one peer before calls share them.
    pub(crate) connections_per_peer: usize,
    /// The limits of one connection, before further messages fail or wait.
    pub(crate) write_limits: WriteLimits,
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

/// The limits of one connection's pending requests and unwritten octets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriteLimits {
    /// Requests that wait for their replies; further asynchronous ones fail.
    pub requests: usize,
    /// Unwritten octets, beyond one message.
    pub octets: usize,
}

impl Default for WriteLimits {
    fn default() -> Self {
        Self { requests: 1024, octets: 16 << 20 }
    }
}

/// The conditions for writing buffered one-ways.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Buffering {
    /// The longest time for which a one-way is buffered.
    pub timeout: Duration,
    /// The number of buffered one-ways at which all are written.
    pub messages: u32,
    /// The octets of buffered one-ways at which all are written.
    pub octets: usize,
    /// Whether a one-way is written at once if the connection was quiet before it.
    pub is_prompt: bool,
}

impl Default for Buffering {
    fn default() -> Self {
        Self { timeout: Duration::from_micros(200), messages: u32::MAX, octets: 64 * 1024, is_prompt: true }
    }
}
