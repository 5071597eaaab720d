//! How an ORB is configured in code; what command lines say is in [`command_line`](crate::command_line).

mod client;
mod code_sets;
#[cfg(feature = "diagnostics")]
mod diagnostics;
#[cfg(feature = "interceptors")]
mod interception;
mod protocol;
#[cfg(feature = "server")]
mod server;
#[cfg(feature = "transport-rules")]
mod transport;

use std::time::Duration;

use spandrel_cdr::{ByteOrder, GiopVersion, Limits};
#[cfg(any(feature = "details", feature = "server"))]
use spandrel_giop::ContextLimits;
use spandrel_giop::{AddressingDisposition, OwnCodeSets, SystemException};
use spandrel_sync::Arc;
#[cfg(feature = "transport-rules")]
use spandrel_transport::{AddressSelection, TransportSelection};
use spandrel_transport::{Iiop, KeepAlive, Protocol, SocketSettings};
#[cfg(feature = "server")]
use spandrel_transport::{ServerProtocol, ServerProtocols};

#[cfg(feature = "asynchronous")]
use crate::WaitStrategy;
#[cfg(feature = "urls")]
use crate::initial::InitialReferences;
#[cfg(feature = "interceptors")]
use crate::interception::RegisteredInterceptors;
#[cfg(feature = "policies")]
use crate::policies::DeadlineContext;
#[cfg(feature = "server")]
use crate::{Collocation, Concurrency, QueueOverflow, server::ServerSettings, settings::ServiceSettings};
use crate::{
    Orb,
    client::{CacheSettings, ClientSettings, FragmentSizes},
    destination::WireSettings,
    diagnostics::DiagnosticsSettings,
    settings::Settings,
    transport::ClientProtocols,
};

/// Sets up an [`Orb`]. Every setting has a default that is right for most.
#[derive(Clone, Debug)]
pub struct OrbBuilder {
    pub(crate) settings: Settings,
    client: ClientSettings,
    pub(crate) protocols: ClientProtocols,
    #[cfg(feature = "transport-rules")]
    pub(crate) selection: TransportSelection,
    #[cfg(feature = "server")]
    pub(crate) server: ServerSettings,
    #[cfg(feature = "interceptors")]
    pub(crate) interceptors: RegisteredInterceptors,
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
                    limits,
                    addressing: AddressingDisposition::Key,
                    caches_requests: true,
                    #[cfg(feature = "policies")]
                    deadlines: DeadlineContext::default(),
                    #[cfg(feature = "server")]
                    sends_operation_index: false,
                },
                code_sets: OwnCodeSets::default(),
                orb_id: String::new(),
                server_id: String::new(),
                request_timeout: None,
                #[cfg(feature = "details")]
                context_limits: ContextLimits::default(),
                diagnostics: DiagnosticsSettings::default(),
                #[cfg(feature = "asynchronous")]
                wait: WaitStrategy::default(),
                #[cfg(feature = "asynchronous")]
                leaves_reading: false,
                #[cfg(feature = "urls")]
                initial: InitialReferences::default(),
                #[cfg(feature = "server")]
                serving: ServiceSettings {
                    endpoints: Vec::new(),
                    publish: None,
                    shutdown_timeout: Duration::from_secs(30),
                    spawner: None,
                    collocation: Collocation::default(),
                    sends_exception_details: false,
                    inherits_deadlines: true,
                    cancels_nested: false,
                    is_bidirectional: false,
                    trusts_listen_points: false,
                },
            },
            client: ClientSettings {
                #[cfg(feature = "datagrams")]
                sends_datagrams: false,
                connections_per_peer: 5,
                #[cfg(feature = "asynchronous")]
                max_pending: 1024,
                #[cfg(feature = "asynchronous")]
                max_unsent: 16 << 20,
                cache: CacheSettings::default(),
                connect_timeout: None,
                max_message: MAX_MESSAGE,
                max_unfinished: MAX_UNFINISHED,
                fragment_sizes: FragmentSizes::default(),
                sockets: SocketSettings::default(),
            },
            protocols: client_protocols(),
            #[cfg(feature = "transport-rules")]
            selection: TransportSelection::default(),
            #[cfg(feature = "server")]
            server: ServerSettings {
                order,
                limits,
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
                is_adaptive: true,
                send_timeout: Some(Duration::from_secs(30)),
                idle_timeout: Some(Duration::from_secs(600)),
                message_timeout: Some(Duration::from_secs(60)),
                concurrency: Concurrency::default(),
                queue_overflow: QueueOverflow::default(),
                nests: false,
                sockets: SocketSettings::default(),
                #[cfg(feature = "transport-rules")]
                rules: spandrel_transport::TransportRules::default(),
                protocols: server_protocols(),
            },
            #[cfg(feature = "interceptors")]
            interceptors: RegisteredInterceptors::default(),
        }
    }
}

/// The protocols by which an ORB calls unless its builder says otherwise.
fn client_protocols() -> ClientProtocols {
    let mut protocols = ClientProtocols::default();
    protocols.register(Arc::new(Iiop));
    #[cfg(all(feature = "local", unix))]
    protocols.register(Arc::new(spandrel_transport::Uds));
    #[cfg(all(feature = "local", target_os = "linux"))]
    protocols.register(Arc::new(spandrel_transport::Shm));
    protocols
}

