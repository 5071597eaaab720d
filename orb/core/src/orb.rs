//! The ORB itself: the one thing that references, adapters and connections have in common.

use std::{any::Any, fmt};
#[cfg(feature = "server")]
use std::{cell::Cell, io, sync::OnceLock};

#[cfg(feature = "server")]
use spandrel_cdr::TaggedComponent;
#[cfg(feature = "values")]
use spandrel_cdr::ValueFactory;
use spandrel_cdr::{Binder, CdrError, Ior};
use spandrel_giop::{CompletionStatus, SystemException, ids, minor};
#[cfg(feature = "server")]
use spandrel_giop::{IiopProfile, code_sets_component, component::Component};
use spandrel_ipc::ProcessMark;
#[cfg(any(feature = "interceptors", feature = "policies"))]
use spandrel_sync::Weak;
use spandrel_sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
    thread,
};
#[cfg(feature = "server")]
use spandrel_sync::{Mutex, held, thread_local};

#[cfg(feature = "asynchronous")]
use crate::client::Station;
#[cfg(feature = "urls")]
use crate::initial::Registered;
#[cfg(feature = "interceptors")]
use crate::interception::Interception;
#[cfg(feature = "policies")]
use crate::policies::OrbPolicies;
#[cfg(feature = "values")]
use crate::values::ValueFactories;
#[cfg(feature = "server")]
use crate::{
    Collocation, Endpoint, ObjectAdapter, ObjectRef,
    aliases::Aliases,
    reader::Deadline,
    server::{Locals, Server, ServerSettings, Watcher},
};
use crate::{
    client::{ClientSettings, PeerTable},
    destination::Destination,
    main_thread::MainThread,
    policies::OrbQuality,
    settings::Settings,
};

/// An object request broker. Cheap to clone; all clones are the same ORB.
///
/// A program that only calls needs nothing more. One that serves installs an adapter (`Poa::root`), activates servants
/// and calls [`Orb::run`]. There is no global ORB: several may live in one process.
///
/// An ORB belongs to the process that it was made in. In a copy of that (`fork`) all that would need its threads or its connections
/// raises BAD_INV_ORDER, and dropping it does nothing; a new ORB may be made there. A copy that is made inside of an upcall and
/// returns from it is aborted, since only the original can answer.
#[derive(Clone)]
pub struct Orb(Arc<Core>);

/// An ORB that is not kept by this: for what interceptors hold, which the ORB holds itself.
#[cfg(feature = "interceptors")]
#[derive(Clone)]
pub(crate) struct WeakOrb(Weak<Core>);

#[cfg(feature = "interceptors")]
impl WeakOrb {
    pub(crate) fn of(orb: &Orb) -> Self {
        Self(Arc::downgrade(&orb.0))
    }

    /// The ORB, if it still exists.
    pub(crate) fn upgrade(&self) -> Option<Orb> {
        self.0.upgrade().map(Orb)
    }
}

#[cfg(feature = "interceptors")]
impl fmt::Debug for WeakOrb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WeakOrb")
    }
}

/// Which ORB something belongs to.
#[cfg(feature = "policies")]
pub(crate) struct OrbIdentity(Weak<Core>);

#[cfg(feature = "policies")]
impl OrbIdentity {
    pub(crate) fn is_of(&self, orb: &Orb) -> bool {
        std::ptr::eq(self.0.as_ptr(), Arc::as_ptr(&orb.0))
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.0.strong_count() == 0
    }
}

struct Core {
    /// Where its threads are and its connections belong.
    process: ProcessMark,
    settings: Settings,
    peers: PeerTable,
    /// What its policies say, for calls.
    quality: OrbQuality,
    #[cfg(feature = "policies")]
    policies: OrbPolicies,
    /// For asynchronous calls.
    #[cfg(feature = "asynchronous")]
    station: Station,
    #[cfg(feature = "server")]
    serving: ServerSide,
    #[cfg(feature = "values")]
    value_factories: ValueFactories,
    #[cfg(feature = "interceptors")]
    interception: Interception,
    #[cfg(feature = "urls")]
    registered: Registered,
    closing: AtomicBool,
    is_destroyed: AtomicBool,
    main: MainThread,
}

/// What an ORB has of a server.
#[cfg(feature = "server")]
struct ServerSide {
    server: Arc<Server>,
    watcher: Arc<Watcher>,
    adapter: OnceLock<Arc<dyn ObjectAdapter>>,
    aliases: Aliases,
    /// Hosts and ports for references; made when the first is wanted.
    published: Mutex<Vec<(String, u16)>>,
    locals: Locals,
}

