//! The client's side of Real-time CORBA: the policies in force for a call, and the priority in its requests.

use std::fmt;

use spandrel_cdr::TaggedComponent;
use spandrel_giop::{CompletionStatus, ServiceContext, SystemException, minor};
use spandrel_orb::policy::ExposedPolicies;
use spandrel_orb::transport::SocketSettings;
use spandrel_orb::{
    BindingPolicies, BoundCall, CallerState, ConnectionGroup, GroupProtocol, ObjectRef, Orb, Policy, PolicyType,
    SystemExceptionKind,
};
use spandrel_sync::{Arc, Mutex, Weak};

use crate::contexts::{self, PropagatedPolicy, RT_CORBA_PRIORITY};
use crate::mapping::NetworkPriority;
use crate::policies::{
    ClientProtocolPolicy, MAX_BANDS, PriorityBand, PriorityBandedConnectionPolicy, PriorityModel, PriorityModelPolicy,
    PrivateConnectionPolicy,
};
use crate::protocols::Protocol;
use crate::{NetworkPriorityMapping, Priority, PriorityTransform, Scheduling, current};

/// The client's side of Real-time CORBA in an ORB ([`OrbBuilder::binding_policies`](spandrel_orb::OrbBuilder)).
///
/// Calls on an object whose reference names the priority model CLIENT_PROPAGATED carry the priority of the calling
/// thread: that of [`RtCurrent`](crate::RtCurrent), or else the one that its native priority stands for.
///
/// ```
/// use spandrel_orb::Orb;
/// use spandrel_rt::{LinearMapping, RtClient, Scheduling, SchedulingClass};
/// use spandrel_sync::Arc;
///
/// let scheduling = Scheduling::new(SchedulingClass::Fifo, Arc::new(LinearMapping));
/// let orb = Orb::builder().binding_policies(RtClient::new(&scheduling)).build()?;
/// # orb.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct RtClient {
    scheduling: Scheduling,
    network: Option<Arc<dyn NetworkPriorityMapping>>,
    /// The transform of priorities of calls that servants make.
    transform: Option<Arc<dyn PriorityTransform>>,
    /// The groups of connections that references share.
    groups: Mutex<Vec<(RouteKey, Weak<ConnectionGroup>)>>,
}

impl fmt::Debug for RtClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scheduling, network, groups, .. } = self;
        f.debug_struct("RtClient")
            .field("scheduling", scheduling)
            .field("network", network)
            .field("groups", groups)
            .finish_non_exhaustive()
    }
}

/// The connections that a call needs, by the values of its policies.
#[derive(Clone, Debug, Default)]
struct RouteKey {
    /// Whether its reference shares no connection with others.
    is_private: bool,
    /// The band of the call's priority, if there are bands.
    band: Option<PriorityBand>,
    /// The client protocol policy, if the protocols of the connection are restricted.
    restriction: Option<Policy>,
    /// The priority of its packets.
    network: NetworkPriority,
}

impl RouteKey {
    /// The protocols of the connection, if they are restricted.
    fn protocols(&self) -> Option<&ClientProtocolPolicy> {
        self.restriction.as_ref().and_then(Policy::value)
    }
}

impl PartialEq for RouteKey {
    fn eq(&self, other: &Self) -> bool {
        (self.is_private, self.band, self.network) == (other.is_private, other.band, other.network)
            && self.protocols() == other.protocols()
    }
}

/// The state of one reference, each list with the newest entry last.
#[derive(Debug, Default)]
struct Routes {
    /// The references to the object by other connections.
    by_key: Mutex<Vec<(RouteKey, ObjectRef)>>,
    /// The contexts with policies that requests carried.
    contexts: Mutex<Vec<(SentPolicies, Arc<ServiceContext>)>>,
}

