//! Options of the client side: connections to servers, cached request headers, wait strategies.

use std::time::Duration;

use crate::{
    ConnectionSharing, OrbBuilder, Purging,
    call::invocation::send_datagram,
    client::{
        CONNECTION_LIMITS, CacheSettings, MaintenanceThread, Schedule,
        datagrams::{DatagramPeers, OpenDatagrams},
        destination::SendDatagram,
        operation_index::{OperationIndex, ReadOperationIndex},
    },
};

impl OrbBuilder {
    /// The time limit of connecting; without it, the system's.
    #[must_use]
    pub fn connect_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.client.connect_timeout = timeout;
        self
    }

    /// Whether a reference caches the headers of its requests and sends them again with another request id
    /// (default: yes). Each reference caches those of the first few operations that are called on it.
    #[must_use]
    pub fn request_caching(mut self, is_on: bool) -> Self {
        self.settings.wire.caches_requests = is_on;
        self
    }

    /// Whether requests with [cached](Self::request_caching) headers carry the index of their operation in
    /// the server's table. Only references that offer it are used so, such as those of adapters with
    /// [`OperationDemux::Active`](crate::OperationDemux). Default: no, since reading the index takes longer
    /// than the hash function that it saves.
    #[must_use]
    pub fn operation_index(mut self, is_on: bool) -> Self {
        self.settings.wire.operation_index = is_on.then_some(OperationIndex::of as ReadOperationIndex);
        self
    }

    /// The number of connections to one peer beyond which calls share connections (default 5, at least 1).
    #[must_use]
    pub fn connections_per_peer(mut self, connections: usize) -> Self {
        self.client.connections_per_peer = connections.max(1);
        self
    }

    /// Adds limits on the connections to servers: their number, their idle time, and how calls share them.
    /// The methods that set one of these limits also add them.
    #[must_use]
    pub fn connection_limits(mut self) -> Self {
        if self.client.limits.is_none() {
            self.client.limits = Some(&CONNECTION_LIMITS);
            self.client.cache = CacheSettings::default();
        }
        self
    }

    /// The maximum number of open connections to all servers (default 1,024, at least 1). Beyond it, an idle
    /// connection is [closed](Self::purging). If all are in use, calls share the connections to their server,
    /// or wait. A call whose time limit passes meanwhile ends in NO_RESOURCES.
    #[must_use]
    pub fn max_client_connections(self, connections: usize) -> Self {
        let mut this = self.connection_limits();
        this.client.cache.limit = connections.max(1);
        this
    }

    /// The strategy that selects the connection to close (default [`Purging::LeastRecentlyUsed`]).
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

    /// The idle time after which a connection to a server is closed, up to a quarter later; `None` closes
    /// none. With this option a thread checks the connections. By default the limit is 180 s, and is checked
    /// when a connection is opened.
    #[must_use]
    pub fn idle_timeout(self, timeout: Option<Duration>) -> Self {
        let mut this = self.connection_limits();
        this.client.cache.idle = timeout;
        this.client.cache.schedule = timeout.map(|_| MaintenanceThread::schedule as Schedule);
        this
    }

    /// The time after a failed connection attempt during which calls do not connect to that server: `first`
    /// after the first failure, then doubled for each further one up to `longest`. Calls that would connect
    /// meanwhile end in TRANSIENT at once, or try the reference's next address. By default each call tries to
    /// connect.
    #[must_use]
    pub fn reconnect_backoff(self, first: Duration, longest: Duration) -> Self {
        let mut this = self.connection_limits();
        this.client.cache.backoff = (!first.is_zero()).then_some((first, longest.max(first)));
        this
    }

    /// Whether requests without a response are sent as datagrams to servers that read them (endpoints
    /// `diop://host:port`; default: no). Such requests have the sync scope NONE or WITH_TRANSPORT. They may
    /// be lost or reordered without notice. Requests longer than a datagram use a connection; so do all
    /// requests of an ORB with client interceptors.
    #[must_use]
    pub fn datagrams(mut self, is_on: bool) -> Self {
        self.client.open_datagrams = is_on.then_some(DatagramPeers::open as OpenDatagrams);
        self.settings.wire.send_datagram = is_on.then_some(send_datagram as SendDatagram);
        self
    }
}