#[cfg(feature = "server")]
impl ServerSide {
    fn new(settings: ServerSettings) -> Self {
        Self {
            server: Arc::new(Server::new(settings)),
            watcher: Arc::default(),
            adapter: OnceLock::new(),
            aliases: Aliases::default(),
            published: Mutex::default(),
            locals: Locals::default(),
        }
    }
}

/// How deep upcalls may nest in one thread (design decision 3): each has frames of the ORB and of a servant on the stack.
#[cfg(feature = "server")]
pub(crate) const MAX_NESTING: u32 = 64;

#[cfg(feature = "server")]
thread_local! {
    /// How many upcalls this thread is inside of.
    static UPCALLS: Cell<u32> = const { Cell::new(0) };
}

impl Orb {
    pub(crate) fn new(
        settings: Settings,
        client: ClientSettings,
        #[cfg(feature = "server")] server: ServerSettings,
    ) -> Self {
        #[cfg(feature = "policies")]
        let policies = OrbPolicies::new(settings.request_timeout);
        Self(Arc::new(Core {
            #[cfg(feature = "policies")]
            quality: policies.quality(),
            #[cfg(not(feature = "policies"))]
            quality: OrbQuality::limited_to(settings.request_timeout),
            #[cfg(feature = "policies")]
            policies,
            process: ProcessMark::here(),
            settings,
            peers: PeerTable::new(client),
            #[cfg(feature = "asynchronous")]
            station: Station::default(),
            #[cfg(feature = "server")]
            serving: ServerSide::new(server),
            #[cfg(feature = "values")]
            value_factories: ValueFactories::default(),
            #[cfg(feature = "interceptors")]
            interception: Interception::default(),
            #[cfg(feature = "urls")]
            registered: Registered::default(),
            closing: AtomicBool::new(false),
            is_destroyed: AtomicBool::new(false),
            main: MainThread::default(),
        }))
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.0.settings
    }

    pub(crate) fn quality(&self) -> &OrbQuality {
        &self.0.quality
    }

    #[cfg(feature = "policies")]
    pub(crate) fn policies(&self) -> &OrbPolicies {
        &self.0.policies
    }

    /// What tells it from other ORBs, without keeping it.
    #[cfg(feature = "policies")]
    pub(crate) fn identity(&self) -> OrbIdentity {
        OrbIdentity(Arc::downgrade(&self.0))
    }

    #[cfg(feature = "asynchronous")]
    pub(crate) fn station(&self) -> &Station {
        &self.0.station
    }

    #[cfg(feature = "server")]
    pub(crate) fn watcher(&self) -> &Arc<Watcher> {
        &self.0.serving.watcher
    }

    #[cfg(feature = "server")]
    pub(crate) fn server(&self) -> &Arc<Server> {
        &self.0.serving.server
    }

    #[cfg(feature = "interceptors")]
    #[inline]
    pub(crate) fn interception(&self) -> &Interception {
        &self.0.interception
    }

    #[cfg(feature = "values")]
    pub(crate) fn value_factories(&self) -> &ValueFactories {
        &self.0.value_factories
    }

    /// What was registered as initial references.
    #[cfg(feature = "urls")]
    pub(crate) fn registered(&self) -> &Registered {
        &self.0.registered
    }