/// The policies in force for one call.
#[derive(Debug)]
struct Selection {
    key: RouteKey,
    caller: CallerState,
    /// The priority of the request, by which it is sent before others.
    urgency: u16,
    /// The PRIORITY_BANDED_CONNECTION policy in force; `None` if one connection serves all priorities.
    banded: Option<Policy>,
    /// Whether calls of other priorities may need the other bands.
    opens_all_bands: bool,
    /// The policies of the client that the request carries.
    sent: SentPolicies,
    /// The priority model of the reference, if the request carries its priority.
    propagated: Option<Policy>,
}

impl Selection {
    /// The policies of a request that the server may refuse.
    fn decided_by_server(self) -> Vec<Policy> {
        let SentPolicies { bands, protocols } = self.sent;
        [bands, protocols, self.propagated].into_iter().flatten().collect()
    }
}

/// A call that the policies do not permit.
#[derive(Debug)]
struct Conflict {
    exception: SystemException,
    /// The policies that prevent it; empty if its thread has no priority.
    policies: Vec<Policy>,
}

impl From<SystemException> for Conflict {
    fn from(exception: SystemException) -> Self {
        Self { exception, policies: Vec::new() }
    }
}

/// INV_POLICY because of these policies.
fn conflict(detail: &'static str, policies: Vec<Policy>) -> Conflict {
    Conflict {
        exception: SystemException::inv_policy(minor::POLICY_CONFLICT, CompletionStatus::No).with_detail(detail),
        policies,
    }
}

impl RtClient {
    /// The client's side of an ORB whose threads are scheduled like this.
    #[must_use]
    pub fn new(scheduling: &Scheduling) -> Self {
        Self { scheduling: scheduling.clone(), network: None, transform: None, groups: Mutex::default() }
    }

    /// Sets the transform of the priorities of calls that servants make ([`PriorityTransform::outbound`]). The new priority
    /// is that of the request; the thread keeps its own.
    #[must_use]
    pub fn priority_transform(mut self, transform: Arc<dyn PriorityTransform>) -> Self {
        self.transform = Some(transform);
        self
    }

    /// The priority of a call by this thread at `priority`.
    ///
    /// # Errors
    /// UNKNOWN if the transform has none.
    fn outbound(&self, priority: Priority) -> Result<Priority, SystemException> {
        let Some(transform) = &self.transform else { return Ok(priority) };
        let Ok(id) = spandrel_poa::Current::new().object_id() else { return Ok(priority) };
        transform.outbound(priority, &id).ok_or_else(|| {
            SystemException::new(SystemExceptionKind::Unknown, 0, CompletionStatus::No)
                .with_detail(|| format!("the priority transform has no outbound priority for {priority}"))
        })
    }

    /// Sets the mapping to priorities of the network, for connections whose TCP properties enable these. Calls of
    /// different network priorities use different connections.
    #[must_use]
    pub fn network_priorities(mut self, mapping: Arc<dyn NetworkPriorityMapping>) -> Self {
        self.network = Some(mapping);
        self
    }

    /// The reference to the same object by the connections of a key.
    fn route(&self, object: &ObjectRef, key: &RouteKey) -> ObjectRef {
        let Some(Routes { by_key, .. }) = object.binding_state(Routes::default) else {
            return object.clone(); // a route, which interceptors see
        };
        let mut routes = by_key.lock();
        if let Some((_, route)) = routes.iter().find(|(other, _)| other == key) {
            return route.clone();
        }
        // Programs that change their policies at each call keep as many connections as one policy can have.
        let oldest = (routes.len() >= MAX_BANDS).then(|| routes.remove(0));
        let route = object.with_connections(&self.group(object, key));
        routes.push((key.clone(), route.clone()));
        drop(routes);
        drop(oldest);
        route
    }

