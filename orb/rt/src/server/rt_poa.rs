//! Adapters with priorities (`RTPortableServer::POA`).

use std::any::Any;

use spandrel_giop::SystemException;
use spandrel_orb::{ObjectRef, Orb, Policy};
use spandrel_poa::{
    ExecutorPolicy, ImplicitActivationPolicy, ObjectId, Poa, PoaBuilder, PoaError, PoaManager, Servant, ThreadPolicy,
};
use spandrel_server::dedicated_addresses;
use spandrel_sync::Arc;

use super::executor::{Declaration, LaneExecutor};
use super::{LaneRequest, RtServerOrb};
use crate::policies::{
    ClientProtocolPolicy, PriorityBandedConnectionPolicy, PriorityModel, PriorityModelPolicy, ServerProtocolPolicy,
    ThreadpoolPolicy,
};
use crate::protocols::{self, Protocol};
use crate::{Priority, ThreadPool};

/// Operations of adapters with priorities (`RTPortableServer::POA`). Those with a priority require SERVER_DECLARED, and
/// an adapter without implicit activation: otherwise they raise `WrongPolicy`.
///
/// The priority of an object has to be that of a lane, if the adapter's pool has lanes. It holds until the adapter is
/// destroyed; an object that was activated with one may be activated anew with another, unless a reference was created
/// with its priority.
///
/// ```
/// use spandrel_orb::Orb;
/// use spandrel_poa::{Poa, Servant};
/// use spandrel_rt::policies::{PriorityModel, PriorityModelPolicy, ThreadpoolPolicy};
/// use spandrel_rt::{LaneSettings, LinearMapping, PoolSettings, Priority, RtPoa, RtPoaBuilder, RtServerOrb};
/// use spandrel_rt::{Scheduling, SchedulingClass};
/// use spandrel_sync::Arc;
///
/// struct Brake;
///
/// impl Servant for Brake {
///     fn repository_id(&self) -> &str {
///         "IDL:Brake:1.0"
///     }
///     fn is_a(&self, id: &str) -> bool {
///         id == "IDL:Brake:1.0" // runs in a thread of the lane
///     }
/// }
///
/// let orb = Orb::builder().build()?;
/// let root = Poa::root(&orb)?;
/// let rt_orb = RtServerOrb::new(Scheduling::new(SchedulingClass::Fifo, Arc::new(LinearMapping)));
/// let lane = |priority| LaneSettings { priority, static_threads: 2, dynamic_threads: 0 };
/// let lanes = PoolSettings::with_lanes(vec![lane(Priority::MIN), lane(Priority::new(20_000)?)]);
/// let pool = rt_orb.create(PoolSettings { buffering: Some((100, 1 << 20)), ..lanes })?;
/// let model = PriorityModelPolicy { model: PriorityModel::ServerDeclared, server_priority: Priority::MIN };
/// let policies = [model.into(), ThreadpoolPolicy(pool).into()];
/// let sensors = root.child("sensors").user_ids().real_time(&rt_orb, policies)?.create()?;
/// sensors.activate_object_with_id_and_priority(&"brake".into(), Arc::new(Brake), 20_000)?;
/// assert!(sensors.id_to_reference(&"brake".into())?.is_a("IDL:Brake:1.0")?);
/// # orb.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait RtPoa {
    /// Creates a child, as [`Poa::create_poa`] does, that obeys the policies of Real-time CORBA in the list. The threads
    /// of the pool run its requests; without a [`ThreadpoolPolicy`], those of the ORB's default pool. Policies of the types
    /// 40 to 42 that the list lacks are those of the ORB's policy manager, if that has them.
    ///
    /// # Errors
    /// As [`Poa::create_poa`]. `InvalidPolicy` also for a pool that does not exist, a pool with lanes without a priority
    /// model, a declared priority that no lane has, priority bands without a priority model, or that lack the declared
    /// priority or have no lane, a thread policy other than ORB_CTRL_MODEL, a [server protocol](ServerProtocolPolicy) by which
    /// neither the ORB nor a lane listens, and properties of sockets that contradict those of another adapter of the pool.
    /// INITIALIZE with server protocols, if the ORB cannot listen.
    fn create_rt_poa(
        &self,
        rt_orb: &RtServerOrb,
        name: &str,
        manager: Option<&PoaManager>,
        policies: impl IntoIterator<Item = Policy>,
    ) -> Result<Poa, PoaError>;

    /// Creates a reference with a new id and this priority.
    ///
    /// # Errors
    /// As [`Poa::create_reference`]; `WrongPolicy`; BAD_PARAM for a negative priority, or one that no lane has.
    fn create_reference_with_priority(&self, interface: &str, priority: i16) -> Result<ObjectRef, PoaError>;

    /// Creates a reference with this id and priority.
    ///
    /// # Errors
    /// As [`Poa::create_reference_with_id`]; `WrongPolicy`; BAD_PARAM as above; BAD_INV_ORDER with the standard's minor
    /// code 1 if a reference was created with another priority.
    fn create_reference_with_id_and_priority(
        &self,
        id: &ObjectId,
        interface: &str,
        priority: i16,
    ) -> Result<ObjectRef, PoaError>;

    /// Activates a servant as a new object with this priority.
    ///
    /// # Errors
    /// As [`Poa::activate_object`]; `WrongPolicy`; BAD_PARAM as above.
    fn activate_object_with_priority(&self, servant: Arc<dyn Servant>, priority: i16) -> Result<ObjectId, PoaError>;

    /// Activates the object with this id and priority.
    ///
    /// # Errors
    /// As [`Poa::activate_object_with_id`]; `WrongPolicy`; BAD_PARAM and BAD_INV_ORDER as above.
    fn activate_object_with_id_and_priority(
        &self,
        id: &ObjectId,
        servant: Arc<dyn Servant>,
        priority: i16,
    ) -> Result<(), PoaError>;
}

