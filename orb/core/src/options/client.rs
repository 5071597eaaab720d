//! How calls are made: connections to servers, what is kept with references, how threads wait.

#[cfg(feature = "asynchronous")]
use crate::WaitStrategy;
use crate::{ConnectionSharing, Purging};
use std::time::Duration;

use crate::{
    OrbBuilder,
    client::{CONNECTION_LIMITS, CacheSettings, MaintenanceThread, Schedule},
};

impl OrbBuilder {
    /// How long connecting may take; without it, as long as the system tries.
    #[must_use]
    pub fn connect_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.client.connect_timeout = timeout;
        self
    }

    /// Whether the headers of requests are kept with their reference, to be sent again with another id (default: they are). Each reference
    /// keeps those of the first few operations that are called on it.
    #[must_use]
    pub fn request_caching(mut self, is_on: bool) -> Self {
        self.settings.wire.caches_requests = is_on;
        self
    }

    /// Whether requests that are [kept](Self::request_caching) also say where their operation is in the server's table, if the reference
    /// offers that, as those of adapters with [`OperationDemux::Active`](crate::OperationDemux) do (default: they do not, since reading it takes
    /// longer than the hash function that it spares).
    #[must_use]
    #[cfg(feature = "server")]
    pub fn operation_index(mut self, is_on: bool) -> Self {
        self.settings.wire.sends_operation_index = is_on;
        self
    }

    /// How many connections to one peer are opened before calls share them (default 5, at least 1).
    #[must_use]
    pub fn connections_per_peer(mut self, connections: usize) -> Self {
        self.client.connections_per_peer = connections.max(1);
        self
    }

    /// Adds limits on the connections to servers: their number, their idle time, and how calls share them. The methods that set one of
    /// these limits add them, too.
    #[must_use]
    pub fn connection_limits(mut self) -> Self {
        if self.client.limits.is_none() {
            self.client.limits = Some(&CONNECTION_LIMITS);
            self.client.cache = CacheSettings::default();
        }
        self
    }

    /// How many connections to servers may be open, over all of them (default 1,024, at least 1). Beyond, one that nobody uses is
    /// [closed](Self::purging); if all are in use, calls share those that are open to their server, or wait, and end in
    /// NO_RESOURCES when their time is up.
    #[must_use]
    pub fn max_client_connections(self, connections: usize) -> Self {
        let mut this = self.connection_limits();
        this.client.cache.limit = connections.max(1);
        this
    }

    /// Which connections are closed to make room for others (default [`Purging::LeastRecentlyUsed`]).
    #[must_use]
    pub fn purging(self, strategy: Purging) -> Self {
        let mut this = self.connection_limits();
        this.client.cache.purging = strategy;
        this
    }

    /// How calls share the connections to one server (default [`ConnectionSharing::Mixed`]).
    #[must_use]
    pub fn connection_sharing(self, sharing: ConnectionSharing) -> Self {
        let mut this = self.connection_limits();
        this.client.cache.sharing = sharing;
        this
    }

    /// How long a connection to a server may lie idle before it is closed, or up to a quarter longer; `None` never closes one. With
    /// this a thread looks after them. Without, it is 180 s, and they are looked at when others are opened.
    #[must_use]
    pub fn idle_timeout(self, timeout: Option<Duration>) -> Self {
        let mut this = self.connection_limits();
        this.client.cache.idle = timeout;
        this.client.cache.schedule = timeout.map(|_| MaintenanceThread::schedule as Schedule);
        this
    }

    /// How long a server that could not be connected to is left alone: `first` after the first time, twice as long after each
    /// further one, at most `longest`. Calls that would connect meanwhile end in TRANSIENT at once, or go on to the reference's next
    /// address. Without this each call tries.
    #[must_use]
    pub fn reconnect_backoff(self, first: Duration, longest: Duration) -> Self {
        let mut this = self.connection_limits();
        this.client.cache.backoff = (!first.is_zero()).then_some((first, longest.max(first)));
        this
    }

    /// How many requests may wait for their replies on one connection before further asynchronous ones are refused with TRANSIENT
    /// (default 1,024, at least 1).
    #[must_use]
    #[cfg(feature = "asynchronous")]
    pub fn pending_requests(mut self, requests: usize) -> Self {
        self.client.max_pending = requests.max(1);
        self
    }

    /// How many octets of requests wait to be written to one connection whose peer does not read (default 16 MiB; one request is
    /// always taken). Beyond, asynchronous calls end in TRANSIENT, and one-ways with the sync scope NONE wait, and end in
    /// TIMEOUT when their time is up.
    #[must_use]
    #[cfg(feature = "asynchronous")]
    pub fn buffer_limit(mut self, octets: usize) -> Self {
        self.client.max_unsent = octets;
        self
    }

    /// How threads wait for the replies to their calls (default [`WaitStrategy::OnRead`]).
    #[must_use]
    #[cfg(feature = "asynchronous")]
    pub fn wait_strategy(mut self, strategy: WaitStrategy) -> Self {
        self.settings.wait = strategy;
        self
    }

    /// Whether requests that nobody answers go by datagram to servers that read them (endpoints `diop://host:port`; default: they do
    /// not). Those with the sync scopes NONE and WITH_TRANSPORT then may be lost, or overtake each other, without anybody's knowing. What is too
    /// long for a datagram goes by a connection, and so does everything while there are client interceptors.
    #[must_use]
    #[cfg(feature = "server")]
    pub fn datagrams(mut self, is_on: bool) -> Self {
        self.client.sends_datagrams = is_on;
        self
    }
}