    fn group(&self, object: &ObjectRef, key: &RouteKey) -> Arc<ConnectionGroup> {
        let orb = object.orb();
        let create = || ConnectionGroup::with_protocols(orb, group_protocols(orb.socket_settings(), key));
        if key.is_private {
            return create();
        }
        let mut groups = self.groups.lock();
        groups.retain(|(_, group)| group.strong_count() > 0);
        if let Some(group) = groups.iter().find(|(other, _)| other == key).and_then(|(_, group)| group.upgrade()) {
            return group;
        }
        let group = create();
        groups.push((key.clone(), Arc::downgrade(&group)));
        group
    }

    /// Reconciles the client's policy of a type with the object's: there must not be both (ptc/99-05-03,
    /// 4.12.1 and 4.15.4).
    fn reconcile(object: &ObjectRef, policy_type: PolicyType) -> Result<Reconciled, Conflict> {
        let client = if object.has_binding_policies() { object.client_policy(policy_type) } else { None };
        match (client, object.exposed_policy(policy_type)?) {
            (Some(client), Some(_)) => Err(conflict(
                "both the client and the reference of the object have a policy of this type",
                vec![client],
            )),
            (Some(client), None) => Ok(Reconciled { effective: Some(client.clone()), client: Some(client) }),
            (None, exposed) => Ok(Reconciled { effective: exposed, client: None }),
        }
    }

    /// The context with these policies, for requests to an object.
    fn policies_context(
        object: &ObjectRef,
        policies: &SentPolicies,
    ) -> Result<Option<Arc<ServiceContext>>, SystemException> {
        if policies.is_empty() {
            return Ok(None);
        }
        let Some(Routes { contexts, .. }) = object.binding_state(Routes::default) else {
            return policies.encode().map(Some); // for a route, which interceptors see
        };
        let mut contexts = contexts.lock();
        if let Some((_, context)) = contexts.iter().find(|(other, _)| other == policies) {
            return Ok(Some(Arc::clone(context)));
        }
        let context = policies.encode()?;
        if contexts.len() >= MAX_CONTEXTS {
            contexts.remove(0);
        }
        contexts.push((policies.clone(), Arc::clone(&context)));
        Ok(Some(context))
    }

    /// The policies in force for a call by this thread.
    fn select(&self, object: &ObjectRef) -> Result<Selection, Conflict> {
        let exposed_model = object.exposed_policy(PriorityModelPolicy::POLICY_TYPE)?;
        let model = exposed_model.as_ref().and_then(|policy| policy.value::<PriorityModelPolicy>().copied());
        let caller = current::present();
        let caller = match model {
            Some(PriorityModelPolicy { model: PriorityModel::ClientPropagated, .. }) => {
                let own = caller.map_or_else(|| self.scheduling.implied_priority(), Ok)?;
                Some(self.outbound(own)?)
            }
            _ => caller,
        };
        let mut key = RouteKey::default();
        if object.has_binding_policies() {
            key.is_private = object.client_policy(PrivateConnectionPolicy::POLICY_TYPE).is_some();
        }
        let protocols = Self::reconcile(object, ClientProtocolPolicy::POLICY_TYPE)?;
        let banded = Self::reconcile(object, PriorityBandedConnectionPolicy::POLICY_TYPE)?;
        let sent = SentPolicies { bands: banded.client, protocols: protocols.client };
        let policies = Self::policies_context(object, &sent)?;
        let is_propagated = |model: PriorityModelPolicy| model.model == PriorityModel::ClientPropagated;
        let propagated = exposed_model.clone().filter(|_| model.is_some_and(is_propagated));
        key.restriction = protocols.effective;
        let selection = |band: Option<PriorityBand>, opens_all_bands: bool, banded: Option<&Policy>| {
            let priority = match (band, model) {
                (Some(band), _) => Some(band.high()),
                (None, Some(PriorityModelPolicy { model: PriorityModel::ServerDeclared, server_priority })) => {
                    Some(server_priority)
                }
                _ => caller,
            };
            let key = RouteKey { band, network: self.network_priority(&key, priority)?, ..key.clone() };
            let banded = banded.cloned();
            let declared = model.filter(|policy| policy.model == PriorityModel::ServerDeclared);
            let urgency = declared
                .map(|policy| policy.server_priority)
                .or(caller)
                .map_or(0, |priority| priority.get().unsigned_abs());
            let caller = CallerState { number: caller.map(Priority::get), policies: policies.clone() };
            let (sent, propagated) = (sent.clone(), propagated.clone());
            Ok(Selection { key, caller, urgency, banded, opens_all_bands, sent, propagated })
        };
        let Some(policy) = banded.effective else {
            return selection(None, false, None);
        };
        let Some(bands) = policy.value::<PriorityBandedConnectionPolicy>() else {
            return Err(conflict("a policy of type 45 is no priority-banded connection policy", vec![policy]));
        };
        let (Some(exposed_model), Some(model)) = (exposed_model, model) else {
            return Err(conflict("priority bands need a reference with a priority model", vec![policy]));
        };
        let (priority, opens_all_bands) = match model.model {
            PriorityModel::ClientPropagated => (caller.unwrap_or(Priority::MIN), true),
            PriorityModel::ServerDeclared => (model.server_priority, false),
        };
        match bands.band_of(priority) {
            Some(band) => selection(Some(band), opens_all_bands, Some(&policy)),
            None => Err(conflict("no priority band has the priority of the call", vec![policy, exposed_model])),
        }
    }

