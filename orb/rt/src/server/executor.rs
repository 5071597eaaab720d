//! The executor of an adapter: the priority of each request, and its hand-over to a thread pool.

use std::collections::HashMap;
use std::fmt;

use spandrel_cdr::TaggedComponent;
use spandrel_giop::{CompletionStatus, SystemException, SystemExceptionKind, minor};
use spandrel_orb::Orb;
use spandrel_orb::transport::PublishedAddresses;
use spandrel_server::{
    EndpointNumber, HandedOverRequest, Placement, RequestExecutor, RequestMemory, RequestToPlace, Servant,
};
use spandrel_sync::{Arc, RwLock, Weak};

use super::LaneRequest;
use crate::contexts::{self, PropagatedPolicy};
use crate::mapping::NetworkPriority;
use crate::policies::{ClientProtocolPolicy, PriorityBandedConnectionPolicy, PriorityModel, PriorityModelPolicy};
use crate::rt_orb::{NetworkSlot, TransformSlot};
use crate::{Priority, RefusalReason, ThreadPool, Work, current};

/// The implicit operation that binds a connection to a band of priorities. It has no arguments and no results.
const BIND_PRIORITY_BAND: &str = "_bind_priority_band";

/// The greatest number of requests of an adapter whose memory is reserved.
const RESERVED_REQUESTS: usize = 256;

/// Gives the requests of one adapter their priorities, and hands them to a pool.
pub(super) struct LaneExecutor {
    /// The name of the adapter, for the reports of execution times.
    adapter: Arc<str>,
    model: Option<PriorityModelPolicy>,
    bands: Option<PriorityBandedConnectionPolicy>,
    /// The protocols by which clients connect, which references carry.
    protocols: Option<ClientProtocolPolicy>,
    /// The schemes that each profile of a reference offers; `None` for all of them in each.
    profiles: Option<Vec<Vec<&'static str>>>,
    /// Memory of requests, as many as its pool may have at once, up to [`RESERVED_REQUESTS`].
    memory: Arc<RequestMemory>,
    /// The pool belongs to the program: an adapter does not keep it.
    pool: Weak<ThreadPool<LaneRequest>>,
    /// The priority of requests without a priority model.
    idle_priority: Priority,
    transform: TransformSlot,
    /// The mapping to network priorities, if replies carry that of their request.
    network: Option<NetworkSlot>,
    /// By object id, for objects that have another priority than the policy's.
    declared: RwLock<HashMap<Vec<u8>, DeclaredPriority>>,
}

/// The priority that the program has given an object.
#[derive(Clone, Copy)]
struct DeclaredPriority {
    priority: Priority,
    /// Whether a reference was created with it. Such a priority is final.
    is_referenced: bool,
}

/// The operation that declares the priority of an object.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(super) enum Declaration {
    Reference,
    Activation,
}

/// The state of an object's priority before a declaration, by which that can be taken back.
pub(super) struct Undo(Option<DeclaredPriority>);

impl LaneExecutor {
    #[allow(clippy::too_many_arguments, reason = "the parts of an adapter, from one caller")]
    pub(super) fn new(
        adapter: &str,
        model: Option<PriorityModelPolicy>,
        bands: Option<PriorityBandedConnectionPolicy>,
        protocols: Option<ClientProtocolPolicy>,
        profiles: Option<Vec<Vec<&'static str>>>,
        pool: &Arc<ThreadPool<LaneRequest>>,
        transform: TransformSlot,
        network: Option<NetworkSlot>,
    ) -> Self {
        let idle_priority = pool.idle_priority().unwrap_or(Priority::MIN);
        let memory = RequestMemory::reserve(pool.max_requests().min(RESERVED_REQUESTS));
        let (pool, declared) = (Arc::downgrade(pool), RwLock::default());
        let adapter = adapter.into();
        Self { adapter, model, bands, protocols, profiles, memory, pool, idle_priority, transform, network, declared }
    }

    pub(super) fn model(&self) -> Option<PriorityModelPolicy> {
        self.model
    }