    /// Which ORB of its program it is (`-ORBId`); empty unless it was said.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.0.settings.orb_id
    }

    /// Which of several servers its program is (`-ORBServerId`); empty unless it was said.
    #[must_use]
    pub fn server_id(&self) -> &str {
        &self.0.settings.server_id
    }

    #[cfg(feature = "server")]
    pub(crate) fn aliases(&self) -> &Aliases {
        &self.0.serving.aliases
    }

    #[cfg(feature = "server")]
    pub(crate) fn adapter(&self) -> Option<&Arc<dyn ObjectAdapter>> {
        self.0.serving.adapter.get()
    }

    /// Whether interceptors are to see requests.
    #[cfg(feature = "server")]
    #[inline]
    pub(crate) fn is_intercepting(&self) -> bool {
        #[cfg(feature = "interceptors")]
        return self.has_client_interceptors() || self.interception().has_server_points();
        #[cfg(not(feature = "interceptors"))]
        false
    }

    /// Where it lies: no other ORB is there while it lives.
    #[cfg(feature = "server")]
    pub(crate) fn place(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// The calls on objects of its own.
    #[cfg(feature = "server")]
    pub(crate) fn locals(&self) -> &Locals {
        &self.0.serving.locals
    }

    pub(crate) fn destinations(&self, ior: &Ior) -> Result<Vec<Destination>, SystemException> {
        self.check_running()?;
        let destinations = Destination::all_of(ior, self.0.settings.wire, &self.0.peers)?;
        #[cfg(feature = "server")]
        let destinations = self.note_own(destinations);
        Ok(destinations)
    }

    /// Tells destinations that are this ORB's own endpoints so.
    #[cfg(feature = "server")]
    fn note_own(&self, mut destinations: Vec<Destination>) -> Vec<Destination> {
        if self.0.settings.serving.collocation != Collocation::No {
            let published = self.0.serving.published.lock();
            for Destination { peer, is_here, .. } in &mut destinations {
                *is_here = published.iter().any(|(host, port)| peer.is_at(host, *port));
            }
        }
        destinations
    }

    /// BAD_INV_ORDER once the ORB has been shut down; requests that still run may call others until they end.
    pub(crate) fn check_running(&self) -> Result<(), SystemException> {
        self.check_process()?;
        if self.0.closing.load(Ordering::Relaxed) && !is_in_upcall() {
            return Err(has_shut_down());
        }
        Ok(())
    }

    /// BAD_INV_ORDER in a copy of the process that the ORB was made in.
    #[inline]
    pub(crate) fn check_process(&self) -> Result<(), SystemException> {
        if self.is_copied() { Err(is_a_copy()) } else { Ok(()) }
    }

    /// True in a copy of the process that the ORB was made in: what its connections carry is the original's business.
    #[inline]
    pub(crate) fn is_copied(&self) -> bool {
        !self.0.process.is_here()
    }

    /// Installs what answers requests; the one that is there already, if there is one.
    #[cfg(feature = "server")]
    pub fn install_adapter(&self, adapter: Arc<dyn ObjectAdapter>) -> Arc<dyn ObjectAdapter> {
        Arc::clone(self.0.serving.adapter.get_or_init(|| adapter))
    }

    /// A reference to an object of this ORB's server. Begins to listen if that has not happened yet.
    ///
    /// # Errors
    /// INITIALIZE if an endpoint cannot be listened on; BAD_INV_ORDER after shutdown.
    #[cfg(feature = "server")]
    pub fn make_reference(&self, type_id: &str, object_key: Vec<u8>) -> Result<ObjectRef, SystemException> {
        self.make_reference_with(type_id, object_key, &[])
    }

    /// The same with further components.
    #[cfg(feature = "server")]
    pub(crate) fn make_reference_with(
        &self,
        type_id: &str,
        object_key: Vec<u8>,
        added: &[TaggedComponent],
    ) -> Result<ObjectRef, SystemException> {
        let mut profiles = Vec::new();
        let own =
            [Component::OrbType(ids::ORB_TYPE).encode()?, code_sets_component(self.0.settings.wire.char_set).encode()?];
        let components = [&own, added].concat();
        for (host, port) in self.listen()? {
            let profile = IiopProfile {
                version: self.0.settings.wire.version,
                host,
                port,
                object_key: object_key.clone(),
                components: components.clone(),
            };
            profiles.push(profile.encode()?);
        }
        Ok(ObjectRef::new(self.clone(), Ior { type_id: type_id.to_owned(), profiles }))
    }

    /// Begins to listen, once; what references are to say.
    ///
    /// # Errors
    /// As [`Orb::make_reference`].
    #[cfg(feature = "server")]
    pub fn listen(&self) -> Result<Vec<(String, u16)>, SystemException> {
        self.check_not_destroyed()?;
        self.check_running()?;
        let mut published = self.0.serving.published.lock();
        if published.is_empty() {
            let default = [Endpoint::new("", 0)];
            let endpoints = match &*self.0.settings.serving.endpoints {
                [] => &default[..],
                given => given,
            };
            *published =
                self.0.serving.server.listen(self, endpoints).map_err(|error| cannot_listen(endpoints, error))?;
        }
        Ok(published.clone())
    }

    /// Runs a future in the thread that reads the replies of asynchronous calls, until it is ready or the ORB is shut down. It must
    /// not wait otherwise than by being pending: every asynchronous call of this ORB would wait with it.
    ///
    /// # Errors
    /// NO_RESOURCES if there can be no such thread; BAD_INV_ORDER after shutdown.
    #[cfg(feature = "asynchronous")]
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> Result<(), SystemException> {
        self.check_not_destroyed()?;
        self.check_running()?;
        self.0.station.run(Box::pin(task))
    }

    /// Blocks until the ORB has been shut down. Requests are served by other threads, but those that are to be run in the main thread
    /// are run here: the first thread that calls this or [`perform_work`](Self::perform_work) is the main thread
    /// (CORBA 3.3 Part 1, 8.2.3).
    ///
    /// In a copy of the process it returns at once.
    pub fn run(&self) {
        if self.is_copied() {
            return;
        }
        #[cfg(feature = "server")]
        self.0.main.run();
        #[cfg(not(feature = "server"))]
        self.0.main.await_closed();
    }

    /// Runs one job of the main thread, if one is there and this is the main thread (see [`run`](Self::run)); does not wait.
    ///
    /// # Errors
    /// BAD_INV_ORDER once the ORB has been shut down.
    #[cfg(feature = "server")]
    pub fn perform_work(&self) -> Result<(), SystemException> {
        self.check_process()?;
        self.check_not_destroyed()?;
        self.0.main.perform_work().then_some(()).ok_or_else(has_shut_down)
    }

    /// Whether there is work for the main thread.
    ///
    /// # Errors
    /// BAD_INV_ORDER once the ORB has been shut down.
    #[cfg(feature = "server")]
    pub fn work_pending(&self) -> Result<bool, SystemException> {
        self.check_process()?;
        self.check_not_destroyed()?;
        self.0.main.work_pending().ok_or_else(has_shut_down)
    }

    /// Has the ORB's main thread, which is inside of [`run`](Self::run) or [`perform_work`](Self::perform_work), now or later, run this
    /// job, after those that were given before. It is an upcall: at shutdown, running ones are waited for. A job that is never run is
    /// dropped at the latest when the ORB has shut down; one that panics ends alone.
    ///
    /// # Errors
    /// TRANSIENT if 1,024 jobs wait already; BAD_INV_ORDER after shutdown.
    #[cfg(feature = "server")]
    pub fn run_in_main(&self, job: Box<dyn FnOnce() + Send>) -> Result<(), SystemException> {
        self.check_not_destroyed()?;
        self.check_running()?;
        self.0.main.enqueue(job)
    }

    /// Whether the caller is the ORB's main thread: what has to run there may run at once.
    #[cfg(feature = "server")]
    #[must_use]
    pub fn is_main_thread(&self) -> bool {
        self.0.main.is_current()
    }

    /// Ends the ORB: stops accepting, lets running requests end, tells every client (CloseConnection), closes.
    ///
    /// With `wait` it returns when all that is done, otherwise at once. Calling it again is harmless.
    ///
    /// # Errors
    /// BAD_INV_ORDER for waiting inside an upcall, which would wait for itself; or in a copy of the process.
    pub fn shutdown(&self, wait: bool) -> Result<(), SystemException> {
        self.check_process()?;
        self.check_not_destroyed()?;
        if wait && (is_in_upcall() || self.0.main.is_closing_here()) {
            return Err(SystemException::bad_inv_order(minor::OPERATION_WOULD_DEADLOCK, CompletionStatus::No)
                .with_detail("an upcall, or what is called at the end, cannot wait for all that to end"));
        }
        if !self.0.closing.swap(true, Ordering::AcqRel) {
            let orb = self.clone();
            let closing = thread::Builder::new().name("spandrel-close".into()).spawn(move || orb.close());
            if let Err(error) = closing {
                tracing::error!(%error, "no thread to shut down in; doing it here");
                self.close();
            }
        }
        if wait {
            self.await_closed();
        }
        Ok(())
    }

    /// [Shuts down](Self::shutdown), waits for the end, and lets go of the ORB: operations on it end in OBJECT_NOT_EXIST from now on,
    /// and calls by its references in BAD_INV_ORDER as after shutdown (CORBA 3.3 Part 1, 8.2.3).
    ///
    /// # Errors
    /// BAD_INV_ORDER inside of an upcall, or if that was done before.
    pub fn destroy(&self) -> Result<(), SystemException> {
        self.check_process()?;
        if self.0.is_destroyed.load(Ordering::Acquire) {
            return Err(has_shut_down());
        }
        self.shutdown(true)?;
        if self.0.is_destroyed.swap(true, Ordering::AcqRel) { Err(has_shut_down()) } else { Ok(()) }
    }

    pub(crate) fn check_not_destroyed(&self) -> Result<(), SystemException> {
        if self.0.is_destroyed.load(Ordering::Acquire) {
            return Err(SystemException::object_not_exist(0, CompletionStatus::No).with_detail("the ORB was destroyed"));
        }
        Ok(())
    }

    fn await_closed(&self) {
        #[cfg(feature = "server")]
        if self.0.main.is_current() {
            // Nobody else runs the jobs that the end waits for.
            return self.0.main.run();
        }
        self.0.main.await_closed();
    }

    fn close(&self) {
        let _closed = Closed(&self.0);
        self.0.main.begin_close();
        #[cfg(feature = "server")]
        {
            if let Some(adapter) = self.adapter() {
                adapter.begin_close();
            }
            let patience = Deadline::after(self.0.settings.serving.shutdown_timeout);
            self.0.serving.server.shutdown(patience.span);
            self.0.serving.watcher.stop();
            self.0.serving.locals.shut_down(patience.remaining());
        }
        #[cfg(feature = "asynchronous")]
        self.0.station.shut_down();
        self.0.peers.clear();
        #[cfg(feature = "server")]
        if let Some(adapter) = self.adapter() {
            held::assert_none("an adapter");
            adapter.close();
        }
        #[cfg(feature = "interceptors")]
        self.0.interception.destroy();
    }
}