    /// The network priority of calls at a priority.
    fn network_priority(&self, key: &RouteKey, priority: Option<Priority>) -> Result<NetworkPriority, SystemException> {
        let is_enabled = |policy: &ClientProtocolPolicy| policy.protocols().iter().any(Protocol::has_network_priority);
        match (&self.network, priority) {
            (Some(network), Some(priority)) if key.protocols().is_some_and(is_enabled) => {
                NetworkPriority::new(&**network, priority)
            }
            _ => Ok(NetworkPriority::default()),
        }
    }

    /// Opens the connections for calls of all priorities. Returns the reference by which this thread's calls are made.
    fn bind_all(&self, object: &ObjectRef, selection: &Selection) -> Result<ObjectRef, SystemException> {
        let route = self.bind(object, &selection.key)?;
        let policy = selection.banded.as_ref().filter(|_| selection.opens_all_bands);
        let bands = policy.and_then(Policy::value).map_or(&[][..], PriorityBandedConnectionPolicy::bands);
        for band in bands.iter().filter(|band| Some(**band) != selection.key.band) {
            let network = self.network_priority(&selection.key, Some(band.high()))?;
            self.bind(object, &RouteKey { band: Some(*band), network, ..selection.key.clone() })?;
        }
        Ok(route)
    }

    /// Opens the connection of a key, and tells the server its band. Returns the reference by which calls use it.
    fn bind(&self, object: &ObjectRef, key: &RouteKey) -> Result<ObjectRef, SystemException> {
        let route = if *key == RouteKey::default() { object.clone() } else { self.route(object, key) };
        route.locate_and_bind()?;
        let Some(band) = key.band else { return Ok(route) };
        match route.call_implicit(BIND_PRIORITY_BAND, &[contexts::encode_priority_range(band)]) {
            // The server does not know bands: the connection is of use to the client all the same.
            Err(exception) if is_unknown_operation(&exception) => {
                tracing::debug!(%exception, "the server does not bind connections to priority bands");
                Ok(route)
            }
            bound => bound.map(|()| route),
        }
    }
}

/// The greatest number of contexts with policies that a reference keeps.
const MAX_CONTEXTS: usize = 8;

/// A policy of the client and the one in the reference, of which there is at most one.
struct Reconciled {
    /// The policy in force.
    effective: Option<Policy>,
    /// The same, if it is the client's.
    client: Option<Policy>,
}

/// The policies of the client that its requests carry (INVOCATION_POLICIES): those that servers may have as well.
#[derive(Clone, Debug, Default)]
struct SentPolicies {
    bands: Option<Policy>,
    protocols: Option<Policy>,
}

