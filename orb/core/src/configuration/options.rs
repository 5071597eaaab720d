//! The builder of an ORB; [`command_line`](crate::configuration::command_line) reads the same settings from a command line.
//!
//! `Orb::builder` (`orb_operations`) plugs in the optional parts.

#[cfg(feature = "asynchronous")]
mod asynchronous;
mod client;
mod code_sets;
mod diagnostics;
mod interception;
mod profile;
mod protocol;
mod server;
mod transport;

use std::time::Duration;

use spandrel_cdr::{ByteOrder, GiopVersion, Limits};
use spandrel_giop::ContextLimits;
use spandrel_giop::{ALL_CODE_SETS, AddressingDisposition, BASIC_CODE_SETS, OwnCodeSets, SystemException};
use spandrel_sync::Arc;
use spandrel_transport::ServerProtocol;
use spandrel_transport::TransportSelection;
use spandrel_transport::{Iiop, KeepAlive, Protocol, SocketSettings, SocketTuning};

use crate::{
    Collocation, Orb, WaitStrategy,
    client::{
        CacheSettings, ClientSettings, FragmentSizes, WriteLimits,
        destination::{Destination, WireSettings},
        transport::ClientProtocols,
    },
    diagnostics::DiagnosticsSettings,
    interception::{Initializers, RegisteredInterceptors, initialize},
    orb::{
        initial_references::InitialReferences,
        parts::{self, Parts},
        settings::Settings,
    },
    policy::DeadlineContext,
    reference::references::URL_FUNCTIONS,
    servant_side::server_settings::{MAX_MESSAGE, MAX_UNFINISHED, ServerOptions, ServerSettings},
};

pub(crate) use profile::PROFILES;
pub use profile::{OrbProfile, UnknownProfile};

/// Configures an [`Orb`]. The defaults suit most programs.
///
/// ```
/// # use spandrel_orb as spandrel;
/// use std::time::Duration;
///
/// use spandrel::{Endpoint, Orb};
///
/// let orb = Orb::builder()
///     .listen(Endpoint::new("127.0.0.1", 0)) // once it has an object adapter
///     .request_timeout(Some(Duration::from_secs(5)))
///     .build()?;
/// orb.shutdown()?;
/// # Ok::<(), spandrel::SystemException>(())
/// ```
#[derive(Clone, Debug)]
pub struct OrbBuilder {
    pub(crate) settings: Settings,
    client: ClientSettings,
    pub(crate) protocols: ClientProtocols,
    /// Selects the transports and addresses in use; all if unset.
    pub(crate) selection: Option<Arc<TransportSelection>>,
    pub(crate) server: ServerOptions,
    pub(crate) interceptors: RegisteredInterceptors,
    initializers: Initializers,
}

impl Default for OrbBuilder {
    fn default() -> Self {
        Orb::builder()
    }
}

/// The client's protocols of an ORB without optional parts: IIOP.
fn iiop_only() -> ClientProtocols {
    let mut protocols = ClientProtocols::default();
    protocols.register(Arc::new(Iiop));
    protocols
}

impl OrbBuilder {
    /// An ORB without optional parts: it calls by IIOP, reads references as `IOR:`, and converts ISO 8859-1,
    /// UTF-8 and UTF-16. The builder's methods add the parts that they name. Other parts are not linked into
    /// the program.
    #[must_use]
    pub fn bare() -> Self {
        let (order, limits) = (ByteOrder::NATIVE, Limits::default());
        Self {
            settings: Settings {
                wire: WireSettings {
                    version: GiopVersion::V1_2,
                    order,
                    limits,
                    addressing: AddressingDisposition::Key,
                    caches_requests: true,
                    deadlines: DeadlineContext::default(),
                    begin_timed: None,
                    operation_index: None,
                    send_datagram: None,
                    read_policies: None,
                },
                code_sets: OwnCodeSets::knowing(&BASIC_CODE_SETS),
                orb_id: String::new(),
                server_id: String::new(),
                uses_implementation_repository: false,
                request_timeout: None,
                context_limits: ContextLimits::default(),
                diagnostics: DiagnosticsSettings::default(),
                wait: WaitStrategy::default(),
                initial: InitialReferences::default(),
                parts: Parts::default(),
                collocation: Collocation::default(),
                is_bidirectional: false,
                inherits_deadlines: true,
                cancels_nested: false,
            },
            client: ClientSettings {
                open_datagrams: None,
                connections_per_peer: 5,
                write_limits: WriteLimits::default(),
                limits: None,
                cache: CacheSettings::UNLIMITED,
                connect_timeout: None,
                max_message: MAX_MESSAGE,
                max_unfinished: MAX_UNFINISHED,
                fragment_sizes: FragmentSizes::default(),
                sockets: SocketSettings::default(),
            },
            protocols: iiop_only(),
            selection: None,
            server: ServerOptions::default(),
            interceptors: RegisteredInterceptors::default(),
            initializers: Initializers::default(),
        }
    }

    /// The settings of the server side.
    fn server_mut(&mut self) -> &mut ServerSettings {
        self.server.settings_mut()
    }

    /// Adds all code sets: a client may choose each of them ([`CharSet::all`](spandrel_cdr::CharSet::all)).
    #[must_use]
    pub fn code_sets(mut self) -> Self {
        self.settings.code_sets.known = &ALL_CODE_SETS;
        self
    }

    /// Adds the forms `corbaloc:` and `corbaname:` of references.
    #[must_use]
    pub fn urls(mut self) -> Self {
        self.settings.parts.set_urls(URL_FUNCTIONS);
        self
    }

