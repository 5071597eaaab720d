//! The ORB, which references, adapters and connections share: its state, listening, and metrics. Its operations
//! on references are in `reference`, those of policies, interceptors and values in `configuration`, and
//! asynchronous ones in `call`.

#[cfg(feature = "asynchronous")]
mod asynchronous;
pub(crate) mod context;
pub(crate) mod initial_references;
pub(crate) mod interception_state;
pub(crate) mod lazy_part;
mod main_thread;
pub(crate) mod object_key_aliases;
pub(crate) mod parts;
pub(crate) mod server_side;
pub(crate) mod settings;
mod shutdown;
pub(crate) mod start_times;
pub mod values;

use std::{fmt, net::SocketAddr, sync::OnceLock};

use spandrel_cdr::Ior;
use spandrel_giop::{AddressingDisposition, CompletionStatus, SystemException, ids, minor};
use spandrel_ipc::ProcessMark;
use spandrel_sync::{
    Arc, Weak,
    atomic::{AtomicBool, Ordering, fence},
};
use spandrel_transport::{Address, PublishedAddresses};

use crate::{
    client::{
        ClientSettings, PeerTable,
        destination::{Destination, WireSettings},
        transport::ClientProtocols,
    },
    diagnostics::{
        Diagnostics,
        statistics::{Level, Statistics},
    },
    orb::{
        initial_references::RuntimeReferences, interception_state::InterceptionState, lazy_part::LazyPart,
        main_thread::MainThread, object_key_aliases::Aliases, parts::Parts, settings::Settings, values::ValueFactories,
    },
    policy::{
        OrbPolicies, OrbPolicyValues,
        bidirectional::{Bidirectional, BidirectionalPolicy},
    },
    servant_side::{
        server_settings::{ServerOptions, ServerSettings},
        upcall_scope::is_in_upcall,
    },
};

use server_side::{ServerSide, no_server_side};
use shutdown::ReactorSlot;

/// An object request broker. Cheap to clone; all clones are the same ORB.
///
/// A server installs an adapter (`Poa::root`), activates servants and calls [`Orb::run`]. There is no global ORB.
///
/// An ORB belongs to the process that created it. In a copy of the process (`fork`), operations that need its
/// threads or connections raise BAD_INV_ORDER, and dropping it has no effect. A new ORB may be created there.
/// A copy made inside an upcall is aborted when the upcall returns, since only the original may answer.
///
/// ```no_run
/// # use spandrel_orb as spandrel;
/// use spandrel::Orb;
///
/// let orb = Orb::init(std::env::args())?; // takes the -ORB options of the command line
/// let account = orb.string_to_object("corbaloc::bank.example:2809/Account")?; // sends nothing
/// assert!(account.is_a("IDL:Bank/Account:1.0")?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Orb(pub(crate) Arc<OrbCore>);

/// Whether an ORB of this process has a server side. It selects nothing, as each ORB has its own: a program that
/// installs none does not contain the code that a client has for it (several kilobytes).
static HAS_SERVER_SIDE: OnceLock<()> = OnceLock::new();

/// A weak reference to an ORB, for parts that the ORB itself owns.
#[derive(Clone)]
pub struct WeakOrb(Weak<OrbCore>);

impl WeakOrb {
    /// A reference that does not keep the ORB alive.
    pub fn of(orb: &Orb) -> Self {
        Self(Arc::downgrade(&orb.0))
    }

    /// The ORB, if it still exists.
    pub fn upgrade(&self) -> Option<Orb> {
        self.0.upgrade().map(Orb)
    }
}

impl fmt::Debug for WeakOrb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WeakOrb")
    }
}

/// Tells an ORB from others, also after its end, without keeping it alive.
pub(crate) struct OrbIdentity(Weak<OrbCore>);

impl OrbIdentity {
    pub(crate) fn is_of(&self, orb: &Orb) -> bool {
        std::ptr::eq(self.0.as_ptr(), Arc::as_ptr(&orb.0))
    }

    pub(crate) fn is_dropped(&self) -> bool {
        self.0.strong_count() == 0
    }
}

pub(crate) struct OrbCore {
    /// The process that its threads and connections belong to.
    process: ProcessMark,
    settings: Settings,
    statistics: Statistics,
    diagnostics: Diagnostics,
    peers: PeerTable,
    /// The values of its policies, for calls.
    policy_values: OrbPolicyValues,
    /// Its [`OrbPolicies`], created at first use.
    policies: LazyPart,
    /// The reactor of asynchronous calls.
    pub(crate) client_reactor: ReactorSlot,
    server_options: ServerOptions,
    /// Installed with the object adapter.
    server_side: OnceLock<Arc<dyn ServerSide>>,
    /// Whether a thread has begun to close the server side.
    is_server_side_closed: AtomicBool,
    /// The part that obeys binding policies, if the ORB has one.
    binding_part: LazyPart,
    /// Its [`Aliases`], created with the first one.
    aliases: LazyPart,
    bidirectional: Bidirectional,
    /// Created with the first factory.
    value_factories: OnceLock<Box<dyn ValueFactories>>,
    interception: InterceptionState,
    registered: RuntimeReferences,
    closing: AtomicBool,
    is_destroyed: AtomicBool,
    main: MainThread,
}

