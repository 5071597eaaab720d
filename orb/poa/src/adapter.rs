//! The state of adapters: of each adapter, and of the tree of an ORB (CORBA 3.3 Part 1, 15.2.3).
//!
//! An adapter refers to its parent, its children and its tree, and the tree refers to all adapters. So they
//! share one module, with the queries on each. Operations are in modules above: creation and destruction
//! ([`hierarchy`](crate::hierarchy)), lookup of adapters ([`adapter_lookup`](crate::adapter_lookup)) and of
//! servants ([`servant_lookup`](crate::servant_lookup)), and deactivation of objects
//! ([`deactivation`](crate::deactivation)). The callback traits of applications are part of this module: an
//! adapter holds them and passes them a [`Poa`].

pub(crate) mod servants;

use std::{collections::HashMap, fmt, sync::OnceLock, time::Duration};

use spandrel_giop::{CompletionStatus, SystemException, minor};
use spandrel_orb::{
    OperationDemux, Orb, Policy, PolicyType,
    internal::{DemuxDefaults, adapter_references::References},
};
use spandrel_server::{RequestExecutor, Resolution, Servant};
use spandrel_sync::{
    Arc, Mutex, RwLock, Weak,
    atomic::{AtomicBool, AtomicU8, Ordering},
    thread::ThreadId,
};

use crate::{
    ObjectId, PoaError, RequestProcessingPolicy, ThreadPolicy,
    adapter_name::{ROOT_NAME, full_name, full_name_text},
    directory::Directory,
    error,
    etherealization_queue::EtherealizationQueue,
    key::{Incarnation, SlotId},
    manager::{Admission, Manager, Managers},
    objects::{ActivationRefusal, Binding, Forwarding, Objects},
    orb_handle::OrbHandle,
    policies::Policies,
    serial_lock::SerialLock,
    usage::Usage,
    waiting::{Event, Ticket},
};

/// Maximum number of requests that wait for one object, or for the creation of one adapter.
pub(crate) const MAX_WAITING: usize = 256;

/// The phases of an adapter's life (15.3.9.4), in order.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
#[repr(u8)]
pub(crate) enum Phase {
    Active,
    /// Its children are being destroyed.
    Destroying,
    /// It cannot be found any more; requests and etherealizations may still run.
    Destroyed,
}

/// One adapter. Its public interface is [`Poa`].
pub(crate) struct Adapter {
    pub(crate) root: Weak<Root>,
    pub(crate) parent: Option<Arc<Adapter>>,
    /// The path, from the root adapter's child on.
    pub(crate) path: Vec<String>,
    pub(crate) slot_id: SlotId,
    /// The prefix of its keys. It is unique, so it identifies the adapter too.
    pub(crate) prefix: Vec<u8>,
    pub(crate) policies: Policies,
    pub(crate) operation_demux: OperationDemux,
    /// Runs its requests, if the adapter has an [`ExecutorPolicy`](crate::ExecutorPolicy).
    pub(crate) executor: Option<Arc<dyn RequestExecutor>>,
    /// The policies as given at creation.
    pub(crate) explicit_policies: Vec<Policy>,
    pub(crate) manager: Arc<Manager>,
    pub(crate) objects: Objects,
    pub(crate) usage: Usage,
    pub(crate) serial_lock: Option<Arc<SerialLock>>,
    pub(crate) children_state: Mutex<Children>,
    pub(crate) activator: Mutex<Option<Arc<dyn AdapterActivator>>>,
    pub(crate) servant_manager: RwLock<Option<ServantManager>>,
    pub(crate) default_servant: RwLock<Option<Arc<dyn Servant>>>,
    pub(crate) etherealization_queue: EtherealizationQueue,
    /// The references' components as interceptors left them; set before the adapter can be found.
    pub(crate) references: OnceLock<References>,
    phase: AtomicU8,
    /// Whether its objects are etherealized when the adapter is destroyed.
    pub(crate) etherealizes_at_end: AtomicBool,
}

/// The children of an adapter.
#[derive(Default)]
pub(crate) struct Children {
    pub(crate) children: HashMap<String, Arc<Adapter>>,
    /// The children that an adapter activator is creating: the thread that called it, and the event of
    /// completion.
    pub(crate) activating: HashMap<String, (ThreadId, Arc<Event>)>,
}

