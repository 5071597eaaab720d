//! The settings of the server side of an ORB, and their defaults.
//!
//! The core only keeps them. The server side of an ORB applies them.

use std::{any::Any, fmt, time::Duration};

use spandrel_cdr::{ByteOrder, Limits};
use spandrel_demux::{ObjectDemux, OperationDemux};
use spandrel_giop::{ContextLimits, ServiceContext, SystemException, exception_detail, public_exception_detail};
use spandrel_sync::Arc;
use spandrel_transport::Endpoint;
use spandrel_transport::{ServerProtocols, SocketSettings, TransportRules};

use crate::{
    Spawn,
    servant_side::concurrency::{Concurrency, QueueOverflow},
};

/// The default maximum size of a received message, in octets.
pub(crate) const MAX_MESSAGE: usize = 64 << 20;
/// The default maximum of messages of one connection whose fragments have not all arrived.
pub(crate) const MAX_UNFINISHED: usize = 16;

/// The longest time between two sweeps of the upcall monitor.
const LONGEST: Duration = Duration::from_secs(15);
/// The threads within the limit that connections with a thread each leave to all other uses.
pub const RESERVED_THREADS: usize = 8;
/// The shortest time between two sweeps.
const SHORTEST: Duration = Duration::from_millis(5);

/// The tables in which adapters find objects and operations unless their policies choose others.
#[derive(Clone, Copy, Debug)]
pub struct DemuxDefaults {
    /// The table of objects whose ids the adapter assigns.
    pub system_ids: ObjectDemux,
    /// The table of objects whose ids the application assigns; not [`ObjectDemux::Active`].
    pub user_ids: ObjectDemux,
    /// The table of the operations of an interface.
    pub operations: OperationDemux,
}

impl Default for DemuxDefaults {
    fn default() -> Self {
        Self {
            system_ids: ObjectDemux::Active,
            user_ids: ObjectDemux::DynamicHash,
            operations: OperationDemux::default(),
        }
    }
}

/// The options of an ORB that concern its endpoints, connections, threads and adapters.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// The endpoints on which the server listens. If there are none, IIOP on a port that the system chooses.
    pub endpoints: Vec<Endpoint>,
    /// Whether connections wait until the ORB is told to accept them.
    pub accepts_later: bool,
    /// The published addresses of IIOP endpoints without a `publish` option.
    pub publish: Option<String>,
    /// The time that running requests have when the ORB shuts down.
    pub shutdown_timeout: Duration,
    /// The executor of asynchronous servants; the server's own threads unless set.
    pub spawner: Option<Spawner>,
    /// Whether replies with an exception have its whole detail, and not only the public one.
    pub sends_exception_details: bool,
    /// Whether every listen point that a client announces is trusted.
    pub trusts_listen_points: bool,
    /// The byte order of sent messages.
    pub order: ByteOrder,
    /// The limits on the decoding of well-formed values.
    pub limits: Limits,
    /// The longest received message, in octets.
    pub max_message: usize,
    /// The most messages of one connection whose fragments have not all arrived.
    pub max_unfinished: usize,
    /// The memory limit of one connection, in octets.
    pub max_connection_memory: usize,
    /// The memory limit of all connections together, in octets.
    pub max_server_memory: usize,
    /// The most deferred requests of one connection, or of all senders of datagrams together.
    pub max_deferred: usize,
    /// The size in octets above which messages are sent in fragments.
    pub fragment_size: usize,
    /// The most service contexts of a request, and the most octets of their data.
    pub context_limits: ContextLimits,
    /// The most requests of one connection that may run at once.
    pub max_in_flight: u32,
    /// The most threads that read requests and run servants.
    pub max_threads: usize,
    /// The most threads of all thread pools of Real-time CORBA together.
    pub max_lane_threads: usize,
    /// The most octets that those pools reserve: stacks, and buffers of requests.
    pub max_lane_memory: usize,
    /// The most accepted connections that are open at once.
    pub max_connections: usize,
    /// The most connections from one host.
    pub max_per_client: Option<usize>,
    /// The most new connections in a second.
    pub max_connection_rate: Option<usize>,
    /// Whether a full server closes an idle connection to admit a new client.
    pub evicts_idle: bool,
    /// The assignment of threads to reading requests and running them.
    pub concurrency: Concurrency,
    /// Whether the reactor's threads send the replies of one round together.
    pub batches_replies: bool,
    /// The handling of requests that find the queue of `concurrency` full.
    pub queue_overflow: QueueOverflow,
    /// Whether a request is first looked up where the last one of its connection was found.
    pub is_adaptive: bool,
    /// The lookup tables of adapters whose policies do not choose any.
    pub demux: DemuxDefaults,
    /// The longest time in which a client may take no octets of its replies.
    pub send_timeout: Option<Duration>,
    /// The longest time that a connection may be idle.
    pub idle_timeout: Option<Duration>,
    /// The longest time for the next MiB of a message that has begun, or its end.
    pub message_timeout: Option<Duration>,
    /// The time after which waiting requests are reported in a warning, with the remedy.
    pub long_wait_warning: Option<Duration>,
    /// Whether the reactor's threads serve other connections while they wait for replies.
    pub nests: bool,
    /// Options of the sockets that listen, and of accepted ones.
    pub sockets: SocketSettings,
    /// Whether the server listens on the transports within one host, where the system has them.
    pub has_local_transports: bool,
    /// The protocols of endpoints, besides the standard ones.
    pub protocols: ServerProtocols,
    /// The addresses from which clients may connect.
    pub rules: spandrel_transport::TransportRules,
}