/// The protocols by which an ORB can listen unless its builder says otherwise.
#[cfg(feature = "server")]
fn server_protocols() -> ServerProtocols {
    let mut protocols = ServerProtocols::default();
    protocols.register(Arc::new(Iiop));
    protocols.register(Arc::new(spandrel_transport::BidirectionalOnly));
    #[cfg(feature = "datagrams")]
    protocols.register(Arc::new(spandrel_transport::Diop));
    #[cfg(all(feature = "local", unix))]
    protocols.register(Arc::new(spandrel_transport::Uds));
    #[cfg(all(feature = "local", target_os = "linux"))]
    protocols.register(Arc::new(spandrel_transport::Shm));
    protocols
}

impl OrbBuilder {
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

    /// Whether requests with a deadline say so to their servers, and how (default [`DeadlineContext::Remaining`]). Those without one say nothing.
    #[must_use]
    #[cfg(feature = "policies")]
    pub fn deadline_context(mut self, form: DeadlineContext) -> Self {
        self.settings.wire.deadlines = form;
        self
    }

    /// Whether the calls that a servant makes may take no longer than the client of its own request waits (default: so it is). What a
    /// client says of that [is known](crate::remaining_time) in any case.
    #[must_use]
    #[cfg(feature = "server")]
    pub fn inherit_deadlines(mut self, is_on: bool) -> Self {
        self.settings.serving.inherits_deadlines = is_on;
        self
    }

    /// Whether a call that a servant waits for ends when the servant's own request is [cancelled](crate::CancellationToken): in TRANSIENT, after the
    /// next server has been told (default: it does not; it ends at the inherited deadline). Such calls wait as by
    /// [`WaitStrategy::OnWaker`], which costs them a change of threads. What the next server has done by then stays done.
    #[must_use]
    #[cfg(feature = "server")]
    pub fn cancel_nested(mut self, is_on: bool) -> Self {
        self.settings.serving.cancels_nested = is_on;
        self
    }

    /// The sizes of the sockets' queues in octets (default: the system's).
    #[must_use]
    pub fn socket_queues(mut self, send: Option<usize>, recv: Option<usize>) -> Self {
        (self.client.sockets.send_queue, self.client.sockets.recv_queue) = (send, recv);
        #[cfg(feature = "server")]
        {
            (self.server.sockets.send_queue, self.server.sockets.recv_queue) = (send, recv);
        }
        self
    }

    /// How a TCP peer is noticed that has vanished without a word, on both sides (default [`KeepAlive::System`]).
    #[must_use]
    pub fn keep_alive(mut self, keep_alive: KeepAlive) -> Self {
        self.client.sockets.keep_alive = keep_alive;
        #[cfg(feature = "server")]
        {
            self.server.sockets.keep_alive = keep_alive;
        }
        self
    }

    /// Adds a protocol for calls, and [its server's side](Protocol::server) for listening. It replaces a protocol with the same scheme.
    #[must_use]
    pub fn protocol<P: Protocol>(mut self, protocol: P) -> Self {
        let protocol = Arc::new(protocol);
        #[cfg(feature = "server")]
        if let Some(server) = P::server(&protocol) {
            self.server.protocols.register(server);
        }
        self.protocols.register(protocol);
        self
    }

    /// Adds a protocol that only listens. It replaces a protocol with the same scheme.
    #[must_use]
    #[cfg(feature = "server")]
    pub fn server_protocol(mut self, protocol: impl ServerProtocol) -> Self {
        self.server.protocols.register(Arc::new(protocol));
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

    /// Makes the ORB.
    ///
    /// # Errors
    /// INITIALIZE if the [metrics endpoint](Self::metrics_endpoint) cannot be listened on or has no thread; the exception that an
    /// [initialiser](Self::initializer) raises.
    #[cfg_attr(not(feature = "server"), allow(unused_mut, reason = "others have nothing to settle"))]
    pub fn build(mut self) -> Result<Orb, SystemException> {
        #[cfg(feature = "asynchronous")]
        {
            self.settings.leaves_reading = self.settings.wait == WaitStrategy::OnWaker;
            #[cfg(feature = "server")]
            {
                self.settings.leaves_reading |= self.settings.serving.cancels_nested;
            }
        }
        #[cfg(feature = "server")]
        {
            self.server.nests = self.settings.wait == WaitStrategy::OnReactor;
        }
        #[cfg(feature = "transport-rules")]
        {
            let selection: Arc<dyn AddressSelection> = Arc::new(self.selection);
            #[cfg(feature = "server")]
            self.server.protocols.select(Arc::clone(&selection));
            self.protocols.select(selection);
        }
        let orb = Orb::new(
            self.settings,
            self.client,
            self.protocols,
            #[cfg(feature = "server")]
            self.server,
        );
        #[cfg(all(feature = "asynchronous", feature = "diagnostics"))]
        orb.tell_metrics()?;
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