/// The entry point of the core's dispatch: all adapters of an ORB.
pub(crate) struct Root {
    pub(crate) weak_self: Weak<Self>,
    pub(crate) incarnation: Incarnation,
    pub(crate) orb: Arc<OrbHandle>,
    pub(crate) root_adapter: OnceLock<Arc<Adapter>>,
    pub(crate) directory: Directory<Adapter>,
    pub(crate) managers: Managers,
    /// The time after which a request's wait for the application is worth a warning.
    pub(crate) long_wait_warning: Option<Duration>,
    /// The tables of adapters whose policies choose none.
    pub(crate) tables: DemuxDefaults,
    /// Whether it was logged that persistent references do not outlive the process.
    pub(crate) has_warned_of_port: AtomicBool,
}

/// An object adapter: creates references to servants, and finds the servant of each request. Cheap to clone.
///
/// The root adapter accepts requests as soon as its first reference exists, other adapters when their manager
/// is activated.
///
/// ```
/// # mod spandrel { pub use spandrel_orb::*; pub use spandrel_poa::Poa; pub mod poa { pub use spandrel_poa::*; } pub mod server { pub use spandrel_server::*; } }
/// use spandrel::poa::{EtherealizeObjects, WaitForCompletion};
/// use spandrel::{Orb, Poa};
///
/// let orb = Orb::builder().build()?;
/// let root = Poa::root(&orb)?;
/// let accounts = root.child("accounts").persistent().create()?;
/// // let account: Account = accounts.serve(servant)?; returns a reference.
/// accounts.destroy(EtherealizeObjects::No, WaitForCompletion::Yes)?;
/// orb.shutdown()?;
/// # Ok::<(), spandrel::poa::PoaError>(())
/// ```
#[derive(Clone)]
pub struct Poa {
    pub(crate) orb: Orb,
    pub(crate) root: Arc<Root>,
    pub(crate) adapter: Arc<Adapter>,
}

/// Creates adapters on demand (15.3.4).
///
/// ```
/// # mod spandrel { pub use spandrel_orb::*; pub use spandrel_poa::Poa; pub mod poa { pub use spandrel_poa::*; } pub mod server { pub use spandrel_server::*; } }
/// use std::sync::Arc;
///
/// use spandrel::poa::{AdapterActivator, IfMissing};
/// use spandrel::{Orb, Poa};
///
/// /// Creates the adapter of each branch for its first request, also after a restart of the server.
/// struct Branches;
///
/// impl AdapterActivator for Branches {
///     fn unknown_adapter(&self, parent: &Poa, name: &str) -> bool {
///         let branch = parent.child(name).persistent().create();
///         branch.is_ok() // The objects of the branch are activated here.
///     }
/// }
///
/// let orb = Orb::builder().build()?;
/// let root = Poa::root(&orb)?;
/// root.set_the_activator(Some(Arc::new(Branches)));
/// let oslo = root.find_poa("oslo", IfMissing::Activate)?;
/// assert_eq!(oslo.the_parent(), Some(root));
/// # orb.shutdown()?;
/// # Ok::<(), spandrel::poa::PoaError>(())
/// ```
pub trait AdapterActivator: Send + Sync {
    /// Creates the child of `parent` with this name, and sets it up. Requests for it wait meanwhile.
    ///
    /// Returns true if it was created. A panic counts as a system exception: OBJ_ADAPTER for the request that
    /// needs the adapter.
    fn unknown_adapter(&self, parent: &Poa, name: &str) -> bool;
}