/// Says at its end that the ORB is closed, whatever happened on the way.
struct Closed<'c>(&'c Core);

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        self.0.main.close();
    }
}

/// In a copy of its process nothing of an ORB is let go: the original's connections would be closed with it, its threads waited for.
impl Drop for Orb {
    #[inline]
    fn drop(&mut self) {
        if self.is_copied() {
            std::mem::forget(Arc::clone(&self.0));
        }
    }
}

#[cold]
pub(crate) fn is_a_copy() -> SystemException {
    SystemException::bad_inv_order(ids::BAD_INV_ORDER_COPIED, CompletionStatus::No)
        .with_detail("this process is a copy of the one that the ORB was made in; it needs an ORB of its own")
}

fn has_shut_down() -> SystemException {
    SystemException::bad_inv_order(minor::ORB_HAS_SHUTDOWN, CompletionStatus::No)
}

/// Whether this thread is inside of an upcall.
fn is_in_upcall() -> bool {
    #[cfg(feature = "server")]
    return upcalls() > 0;
    #[cfg(not(feature = "server"))]
    false
}

/// How many upcalls this thread is inside of.
#[cfg(feature = "server")]
pub(crate) fn upcalls() -> u32 {
    UPCALLS.with(Cell::get)
}

/// Marks the time in which this thread runs a servant.
#[cfg(feature = "server")]
#[derive(Debug)]
pub(crate) struct UpcallScope(());

