//! One adapter: from an object id to what serves the request (CORBA 3.3 Part 1, 15.2.6), and back.

use std::{collections::HashMap, fmt, sync::OnceLock};

use spandrel_giop::{CompletionStatus, SystemException, minor};
use spandrel_orb::{OperationDemux, Orb, Policy, PolicyType, References, Servant, ServerCall};
use spandrel_sync::{
    Arc, Mutex, RwLock, Weak,
    atomic::{AtomicBool, AtomicU8, Ordering},
    thread::ThreadId,
};

use crate::{
    AdapterActivator, Poa, PoaError, RequestProcessingPolicy, ServantManager, ThreadPolicy, error,
    etherealizer::Etherealizer,
    hierarchy::Root,
    in_use::{InUse, Located},
    key::Place,
    manager::{Manager, Refused},
    objects::{Behind, Forwarding, Found, Objects},
    policies::Policies,
    servants::Incarnation,
    signal::{Signal, Ticket},
    turn::Turn,
    usage::Usage,
};

/// Requests that wait for one object, or for one adapter to be made, at most.
pub(crate) const MAX_WAITING: usize = 256;

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

/// What is to become of a request.
pub(crate) enum Entrance {
    Serve(InUse),
    /// Another object is to be asked.
    Forward(Forwarding),
    /// It waits, and then begins anew.
    Wait(Ticket),
    /// It begins anew at once.
    Again,
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
        self.path.last().map_or(crate::hierarchy::ROOT_NAME, String::as_str)
    }

    /// The names from the root on.
    pub(crate) fn full_name(&self) -> Vec<String> {
        std::iter::once(crate::hierarchy::ROOT_NAME.to_owned()).chain(self.path.iter().cloned()).collect()
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

    /// What a request is told that found the adapter not open.
    pub(crate) fn refuse(&self) -> Result<Entrance, SystemException> {
        match self.phase() {
            Phase::Living => match self.manager.refuse() {
                // If it went meanwhile, those that were held may have been told already.
                Refused::Held(ticket) if self.phase() == Phase::Living => Ok(Entrance::Wait(ticket)),
                Refused::Held(_) | Refused::Again => Ok(Entrance::Again),
                Refused::No(exception) => Err(exception),
            },
            Phase::Ending => Err(ending()),
            Phase::Gone => Ok(Entrance::Again),
        }
    }

    /// Finds what serves a request for this object (15.2.6).
    #[inline]
    pub(crate) fn enter(
        self: &Arc<Self>,
        id: &[u8],
        operation: &str,
        call: Option<&ServerCall<'_>>,
    ) -> Result<Entrance, SystemException> {
        if self.policies.retains() {
            match self.objects.enter(id, call, || self.is_open()) {
                Found::Active(active) => return Ok(Entrance::Serve(InUse::Object(active))),
                Found::Shut => return self.refuse(),
                Found::Busy(over) if self.policies.processing != RequestProcessingPolicy::UseActiveObjectMapOnly => {
                    return wait_for(&over);
                }
                // What is being deactivated exists no longer.
                Found::Busy(_) | Found::Nothing => {}
            }
        }
        self.enter_inactive(id, operation)
    }

    /// Finds what serves this object without asking or waiting for anybody: an object of the map that any thread may serve.
    #[inline]
    pub(crate) fn enter_active(&self, id: &[u8]) -> Option<InUse> {
        if !self.policies.retains() || self.policies.thread != ThreadPolicy::OrbCtrlModel {
            return None;
        }
        match self.objects.enter(id, None, || self.is_open()) {
            Found::Active(active) => Some(InUse::Object(active)),
            _ => None,
        }
    }

    /// Finds what serves an object that is not in the active object map.
    fn enter_inactive(self: &Arc<Self>, id: &[u8], operation: &str) -> Result<Entrance, SystemException> {
        if self.policies.processing == RequestProcessingPolicy::UseActiveObjectMapOnly {
            return Err(error::not_active());
        }
        if self.objects.check_made(id).is_err() {
            return Err(error::not_active());
        }
        if !self.usage.start(|| self.is_open()) {
            return self.refuse();
        }
        // Ended by what is returned, if that serves; here in all other cases.
        let counted = Counted(self);
        let entrance = if self.policies.has_default_servant() {
            self.default_servant().map(|servant| Entrance::Serve(InUse::Default(servant)))
        } else if self.policies.retains() {
            self.incarnate(id)
        } else {
            self.locate(id, operation)
        };
        if let Ok(Entrance::Serve(InUse::Default(_) | InUse::Located(_))) = &entrance {
            std::mem::forget(counted);
        }
        entrance
    }

    fn default_servant(&self) -> Result<Arc<dyn Servant>, SystemException> {
        self.default_servant.read().clone().ok_or_else(|| {
            SystemException::obj_adapter(minor::NO_DEFAULT_SERVANT, CompletionStatus::No)
                .with_detail("the adapter has no default servant")
        })
    }

    /// Has the servant activator find a servant, once for all requests that want it (15.3.6.1).
    fn incarnate(self: &Arc<Self>, id: &[u8]) -> Result<Entrance, SystemException> {
        let Some(ServantManager::Activator(activator)) = self.servant_manager.read().clone() else {
            return Err(no_servant_manager());
        };
        match self.objects.begin_incarnation(id) {
            Found::Nothing => {}
            Found::Active(active) => return Ok(Entrance::Serve(InUse::Object(active))),
            Found::Busy(over) => return wait_for(&over),
            Found::Shut => return self.refuse(),
        }
        let incarnating = Incarnating { adapter: self, id, is_over: false };
        spandrel_sync::held::assert_none("a servant activator");
        let answer = activator.incarnate(&id.into(), &Poa::of(self)?);
        match answer {
            Ok(servant) => incarnating.end(servant).map(|active| Entrance::Serve(InUse::Object(active))),
            Err(why) => not_incarnated(why),
        }
    }

    /// Has the servant locator find a servant for this request alone (15.3.7.1).
    fn locate(self: &Arc<Self>, id: &[u8], operation: &str) -> Result<Entrance, SystemException> {
        let Some(ServantManager::Locator(locator)) = self.servant_manager.read().clone() else {
            return Err(no_servant_manager());
        };
        spandrel_sync::held::assert_none("a servant locator");
        match locator.preinvoke(&id.into(), &Poa::of(self)?, operation) {
            Ok(found) => Ok(Entrance::Serve(InUse::Located(Arc::new(Located::new(locator, operation, found))))),
            Err(why) => not_incarnated(why),
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

/// A place among those that wait for an object.
pub(crate) fn wait_for(over: &Arc<Signal>) -> Result<Entrance, SystemException> {
    let ticket = over.ticket(MAX_WAITING);
    ticket.map(Entrance::Wait).ok_or_else(|| error::discarded("too many requests wait for the object's servant"))
}

fn not_incarnated(why: Incarnation) -> Result<Entrance, SystemException> {
    match why {
        Incarnation::ForwardRequest(target) => Ok(Entrance::Forward(Forwarding { target, is_permanent: false })),
        Incarnation::ForwardPermanently(target) => Ok(Entrance::Forward(Forwarding { target, is_permanent: true })),
        Incarnation::System(exception) => Err(exception),
    }
}

/// It will be gone in a moment, and may then be made anew (15.3.9.4).
fn ending() -> SystemException {
    SystemException::transient(minor::POA_DESTROYED, CompletionStatus::No).with_detail("the adapter is being destroyed")
}

fn no_servant_manager() -> SystemException {
    SystemException::obj_adapter(minor::NO_SERVANT_MANAGER, CompletionStatus::No)
        .with_detail("the adapter has no servant manager")
}

/// The time in which a request that uses no entry of the active object map is counted.
struct Counted<'a>(&'a Adapter);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.end_counted();
    }
}

/// The time in which an activator is asked; whatever it does, the others must not wait for ever.
struct Incarnating<'a> {
    adapter: &'a Arc<Adapter>,
    id: &'a [u8],
    is_over: bool,
}

impl Incarnating<'_> {
    fn end(mut self, servant: Arc<dyn Servant>) -> Result<Arc<crate::objects::Active>, SystemException> {
        self.is_over = true;
        let active = self.adapter.objects.end_incarnation(self.id, Some(servant));
        if self.adapter.phase() >= Phase::Gone {
            // Nobody else will end it: all objects that there were have been deactivated already.
            self.adapter.deactivate_late(self.id);
        }
        active.ok_or_else(|| {
            SystemException::obj_adapter(minor::INCARNATE_VIOLATED_POLICY, CompletionStatus::No)
                .with_detail("the servant activator gave a servant that stands behind another object")
        })
    }
}

impl Drop for Incarnating<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            let _ = self.adapter.objects.end_incarnation(self.id, None);
        }
    }
}

impl fmt::Debug for Adapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Adapter").field("path", &self.path).field("phase", &self.phase()).finish_non_exhaustive()
    }
}