/// Supplies servants that the adapter then retains: for adapters with RETAIN and USE_SERVANT_MANAGER
/// (15.3.6).
///
/// `docs/adapters.md` has a complete server with a servant activator.
///
/// ```
/// # mod spandrel { pub use spandrel_orb::*; pub use spandrel_poa::Poa; pub mod poa { pub use spandrel_poa::*; } pub mod server { pub use spandrel_server::*; } }
/// use std::sync::Arc;
///
/// use spandrel::poa::{Incarnation, ObjectId, ServantActivator};
/// use spandrel::server::Servant;
/// use spandrel::{CompletionStatus, Orb, Poa, SystemException};
/// # struct Account;
/// # impl Servant for Account {
/// #     fn repository_id(&self) -> &str { "IDL:Bank/Account:1.0" }
/// #     fn is_a(&self, _: &str) -> bool { false }
/// #     fn dispatch(&self, _: &str, call: spandrel::server::ServerCall<'_>) -> Result<spandrel::server::Replied, SystemException> {
/// #         call.implicit(self)
/// #     }
/// # }
///
/// /// Loads an account for its first request, and stores it at its end.
/// struct Accounts;
///
/// impl ServantActivator for Accounts {
///     fn incarnate(&self, oid: &ObjectId, _: &Poa) -> Result<Arc<dyn Servant>, Incarnation> {
///         match oid.as_bytes() {
///             b"ada" => Ok(Arc::new(Account)),
///             _ => Err(SystemException::object_not_exist(0, CompletionStatus::No).into()),
///         }
///     }
///
///     fn etherealize(&self, _: &ObjectId, _: &Poa, account: Arc<dyn Servant>, _: bool, _: bool) {
///         drop(account);
///     }
/// }
///
/// let orb = Orb::builder().build()?;
/// let accounts = Poa::root(&orb)?.child("accounts").user_ids().activator(Accounts).create()?;
/// let object = |id: &str| accounts.create_reference_with_id(&id.into(), "IDL:Bank/Account:1.0");
/// assert!(!object("ada")?.non_existent()?);
/// assert!(object("alan")?.non_existent()?);
/// # orb.shutdown()?;
/// # Ok::<(), spandrel::poa::PoaError>(())
/// ```
pub trait ServantActivator: Send + Sync {
    /// Finds or creates the servant of an inactive object. The calls for one object do not overlap, nor do
    /// they overlap its etherealization.
    ///
    /// # Errors
    /// The forwarding or exception with which to answer the request.
    fn incarnate(&self, oid: &ObjectId, adapter: &Poa) -> Result<Arc<dyn Servant>, servants::Incarnation>;

    /// Releases the servant of an object that is no longer active and not in use.
    ///
    /// `cleanup_in_progress`: the adapter is being destroyed or its manager deactivated.
    /// `remaining_activations`: the servant serves other objects too.
    fn etherealize(
        &self,
        oid: &ObjectId,
        adapter: &Poa,
        servant: Arc<dyn Servant>,
        cleanup_in_progress: bool,
        remaining_activations: bool,
    );
}

/// Supplies a servant for each request: for adapters with NON_RETAIN and USE_SERVANT_MANAGER (15.3.7).
///
/// ```
/// # mod spandrel { pub use spandrel_orb::*; pub use spandrel_poa::Poa; pub mod poa { pub use spandrel_poa::*; } pub mod server { pub use spandrel_server::*; } }
/// use std::sync::Arc;
/// use std::time::Instant;
///
/// use spandrel::poa::{Cookie, Incarnation, ObjectId, ServantLocator};
/// use spandrel::server::Servant;
/// use spandrel::{CompletionStatus, Orb, Poa, SystemException};
/// # struct Account;
/// # impl Servant for Account {
/// #     fn repository_id(&self) -> &str { "IDL:Bank/Account:1.0" }
/// #     fn is_a(&self, _: &str) -> bool { false }
/// #     fn dispatch(&self, _: &str, call: spandrel::server::ServerCall<'_>) -> Result<spandrel::server::Replied, SystemException> {
/// #         call.implicit(self)
/// #     }
/// # }
///
/// /// Supplies an account for each request from a database, and measures the time of the request.
/// struct Accounts;
///
/// impl ServantLocator for Accounts {
///     fn preinvoke(&self, oid: &ObjectId, _: &Poa, _: &str) -> Result<(Arc<dyn Servant>, Cookie), Incarnation> {
///         match oid.as_bytes() {
///             b"ada" => Ok((Arc::new(Account), Box::new(Instant::now()))),
///             _ => Err(SystemException::object_not_exist(0, CompletionStatus::No).into()),
///         }
///     }
///
///     fn postinvoke(
///         &self, _: &ObjectId, _: &Poa, operation: &str, begun: Cookie, _: Arc<dyn Servant>,
///     ) -> Result<(), SystemException> {
///         let begun = begun.downcast::<Instant>().expect("the cookie of `preinvoke`");
///         println!("{operation}: {:?}", begun.elapsed());
///         Ok(())
///     }
/// }
///
/// let orb = Orb::builder().build()?;
/// let accounts = Poa::root(&orb)?.child("accounts").user_ids().locator(Accounts).create()?;
/// let object = |id: &str| accounts.create_reference_with_id(&id.into(), "IDL:Bank/Account:1.0");
/// assert!(!object("ada")?.non_existent()?);
/// assert!(object("alan")?.non_existent()?);
/// # orb.shutdown()?;
/// # Ok::<(), spandrel::poa::PoaError>(())
/// ```
pub trait ServantLocator: Send + Sync {
    /// Finds or creates a servant for one request.
    ///
    /// # Errors
    /// The forwarding or exception with which to answer the request.
    fn preinvoke(
        &self,
        oid: &ObjectId,
        adapter: &Poa,
        operation: &str,
    ) -> Result<(Arc<dyn Servant>, servants::Cookie), servants::Incarnation>;