impl ServerSettings {
    /// The context with the text that a client gets with an exception: the whole detail if it may be sent, or else the
    /// public one.
    #[must_use]
    pub fn sent_detail(&self, exception: &SystemException) -> Option<ServiceContext> {
        match self.sends_exception_details {
            true => exception_detail(exception),
            false => public_exception_detail(exception),
        }
    }
}

/// The [`ServerSettings`] of an ORB, or their defaults. Their type is known only to the options that set them and
/// to the server side, so that a program without both does not contain them.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServerOptions(Option<Arc<dyn Any + Send + Sync>>);

impl ServerOptions {
    /// A copy of the settings, or the defaults if no option has set any.
    pub(crate) fn settings(&self) -> ServerSettings {
        self.0.as_ref().and_then(|set| set.downcast_ref::<ServerSettings>()).cloned().unwrap_or_default()
    }

    /// The settings, for changes.
    pub(crate) fn settings_mut(&mut self) -> &mut ServerSettings {
        if self.0.as_mut().and_then(Arc::get_mut).is_none() {
            self.0 = Some(Arc::new(self.settings()));
        }
        let settings = self.0.as_mut().and_then(Arc::get_mut).and_then(<dyn Any + Send + Sync>::downcast_mut);
        settings.expect("the only reference to settings")
    }
}

/// The application's executor for the futures of asynchronous servants.
#[derive(Clone)]
pub struct Spawner(pub Arc<dyn Spawn>);

impl fmt::Debug for Spawner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Spawner")
    }
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self {
            endpoints: Vec::new(),
            accepts_later: false,
            publish: None,
            shutdown_timeout: Duration::from_secs(30),
            spawner: None,
            sends_exception_details: false,
            trusts_listen_points: false,
            order: ByteOrder::NATIVE,
            limits: Limits::default(),
            max_message: MAX_MESSAGE,
            max_unfinished: MAX_UNFINISHED,
            fragment_size: usize::MAX,
            context_limits: ContextLimits::default(),
            max_in_flight: 64,
            max_connection_memory: 128 << 20,
            max_server_memory: 1 << 30,
            max_deferred: 1024,
            max_threads: 1024,
            max_lane_threads: 4096,
            max_lane_memory: 1 << 30,
            max_connections: 32_768,
            max_per_client: None,
            max_connection_rate: None,
            evicts_idle: false,
            has_local_transports: false,
            is_adaptive: true,
            demux: DemuxDefaults::default(),
            send_timeout: Some(Duration::from_secs(30)),
            idle_timeout: Some(Duration::from_secs(600)),
            message_timeout: Some(Duration::from_secs(60)),
            long_wait_warning: Some(Duration::from_secs(1)),
            concurrency: Concurrency::default(),
            batches_replies: true,
            queue_overflow: QueueOverflow::default(),
            nests: false,
            sockets: SocketSettings::default(),
            rules: TransportRules::default(),
            protocols: ServerProtocols::default(),
        }
    }
}

impl ServerSettings {
    /// Whether a client reaches the server at the same address after it was started again.
    pub fn has_stable_address(&self) -> bool {
        let is_stable = |endpoint: &Endpoint| endpoint.is_stable() || endpoint.option("publish").is_some();
        self.publish.is_some() || self.endpoints.iter().any(is_stable)
    }

    /// The time limits by which a sweep closes idle and slow connections.
    pub fn client_timeouts(&self) -> ClientTimeouts {
        ClientTimeouts { idle: self.idle_timeout, message: self.message_timeout, reply: self.send_timeout }
    }

    /// The limit of the server's threads. It includes the threads that the concurrency strategy names.
    pub fn thread_limit(&self) -> usize {
        self.max_threads.max(self.concurrency.threads().saturating_add(RESERVED_THREADS))
    }
}

/// The time limits by which a sweep closes idle and slow connections; `None` is no limit.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClientTimeouts {
    /// The time since the last request.
    pub idle: Option<Duration>,
    /// The time for the next MiB of a message that has begun, or its end.
    pub message: Option<Duration>,
    /// The time until the client takes the next octets of a reply.
    pub reply: Option<Duration>,
}

impl ClientTimeouts {
    /// The time between two sweeps; `None` if no sweeps are needed.
    pub fn period(self) -> Option<Duration> {
        let shortest = [self.idle, self.message, self.reply].into_iter().flatten().min()?;
        Some((shortest / 4).clamp(SHORTEST, LONGEST))
    }
}