impl Orb {
    pub(crate) fn new(
        settings: Settings,
        client: ClientSettings,
        protocols: ClientProtocols,
        server: ServerOptions,
    ) -> Self {
        let statistics = Statistics::default();
        let bidirectional = Bidirectional::new(settings.is_bidirectional);
        Self(Arc::new(OrbCore {
            policy_values: OrbPolicyValues::limited_to(settings.request_timeout),
            policies: LazyPart::default(),
            process: ProcessMark::here(),
            diagnostics: Diagnostics::new(&settings.diagnostics),
            settings,
            peers: PeerTable::new(client, protocols, statistics.clone()),
            statistics,
            client_reactor: ReactorSlot::default(),
            server_options: server,
            server_side: OnceLock::new(),
            is_server_side_closed: AtomicBool::new(false),
            binding_part: LazyPart::default(),
            aliases: LazyPart::default(),
            bidirectional,
            value_factories: OnceLock::new(),
            interception: InterceptionState::default(),
            registered: RuntimeReferences::default(),
            closing: AtomicBool::new(false),
            is_destroyed: AtomicBool::new(false),
            main: MainThread::default(),
        }))
    }

    /// The settings that both sides use.
    #[doc(hidden)]
    pub fn settings(&self) -> &Settings {
        &self.0.settings
    }

    /// The optional parts of this ORB, for the modules that call them.
    #[inline]
    pub(crate) fn parts(&self) -> &Parts {
        &self.0.settings.parts
    }

    /// The counts of events, and the present levels.
    #[inline]
    #[must_use]
    pub fn statistics(&self) -> &Statistics {
        &self.0.statistics
    }

    pub(crate) fn main(&self) -> &MainThread {
        &self.0.main
    }

    /// The metrics, trace propagation and metrics endpoint.
    #[doc(hidden)]
    #[inline]
    pub fn diagnostics(&self) -> &Diagnostics {
        &self.0.diagnostics
    }

    pub(crate) fn policy_values(&self) -> &OrbPolicyValues {
        &self.0.policy_values
    }

    pub(crate) fn policies(&self) -> &OrbPolicies {
        self.0.policies.get_or_make(|| OrbPolicies::new(self.0.settings.request_timeout))
    }

    /// The identity of this ORB, which does not keep it alive.
    pub(crate) fn identity(&self) -> OrbIdentity {
        OrbIdentity(Arc::downgrade(&self.0))
    }

    /// The settings with which the first adapter creates the server side.
    #[doc(hidden)]
    pub fn server_settings(&self) -> ServerSettings {
        self.0.server_options.settings()
    }

    /// The server side, if an object adapter is installed.
    #[doc(hidden)]
    #[inline]
    pub fn server_side(&self) -> Option<&Arc<dyn ServerSide>> {
        if HAS_SERVER_SIDE.get().is_some() { self.0.server_side.get() } else { None }
    }

    /// Installs the server side, unless there is one already. That of an ORB that has begun to shut down is
    /// closed at once.
    #[doc(hidden)]
    pub fn install_server_side(&self, create: impl FnOnce() -> Arc<dyn ServerSide>) -> &Arc<dyn ServerSide> {
        HAS_SERVER_SIDE.get_or_init(|| ());
        let server_side = self.0.server_side.get_or_init(create);
        // Pairs with the fence of `take_server_side`: this thread or that of the shutdown sees the other's write.
        fence(Ordering::SeqCst);
        if self.0.closing.load(Ordering::Relaxed)
            && let Some(server_side) = self.take_server_side()
        {
            server_side.begin_close();
            server_side.shut_down(self);
            server_side.close();
        }
        server_side
    }

    /// The server side, for the one thread that closes it.
    fn take_server_side(&self) -> Option<&Arc<dyn ServerSide>> {
        fence(Ordering::SeqCst);
        self.server_side().filter(|_| !self.0.is_server_side_closed.swap(true, Ordering::AcqRel))
    }

    /// The registered interceptors, and the sides that have any.
    #[doc(hidden)]
    #[inline]
    pub fn interception(&self) -> &InterceptionState {
        &self.0.interception
    }