impl SentPolicies {
    fn bands(&self) -> Option<&PriorityBandedConnectionPolicy> {
        self.bands.as_ref().and_then(Policy::value)
    }

    fn protocols(&self) -> Option<&ClientProtocolPolicy> {
        self.protocols.as_ref().and_then(Policy::value)
    }

    fn is_empty(&self) -> bool {
        self.bands.is_none() && self.protocols.is_none()
    }

    fn encode(&self) -> Result<Arc<ServiceContext>, SystemException> {
        let bands = self.bands().cloned().map(PropagatedPolicy::PriorityBands);
        let protocols = self.protocols().cloned().map(PropagatedPolicy::ClientProtocols);
        let policies: Vec<_> = bands.into_iter().chain(protocols).collect();
        contexts::encode_invocation_policies(&policies).map(Arc::new).map_err(|error| {
            SystemException::marshal(0, CompletionStatus::No)
                .with_detail("the policies of the client cannot be encoded")
                .with_source(error)
        })
    }
}

impl PartialEq for SentPolicies {
    fn eq(&self, other: &Self) -> bool {
        self.bands() == other.bands() && self.protocols() == other.protocols()
    }
}

/// The protocols of a group's connections, with their sockets; `None` for those of the ORB.
fn group_protocols(of_orb: SocketSettings, key: &RouteKey) -> Option<Vec<GroupProtocol>> {
    let protocols = key.protocols()?.protocols().iter();
    let with_sockets = protocols.flat_map(|protocol| {
        let mut sockets = protocol.sockets(of_orb);
        if protocol.has_network_priority() {
            let tuning = sockets.tuning.get_or_insert_default();
            (tuning.traffic_class, tuning.priority) = (key.network.traffic_class, key.network.socket);
        }
        protocol.schemes().iter().map(move |scheme| GroupProtocol { scheme, sockets })
    });
    Some(with_sockets.collect())
}

/// Whether a server has refused an implicit operation because it does not know that.
fn is_unknown_operation(exception: &SystemException) -> bool {
    matches!(exception.kind(), SystemExceptionKind::BadOperation | SystemExceptionKind::NoImplement)
}

/// The implicit operation that binds a connection to a band of priorities. It has no arguments and no results.
const BIND_PRIORITY_BAND: &str = "_bind_priority_band";

impl BindingPolicies for RtClient {
    fn read_policies(components: &[TaggedComponent]) -> Option<Box<dyn ExposedPolicies>> {
        let mut policies: Vec<Policy> = Vec::new();
        for component in components {
            let decoded = match contexts::decode_policies(component) {
                Ok(decoded) => decoded.into_iter().flatten(),
                Err(error) => {
                    let unreadable = SystemException::inv_objref(0, CompletionStatus::No)
                        .with_detail("the policies in the reference cannot be read")
                        .with_source(error);
                    return Some(Box::new(unreadable));
                }
            };
            policies.extend(decoded.filter_map(|policy| match policy {
                PropagatedPolicy::PriorityModel(model) => Some(model.into()),
                PropagatedPolicy::PriorityBands(bands) => Some(bands.into()),
                PropagatedPolicy::ClientProtocols(protocols) => Some(protocols.into()),
                PropagatedPolicy::Other(_) => None,
            }));
        }
        (!policies.is_empty()).then(|| Box::new(policies) as Box<dyn ExposedPolicies>)
    }

    fn begin(&self, orb: &Orb) -> Result<(), SystemException> {
        // Starts the thread of asynchronous calls: it has the native priority of this thread, and not that of the first
        // caller.
        orb.spawn(std::future::ready(()))
    }

    fn obeys(&self, policy_type: PolicyType) -> bool {
        (PriorityModelPolicy::POLICY_TYPE..=PriorityBandedConnectionPolicy::POLICY_TYPE).contains(&policy_type)
    }

