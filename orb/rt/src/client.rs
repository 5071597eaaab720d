//! The client's side of Real-time CORBA: the policies in force for a call, and the priority in its requests.

use spandrel_cdr::TaggedComponent;
use spandrel_giop::{CompletionStatus, ServiceContext, SystemException, minor};
use spandrel_orb::policy::ExposedPolicies;
use spandrel_orb::{BindingPolicies, BoundCall, CallerState, ObjectRef, Policy, PolicyType};

use crate::contexts::{self, PropagatedPolicy};
use crate::policies::{
    ClientProtocolPolicy, PriorityBand, PriorityBandedConnectionPolicy, PriorityModel, PriorityModelPolicy,
    PrivateConnectionPolicy, ServerProtocolPolicy, ThreadpoolPolicy,
};
use crate::{Priority, Scheduling, current};

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
#[derive(Debug)]
pub struct RtClient {
    scheduling: Scheduling,
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
        Self { scheduling: scheduling.clone() }
    }

    /// Reconciles the client's policy of a type with the object's: there must not be both (ptc/99-05-03, 4.12.1 and
    /// 4.15.4).
    fn reconcile(object: &ObjectRef, policy_type: PolicyType) -> Result<Option<Policy>, Conflict> {
        match (object.client_policy(policy_type), object.exposed_policy(policy_type)?) {
            (Some(client), Some(_)) => Err(conflict(
                "both the client and the reference of the object have a policy of this type",
                vec![client],
            )),
            (client, exposed) => Ok(client.or(exposed)),
        }
    }

    /// The band of a call by this thread, if there are bands, and the thread's priority.
    fn select(&self, object: &ObjectRef) -> Result<(Option<PriorityBand>, CallerState), Conflict> {
        let exposed_model = object.exposed_policy(PriorityModelPolicy::POLICY_TYPE)?;
        let model = exposed_model.as_ref().and_then(|policy| policy.value::<PriorityModelPolicy>().copied());
        let caller = current::present();
        let caller = match model {
            Some(PriorityModelPolicy { model: PriorityModel::ClientPropagated, .. }) => {
                Some(caller.map_or_else(|| self.scheduling.implied_priority(), Ok)?)
            }
            _ => caller,
        };
        let state = caller.map(Priority::get);
        let Some(policy) = Self::reconcile(object, PriorityBandedConnectionPolicy::POLICY_TYPE)? else {
            return Ok((None, state));
        };
        let Some(bands) = policy.value::<PriorityBandedConnectionPolicy>() else {
            return Err(conflict("a policy of type 45 is no priority-banded connection policy", vec![policy]));
        };
        let (Some(exposed_model), Some(model)) = (exposed_model, model) else {
            return Err(conflict("priority bands need a reference with a priority model", vec![policy]));
        };
        let priority = match model.model {
            PriorityModel::ClientPropagated => caller.unwrap_or(Priority::MIN),
            PriorityModel::ServerDeclared => model.server_priority,
        };
        match bands.band_of(priority) {
            Some(band) => Ok((Some(band), state)),
            None => Err(conflict("no priority band has the priority of the call", vec![policy, exposed_model])),
        }
    }
}

impl BindingPolicies for RtClient {
    fn read_policies(components: &[TaggedComponent]) -> Result<Option<Box<dyn ExposedPolicies>>, SystemException> {
        let mut policies: Vec<Policy> = Vec::new();
        for component in components {
            let decoded = contexts::decode_policies(component).map_err(|error| {
                SystemException::inv_objref(0, CompletionStatus::No)
                    .with_detail("the policies in the reference cannot be read")
                    .with_source(error)
            })?;
            policies.extend(decoded.into_iter().flatten().filter_map(|policy| match policy {
                PropagatedPolicy::PriorityModel(model) => Some(model.into()),
                PropagatedPolicy::PriorityBands(bands) => Some(bands.into()),
                PropagatedPolicy::Other(_) => None,
            }));
        }
        Ok(if policies.is_empty() { None } else { Some(Box::new(policies)) })
    }

    fn obeys(&self, policy_type: PolicyType) -> bool {
        (PriorityModelPolicy::POLICY_TYPE..=PriorityBandedConnectionPolicy::POLICY_TYPE).contains(&policy_type)
    }

    fn effective_policy(&self, object: &ObjectRef, policy_type: PolicyType) -> Result<Option<Policy>, SystemException> {
        match policy_type {
            PriorityModelPolicy::POLICY_TYPE => object.exposed_policy(policy_type),
            ThreadpoolPolicy::POLICY_TYPE | ServerProtocolPolicy::POLICY_TYPE => Ok(None),
            PrivateConnectionPolicy::POLICY_TYPE => Ok(object.client_policy(policy_type)),
            ClientProtocolPolicy::POLICY_TYPE | PriorityBandedConnectionPolicy::POLICY_TYPE => {
                Self::reconcile(object, policy_type).map_err(|conflict| conflict.exception)
            }
            _ => Ok(None),
        }
    }

    fn begin_call(&self, object: &ObjectRef) -> Result<BoundCall, SystemException> {
        let (_, caller) = self.select(object).map_err(|conflict| conflict.exception)?;
        Ok(BoundCall { route: None, caller })
    }

    fn contexts(
        &self,
        caller: CallerState,
        exposed: Option<&dyn ExposedPolicies>,
    ) -> Result<Vec<ServiceContext>, SystemException> {
        let model = exposed.and_then(|exposed| exposed.policy(PriorityModelPolicy::POLICY_TYPE));
        match model.as_ref().and_then(Policy::value) {
            Some(PriorityModelPolicy { model: PriorityModel::ClientPropagated, .. }) => {
                let priority = match caller.and_then(Priority::from_number) {
                    Some(priority) => priority,
                    None => self.scheduling.implied_priority()?,
                };
                Ok(vec![contexts::encode_priority(priority)])
            }
            _ => Ok(Vec::new()),
        }
    }

    fn validate(&self, object: &ObjectRef) -> Result<(bool, Vec<Policy>), SystemException> {
        // The policies that the reference names first, and then those of the place that the object is forwarded to.
        for is_bound in [false, true] {
            match self.select(object) {
                Err(Conflict { exception, policies }) if policies.is_empty() => return Err(exception),
                Err(Conflict { policies, .. }) => return Ok((false, policies)),
                Ok(_) if is_bound => {}
                Ok(_) => object.locate_and_bind()?,
            }
        }
        Ok((true, Vec::new()))
    }
}