    /// Adds the transports within one host: UNIX-domain sockets and shared memory, where the system has them.
    #[must_use]
    pub fn local_transports(mut self) -> Self {
        self.server_mut().has_local_transports = true;
        #[cfg(unix)]
        self.protocols.register(Arc::new(spandrel_transport::Uds));
        #[cfg(target_os = "linux")]
        self.protocols.register(Arc::new(spandrel_transport::Shm));
        self
    }

    /// The time limit of a two-way call; references can override it. Without it, a call waits without limit.
    #[must_use]
    pub fn request_timeout(mut self, timeout: Option<Duration>) -> Self {
        if timeout.is_some() {
            crate::policy::thread_flags::record_use();
        }
        self.settings.request_timeout = timeout;
        self
    }

    /// The identifier of this ORB in a program with several ORBs (`-ORBId`).
    #[must_use]
    pub fn orb_id(mut self, id: impl Into<String>) -> Self {
        self.settings.orb_id = id.into();
        self
    }

    /// The identifier of this server for programs that start servers (`-ORBServerId`).
    #[must_use]
    pub fn server_id(mut self, id: impl Into<String>) -> Self {
        self.settings.server_id = id.into();
        self
    }

    /// Whether persistent references denote the implementation repository, which starts this server on demand
    /// (`-ORBUseImR`; default false). The facade's module `services::activation` applies it.
    #[must_use]
    pub fn use_implementation_repository(mut self, uses_it: bool) -> Self {
        self.settings.uses_implementation_repository = uses_it;
        self
    }

    /// Selects the service contexts that carry a request's deadline to the server (default
    /// [`DeadlineContext::Remaining`]). A request without a deadline carries none.
    #[must_use]
    pub fn deadline_context(mut self, form: DeadlineContext) -> Self {
        self.settings.wire.deadlines = form;
        self.settings.wire.begin_timed = Some(Destination::begin_timed);
        self
    }

    /// Whether the calls of a servant end at the latest at the deadline of the request that it serves
    /// (default: yes). [`remaining_time`](crate::remaining_time) reports that deadline in either case.
    #[must_use]
    pub fn inherit_deadlines(mut self, is_on: bool) -> Self {
        self.settings.inherits_deadlines = is_on;
        self
    }

    /// The sizes of the sockets' buffers in octets (default: the system's).
    #[must_use]
    pub fn socket_queues(mut self, send: Option<usize>, recv: Option<usize>) -> Self {
        (self.client.sockets.send_queue, self.client.sockets.recv_queue) = (send, recv);
        let sockets = &mut self.server_mut().sockets;
        (sockets.send_queue, sockets.recv_queue) = (send, recv);
        self
    }

    /// How TCP connections, of both sides, detect a peer that vanished without a packet (default
    /// [`KeepAlive::System`]).
    #[must_use]
    pub fn keep_alive(mut self, keep_alive: KeepAlive) -> Self {
        self.client.sockets.keep_alive = keep_alive;
        self.server_mut().sockets.keep_alive = keep_alive;
        self
    }

    /// The time for which reads of TCP connections, of both sides, poll the network card before they sleep (Linux:
    /// `SO_BUSY_POLL`; default: the system's). It needs the capability `CAP_NET_ADMIN`; without it the system's time is
    /// kept, which is logged once.
    #[must_use]
    pub fn busy_poll(mut self, time: Option<Duration>) -> Self {
        let busy_poll = |tuning: Option<SocketTuning>| {
            let mut tuning = tuning.unwrap_or_default();
            tuning.busy_poll = time;
            Some(tuning)
        };
        self.client.sockets.tuning = busy_poll(self.client.sockets.tuning);
        let sockets = &mut self.server_mut().sockets;
        sockets.tuning = busy_poll(sockets.tuning);
        self
    }

    /// Adds a protocol for calls, and for listening if it has [a server's side](Protocol::server). It
    /// replaces a protocol with the same scheme.
    #[must_use]
    pub fn protocol<P: Protocol>(mut self, protocol: P) -> Self {
        let protocol = Arc::new(protocol);
        if let Some(server) = P::server(&protocol) {
            self.server_mut().protocols.register(server);
        }
        self.protocols.register(protocol);
        self
    }

    /// Adds a protocol that only listens. It replaces a protocol with the same scheme.
    #[must_use]
    pub fn server_protocol(mut self, protocol: impl ServerProtocol) -> Self {
        self.server_mut().protocols.register(Arc::new(protocol));
        self
    }

    /// Defines an initial reference (`-ORBInitRef Name=URL`).
    #[must_use]
    pub fn init_ref(mut self, name: impl Into<String>, url: impl Into<String>) -> Self {
        self.settings.initial.set(name.into(), url.into());
        self
    }

    /// The URL below which undefined initial references are looked up (`-ORBDefaultInitRef URL`).
    #[must_use]
    pub fn default_init_ref(mut self, url: impl Into<String>) -> Self {
        self.settings.initial.set_default(url.into());
        self
    }

    /// Creates the ORB.
    ///
    /// # Errors
    /// INITIALIZE if the ORB cannot listen on the [metrics endpoint](Self::metrics_endpoint) or cannot start
    /// its thread; the exception that an [initialiser](Self::initializer) raises.
    pub fn build(self) -> Result<Orb, SystemException> {
        let Self { settings, client, protocols, server, interceptors, initializers, .. } = self;
        let orb = Orb::new(settings, client, protocols, server);
        orb.check_initial_references()?;
        // A program that plugs in no part does not contain the initialisation of interceptors.
        if parts::are_in_use() {
            initialize(&orb, &interceptors, &initializers.0)?;
        }
        Ok(orb)
    }
}
