//! Admission control: which clients may connect, and how rejections are logged.
//!
//! A rejected client receives CloseConnection, so that it may connect elsewhere or again. Each reason is
//! logged once as a warning, and counted every time. Limits come from the settings; this module sends nothing
//! itself.
//!
//! `listener` checks the transport rules (`-ORBServerTransportRule`) before, and evicts idle connections in
//! favour of new ones (`-ORBEvictIdle`).
//!
//! Limits of memory are in `budget` of `spandrel-transport`; the limit of deferred requests is in
//! `connection::pending_requests`.

use std::{collections::HashMap, fmt, time::Duration};

use spandrel_orb::{internal::ServerSettings, statistics::Event};
use spandrel_sync::{Arc, Mutex, time::Instant};

use crate::ServerConnection;

/// The period of the rate of new connections.
const SECOND: Duration = Duration::from_secs(1);

/// The reason for rejecting a client.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Refusal {
    Closing,
    TooMany { limit: usize },
    TooManyOfOne { limit: usize },
    TooFast { limit: usize },
}

impl Refusal {
    pub(super) fn event(self) -> Event {
        match self {
            Self::Closing => Event::RefusedForShutdown,
            Self::TooMany { .. } | Self::TooFast { .. } => Event::RefusedForLimit,
            Self::TooManyOfOne { .. } => Event::RefusedForAddress,
        }
    }

    fn bit(self) -> u8 {
        match self {
            Self::Closing => 1,
            Self::TooMany { .. } => 2,
            Self::TooManyOfOne { .. } => 4,
            Self::TooFast { .. } => 8,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closing => f.write_str("the ORB is shutting down"),
            Self::TooMany { limit } => write!(f, "there are {limit} connections already (-ORBMaxConnections)"),
            Self::TooManyOfOne { limit } => {
                write!(f, "there are {limit} connections from this host already (-ORBMaxConnectionsPerClient)")
            }
            Self::TooFast { limit } => {
                write!(f, "there were {limit} new connections in this second already (-ORBMaxConnectionRate)")
            }
        }
    }
}

/// The accepted connections of a server.
#[derive(Debug, Default)]
pub(super) struct Admitted {
    /// The connections, by their addresses in memory.
    pub(super) connections: HashMap<usize, Arc<ServerConnection>>,
    /// The number of connections from each host, if that is limited.
    of_hosts: HashMap<String, usize>,
}

impl Admitted {
    pub(super) fn enter(&mut self, connection: &Arc<ServerConnection>, settings: &ServerSettings) {
        if let (Some(_), Some(host)) = (settings.max_per_client, host_of(connection.link().peer())) {
            *self.of_hosts.entry(host.to_owned()).or_default() += 1;
        }
        self.connections.insert(key(connection), Arc::clone(connection));
    }

    pub(super) fn leave(&mut self, connection: &ServerConnection) -> Option<Arc<ServerConnection>> {
        let left = self.connections.remove(&key(connection))?;
        let host = host_of(connection.link().peer()).unwrap_or_default();
        if let Some(count) = self.of_hosts.get_mut(host) {
            *count -= 1;
            if *count == 0 {
                self.of_hosts.remove(host);
            }
        }
        Some(left)
    }
}

/// The key of a connection: its address in memory.
fn key(connection: &ServerConnection) -> usize {
    std::ptr::from_ref(connection).addr()
}

/// The host in the text of an address such as `iiop://192.0.2.1:4711`; `None` for an address on this host
/// without a port.
fn host_of(address: &str) -> Option<&str> {
    let (_, address) = address.split_once("://")?;
    let (host, port) = address.rsplit_once(':')?;
    port.parse::<u16>().ok().map(|_| host)
}

/// Decides which clients may connect.
#[derive(Debug, Default)]
pub(super) struct AdmissionControl {
    state: Mutex<AdmissionState>,
}

#[derive(Debug, Default)]
struct AdmissionState {
    /// The beginning of the present second, and the number of connections in it.
    second: Option<(Instant, usize)>,
    /// The bits of the reasons that have been logged already.
    reported: u8,
}

impl AdmissionControl {
    /// Whether one more client may connect from this address.
    pub(super) fn admits(&self, admitted: &Admitted, from: &str, settings: &ServerSettings) -> Result<(), Refusal> {
        if admitted.connections.len() >= settings.max_connections {
            return Err(Refusal::TooMany { limit: settings.max_connections });
        }
        let of_one = host_of(from).and_then(|host| admitted.of_hosts.get(host)).copied().unwrap_or(0);
        if let Some(limit) = settings.max_per_client.filter(|limit| of_one >= *limit) {
            return Err(Refusal::TooManyOfOne { limit });
        }
        // Checked last, because this check counts the connection.
        match settings.max_connection_rate {
            Some(limit) if self.count() > limit => Err(Refusal::TooFast { limit }),
            _ => Ok(()),
        }
    }

    /// The number of connections in this second, including this one.
    fn count(&self) -> usize {
        let now = Instant::now();
        let mut state = self.state.lock();
        let second = state.second.filter(|(begin, _)| now.saturating_duration_since(*begin) < SECOND);
        let (begin, count) = second.unwrap_or((now, 0));
        state.second = Some((begin, count + 1));
        count + 1
    }

    /// Logs the reason for a rejection: as a warning the first time, then for debugging.
    pub(super) fn tell(&self, from: &str, refusal: Refusal) {
        let mut state = self.state.lock();
        let is_news = state.reported & refusal.bit() == 0;
        state.reported |= refusal.bit();
        drop(state);
        if is_news {
            tracing::warn!(from, reason = %refusal, "connection rejected; further ones are only counted");
        } else {
            tracing::debug!(from, reason = %refusal, "connection rejected");
        }
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_distinguished() {
        assert_eq!(host_of("iiop://192.0.2.1:4711"), Some("192.0.2.1"));
        assert_eq!(host_of("iiop://[::1]:4711"), Some("[::1]"));
        assert_eq!(host_of("uds:///run/bank.sock"), None);
        assert_eq!(host_of("pretend"), None);
    }
}