/// Extends [`PoaBuilder`] by the policies of Real-time CORBA.
pub trait RtPoaBuilder: Sized {
    /// Adds these policies, as [`RtPoa::create_rt_poa`] does.
    ///
    /// # Errors
    /// `InvalidPolicy`, with the index in this list.
    fn real_time(self, rt_orb: &RtServerOrb, policies: impl IntoIterator<Item = Policy>) -> Result<Self, PoaError>;
}

impl RtPoaBuilder for PoaBuilder {
    fn real_time(self, rt_orb: &RtServerOrb, policies: impl IntoIterator<Item = Policy>) -> Result<Self, PoaError> {
        let policies = with_defaults(self.orb(), policies);
        let executor = executor(rt_orb, self.orb(), &self.full_name(), &policies)?;
        Ok(policies.into_iter().fold(self, Self::policy).policy(executor))
    }
}

impl RtPoa for Poa {
    fn create_rt_poa(
        &self,
        rt_orb: &RtServerOrb,
        name: &str,
        manager: Option<&PoaManager>,
        policies: impl IntoIterator<Item = Policy>,
    ) -> Result<Poa, PoaError> {
        let mut policies = with_defaults(self.orb(), policies);
        let executor = executor(rt_orb, self.orb(), &self.child(name).full_name(), &policies)?;
        policies.push(executor.into());
        self.create_poa(name, manager, policies)
    }

    fn create_reference_with_priority(&self, interface: &str, priority: i16) -> Result<ObjectRef, PoaError> {
        let executor = declaring(self)?;
        let priority = checked(&executor, priority)?;
        // Its id is in no reference that another has.
        let reference = self.create_reference(interface)?;
        let id = self.reference_to_id(&reference)?;
        declare(&executor, &id, priority, Declaration::Reference)?;
        self.create_reference_with_id(&id, interface)
    }

    fn create_reference_with_id_and_priority(
        &self,
        id: &ObjectId,
        interface: &str,
        priority: i16,
    ) -> Result<ObjectRef, PoaError> {
        let executor = declaring(self)?;
        let priority = checked(&executor, priority)?;
        let lanes = lanes(&executor);
        let undo = lanes.declare(id, priority, Declaration::Reference)?;
        self.create_reference_with_id(id, interface).inspect_err(|_| lanes.undo(id, undo))
    }

    fn activate_object_with_priority(&self, servant: Arc<dyn Servant>, priority: i16) -> Result<ObjectId, PoaError> {
        let executor = declaring(self)?;
        let priority = checked(&executor, priority)?;
        // No reference has its id yet, so that no request comes before the declaration.
        let id = self.activate_object(servant)?;
        declare(&executor, &id, priority, Declaration::Activation)?;
        Ok(id)
    }

    fn activate_object_with_id_and_priority(
        &self,
        id: &ObjectId,
        servant: Arc<dyn Servant>,
        priority: i16,
    ) -> Result<(), PoaError> {
        let executor = declaring(self)?;
        let priority = checked(&executor, priority)?;
        let lanes = lanes(&executor);
        let undo = lanes.declare(id, priority, Declaration::Activation)?;
        self.activate_object_with_id(id, servant).inspect_err(|_| lanes.undo(id, undo))
    }
}

fn declare(
    executor: &ExecutorPolicy,
    id: &ObjectId,
    priority: Priority,
    declaration: Declaration,
) -> Result<(), SystemException> {
    lanes(executor).declare(id, priority, declaration).map(drop)
}

