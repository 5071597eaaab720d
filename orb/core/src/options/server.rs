//! How requests are served: endpoints, threads, whom a server lets in and what it keeps for clients.

use std::time::Duration;

use spandrel_sync::Arc;

use crate::{Collocation, Concurrency, Endpoint, OrbBuilder, QueueOverflow, Spawn, settings::Spawner};

impl OrbBuilder {
    /// Listens on this endpoint, besides those given before. Without any, on a port of this machine's loopback address.
    /// Listening begins when the first reference is made.
    #[must_use]
    pub fn listen(mut self, endpoint: Endpoint) -> Self {
        self.settings.serving.endpoints.push(endpoint);
        self
    }

    /// What references say instead of the hosts and ports that are listened at, unless an endpoint says it itself: `host:port`, or
    /// several, separated by commas (see [`Endpoint`], `publish`). For servers behind address translation, and in containers.
    #[must_use]
    pub fn publish(mut self, addresses: impl Into<String>) -> Self {
        self.settings.serving.publish = Some(addresses.into());
        self
    }

    /// Whether the object and the operation of a request are looked for first where those of the connection's last request were found
    /// (adaptive demultiplexing; default: they are). What is there must be what the request names, or it is looked up as always.
    #[must_use]
    pub fn adaptive_demultiplexing(mut self, is_on: bool) -> Self {
        self.server.is_adaptive = is_on;
        self
    }

    /// Which threads read requests, and which run them (default: [a thread per connection](Concurrency::ThreadPerConnection), for 64 of them).
    #[must_use]
    pub fn concurrency(mut self, strategy: Concurrency) -> Self {
        self.server.concurrency = strategy.at_least_one();
        self
    }

    /// What happens to requests that find the queue of a [thread pool](Concurrency::ThreadPool) full (default: they are not read before
    /// there is room).
    #[must_use]
    pub fn queue_overflow(mut self, overflow: QueueOverflow) -> Self {
        self.server.queue_overflow = overflow;
        self
    }

    /// How long a client may take nothing of an answer that is being written to it before its connection is cut off (default 30 s;
    /// `None` waits for ever). For one whole answer it may take twenty times as long. So a client that does not read keeps no thread.
    #[must_use]
    pub fn send_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.server.send_timeout = timeout;
        self
    }

    /// How many connections are accepted at a time from one host (default: as many as from all).
    #[must_use]
    pub fn max_connections_per_client(mut self, connections: Option<usize>) -> Self {
        self.server.max_per_client = connections;
        self
    }

    /// How many connections are accepted in a second (default: as many as come).
    #[must_use]
    pub fn max_connection_rate(mut self, connections: Option<usize>) -> Self {
        self.server.max_connection_rate = connections;
        self
    }

    /// Whether a connection that asks for nothing is closed in favour of a new one where there are as many as there may be (default: the new one is
    /// told to go).
    #[must_use]
    pub fn evict_idle(mut self, is_on: bool) -> Self {
        self.server.evicts_idle = is_on;
        self
    }

    /// How many requests of one connection may wait for servants that answer later, or be held by an adapter (default 1,024); further ones end in
    /// TRANSIENT.
    #[must_use]
    pub fn max_deferred_requests(mut self, requests: usize) -> Self {
        self.server.max_deferred = requests;
        self
    }

    /// How many octets a server keeps for one client (default 128 MiB): of messages that are half read, of requests that wait in its queue, and of those
    /// that will be answered later. A request beyond that ends in TRANSIENT; the connection goes on.
    #[must_use]
    pub fn max_connection_memory(mut self, octets: usize) -> Self {
        self.server.max_connection_memory = octets;
        self
    }

    /// The same for all clients together (default 1 GiB).
    #[must_use]
    pub fn max_server_memory(mut self, octets: usize) -> Self {
        self.server.max_server_memory = octets;
        self
    }

    /// How long a client may ask for nothing before its connection is closed in the orderly way (default 10 minutes; `None` keeps it).
    /// Connections whose requests still run, or will be answered later, are in use. The client opens another when it has something to ask; nothing is lost
    /// but one-ways that are under way at that moment.
    #[must_use]
    pub fn server_idle_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.server.idle_timeout = timeout;
        self
    }

    /// How long a client that has begun a message may take for the rest of it, or for the next MiB of that, before it is cut off
    /// (default a minute; `None` waits for ever). Messages that come in fragments are meant as well.
    #[must_use]
    pub fn message_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.server.message_timeout = timeout;
        self
    }

    /// How many connections are accepted at a time (default 32,768; the system's limit of open files may be lower).
    #[must_use]
    pub fn max_connections(mut self, connections: usize) -> Self {
        self.server.max_connections = connections;
        self
    }

    /// How many threads read requests and run servants at a time (default 1,024; at least those that the
    /// [concurrency strategy](Self::concurrency) names, and eight more). Where more are needed, connections without a thread of their own wait for one, and
    /// requests behind one that lasts are not read.
    #[must_use]
    pub fn max_server_threads(mut self, threads: usize) -> Self {
        self.server.max_threads = threads;
        self
    }

    /// How many requests of one connection may run at once when servants are slow (default 64, at least 1).
    #[must_use]
    pub fn max_requests_per_connection(mut self, requests: u32) -> Self {
        self.server.max_in_flight = requests.max(1);
        self
    }

    /// The executor of asynchronous servants (default: the threads that serve connections without a thread of their own). A closure
    /// that takes a [`Task`](crate::Task) is one.
    ///
    /// It is called on threads of the ORB, where `tokio::spawn` would panic. With tokio, take a handle of the runtime before:
    ///
    /// ```ignore
    /// let runtime = tokio::runtime::Handle::current();
    /// let builder = Orb::builder().spawner(move |task| drop(runtime.spawn(task)));
    /// ```
    #[must_use]
    pub fn spawner(mut self, spawner: impl Spawn + 'static) -> Self {
        self.settings.serving.spawner = Some(Spawner(Arc::new(spawner)));
        self
    }

    /// Whether connections carry the requests of both sides, where the peer agrees (bidirectional GIOP; default: they do not).
    ///
    /// A client then takes requests over the connections that it opens, so that servers can call its objects although nobody can connect to
    /// it; it may listen [nowhere](Endpoint::nowhere). A server then sends requests to such a client over the client's connection. Adapters can
    /// say otherwise for themselves ([`BidirectionalPolicy`](crate::BidirectionalPolicy)).
    #[must_use]
    pub fn bidirectional(mut self, is_on: bool) -> Self {
        self.settings.serving.is_bidirectional = is_on;
        self
    }

    /// Whether a server believes every listen point that clients announce (default: only the client's own address and names that lead nowhere).
    ///
    /// Needed for clients of other ORBs behind address translation. A client can then have requests sent to it that are meant for any
    /// other address, as long as nobody's connection is known to lead there.
    #[must_use]
    pub fn trust_listen_points(mut self, is_on: bool) -> Self {
        self.settings.serving.trusts_listen_points = is_on;
        self
    }

    /// How this ORB's own objects are called (default: through the adapter, without a socket).
    #[must_use]
    pub fn collocation(mut self, strategy: Collocation) -> Self {
        self.settings.serving.collocation = strategy;
        self
    }

    /// How long requests that run may take once the ORB shuts down (default 30 s).
    #[must_use]
    pub fn shutdown_timeout(mut self, timeout: Duration) -> Self {
        self.settings.serving.shutdown_timeout = timeout;
        self
    }
}