    fn effective_policy(&self, object: &ObjectRef, policy_type: PolicyType) -> Result<Option<Policy>, SystemException> {
        match policy_type {
            PriorityModelPolicy::POLICY_TYPE => object.exposed_policy(policy_type),
            PrivateConnectionPolicy::POLICY_TYPE => Ok(object.client_policy(policy_type)),
            ClientProtocolPolicy::POLICY_TYPE | PriorityBandedConnectionPolicy::POLICY_TYPE => {
                Self::reconcile(object, policy_type)
                    .map(|reconciled| reconciled.effective)
                    .map_err(|conflict| conflict.exception)
            }
            _ => Ok(None),
        }
    }

    fn begin_call(&self, object: &ObjectRef) -> Result<BoundCall, SystemException> {
        let Selection { key, caller, urgency, .. } = self.select(object).map_err(|conflict| conflict.exception)?;
        let needs_route = key != RouteKey::default() && !object.has_own_connections();
        Ok(BoundCall { route: needs_route.then(|| self.route(object, &key)), caller, urgency })
    }

    fn set_contexts(
        &self,
        caller: &CallerState,
        exposed: Option<&dyn ExposedPolicies>,
        contexts: &mut Vec<ServiceContext>,
    ) -> Result<(), SystemException> {
        let model = exposed.map(|exposed| exposed.policy(PriorityModelPolicy::POLICY_TYPE)).transpose()?.flatten();
        let priority = match model.as_ref().and_then(Policy::value) {
            Some(PriorityModelPolicy { model: PriorityModel::ClientPropagated, .. }) => {
                Some(match caller.number.and_then(Priority::from_number) {
                    Some(priority) => priority,
                    None => self.scheduling.implied_priority()?,
                })
            }
            _ => None,
        };
        let count = usize::from(priority.is_some()) + usize::from(caller.policies.is_some());
        contexts.resize_with(count, || ServiceContext { id: RT_CORBA_PRIORITY, data: Vec::new() });
        if let (Some(priority), [context, ..]) = (priority, &mut **contexts) {
            context.id = RT_CORBA_PRIORITY;
            contexts::write_priority(priority, &mut context.data);
        }
        if let (Some(policies), [.., context]) = (&caller.policies, &mut **contexts) {
            context.id = policies.id;
            context.data.clone_from(&policies.data);
        }
        Ok(())
    }

    fn validate(&self, object: &ObjectRef) -> Result<(bool, Vec<Policy>), SystemException> {
        // The policies that the reference names first, and then those of the place that the object is forwarded to.
        let mut bound = None;
        let decided_by_server = loop {
            let selection = match self.select(bound.as_ref().unwrap_or(object)) {
                Err(Conflict { exception, policies }) if policies.is_empty() => return Err(exception),
                Err(Conflict { policies, .. }) => return Ok((false, policies)),
                Ok(selection) if bound.is_some() => break selection.decided_by_server(),
                Ok(selection) => selection,
            };
            if let Some(restriction) = &selection.key.restriction
                && let Err(exception) = self.route(object, &selection.key).profile_destinations()
                && exception.kind() == SystemExceptionKind::InvPolicy
            {
                return Ok((false, vec![restriction.clone()]));
            }
            match self.bind_all(object, &selection) {
                Ok(route) => bound = Some(route),
                // Of the server, to which the band of a connection was sent.
                Err(exception) if exception.kind() == SystemExceptionKind::InvPolicy && selection.banded.is_some() => {
                    return Ok((false, selection.banded.into_iter().collect()));
                }
                Err(exception) => return Err(exception),
            }
        };
        if decided_by_server.is_empty() {
            return Ok((true, Vec::new()));
        }
        // The server may have other policies than the reference names. Only a request carries those of the client.
        match object.non_existent() {
            Err(exception) if exception.kind() == SystemExceptionKind::InvPolicy => Ok((false, decided_by_server)),
            Err(exception) if !is_unknown_operation(&exception) => Err(exception),
            _ => Ok((true, Vec::new())),
        }
    }
}