/// The executor of an adapter that declares priorities of objects.
fn declaring(poa: &Poa) -> Result<ExecutorPolicy, PoaError> {
    let wrong = |required| PoaError::WrongPolicy { adapter: full_name(poa), required };
    let implicit = poa.policy(ImplicitActivationPolicy::POLICY_TYPE);
    if implicit.as_ref().and_then(Policy::value) == Some(&ImplicitActivationPolicy::ImplicitActivation) {
        return Err(wrong("NO_IMPLICIT_ACTIVATION"));
    }
    let executor = poa.policy(ExecutorPolicy::POLICY_TYPE).and_then(|policy| policy.value::<ExecutorPolicy>().cloned());
    let declares = |executor: &ExecutorPolicy| {
        as_lanes(executor)?.model().filter(|policy| policy.model == PriorityModel::ServerDeclared)
    };
    executor.filter(|executor| declares(executor).is_some()).ok_or_else(|| wrong("SERVER_DECLARED"))
}

fn as_lanes(executor: &ExecutorPolicy) -> Option<&LaneExecutor> {
    let any: &dyn Any = &*executor.0;
    any.downcast_ref()
}

fn lanes(executor: &ExecutorPolicy) -> &LaneExecutor {
    as_lanes(executor).expect("`declaring` has checked it")
}

fn checked(executor: &ExecutorPolicy, priority: i16) -> Result<Priority, SystemException> {
    let priority = Priority::new(priority)?;
    lanes(executor).check_priority(priority)?;
    Ok(priority)
}

fn full_name(poa: &Poa) -> String {
    match poa.the_parent() {
        Some(parent) => format!("{}/{}", full_name(&parent), poa.the_name()),
        None => poa.the_name(),
    }
}

/// The policies of a list, and those of the ORB for adapters, of types that the list lacks.
fn with_defaults(orb: &Orb, policies: impl IntoIterator<Item = Policy>) -> Vec<Policy> {
    let mut policies: Vec<Policy> = policies.into_iter().collect();
    let types = [PriorityModelPolicy::POLICY_TYPE, ThreadpoolPolicy::POLICY_TYPE, ServerProtocolPolicy::POLICY_TYPE];
    for default in orb.policy_manager().policy_overrides(&types) {
        if !policies.iter().any(|policy| policy.policy_type() == default.policy_type()) {
            policies.push(default);
        }
    }
    policies
}

/// The executor of the adapter of this name, from the policies of a list.
fn executor(rt_orb: &RtServerOrb, orb: &Orb, name: &str, policies: &[Policy]) -> Result<ExecutorPolicy, PoaError> {
    let list = PolicyList { name, policies };
    let model = list.value::<PriorityModelPolicy>(PriorityModelPolicy::POLICY_TYPE)?;
    let pool = list.value::<ThreadpoolPolicy>(ThreadpoolPolicy::POLICY_TYPE)?;
    let bands = list.value::<PriorityBandedConnectionPolicy>(PriorityBandedConnectionPolicy::POLICY_TYPE)?;
    let protocols = list.value::<ClientProtocolPolicy>(ClientProtocolPolicy::POLICY_TYPE)?;
    let threads = list.value::<ThreadPolicy>(ThreadPolicy::POLICY_TYPE)?;
    let first = model.map(|(at, _)| at).or(pool.map(|(at, _)| at)).or(bands.map(|(at, _)| at));
    if let (Some((at, threads)), Some(first)) = (threads, first)
        && *threads != ThreadPolicy::OrbCtrlModel
    {
        return Err(list.invalid(at.max(first), Some(at.min(first)), "thread pools require ORB_CTRL_MODEL"));
    }
    let thread_pool = match pool {
        Some((at, ThreadpoolPolicy(id))) => {
            rt_orb.threadpool(*id).ok_or_else(|| list.invalid(at, None, "there is no such thread pool"))?
        }
        None => rt_orb.default_threadpool()?,
    };
    let has_lanes = thread_pool.idle_priority().is_none();
    if let (None, Some((at, _))) = (model, pool.filter(|_| has_lanes)) {
        return Err(list.invalid(at, None, "a thread pool with lanes requires a priority model"));
    }
    let declared = model.filter(|(_, policy)| policy.model == PriorityModel::ServerDeclared);
    if let (Some((at, policy)), Some((of_pool, _))) = (declared, pool)
        && !thread_pool.has_lane(policy.server_priority)
    {
        return Err(list.invalid(at.max(of_pool), Some(at.min(of_pool)), "no lane has the declared priority"));
    }
    if let Some((at, bands)) = bands {
        if model.is_none() {
            return Err(list.invalid(at, None, "priority bands require a priority model"));
        }
        if let Some((declared_at, policy)) = declared
            && bands.band_of(policy.server_priority).is_none()
        {
            let (later, earlier) = (at.max(declared_at), at.min(declared_at));
            return Err(list.invalid(later, Some(earlier), "no band has the declared priority"));
        }
        let lanes = thread_pool.statistics();
        let is_served = |low, high| lanes.iter().any(|lane| (low..=high).contains(&lane.priority));
        if has_lanes && bands.bands().iter().any(|band| !is_served(band.low(), band.high())) {
            let of_pool = pool.map(|(of_pool, _)| of_pool);
            let (later, earlier) = (of_pool.unwrap_or(at).max(at), of_pool.map(|of_pool| of_pool.min(at)));
            return Err(list.invalid(later, earlier, "each band requires a lane whose priority it has"));
        }
    }
    let mut replies_carry_priority = false;
    let profiles = match list.value::<ServerProtocolPolicy>(ServerProtocolPolicy::POLICY_TYPE)? {
        Some((at, policy)) => {
            let protocols = policy.protocols();
            check_server_protocols(orb, &thread_pool, protocols)?.map_err(|reason| list.invalid(at, None, reason))?;
            replies_carry_priority = protocols.iter().any(Protocol::has_network_priority);
            Some(protocols::schemes_of_profiles(protocols))
        }
        None => None,
    };
    let (model, bands) = (model.map(|(_, policy)| *policy), bands.map(|(_, bands)| bands.clone()));
    let protocols = protocols.map(|(_, protocols)| protocols.clone());
    let network = replies_carry_priority.then(|| rt_orb.network_slot());
    let transform = rt_orb.transform_slot();
    let executor = LaneExecutor::new(name, model, bands, protocols, profiles, &thread_pool, transform, network);
    Ok(ExecutorPolicy(Arc::new(executor)))
}