    /// Called when the servant has completed the request, before the reply is sent (15.3.7.2). Does nothing unless it is
    /// implemented.
    ///
    /// # Errors
    /// A system exception, which the client receives instead of results; exceptions of the servant stay. A
    /// panic counts as UNKNOWN.
    fn postinvoke(
        &self,
        oid: &ObjectId,
        adapter: &Poa,
        operation: &str,
        cookie: servants::Cookie,
        servant: Arc<dyn Servant>,
    ) -> Result<(), SystemException> {
        let _ = (oid, adapter, operation, cookie, servant);
        Ok(())
    }
}

/// A servant manager of one of the two kinds (15.3.5).
///
/// ```
/// # mod spandrel { pub use spandrel_orb::*; pub use spandrel_poa::Poa; pub mod poa { pub use spandrel_poa::*; } pub mod server { pub use spandrel_server::*; } }
/// use std::sync::Arc;
///
/// use spandrel::Poa;
/// use spandrel::poa::{PoaError, ServantActivator, ServantManager};
///
/// /// Sets the servant manager of an adapter that has none yet.
/// fn supply(adapter: &Poa, activator: Arc<dyn ServantActivator>) -> Result<(), PoaError> {
///     match adapter.servant_manager()? {
///         None => adapter.set_servant_manager(ServantManager::Activator(activator)),
///         Some(ServantManager::Activator(_) | ServantManager::Locator(_)) => Ok(()),
///     }
/// }
/// ```
#[derive(Clone)]
pub enum ServantManager {
    /// For adapters that retain servants.
    Activator(Arc<dyn ServantActivator>),
    /// For adapters that do not.
    Locator(Arc<dyn ServantLocator>),
}

/// The parameters of a new adapter.
pub(crate) struct AdapterParameters {
    pub(crate) root: Weak<Root>,
    pub(crate) parent: Option<Arc<Adapter>>,
    pub(crate) path: Vec<String>,
    pub(crate) slot_id: SlotId,
    pub(crate) prefix: Vec<u8>,
    pub(crate) policies: Policies,
    pub(crate) operation_demux: OperationDemux,
    pub(crate) explicit_policies: Vec<Policy>,
    pub(crate) manager: Arc<Manager>,
    pub(crate) objects: Objects,
}

impl Adapter {
    pub(crate) fn new(parameters: AdapterParameters) -> Arc<Self> {
        let AdapterParameters {
            root,
            parent,
            path,
            slot_id,
            prefix,
            policies,
            operation_demux,
            explicit_policies,
            manager,
            objects,
        } = parameters;
        let executor = Policies::executor(&explicit_policies).cloned();
        Arc::new(Self {
            root,
            parent,
            path,
            slot_id,
            prefix,
            policies,
            operation_demux,
            executor,
            explicit_policies,
            manager,
            objects,
            usage: Usage::default(),
            serial_lock: (policies.thread == ThreadPolicy::SingleThreadModel).then(Arc::default),
            children_state: Mutex::default(),
            activator: Mutex::default(),
            servant_manager: RwLock::default(),
            default_servant: RwLock::default(),
            etherealization_queue: EtherealizationQueue::default(),
            references: OnceLock::new(),
            phase: AtomicU8::new(Phase::Active as u8),
            etherealizes_at_end: AtomicBool::new(false),
        })
    }

    pub(crate) fn name(&self) -> &str {
        self.path.last().map_or(ROOT_NAME, String::as_str)
    }

    /// The names, starting with the root adapter.
    pub(crate) fn full_name(&self) -> Vec<String> {
        full_name(&self.path)
    }

    /// The names as one text, for errors.
    pub(crate) fn full_name_text(&self) -> String {
        full_name_text(&self.path)
    }

    /// The path of a child, from the root adapter's child on.
    pub(crate) fn child_path(&self, name: &str) -> Vec<String> {
        self.path.iter().cloned().chain([name.to_owned()]).collect()
    }