    /// Checks a priority for an object: BAD_PARAM for one that no lane or no band has.
    pub(super) fn check_priority(&self, priority: Priority) -> Result<(), SystemException> {
        let lacks = |part| {
            SystemException::bad_param(0, CompletionStatus::No)
                .with_detail(|| format!("the adapter has no {part} of the priority {priority}"))
        };
        if !self.pool()?.has_lane(priority) {
            return Err(lacks("lane"));
        }
        match &self.bands {
            Some(bands) if bands.band_of(priority).is_none() => Err(lacks("band")),
            _ => Ok(()),
        }
    }

    /// Gives an object its priority.
    ///
    /// # Errors
    /// BAD_INV_ORDER if a reference was created with another one.
    pub(super) fn declare(
        &self,
        object_id: &[u8],
        priority: Priority,
        declaration: Declaration,
    ) -> Result<Undo, SystemException> {
        let mut declared = self.declared.write();
        let before = declared.get(object_id).copied();
        if let Some(DeclaredPriority { priority: other, is_referenced: true }) = before
            && other != priority
        {
            drop(declared);
            // The standard's minor code 1, which has another text elsewhere.
            return Err(SystemException::bad_inv_order(minor::DEPENDENCY_EXISTS, CompletionStatus::No).with_detail(
                || format!("a reference to the object was created with the priority {other}, not {priority}"),
            ));
        }
        let is_referenced = declaration == Declaration::Reference || before.is_some_and(|before| before.is_referenced);
        declared.insert(object_id.to_vec(), DeclaredPriority { priority, is_referenced });
        Ok(Undo(before))
    }

    /// Takes a declaration back, whose operation has failed.
    pub(super) fn undo(&self, object_id: &[u8], undo: Undo) {
        let mut declared = self.declared.write();
        match undo.0 {
            Some(before) => declared.insert(object_id.to_vec(), before),
            None => declared.remove(object_id),
        };
    }

    /// Answers a client that binds its connection to a band of priorities. The connection needs no state for that: each
    /// request goes to its own lane.
    ///
    /// # Errors
    /// MARSHAL without the context of the band; INV_POLICY if its lowest priority is below all lanes, or the endpoint is
    /// that of a lane which does not serve all of it.
    fn bind_priority_band(&self, request: &RequestToPlace<'_>) -> Result<(), SystemException> {
        let band = contexts::find_priority_range(request.contexts).map_err(malformed)?;
        let band = band.ok_or_else(|| {
            SystemException::marshal(0, CompletionStatus::No).with_detail("the RTCorbaPriorityRange context is missing")
        })?;
        if !self.pool()?.serves(band.low()) {
            return Err(RefusalReason::NoLane.exception());
        }
        [band.low(), band.high()].into_iter().try_for_each(|priority| self.check_endpoint(request, priority))
    }

    /// Refuses a request that came by the endpoint of another lane.
    fn check_endpoint(&self, request: &RequestToPlace<'_>, priority: Priority) -> Result<(), SystemException> {
        let Some(endpoint) = request.endpoint else { return Ok(()) };
        let is_of_lane = self.pool()?.endpoint_of(priority) == Some(endpoint);
        if is_of_lane { Ok(()) } else { Err(RefusalReason::OtherLane.exception()) }
    }

    fn pool(&self) -> Result<Arc<ThreadPool<LaneRequest>>, SystemException> {
        self.pool.upgrade().ok_or_else(|| RefusalReason::PoolDestroyed.exception())
    }

    /// The priority that the program or the policy gives an object.
    fn declared_priority(&self, object_id: &[u8], policy: PriorityModelPolicy) -> Priority {
        self.declared.read().get(object_id).map_or(policy.server_priority, |declared| declared.priority)
    }

    /// The priority of a request, before the inbound transform.
    fn priority(&self, request: &RequestToPlace<'_>) -> Result<Priority, SystemException> {
        Ok(match self.model {
            None => self.idle_priority,
            Some(policy) if policy.model == PriorityModel::ServerDeclared => {
                self.declared_priority(request.object_id, policy)
            }
            Some(policy) => {
                let sent = contexts::find_priority(request.contexts).map_err(malformed)?;
                let of_caller = || if request.is_collocated { current::present() } else { None };
                sent.or_else(of_caller).unwrap_or(policy.server_priority)
            }
        })
    }

