//! Options of the server side: endpoints, threads, admission of clients, limits.

use std::time::Duration;

use spandrel_sync::Arc;

use crate::{
    Collocation, Concurrency, Endpoint, ObjectDemux, OperationDemux, OrbBuilder, QueueOverflow, Spawn,
    servant_side::server_settings::Spawner,
};

impl OrbBuilder {
    /// Adds an endpoint. By default the server listens on a port of this machine's loopback address. It
    /// begins to listen when the first reference is created.
    #[must_use]
    pub fn listen(mut self, endpoint: Endpoint) -> Self {
        self.server_mut().endpoints.push(endpoint);
        self
    }

    /// Lets clients wait until [`Orb::accept_connections`](crate::Orb::accept_connections) or
    /// [`Orb::run`](crate::Orb::run). By default connections are accepted as soon as the server listens, which it does
    /// when its first reference is created: a client that knows the address may call objects that do not exist yet, and
    /// receives OBJECT_NOT_EXIST.
    #[must_use]
    pub fn accept_later(mut self) -> Self {
        self.server_mut().accepts_later = true;
        self
    }

    /// The addresses in references, in place of those on which the server listens: `host:port`, or several,
    /// separated by commas. An endpoint's own `publish` option (see [`Endpoint`]) takes precedence. For
    /// servers behind address translation, and in containers.
    #[must_use]
    pub fn publish(mut self, addresses: impl Into<String>) -> Self {
        self.server_mut().publish = Some(addresses.into());
        self
    }

    /// Whether the lookup of a request's object and operation begins at those of the connection's previous
    /// request (adaptive demultiplexing; default: yes). If they differ, the regular lookup follows.
    #[must_use]
    pub fn adaptive_demultiplexing(mut self, is_on: bool) -> Self {
        self.server_mut().is_adaptive = is_on;
        self
    }

    /// The lookup of objects with system-assigned ids, in adapters without an [`ObjectDemux`] policy (default:
    /// [`ObjectDemux::Active`]).
    #[must_use]
    pub fn system_id_demux(mut self, strategy: ObjectDemux) -> Self {
        self.server_mut().demux.system_ids = strategy;
        self
    }

    /// The lookup of objects whose ids the application assigns, in adapters without an [`ObjectDemux`] policy (default:
    /// [`ObjectDemux::DynamicHash`]). [`ObjectDemux::Active`] needs ids with a slot, and means the default here.
    #[must_use]
    pub fn user_id_demux(mut self, strategy: ObjectDemux) -> Self {
        self.server_mut().demux.user_ids = match strategy {
            ObjectDemux::Active => ObjectDemux::DynamicHash,
            strategy => strategy,
        };
        self
    }

    /// The lookup of operations, in adapters without an [`OperationDemux`] policy (default:
    /// [`OperationDemux::PerfectHash`]).
    #[must_use]
    pub fn operation_demux(mut self, strategy: OperationDemux) -> Self {
        self.server_mut().demux.operations = strategy;
        self
    }

    /// The strategy by which threads read and run requests (default:
    /// [adaptive](Concurrency::Adaptive), with threads for at most 64 connections).
    #[must_use]
    pub fn concurrency(mut self, strategy: Concurrency) -> Self {
        self.server_mut().concurrency = strategy.at_least_one();
        self
    }

    /// Whether a thread that serves several connections sends the replies to requests that were found by one wait
    /// together (default: yes), by one system call. This needs an `io_uring`; without one each reply is sent by itself.
    #[must_use]
    pub fn reply_batching(mut self, is_on: bool) -> Self {
        self.server_mut().batches_replies = is_on;
        self
    }

    /// The treatment of requests while the queue of a [thread pool](Concurrency::ThreadPool) is full
    /// (default: they are not read until there is room).
    #[must_use]
    pub fn queue_overflow(mut self, overflow: QueueOverflow) -> Self {
        self.server_mut().queue_overflow = overflow;
        self
    }