    pub(crate) fn policy(&self, policy_type: PolicyType) -> Option<Policy> {
        let explicit_policy = self.explicit_policies.iter().find(|policy| policy.policy_type() == policy_type).cloned();
        explicit_policy.or_else(|| self.policies.policy(policy_type))
    }

    /// Whether this adapter created the key.
    #[inline]
    pub(crate) fn has_key(&self, key: &[u8]) -> bool {
        // Keys of transient adapters have this length; it is compared without a call.
        match (<&[u8; 16]>::try_from(&*self.prefix).ok(), key.first_chunk::<16>()) {
            (Some(own), Some(head)) => own == head,
            _ => key.starts_with(&self.prefix),
        }
    }

    pub(crate) fn key(&self, id: &[u8]) -> Vec<u8> {
        [&self.prefix, id].concat()
    }

    #[inline]
    pub(crate) fn phase(&self) -> Phase {
        match self.phase.load(Ordering::SeqCst) {
            0 => Phase::Active,
            1 => Phase::Destroying,
            _ => Phase::Destroyed,
        }
    }

    /// Advances the phase; returns true if it was an earlier one.
    pub(crate) fn advance(&self, phase: Phase) -> bool {
        self.phase.fetch_max(phase as u8, Ordering::SeqCst) < phase as u8
    }

    /// Whether the adapter can no longer be found.
    #[inline]
    pub(crate) fn is_destroyed(&self) -> bool {
        self.phase.load(Ordering::Relaxed) == Phase::Destroyed as u8
    }

    /// OBJECT_NOT_EXIST for operations on a destroyed adapter (15.3.9.4).
    pub(crate) fn check_exists(&self) -> Result<(), PoaError> {
        if self.phase() < Phase::Destroyed { Ok(()) } else { Err(error::destroyed(&self.path).into()) }
    }

    /// Checks a condition on the policies, which has this description; the error is `WrongPolicy`.
    pub(crate) fn require(&self, condition: bool, required: &'static str) -> Result<(), PoaError> {
        if condition { Ok(()) } else { Err(PoaError::WrongPolicy { adapter: self.full_name_text(), required }) }
    }

    /// `ObjectNotActive` for the object with this id.
    pub(crate) fn object_not_active(&self, id: &[u8]) -> PoaError {
        PoaError::ObjectNotActive { adapter: self.full_name_text(), id: id.into() }
    }

    /// `AdapterNonExistent` for a child of this name.
    pub(crate) fn no_child(&self, name: &str) -> PoaError {
        PoaError::AdapterNonExistent { adapter: full_name_text(&self.child_path(name)) }
    }

    /// The error of an activation, of the object with this id if the application assigns ids.
    pub(crate) fn activation_error(&self, id: &[u8], refusal: ActivationRefusal) -> PoaError {
        let adapter = || self.full_name_text();
        match refusal {
            ActivationRefusal::ObjectActive => PoaError::ObjectAlreadyActive { adapter: adapter(), id: id.into() },
            ActivationRefusal::ServantActive(id) => PoaError::ServantAlreadyActive { adapter: adapter(), id },
            ActivationRefusal::UserAssignedIds => PoaError::WrongPolicy { adapter: adapter(), required: "SYSTEM_ID" },
            ActivationRefusal::IdNotAssigned => error::id_not_assigned(&self.path, id).into(),
            ActivationRefusal::NoMoreIds => error::no_more_ids().into(),
            ActivationRefusal::Destroyed => error::destroyed(&self.path).into(),
        }
    }