    /// Refuses a request whose client has policies that contradict those of the adapter. Its reference may name others: it
    /// may be older than the adapter, or an address alone.
    ///
    /// # Errors
    /// INV_POLICY for bands or protocols of both, and for a priority in none of the client's bands; MARSHAL for policies that
    /// cannot be read.
    fn check_client_policies(&self, request: &RequestToPlace<'_>, priority: Priority) -> Result<(), SystemException> {
        if request.contexts.find(contexts::INVOCATION_POLICIES).is_none() {
            return Ok(());
        }
        let policies = contexts::find_invocation_policies(request.contexts).map_err(malformed)?;
        policies.into_iter().flatten().try_for_each(|policy| {
            let text = match policy {
                PropagatedPolicy::PriorityBands(_) if self.bands.is_some() => {
                    "both the client and the adapter have priority bands"
                }
                PropagatedPolicy::PriorityBands(bands) if bands.band_of(priority).is_none() => {
                    "no priority band of the client has the priority of the request"
                }
                PropagatedPolicy::ClientProtocols(_) if self.protocols.is_some() => {
                    "both the client and the adapter have a client protocol policy"
                }
                _ => return Ok(()),
            };
            Err(SystemException::inv_policy(minor::POLICY_CONFLICT, CompletionStatus::No)
                .with_public_detail(|| text.to_owned()))
        })
    }

    /// The priority after the inbound transform.
    fn inbound(&self, priority: Priority, object_id: &[u8]) -> Result<Priority, SystemException> {
        let transform = self.transform.read().clone();
        let Some(transform) = transform else { return Ok(priority) };
        transform.inbound(priority, object_id).ok_or_else(|| {
            SystemException::new(SystemExceptionKind::Unknown, 0, CompletionStatus::No)
                .with_detail(|| format!("the priority transform has no inbound priority for {priority}"))
        })
    }

    /// The network priority of the reply to a request; `None` if replies have that of their connection.
    ///
    /// # Errors
    /// As [`NetworkPriority::new`].
    fn network_priority(&self, priority: Priority) -> Result<Option<NetworkPriority>, SystemException> {
        let Some(network) = &self.network else { return Ok(None) };
        let mapping = network.read().clone();
        mapping.map(|mapping| NetworkPriority::new(&*mapping, priority)).transpose()
    }
}

impl RequestExecutor for LaneExecutor {
    fn choose_thread(&self, request: &RequestToPlace<'_>) -> Result<Placement, SystemException> {
        if request.operation == BIND_PRIORITY_BAND {
            return self.bind_priority_band(request).map(|()| Placement::Acknowledge);
        }
        let sent = self.priority(request)?;
        self.check_client_policies(request, sent)?;
        let priority = self.inbound(sent, request.object_id)?;
        self.check_endpoint(request, priority)?;
        if request.is_collocated && self.pool()?.runs_here(priority) {
            return Ok(Placement::Here(Box::new(PriorityScope::enter(priority))));
        }
        let level = u32::from(priority.get().unsigned_abs());
        Ok(Placement::HandOver {
            level,
            reply_packets: self.network_priority(priority)?.map(NetworkPriority::of_reply),
        })
    }

    fn submit(&self, request: HandedOverRequest) {
        let number = i16::try_from(request.level()).unwrap_or(i16::MAX);
        let (priority, pool) = match (Priority::from_number(number), self.pool()) {
            (Some(priority), Ok(pool)) => (priority, pool),
            (_, Err(destroyed)) => return request.refuse(destroyed),
            (None, Ok(_)) => unreachable!("levels are not negative"),
        };
        let (octets, deadline) = (request.octets(), request.deadline());
        let (adapter, client) = (Some(Arc::clone(&self.adapter)), Some(request.client()));
        let work = Work { adapter, client, priority, octets, deadline, job: LaneRequest(request) };
        if let Err(refused) = pool.submit_when_room(work, |work| work.job.0.may_wait()) {
            refused.work.job.0.refuse(refused.reason.exception());
        }
    }