    /// The time after which a connection is closed whose client accepts nothing of a reply that is being
    /// written (default 30 s; `None` waits without limit). The whole reply may take twenty times as long.
    /// This bounds the time for which a client that does not read keeps a thread.
    #[must_use]
    pub fn send_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.server_mut().send_timeout = timeout;
        self
    }

    /// The time after which a warning is logged of requests that wait for the application (default 1 s; `None`: no
    /// warning): for a manager that is holding requests, for their turn in an adapter with SINGLE_THREAD_MODEL, for the
    /// main thread, or for an [executor](Self::spawner) that polls no request. It names the adapter and what lets the
    /// requests run. `None` also switches off the warning of synchronous calls that block a thread of this executor.
    #[must_use]
    pub fn long_wait_warning(mut self, after: Option<Duration>) -> Self {
        self.server_mut().long_wait_warning = after;
        self
    }

    /// The maximum number of connections from one host (default: that for all clients).
    #[must_use]
    pub fn max_connections_per_client(mut self, connections: Option<usize>) -> Self {
        self.server_mut().max_per_client = connections;
        self
    }

    /// The maximum number of connections accepted in a second (default: unlimited).
    #[must_use]
    pub fn max_connection_rate(mut self, connections: Option<usize>) -> Self {
        self.server_mut().max_connection_rate = connections;
        self
    }

    /// Whether the server closes an idle connection in favour of a new one when the maximum number of
    /// connections is reached (default: it closes the new one).
    #[must_use]
    pub fn evict_idle(mut self, is_on: bool) -> Self {
        self.server_mut().evicts_idle = is_on;
        self
    }

    /// The maximum number of requests of one connection that are deferred by servants or held by an adapter
    /// (default 1,024). Further requests end in TRANSIENT.
    #[must_use]
    pub fn max_deferred_requests(mut self, requests: usize) -> Self {
        self.server_mut().max_deferred = requests;
        self
    }

    /// The maximum memory in octets for one client (default 128 MiB): for partly received messages, queued
    /// requests and deferred requests. A request beyond it ends in TRANSIENT; the connection continues.
    #[must_use]
    pub fn max_connection_memory(mut self, octets: usize) -> Self {
        self.server_mut().max_connection_memory = octets;
        self
    }

    /// The maximum [memory](Self::max_connection_memory) in octets for all clients together (default 1 GiB).
    #[must_use]
    pub fn max_server_memory(mut self, octets: usize) -> Self {
        self.server_mut().max_server_memory = octets;
        self
    }

    /// The maximum number of threads, static and dynamic ones, of all thread pools of Real-time CORBA together (default
    /// 4,096). A pool beyond it is refused with NO_RESOURCES.
    #[must_use]
    pub fn max_lane_threads(mut self, threads: usize) -> Self {
        self.server_mut().max_lane_threads = threads;
        self
    }

    /// The maximum memory in octets that all thread pools of Real-time CORBA reserve together (default 1 GiB): stacks of
    /// stated sizes, and buffers of requests with their tables. A pool beyond it is refused with NO_RESOURCES.
    #[must_use]
    pub fn max_lane_memory(mut self, octets: usize) -> Self {
        self.server_mut().max_lane_memory = octets;
        self
    }

    /// The idle time after which a client's connection is closed in order (default 10 minutes; `None` keeps
    /// it). Connections with running or deferred requests are not idle. The client opens another connection
    /// for its next request. Only one-ways in transit at that moment are lost.
    #[must_use]
    pub fn server_idle_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.server_mut().idle_timeout = timeout;
        self
    }

    /// The time within which a client must send the rest of a message that it has begun, or the next MiB of
    /// it (default a minute; `None` waits without limit). Then its connection is closed. The limit includes
    /// messages in fragments.
    #[must_use]
    pub fn message_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.server_mut().message_timeout = timeout;
        self
    }

    /// The maximum number of connections (default 32,768; the system's limit of open files may be lower).
    #[must_use]
    pub fn max_connections(mut self, connections: usize) -> Self {
        self.server_mut().max_connections = connections;
        self
    }

    /// The maximum number of threads that read requests and run servants (default 1,024; at least those of
    /// the [concurrency strategy](Self::concurrency), and eight more). When it is reached, connections
    /// without a thread of their own wait for one, and requests behind a long upcall are not read.
    #[must_use]
    pub fn max_server_threads(mut self, threads: usize) -> Self {
        self.server_mut().max_threads = threads;
        self
    }

    /// The maximum number of requests of one connection that run at once (default 64, at least 1).
    #[must_use]
    pub fn max_requests_per_connection(mut self, requests: u32) -> Self {
        self.server_mut().max_in_flight = requests.max(1);
        self
    }

    /// The executor of asynchronous servants (default: the threads that serve connections without a thread of
    /// their own). A closure that takes a [`Task`](crate::Task) is an executor.
    ///
    /// The ORB calls it on its own threads, where `tokio::spawn` would panic. With tokio, take a handle of
    /// the runtime before:
    ///
    /// ```ignore
    /// let runtime = tokio::runtime::Handle::current();
    /// let builder = Orb::builder().spawner(move |task| drop(runtime.spawn(task)));
    /// ```
    #[must_use]
    pub fn spawner(mut self, spawner: impl Spawn + 'static) -> Self {
        self.server_mut().spawner = Some(Spawner(Arc::new(spawner)));
        self
    }

    /// Whether connections carry the requests of both sides, if the peer agrees (bidirectional GIOP; default:
    /// no).
    ///
    /// A client then accepts requests over the connections that it opens. Servers can therefore call its
    /// objects even if they cannot connect to it; the client may listen [nowhere](Endpoint::nowhere). A
    /// server sends requests to such a client over the client's connection. An adapter can override this by
    /// its own policy ([`BidirectionalPolicy`](crate::BidirectionalPolicy)).
    #[must_use]
    pub fn bidirectional(mut self, is_on: bool) -> Self {
        self.settings.is_bidirectional = is_on;
        self
    }

    /// Whether a server trusts every listen point that clients announce (default: only the client's own
    /// address, and the names of clients that do not listen).
    ///
    /// Clients of other ORBs behind address translation need it. A client can then divert requests to itself
    /// that are meant for any other address to which no known connection leads.
    #[must_use]
    pub fn trust_listen_points(mut self, is_on: bool) -> Self {
        self.server_mut().trusts_listen_points = is_on;
        self
    }

    /// How calls reach objects of the same ORB (default: through the adapter, without a socket).
    #[must_use]
    pub fn collocation(mut self, strategy: Collocation) -> Self {
        self.settings.collocation = strategy;
        self
    }

    /// The time that running requests have when the ORB shuts down (default 30 s).
    #[must_use]
    pub fn shutdown_timeout(mut self, timeout: Duration) -> Self {
        self.server_mut().shutdown_timeout = timeout;
        self
    }
}