    /// Whether requests may begin.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.phase.load(Ordering::SeqCst) == Phase::Active as u8 && self.manager.is_active()
    }

    /// The exception for new requests, if the adapter neither admits nor holds them.
    pub(crate) fn check_admits(&self) -> Result<(), SystemException> {
        match self.phase() {
            Phase::Active => self.manager.check_admits(),
            Phase::Destroying => Err(being_destroyed()),
            Phase::Destroyed => Ok(()),
        }
    }

    /// The reaction to a request that found the adapter not open: a ticket to wait with, or `None` for an
    /// immediate retry.
    pub(crate) fn hold_or_reject(&self) -> Result<Option<Ticket>, SystemException> {
        match self.phase() {
            Phase::Active => match self.manager.hold_or_reject() {
                // If the adapter was destroyed meanwhile, the event may have been set already.
                Admission::Held(ticket) if self.phase() == Phase::Active => {
                    self.watch_wait(|orb, limit| self.manager.watch_held(orb, limit, &self.full_name_text()));
                    Ok(Some(ticket))
                }
                Admission::Held(_) | Admission::Retry => Ok(None),
                Admission::Rejected(exception) => Err(exception),
            },
            Phase::Destroying => Err(being_destroyed()),
            Phase::Destroyed => Ok(None),
        }
    }

    /// Notes in the log, once for each manager, that requests for an object that was just activated wait for it.
    pub(crate) fn note_activation(&self) {
        if !self.manager.is_active() {
            self.manager.note_activation(&self.full_name_text());
        }
    }

    /// Checks a servant that the application supplies: the executor of the adapter may refuse it.
    pub(crate) fn check_servant(&self, servant: &Arc<dyn Servant>) -> Result<(), SystemException> {
        self.executor.as_ref().map_or(Ok(()), |executor| executor.check_servant(&**servant))
    }

    /// Leaves the choice of a request's thread to the executor, which the adapter has.
    pub(crate) fn hand_over(&self) -> Resolution {
        let executor = Arc::clone(self.executor.as_ref().expect("the policy for executors brings one"));
        Resolution::Executor { executor, object_id_at: self.prefix.len() }
    }

    /// Calls `watch` with the time after which a request's wait is worth a warning, unless warnings are off or the ORB
    /// has ended.
    pub(crate) fn watch_wait(&self, watch: impl FnOnce(&Orb, Duration)) {
        let limit = self.root.upgrade().and_then(|root| root.long_wait_warning);
        if let Some((orb, limit)) = self.orb().zip(limit) {
            watch(&orb, limit);
        }
    }

    /// Whether the object exists, as far as that is known without a call to the application.
    pub(crate) fn has(&self, id: &[u8]) -> Option<Option<Forwarding>> {
        match self.objects.find(id) {
            Some(Binding::Servant(_)) => Some(None),
            Some(Binding::Forward(forwarding)) => Some(Some(forwarding)),
            None if self.policies.processing == RequestProcessingPolicy::UseActiveObjectMapOnly => None,
            None => self.objects.is_assigned(id).then_some(None),
        }
    }

    /// Whether a servant activator etherealizes servants.
    pub(crate) fn has_activator(&self) -> bool {
        matches!(&*self.servant_manager.read(), Some(ServantManager::Activator(_)))
    }

    pub(crate) fn orb(&self) -> Option<Orb> {
        self.manager.orb().get().ok()
    }

    /// Ends a counted request.
    pub(crate) fn end_counted(&self) {
        self.usage.end();
        self.release_if_destroyed();
    }

    /// Releases the application's objects once the adapter is destroyed and unused: references to the adapter
    /// itself may remain for a while.
    pub(crate) fn release_if_destroyed(&self) {
        if !self.is_destroyed() || !self.usage.is_quiet() {
            return;
        }
        // Each is taken under its lock, and dropped outside it.
        let manager = self.servant_manager.write().take();
        let default = self.default_servant.write().take();
        let activator = self.activator.lock().take();
        drop((manager, default, activator));
    }
}

impl Root {
    pub(crate) fn root_adapter(&self) -> &Arc<Adapter> {
        self.root_adapter.get().expect("Root::new sets it")
    }
}

impl Poa {
    /// The public interface of an adapter.
    pub(crate) fn of(adapter: &Arc<Adapter>) -> Result<Self, SystemException> {
        let root = adapter.root.upgrade().ok_or_else(crate::error::no_adapter)?;
        Ok(Self { orb: root.orb.get()?, root, adapter: Arc::clone(adapter) })
    }
}

/// The adapter is being destroyed, and may be created again afterwards (15.3.9.4).
fn being_destroyed() -> SystemException {
    SystemException::transient(minor::POA_DESTROYED, CompletionStatus::No).with_detail("the adapter is being destroyed")
}

impl fmt::Debug for Adapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Adapter").field("path", &self.path).field("phase", &self.phase()).finish_non_exhaustive()
    }
}

impl fmt::Debug for ServantManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Activator(_) => "Activator(..)",
            Self::Locator(_) => "Locator(..)",
        })
    }
}

impl fmt::Debug for Root {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Root").field("incarnation", &self.incarnation).finish_non_exhaustive()
    }
}

impl PartialEq for Poa {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.adapter, &other.adapter)
    }
}

impl Eq for Poa {}

impl fmt::Debug for Poa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Poa").field(&self.adapter.full_name_text()).finish()
    }
}