    fn request_memory(&self) -> Option<&Arc<RequestMemory>> {
        Some(&self.memory)
    }

    fn runs_direct_calls(&self, object_id: &[u8]) -> bool {
        // A call without a request has no contexts, and a transform may change its priority.
        let Some(policy) = self.model else { return false };
        let Some(present) = current::present().filter(|_| self.transform.read().is_none()) else { return false };
        let is_same =
            policy.model == PriorityModel::ClientPropagated || self.declared_priority(object_id, policy) == present;
        is_same && self.pool.upgrade().is_some_and(|pool| pool.runs_here(present))
    }

    fn check_servant(&self, servant: &dyn Servant) -> Result<(), SystemException> {
        if !servant.is_asynchronous() {
            return Ok(());
        }
        let exception = SystemException::inv_policy(minor::POLICY_CONFLICT, CompletionStatus::No);
        Err(exception.with_detail(|| {
            format!(
                "`{}` is an asynchronous servant, whose futures have no native priority: an adapter with a thread pool \
                 needs a synchronous one",
                servant.repository_id()
            )
        }))
    }

    fn endpoint(&self, object_id: &[u8]) -> Option<EndpointNumber> {
        let policy = self.model.filter(|policy| policy.model == PriorityModel::ServerDeclared)?;
        let priority = self.inbound(self.declared_priority(object_id, policy), object_id).ok()?;
        self.pool.upgrade()?.endpoint_of(priority)
    }

    fn reference_addresses(
        &self,
        orb: &Orb,
        dedicated: Option<PublishedAddresses>,
    ) -> Result<Vec<PublishedAddresses>, SystemException> {
        let Some(profiles) = &self.profiles else { return Ok(dedicated.into_iter().collect()) };
        let offering = |published: &PublishedAddresses| -> Vec<PublishedAddresses> {
            let is_called = |offered: &PublishedAddresses| offered.schemes.iter().any(|(scheme, _)| scheme != "diop");
            profiles.iter().filter_map(|schemes| published.offering(schemes)).filter(is_called).collect()
        };
        let offered = dedicated.as_ref().map(offering).unwrap_or_default();
        let offered = if offered.is_empty() { offering(&orb.published()?) } else { offered };
        if offered.is_empty() {
            return Err(SystemException::inv_policy(minor::POLICY_CONFLICT, CompletionStatus::No).with_detail(
                "neither the lane of the object nor the ORB listens by a protocol of the adapter's server protocol policy",
            ));
        }
        Ok(offered)
    }

    fn reference_components(&self, object_id: &[u8]) -> Vec<TaggedComponent> {
        let model = self.model.map(|policy| {
            let server_priority = match policy.model {
                PriorityModel::ClientPropagated => policy.server_priority,
                PriorityModel::ServerDeclared => self.declared_priority(object_id, policy),
            };
            PropagatedPolicy::PriorityModel(PriorityModelPolicy { server_priority, ..policy })
        });
        let bands = self.bands.clone().map(PropagatedPolicy::PriorityBands);
        let protocols = self.protocols.clone().map(PropagatedPolicy::ClientProtocols);
        let policies: Vec<_> = model.into_iter().chain(bands).chain(protocols).collect();
        if policies.is_empty() {
            return Vec::new();
        }
        contexts::encode_policies(&policies).into_iter().collect()
    }
}

/// MARSHAL for contexts that cannot be read.
fn malformed(error: contexts::DecodeError) -> SystemException {
    SystemException::marshal(0, CompletionStatus::No).with_detail(|| error.to_string()).with_source(error)
}

impl fmt::Debug for LaneExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LaneExecutor").field("model", &self.model).field("bands", &self.bands).finish_non_exhaustive()
    }
}

/// The time in which a thread of a pool runs a further request inside its own, at the priority of that request.
struct PriorityScope(Option<Priority>);

impl PriorityScope {
    fn enter(priority: Priority) -> Self {
        Self(current::replace(Some(priority)))
    }
}

impl Drop for PriorityScope {
    fn drop(&mut self) {
        current::replace(self.0);
    }
}