    pub(crate) fn value_factories(&self) -> &OnceLock<Box<dyn ValueFactories>> {
        &self.0.value_factories
    }

    /// The initial references registered at run time.
    pub(crate) fn registered(&self) -> &RuntimeReferences {
        &self.0.registered
    }

    /// The identifier of this ORB (`-ORBId`); empty by default.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.0.settings.orb_id
    }

    /// The identifier of this server (`-ORBServerId`); empty by default.
    #[must_use]
    pub fn server_id(&self) -> &str {
        &self.0.settings.server_id
    }

    /// Whether persistent references denote the implementation repository (`-ORBUseImR`).
    #[must_use]
    pub fn uses_implementation_repository(&self) -> bool {
        self.0.settings.uses_implementation_repository
    }

    /// The first octets of this server's keys behind the implementation repository, if it uses that. The key of the
    /// object in the server follows.
    #[doc(hidden)]
    #[must_use]
    pub fn implementation_repository_prefix(&self) -> Option<Vec<u8>> {
        self.uses_implementation_repository().then(|| implementation_repository_prefix(self.server_id()))
    }

    /// The part that obeys binding policies.
    pub(crate) fn binding_part(&self) -> &LazyPart {
        &self.0.binding_part
    }

    /// The table of plain object keys.
    pub(crate) fn aliases(&self) -> &LazyPart {
        &self.0.aliases
    }

    /// The reference of the object that was registered with this plain key.
    #[inline]
    pub fn alias(&self, key: &[u8]) -> Option<Ior> {
        self.0.aliases.get::<Aliases>()?.target(key)
    }

    /// Whether client interceptors are registered: no request may bypass them then.
    #[must_use]
    #[inline]
    pub fn has_client_interceptors(&self) -> bool {
        self.interception().has_client_points()
    }

    /// Whether interceptors of client or server requests are registered.
    #[inline]
    pub fn is_intercepting(&self) -> bool {
        self.has_client_interceptors() || self.interception().has_server_points()
    }

    /// The address of the ORB's memory, which is unique while the ORB lives.
    pub fn instance(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// Whether connections carry requests in both directions.
    #[doc(hidden)]
    #[inline]
    pub fn bidirectional(&self) -> &Bidirectional {
        &self.0.bidirectional
    }

    /// The peers that were called, with the connections to them.
    #[doc(hidden)]
    pub fn peers(&self) -> &PeerTable {
        &self.0.peers
    }

    pub(crate) fn destinations(&self, ior: &Ior) -> Result<Vec<Destination>, SystemException> {
        self.destinations_by(ior, self.0.settings.wire.addressing)
    }

    /// The destinations of a reference, with this addressing disposition.
    pub(crate) fn destinations_by(
        &self,
        ior: &Ior,
        addressing: AddressingDisposition,
    ) -> Result<Vec<Destination>, SystemException> {
        self.check_running()?;
        let wire = WireSettings { addressing, ..self.0.settings.wire };
        let mut destinations = Destination::all_of(ior, wire, &self.0.settings.code_sets, &self.0.peers)?;
        if let Some(server_side) = self.server_side() {
            server_side.mark_own(self, &mut destinations);
        }
        Ok(destinations)
    }

    /// BAD_INV_ORDER once the ORB has been shut down; running upcalls may make calls until they return.
    pub fn check_running(&self) -> Result<(), SystemException> {
        self.check_process()?;
        if self.0.closing.load(Ordering::Relaxed) && !is_in_upcall() {
            return Err(has_shut_down());
        }
        Ok(())
    }

    /// BAD_INV_ORDER in a copy of the process that created the ORB.
    #[inline]
    pub fn check_process(&self) -> Result<(), SystemException> {
        if self.is_copied() { Err(process_is_a_copy()) } else { Ok(()) }
    }

    /// Whether this process is a copy of the one that created the ORB. The connections belong to the original
    /// process.
    #[inline]
    pub fn is_copied(&self) -> bool {
        !self.0.process.is_here()
    }

    /// Begins to listen at first use, and returns the hosts and ports in references.
    ///
    /// # Errors
    /// INITIALIZE if the ORB cannot listen on an endpoint; BAD_INV_ORDER after shutdown, or without an object adapter.
    pub fn listen(&self) -> Result<Vec<(String, u16)>, SystemException> {
        self.published().map(|published| published.hosts)
    }

    /// Accepts connections from now on, and those that wait, if the ORB was built with
    /// [`accept_later`](crate::OrbBuilder::accept_later).
    pub fn accept_connections(&self) {
        if let Some(server) = self.server_side() {
            server.accept_connections();
        }
    }

    /// The published addresses, if the server listens.
    pub fn published_already(&self) -> Option<PublishedAddresses> {
        self.server_side()?.published()
    }

    /// Whether a connection to this address reaches this ORB: by a published address, or by any other of an open port.
    pub fn is_own_endpoint(&self, address: &Address) -> bool {
        self.published_already().is_some_and(|published| published.includes(address))
    }

    /// Begins to listen at first use, and returns the addresses for references.
    ///
    /// # Errors
    /// As [`Orb::listen`].
    pub fn published(&self) -> Result<PublishedAddresses, SystemException> {
        self.check_not_destroyed()?;
        self.check_running()?;
        self.server_side().ok_or_else(no_server_side)?.listen(self)
    }

    /// Whether connections carry requests of both sides, if the peer agrees.
    #[must_use]
    #[inline]
    pub fn is_bidirectional(&self) -> bool {
        self.bidirectional().is_on()
    }

    /// Records the policy of an adapter; `Both` enables bidirectional connections for it.
    pub fn record_bidirectional_policy(&self, policy: BidirectionalPolicy) {
        if policy == BidirectionalPolicy::Both {
            self.enable_bidirectional(false);
        }
    }

    /// Enables bidirectional connections for an adapter or, if `for_all`, for all adapters without a policy
    /// of their own.
    pub(crate) fn enable_bidirectional(&self, for_all: bool) {
        if self.bidirectional().enable(for_all) {
            // Open connections have announced themselves as unidirectional.
            self.peers().resend_contexts();
        }
    }

    /// All counters and measurements in Prometheus' text format, served as
    /// [`statistics::CONTENT_TYPE`](crate::diagnostics::statistics::CONTENT_TYPE). It has durations of calls if
    /// [metrics](crate::OrbBuilder::metrics) are enabled.
    #[must_use]
    pub fn render_metrics(&self) -> String {
        self.update_levels();
        let mut text = self.statistics().render();
        if let Some(metrics) = self.diagnostics().metrics() {
            metrics.render(&mut text);
        }
        text
    }

    /// The address of the metrics endpoint, if there is one
    /// ([`OrbBuilder::metrics_endpoint`](crate::OrbBuilder::metrics_endpoint)), with the port that the system
    /// chose if it was zero.
    #[must_use]
    pub fn metrics_endpoint(&self) -> Option<SocketAddr> {
        self.diagnostics().endpoint().get().map(|endpoint| endpoint.addr())
    }

    /// Updates the levels that are not counted continuously.
    fn update_levels(&self) {
        let statistics = self.statistics();
        let set = |level, count: usize| statistics.set(level, i64::try_from(count).unwrap_or(i64::MAX));
        set(Level::CallsParked, self.peers().parked());
        set(Level::JobsOfMain, self.main().jobs());
        let counts = self.server_side().map(|server_side| server_side.levels()).unwrap_or_default();
        set(Level::RequestsHeld, counts.held);
        set(Level::ThreadsOfConnections, counts.threaded);
        set(Level::ThreadsOfPool, counts.pooled);
        set(Level::RequestsQueued, counts.queued);
        set(Level::RequestsDeferred, counts.deferred);
        set(Level::OctetsReceived, counts.octets);
    }

    pub(crate) fn check_not_destroyed(&self) -> Result<(), SystemException> {
        if self.0.is_destroyed.load(Ordering::Acquire) {
            return Err(SystemException::object_not_exist(0, CompletionStatus::No).with_detail("the ORB was destroyed"));
        }
        Ok(())
    }
}

