//! What adapters consist of: each by itself, and the tree of an ORB's (CORBA 3.3 Part 1, 15.2.3).
//!
//! An adapter leads to its parent, its children and its tree, and the tree to them all: so they stand in one place, with what each can
//! say of itself. What is done with them is above: they are made and ended ([`hierarchy`](crate::hierarchy)), found
//! ([`finding`](crate::finding)), and find servants ([`entering`](crate::entering)), whose objects end
//! ([`deactivation`](crate::deactivation)). What applications implement for adapters to call is part of an adapter: it holds them, and
//! they are handed a [`Poa`].

pub(crate) mod servants;

use std::{collections::HashMap, fmt, sync::OnceLock};

use spandrel_giop::{CompletionStatus, SystemException, minor};
use spandrel_orb::{OperationDemux, Orb, Policy, PolicyType, References, Servant};
use spandrel_sync::{
    Arc, Mutex, RwLock, Weak,
    atomic::{AtomicBool, AtomicU8, Ordering},
    thread::ThreadId,
};

use self::servants::{AdapterActivator, ServantManager};
use crate::{
    PoaError, RequestProcessingPolicy, ThreadPolicy,
    directory::Directory,
    error,
    etherealizer::Etherealizer,
    key::{Incarnation, Place},
    live_orb::LiveOrb,
    manager::{Manager, Managers, Refused},
    objects::{Behind, Forwarding, Objects},
    policies::Policies,
    signal::{Signal, Ticket},
    turn::Turn,
    usage::Usage,
};

/// Requests that wait for one object, or for one adapter to be made, at most.
pub(crate) const MAX_WAITING: usize = 256;

/// What the root adapter is called (15.3.9.1).
pub(crate) const ROOT_NAME: &str = "RootPOA";

/// How far an adapter is from its end (15.3.9.4). It only grows.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
#[repr(u8)]
pub(crate) enum Phase {
    Living,
    /// Its children are being destroyed.
    Ending,
    /// Nobody finds it any more, but requests and etherealizations may go on.
    Gone,
}

/// One adapter. What is public of it is [`Poa`].
pub(crate) struct Adapter {
    pub(crate) root: Weak<Root>,
    pub(crate) parent: Option<Arc<Adapter>>,
    /// From the root adapter's child on.
    pub(crate) path: Vec<String>,
    pub(crate) place: Place,
    /// How its keys begin. Nobody else's do, so that it identifies the adapter too.
    pub(crate) prefix: Vec<u8>,
    pub(crate) policies: Policies,
    pub(crate) operation_demux: OperationDemux,
    /// As they were given.
    pub(crate) given: Vec<Policy>,
    pub(crate) manager: Arc<Manager>,
    pub(crate) objects: Objects,
    pub(crate) usage: Usage,
    pub(crate) turn: Option<Arc<Turn>>,
    pub(crate) family: Mutex<Family>,
    pub(crate) activator: Mutex<Option<Arc<dyn AdapterActivator>>>,
    pub(crate) servant_manager: RwLock<Option<ServantManager>>,
    pub(crate) default_servant: RwLock<Option<Arc<dyn Servant>>>,
    pub(crate) etherealizer: Etherealizer,
    /// What interceptors have made of its references; set before anybody finds it.
    pub(crate) references: OnceLock<References>,
    phase: AtomicU8,
    /// Whether objects that end with the adapter are etherealized.
    pub(crate) etherealizes_at_end: AtomicBool,
}

/// An adapter's children.
#[derive(Default)]
pub(crate) struct Family {
    pub(crate) children: HashMap<String, Arc<Adapter>>,
    /// Those that an adapter activator is asked for, by whom, and what is given when it has answered.
    pub(crate) expected: HashMap<String, (ThreadId, Arc<Signal>)>,
}

/// What the core dispatches to: all adapters of an ORB.
pub(crate) struct Root {
    pub(crate) me: Weak<Self>,
    pub(crate) incarnation: Incarnation,
    pub(crate) orb: Arc<LiveOrb>,
    pub(crate) top: OnceLock<Arc<Adapter>>,
    pub(crate) directory: Directory<Adapter>,
    pub(crate) managers: Managers,
}

/// An object adapter: makes references to servants, and finds the servant of each request. Cheap to clone.
///
/// The root adapter accepts requests as soon as the first reference exists; others when their manager is activated.
#[derive(Clone)]
pub struct Poa {
    pub(crate) orb: Orb,
    pub(crate) root: Arc<Root>,
    pub(crate) adapter: Arc<Adapter>,
}

/// What an adapter is made with.
pub(crate) struct Plan {
    pub(crate) root: Weak<Root>,
    pub(crate) parent: Option<Arc<Adapter>>,
    pub(crate) path: Vec<String>,
    pub(crate) place: Place,
    pub(crate) prefix: Vec<u8>,
    pub(crate) policies: Policies,
    pub(crate) given: Vec<Policy>,
    pub(crate) manager: Arc<Manager>,
    pub(crate) objects: Objects,
}

impl Adapter {
    pub(crate) fn new(plan: Plan) -> Arc<Self> {
        let Plan { root, parent, path, place, prefix, policies, given, manager, objects } = plan;
        let operation_demux = given.iter().find_map(Policy::value::<OperationDemux>).copied().unwrap_or_default();
        Arc::new(Self {
            root,
            parent,
            path,
            place,
            prefix,
            policies,
            operation_demux,
            given,
            manager,
            objects,
            usage: Usage::default(),
            turn: (policies.thread == ThreadPolicy::SingleThreadModel).then(Arc::default),
            family: Mutex::default(),
            activator: Mutex::default(),
            servant_manager: RwLock::default(),
            default_servant: RwLock::default(),
            etherealizer: Etherealizer::default(),
            references: OnceLock::new(),
            phase: AtomicU8::new(Phase::Living as u8),
            etherealizes_at_end: AtomicBool::new(false),
        })
    }

