//! How an ORB is configured in code; what command lines say is in [`command_line`](crate::command_line).

use std::time::Duration;

use spandrel_cdr::{ByteOrder, CharSet, GiopVersion, Limits};
use spandrel_giop::SystemException;
#[cfg(feature = "server")]
use spandrel_sync::Arc;

#[cfg(feature = "asynchronous")]
use crate::WaitStrategy;
#[cfg(feature = "urls")]
use crate::initial::InitialReferences;
#[cfg(feature = "interceptors")]
use crate::interception::Registered;
#[cfg(feature = "server")]
use crate::{
    Collocation, Endpoint, Spawn,
    server::ServerSettings,
    settings::{Serving, Spawner},
};
use crate::{Orb, client::ClientSettings, destination::WireSettings, settings::Settings};

/// Sets up an [`Orb`]. Every setting has a default that is right for most.
#[derive(Clone, Debug)]
pub struct OrbBuilder {
    pub(crate) settings: Settings,
    client: ClientSettings,
    #[cfg(feature = "server")]
    server: ServerSettings,
    #[cfg(feature = "interceptors")]
    pub(crate) interceptors: Registered,
}

impl Default for OrbBuilder {
    fn default() -> Self {
        const MAX_MESSAGE: usize = 64 << 20;
        const MAX_UNFINISHED: usize = 16;
        let (order, limits) = (ByteOrder::NATIVE, Limits::default());
        Self {
            settings: Settings {
                wire: WireSettings {
                    version: GiopVersion::V1_2,
                    order,
                    char_set: CharSet::Latin1,
                    limits,
                    caches_requests: true,
                    #[cfg(feature = "server")]
                    sends_operation_index: false,
                },
                orb_id: String::new(),
                server_id: String::new(),
                request_timeout: None,
                #[cfg(feature = "asynchronous")]
                wait: WaitStrategy::default(),
                #[cfg(feature = "urls")]
                initial: InitialReferences::default(),
                #[cfg(feature = "server")]
                serving: Serving {
                    endpoints: Vec::new(),
                    shutdown_timeout: Duration::from_secs(30),
                    spawner: None,
                    collocation: Collocation::default(),
                },
            },
            client: ClientSettings {
                connections_per_peer: 5,
                #[cfg(feature = "asynchronous")]
                max_pending: 1024,
                connect_timeout: None,
                max_message: MAX_MESSAGE,
                max_unfinished: MAX_UNFINISHED,
                send_queue: None,
                recv_queue: None,
            },
            #[cfg(feature = "server")]
            server: ServerSettings {
                order,
                limits,
                max_message: MAX_MESSAGE,
                max_unfinished: MAX_UNFINISHED,
                max_in_flight: 64,
                max_connections: 16_384,
                max_threaded: 64,
                is_adaptive: true,
                send_timeout: Some(Duration::from_secs(30)),
                pool_threads: None,
                nests: false,
                send_queue: None,
                recv_queue: None,
            },
            #[cfg(feature = "interceptors")]
            interceptors: Registered::default(),
        }
    }
}

impl OrbBuilder {
    /// Listens on this endpoint, besides those given before. Without any, on a port of this machine's loopback address.
    /// Listening begins when the first reference is made.
    #[must_use]
    #[cfg(feature = "server")]
    pub fn listen(mut self, endpoint: Endpoint) -> Self {
        self.settings.serving.endpoints.push(endpoint);
        self
    }