/// In a copy of the process the ORB is leaked: dropping it would close the original's connections and join
/// its threads.
impl Drop for Orb {
    #[inline]
    fn drop(&mut self) {
        if self.is_copied() {
            std::mem::forget(Arc::clone(&self.0));
        }
    }
}

#[cold]
pub(crate) fn process_is_a_copy() -> SystemException {
    SystemException::bad_inv_order(ids::BAD_INV_ORDER_COPIED, CompletionStatus::No)
        .with_detail("this process is a copy (fork) of the one that created the ORB; create an ORB in this process")
}

fn has_shut_down() -> SystemException {
    SystemException::bad_inv_order(minor::ORB_HAS_SHUTDOWN, CompletionStatus::No)
}

impl fmt::Debug for Orb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Orb").field("settings", &self.0.settings).finish_non_exhaustive()
    }
}

/// The name of the implementation repository as an initial reference, and its plain object key.
#[doc(hidden)]
pub const IMPL_REPO_SERVICE: &str = "ImplRepoService";

/// The first octets of a server's keys behind the implementation repository: `ImplRepoService/NAME/`.
#[doc(hidden)]
#[must_use]
pub fn implementation_repository_prefix(server: &str) -> Vec<u8> {
    format!("{IMPL_REPO_SERVICE}/{server}/").into_bytes()
}