    pub(crate) fn name(&self) -> &str {
        self.path.last().map_or(ROOT_NAME, String::as_str)
    }

    /// The names from the root on.
    pub(crate) fn full_name(&self) -> Vec<String> {
        full_name(&self.path)
    }

    pub(crate) fn policy(&self, policy_type: PolicyType) -> Option<Policy> {
        let given = self.given.iter().find(|policy| policy.policy_type() == policy_type).cloned();
        given.or_else(|| self.policies.policy(policy_type))
    }

    /// Whether a key is one of this adapter's.
    #[inline]
    pub(crate) fn has_key(&self, key: &[u8]) -> bool {
        // Those of transient adapters are so long, and compared without a call.
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
            0 => Phase::Living,
            1 => Phase::Ending,
            _ => Phase::Gone,
        }
    }

    /// True if it was not so far before.
    pub(crate) fn advance(&self, phase: Phase) -> bool {
        self.phase.fetch_max(phase as u8, Ordering::SeqCst) < phase as u8
    }

    /// Whether nobody is to find it any more.
    #[inline]
    pub(crate) fn is_gone(&self) -> bool {
        self.phase.load(Ordering::Relaxed) == Phase::Gone as u8
    }

    /// OBJECT_NOT_EXIST for operations on an adapter that has been destroyed (15.3.9.4).
    pub(crate) fn check_exists(&self) -> Result<(), PoaError> {
        if self.phase() < Phase::Gone { Ok(()) } else { Err(error::destroyed().into()) }
    }

    /// Whether requests may begin.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.phase.load(Ordering::SeqCst) == Phase::Living as u8 && self.manager.is_active()
    }

    /// Whether a request would be let in, or at least held, where the adapter is not open.
    pub(crate) fn check_admits(&self) -> Result<(), SystemException> {
        match self.phase() {
            Phase::Living => self.manager.check_admits(),
            Phase::Ending => Err(ending()),
            Phase::Gone => Ok(()),
        }
    }

    /// What a request is told that found the adapter not open: where it is to wait, or nothing if it is to begin anew at once.
    pub(crate) fn refuse(&self) -> Result<Option<Ticket>, SystemException> {
        match self.phase() {
            Phase::Living => match self.manager.refuse() {
                // If it went meanwhile, those that were held may have been told already.
                Refused::Held(ticket) if self.phase() == Phase::Living => Ok(Some(ticket)),
                Refused::Held(_) | Refused::Again => Ok(None),
                Refused::No(exception) => Err(exception),
            },
            Phase::Ending => Err(ending()),
            Phase::Gone => Ok(None),
        }
    }

    /// Whether there is such an object, as far as one can say without asking anybody.
    pub(crate) fn has(&self, id: &[u8]) -> Option<Option<Forwarding>> {
        match self.objects.find(id) {
            Some(Behind::Servant(_)) => Some(None),
            Some(Behind::Forward(forwarding)) => Some(Some(forwarding)),
            None if self.policies.processing == RequestProcessingPolicy::UseActiveObjectMapOnly => None,
            None => self.objects.check_made(id).is_ok().then_some(None),
        }
    }

    /// Whether servants are told of when they are no longer needed.
    pub(crate) fn has_activator(&self) -> bool {
        matches!(&*self.servant_manager.read(), Some(ServantManager::Activator(_)))
    }

    pub(crate) fn orb(&self) -> Option<Orb> {
        self.manager.orb().get().ok()
    }

    /// Ends a request that was counted.
    pub(crate) fn end_counted(&self) {
        self.usage.end();
        self.let_go_if_over();
    }

    /// Lets the application's objects go once the adapter is gone and nothing needs them any more: the adapter itself may be remembered
    /// for a while.
    pub(crate) fn let_go_if_over(&self) {
        if !self.is_gone() || !self.usage.is_quiet() {
            return;
        }
        // Each taken under its lock, and dropped outside of it.
        let manager = self.servant_manager.write().take();
        let default = self.default_servant.write().take();
        let activator = self.activator.lock().take();
        drop((manager, default, activator));
    }
}

/// The names of an adapter from the root on.
pub(crate) fn full_name(path: &[String]) -> Vec<String> {
    std::iter::once(ROOT_NAME.to_owned()).chain(path.iter().cloned()).collect()
}

impl Root {
    pub(crate) fn top(&self) -> &Arc<Adapter> {
        self.top.get().expect("it is made with the root")
    }
}

impl Poa {
    /// What is public of an adapter.
    pub(crate) fn of(adapter: &Arc<Adapter>) -> Result<Self, SystemException> {
        let root = adapter.root.upgrade().ok_or_else(crate::error::no_adapter)?;
        Ok(Self { orb: root.orb.get()?, root, adapter: Arc::clone(adapter) })
    }

    /// `WrongPolicy` unless the policies are such.
    pub(crate) fn must(&self, is_so: bool) -> Result<(), PoaError> {
        if is_so { Ok(()) } else { Err(PoaError::WrongPolicy) }
    }
}

/// It will be gone in a moment, and may then be made anew (15.3.9.4).
fn ending() -> SystemException {
    SystemException::transient(minor::POA_DESTROYED, CompletionStatus::No).with_detail("the adapter is being destroyed")
}

impl fmt::Debug for Adapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Adapter").field("path", &self.path).field("phase", &self.phase()).finish_non_exhaustive()
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
        f.debug_tuple("Poa").field(&self.adapter.full_name().join("/")).finish()
    }
}