#[cfg(feature = "server")]
impl UpcallScope {
    #[inline]
    pub(crate) fn enter() -> Self {
        held::assert_none("a servant");
        UPCALLS.with(|upcalls| upcalls.set(upcalls.get() + 1));
        Self(())
    }
}

#[cfg(feature = "server")]
impl Drop for UpcallScope {
    #[inline]
    fn drop(&mut self) {
        UPCALLS.with(|upcalls| upcalls.set(upcalls.get() - 1));
    }
}

#[cfg(feature = "server")]
fn cannot_listen(endpoints: &[Endpoint], error: io::Error) -> SystemException {
    let endpoints: Vec<String> = endpoints.iter().map(ToString::to_string).collect();
    SystemException::initialize(0, CompletionStatus::No)
        .with_detail(|| format!("cannot listen on {}", endpoints.join(", ")))
        .with_source(error)
}

impl Binder for Orb {
    fn bind(&self, ior: Ior) -> Result<Arc<dyn Any + Send + Sync>, CdrError> {
        Ok(Arc::new(self.reference(ior)))
    }

    fn share(&self) -> Arc<dyn Binder> {
        Arc::new(self.clone())
    }

    #[cfg(feature = "values")]
    fn value_factory(&self, repository_id: &str) -> Option<Arc<dyn ValueFactory>> {
        self.0.value_factories.get(repository_id)
    }
}

impl fmt::Debug for Orb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Orb").field("settings", &self.0.settings).finish_non_exhaustive()
    }
}