/// Checks the server protocols of an adapter, and has the endpoints of its pool obey their properties. The policy is
/// invalid with a protocol by which neither the ORB nor a lane listens, as one that lacks the administration that it needs
/// (CORBA 3.3 Part 1, 15.3.9.2). TAO does the same.
///
/// # Errors
/// INITIALIZE if the ORB cannot listen; the reason for which the policy is invalid.
fn check_server_protocols(
    orb: &Orb,
    pool: &ThreadPool<LaneRequest>,
    protocols: &[Protocol],
) -> Result<Result<(), &'static str>, SystemException> {
    let mut open = vec![orb.published()?];
    let endpoints = pool.statistics().into_iter().filter_map(|lane| pool.endpoint_of(lane.priority));
    open.extend(endpoints.filter_map(|number| dedicated_addresses(orb, number)));
    let is_open = |protocol: &Protocol| open.iter().any(|published| published.has_scheme(protocol.schemes()));
    Ok(if !protocols.iter().all(is_open) {
        Err("neither the ORB nor a lane listens by one of its protocols")
    } else if protocols.iter().all(|protocol| protocol.protocol_type == protocols::DATAGRAMS) {
        Err("datagrams serve one-ways alone: another protocol is required beside them")
    } else {
        let conflict = "another adapter has given the endpoints of the thread pool other properties";
        pool.set_socket_properties(protocols).map_err(|_| conflict)
    })
}

/// The policies for a new adapter.
struct PolicyList<'p> {
    name: &'p str,
    policies: &'p [Policy],
}

impl PolicyList<'_> {
    /// The index and value of the policy of this type.
    fn value<V: spandrel_orb::PolicyValue>(&self, policy_type: u32) -> Result<Option<(usize, &V)>, PoaError> {
        let mut of_type = self.policies.iter().enumerate().filter(|(_, policy)| policy.policy_type() == policy_type);
        let Some((at, policy)) = of_type.next() else { return Ok(None) };
        if let Some((second, _)) = of_type.next() {
            return Err(self.invalid(second, Some(at), "an adapter has one policy of each type"));
        }
        let value =
            policy.value().ok_or_else(|| self.invalid(at, None, "the number of its type belongs to another policy"))?;
        Ok(Some((at, value)))
    }

    fn invalid(&self, index: usize, clash: Option<usize>, reason: &'static str) -> PoaError {
        PoaError::InvalidPolicy {
            adapter: self.name.to_owned(),
            index: u16::try_from(index).unwrap_or(u16::MAX),
            policy: format!("{:?}", self.policies[index]),
            clash: clash.map(|clash| format!("{:?}", self.policies[clash])),
            reason,
        }
    }
}
