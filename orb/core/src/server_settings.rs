//! What the server side of an ORB is configured with.

use std::{any::Any, fmt, time::Duration};

use spandrel_cdr::{ByteOrder, Limits};
use spandrel_giop::ContextLimits;
use spandrel_sync::Arc;
use spandrel_transport::Endpoint;
use spandrel_transport::{ServerProtocols, SocketSettings, TransportRules};

use crate::{
    Spawn,
    concurrency::{Concurrency, QueueOverflow},
    options::{MAX_MESSAGE, MAX_UNFINISHED},
};

/// The longest time between two rounds.
const LONGEST: Duration = Duration::from_secs(15);
/// Threads of the limit that connections with a thread each leave to all others.
pub const RESERVED_THREADS: usize = 8;
/// The shortest.
const SHORTEST: Duration = Duration::from_millis(5);

/// What the server side of an ORB is configured with.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    pub endpoints: Vec<Endpoint>,
    /// The published addresses of IIOP endpoints without a `publish` option.
    pub publish: Option<String>,
    pub shutdown_timeout: Duration,
    /// The executor of asynchronous servants; the server's own threads unless set.
    pub spawner: Option<Spawner>,
    /// Whether replies with an exception describe its cause.
    pub sends_exception_details: bool,
    /// Whether every listen point that a client announces is trusted.
    pub trusts_listen_points: bool,
    /// Order of the octets of what is sent.
    pub order: ByteOrder,
    pub limits: Limits,
    pub max_message: usize,
    pub max_unfinished: usize,
    /// What one connection may take of memory, and all of them.
    pub max_connection_memory: usize,
    pub max_server_memory: usize,
    /// Requests of one connection that are answered later.
    pub max_deferred: usize,
    /// Octets from which on messages are sent in fragments.
    pub fragment_size: usize,
    pub context_limits: ContextLimits,
    /// Requests of one connection that may run at once.
    pub max_in_flight: u32,
    /// Threads that read, and that run servants.
    pub max_threads: usize,
    pub max_connections: usize,
    /// From one host.
    pub max_per_client: Option<usize>,
    /// New ones in a second.
    pub max_connection_rate: Option<usize>,
    /// Where there are too many, one that asks for nothing has to go.
    pub evicts_idle: bool,
    /// Which threads read, and which run what they read.
    pub concurrency: Concurrency,
    /// What happens to requests that find its queue full.
    pub queue_overflow: QueueOverflow,
    /// Requests are looked up first where the last one of their connection was found.
    pub is_adaptive: bool,
    /// How long a client may take nothing of what it is sent.
    pub send_timeout: Option<Duration>,
    /// How long it may ask for nothing.
    pub idle_timeout: Option<Duration>,
    /// How long it may take for the next MiB of a message, or its end.
    pub message_timeout: Option<Duration>,
    /// The reactor's threads serve others while they wait for replies.
    pub nests: bool,
    pub sockets: SocketSettings,
    /// Whether the server listens on the transports within one host, where the system has them.
    pub has_local_transports: bool,
    /// The protocols of endpoints, besides the standard ones.
    pub protocols: ServerProtocols,
    /// Who may connect, from where.
    pub rules: spandrel_transport::TransportRules,
}

/// The [`ServerSettings`] of an ORB, or their defaults. Their type is known only to the options that set them and
/// to the server side, so that a program without both does not contain them.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServerOptions(Option<Arc<dyn Any + Send + Sync>>);

impl ServerOptions {
    /// The settings.
    pub(crate) fn settings(&self) -> ServerSettings {
        self.0.as_ref().and_then(|set| set.downcast_ref::<ServerSettings>()).cloned().unwrap_or_default()
    }

    /// The settings, to be changed.
    pub(crate) fn settings_mut(&mut self) -> &mut ServerSettings {
        if self.0.as_mut().and_then(Arc::get_mut).is_none() {
            self.0 = Some(Arc::new(self.settings()));
        }
        let settings = self.0.as_mut().and_then(Arc::get_mut).and_then(<dyn Any + Send + Sync>::downcast_mut);
        settings.expect("the only reference to settings")
    }
}

/// An executor of futures.
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
            max_connections: 32_768,
            max_per_client: None,
            max_connection_rate: None,
            evicts_idle: false,
            has_local_transports: false,
            is_adaptive: true,
            send_timeout: Some(Duration::from_secs(30)),
            idle_timeout: Some(Duration::from_secs(600)),
            message_timeout: Some(Duration::from_secs(60)),
            concurrency: Concurrency::default(),
            queue_overflow: QueueOverflow::default(),
            nests: false,
            sockets: SocketSettings::default(),
            rules: TransportRules::default(),
            protocols: ServerProtocols::default(),
        }
    }
}

impl ServerSettings {
    /// How long clients are waited for.
    pub fn client_timeouts(&self) -> ClientTimeouts {
        ClientTimeouts { idle: self.idle_timeout, message: self.message_timeout, reply: self.send_timeout }
    }

    /// How many threads there are at most: those that the strategy names are never refused.
    pub fn thread_limit(&self) -> usize {
        self.max_threads.max(self.concurrency.threads().saturating_add(RESERVED_THREADS))
    }
}

/// How long clients are waited for.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClientTimeouts {
    /// For a request.
    pub idle: Option<Duration>,
    /// For the next MiB of a message that has begun, or its end.
    pub message: Option<Duration>,
    /// Until it takes the next octets of a reply.
    pub reply: Option<Duration>,
}

impl ClientTimeouts {
    /// The time between two rounds; `None` if there is no need for any.
    pub fn period(self) -> Option<Duration> {
        let shortest = [self.idle, self.message, self.reply].into_iter().flatten().min()?;
        Some((shortest / 4).clamp(SHORTEST, LONGEST))
    }
}