    /// How long a two-way call may take; references can override it. Without it a call waits for ever.
    #[must_use]
    pub fn request_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.settings.request_timeout = timeout;
        self
    }

    /// Which ORB of its program this is, for those that have several (`-ORBId`).
    #[must_use]
    pub fn orb_id(mut self, id: impl Into<String>) -> Self {
        self.settings.orb_id = id.into();
        self
    }

    /// Which of several servers this program is, for those who start servers (`-ORBServerId`).
    #[must_use]
    pub fn server_id(mut self, id: impl Into<String>) -> Self {
        self.settings.server_id = id.into();
        self
    }

    /// How long connecting may take; without it, as long as the system tries.
    #[must_use]
    pub fn connect_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.client.connect_timeout = timeout;
        self
    }

    /// The newest protocol version that requests are written in (default 1.2).
    #[must_use]
    pub fn giop_version(mut self, version: GiopVersion) -> Self {
        self.settings.wire.version = version;
        self
    }

    /// The order in which numbers are written (default: this machine's). What is read may have either.
    #[must_use]
    pub fn byte_order(mut self, order: ByteOrder) -> Self {
        self.settings.wire.order = order;
        #[cfg(feature = "server")]
        {
            self.server.order = order;
        }
        self
    }

    /// The code set that is preferred for narrow text with ORBs of others (default ISO 8859-1, which keeps every octet of a
    /// `char`). Both are always understood, and ORBs of our kind say everything to each other, in UTF-8.
    #[must_use]
    pub fn native_char_set(mut self, char_set: CharSet) -> Self {
        self.settings.wire.char_set = char_set;
        self
    }

    /// Whether the headers of requests are kept with their reference, to be sent again with another id (default: they are). Each reference
    /// keeps those of the first few operations that are called on it.
    #[must_use]
    pub fn request_caching(mut self, is_on: bool) -> Self {
        self.settings.wire.caches_requests = is_on;
        self
    }

    /// Whether the object and the operation of a request are looked for first where those of the connection's last request were found
    /// (adaptive demultiplexing; default: they are). What is there must be what the request names, or it is looked up as always.
    #[must_use]
    #[cfg(feature = "server")]
    pub fn adaptive_demultiplexing(mut self, is_on: bool) -> Self {
        self.server.is_adaptive = is_on;
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

    /// The largest message that is accepted, in octets (default 64 MiB).
    #[must_use]
    pub fn max_message(mut self, octets: usize) -> Self {
        self.client.max_message = octets;
        #[cfg(feature = "server")]
        {
            self.server.max_message = octets;
        }
        self
    }

    /// How deep received values may nest (default 64).
    #[must_use]
    pub fn max_nesting(mut self, depth: u16) -> Self {
        self.settings.wire.limits.nesting = depth;
        #[cfg(feature = "server")]
        {
            self.server.limits.nesting = depth;
        }
        self
    }

    /// How deep values may nest in each other's state, sent or received (default 256). A list of values is as deep as it is long,
    /// and each level takes one to four KiB of a thread's stack.
    #[must_use]
    pub fn max_value_nesting(mut self, depth: u16) -> Self {
        self.settings.wire.limits.value_nesting = depth;
        #[cfg(feature = "server")]
        {
            self.server.limits.value_nesting = depth;
        }
        self
    }

    /// How many values a received message may have (default 262,144).
    #[must_use]
    pub fn max_values(mut self, count: u32) -> Self {
        self.settings.wire.limits.values = count;
        #[cfg(feature = "server")]
        {
            self.server.limits.values = count;
        }
        self
    }

    /// How many connections to one peer are opened before calls share them (default 5, at least 1).
    #[must_use]
    pub fn connections_per_peer(mut self, connections: usize) -> Self {
        self.client.connections_per_peer = connections.max(1);
        self
    }

    /// How many requests may wait for their replies on one connection before further asynchronous ones are refused with TRANSIENT
    /// (default 1,024, at least 1).
    #[must_use]
    #[cfg(feature = "asynchronous")]
    pub fn pending_requests(mut self, requests: usize) -> Self {
        self.client.max_pending = requests.max(1);
        self
    }

    /// How many connections have a thread of their own (default 64); the others are served by a few threads together, at the price
    /// of one more system call for each request. Zero is none.
    #[must_use]
    #[cfg(feature = "server")]
    pub fn threaded_connections(mut self, connections: usize) -> Self {
        self.server.max_threaded = connections;
        self
    }

    /// How many threads serve the connections that have no thread of their own (default: as many as are needed; at least 1).
    ///
    /// With a number, slow servants have no stand-ins: while as many run as there are threads, other requests over these connections
    /// wait, and so do those behind a slow one on its connection, as well as new connections and asynchronous servants. A servant
    /// that calls others is no slow one: its thread waits [on the reactor](WaitStrategy::OnReactor), whatever is chosen otherwise.
    #[must_use]
    #[cfg(feature = "server")]
    pub fn pool_threads(mut self, threads: usize) -> Self {
        self.server.pool_threads = Some(threads.max(1));
        self
    }

    /// How threads wait for the replies to their calls (default [`WaitStrategy::OnRead`]).
    #[must_use]
    #[cfg(feature = "asynchronous")]
    pub fn wait_strategy(mut self, strategy: WaitStrategy) -> Self {
        self.settings.wait = strategy;
        self
    }

    /// How long a client may take nothing of an answer that is being written to it before its connection is cut off (default 30 s;
    /// `None` waits for ever). For one whole answer it may take twenty times as long. So a client that does not read keeps no thread.
    #[must_use]
    #[cfg(feature = "server")]
    pub fn send_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.server.send_timeout = timeout;
        self
    }

    /// How many connections are accepted at a time (default 16,384; the system's limit of open files may be lower).
    #[must_use]
    #[cfg(feature = "server")]
    pub fn max_connections(mut self, connections: usize) -> Self {
        self.server.max_connections = connections;
        self
    }

    /// How many requests of one connection may run at once when servants are slow (default 64, at least 1).
    #[must_use]
    #[cfg(feature = "server")]
    pub fn max_requests_per_connection(mut self, requests: u32) -> Self {
        self.server.max_in_flight = requests.max(1);
        self
    }

    /// The sizes of the sockets' queues in octets (default: the system's).
    #[must_use]
    pub fn socket_queues(mut self, send: Option<usize>, recv: Option<usize>) -> Self {
        (self.client.send_queue, self.client.recv_queue) = (send, recv);
        #[cfg(feature = "server")]
        {
            (self.server.send_queue, self.server.recv_queue) = (send, recv);
        }
        self
    }

    /// Makes a reference known by a name (`-ORBInitRef Name=URL`).
    #[must_use]
    #[cfg(feature = "urls")]
    pub fn init_ref(mut self, name: impl Into<String>, url: impl Into<String>) -> Self {
        self.settings.initial.set(name.into(), url.into());
        self
    }

    /// Where names that are not known otherwise are looked for (`-ORBDefaultInitRef URL`).
    #[must_use]
    #[cfg(feature = "urls")]
    pub fn default_init_ref(mut self, url: impl Into<String>) -> Self {
        self.settings.initial.set_default(url.into());
        self
    }

    /// Who runs asynchronous servants (default: the threads that serve connections without a thread of their own). A closure will
    /// do, such as `|task| drop(tokio::spawn(task))`.
    #[must_use]
    #[cfg(feature = "server")]
    pub fn spawner(mut self, spawner: impl Spawn + 'static) -> Self {
        self.settings.serving.spawner = Some(Spawner(Arc::new(spawner)));
        self
    }

    /// How this ORB's own objects are called (default: through the adapter, without a socket).
    #[must_use]
    #[cfg(feature = "server")]
    pub fn collocation(mut self, strategy: Collocation) -> Self {
        self.settings.serving.collocation = strategy;
        self
    }

    /// How long requests that run may take once the ORB shuts down (default 30 s).
    #[must_use]
    #[cfg(feature = "server")]
    pub fn shutdown_timeout(mut self, timeout: Duration) -> Self {
        self.settings.serving.shutdown_timeout = timeout;
        self
    }

    /// Makes the ORB.
    ///
    /// # Panics
    /// If an [initialiser](Self::initializer) refuses; [`try_build`](Self::try_build) does not.
    #[must_use]
    pub fn build(self) -> Orb {
        match self.try_build() {
            Ok(orb) => orb,
            Err(exception) => panic!("an initialiser keeps the ORB from being made: {exception}"),
        }
    }

    /// Makes the ORB, if its initialisers let it.
    ///
    /// # Errors
    /// The exception that an [initialiser](Self::initializer) has raised. Without initialisers there is none.
    #[cfg_attr(not(feature = "server"), allow(unused_mut, reason = "only servers have more to settle"))]
    pub fn try_build(mut self) -> Result<Orb, SystemException> {
        #[cfg(feature = "server")]
        {
            let is_wanted = self.settings.wait == WaitStrategy::OnReactor;
            self.server.nests = is_wanted || self.server.pool_threads.is_some();
        }
        let orb = Orb::new(
            self.settings,
            self.client,
            #[cfg(feature = "server")]
            self.server,
        );
        #[cfg(feature = "interceptors")]
        crate::interception::initialize(&orb, self.interceptors)?;
        Ok(orb)
    }
}

impl Orb {
    /// Configures an ORB in code.
    #[must_use]
    pub fn builder() -> OrbBuilder {
        OrbBuilder::default()
    }
}
