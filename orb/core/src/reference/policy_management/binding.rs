//! Policies that decide how references are bound: the connections of calls, and service contexts of their requests.
//!
//! An optional part of an ORB obeys them ([`OrbBuilder::binding_policies`](crate::OrbBuilder::binding_policies)), such as
//! Real-time CORBA. Other ORBs know neither their types nor their values.

use spandrel_cdr::TaggedComponent;
use spandrel_giop::{ServiceContext, SystemException};
use spandrel_sync::Arc;

use crate::{ObjectRef, Orb, Policy, PolicyType, client::urgency::Urgency, policy::ExposedPolicies};

/// A part of an ORB that obeys policies of the scope [`Binding`](crate::PolicyScope::Binding), and those in references.
pub trait BindingPolicies: Send + Sync + std::fmt::Debug + 'static {
    /// Reads the policies among the components of a profile; `None` if there are none. Called once for each profile of
    /// a reference that is used.
    fn read_policies(components: &[TaggedComponent]) -> Option<Box<dyn ExposedPolicies>>
    where
        Self: Sized;

    /// Called at the end of the creation of an ORB that has this part, in the thread that builds it.
    ///
    /// # Errors
    /// The exception with which the creation fails.
    fn begin(&self, orb: &Orb) -> Result<(), SystemException> {
        _ = orb;
        Ok(())
    }

    /// Whether calls of this ORB take policies of this type into account.
    fn obeys(&self, policy_type: PolicyType) -> bool;

    /// The policy in force for calls of this thread by a reference, after the client's and the object's were reconciled
    /// (`_get_policy`; CORBA 3.3 Part 1, 8.3.8).
    ///
    /// # Errors
    /// INV_POLICY if they cannot be reconciled.
    fn effective_policy(&self, object: &ObjectRef, policy_type: PolicyType) -> Result<Option<Policy>, SystemException>;

    /// Chooses the route and the urgency of a call that this thread begins.
    ///
    /// # Errors
    /// The exception with which the call ends, COMPLETED_NO.
    fn begin_call(&self, object: &ObjectRef) -> Result<BoundCall, SystemException>;

    /// Sets the service contexts of a request of the call to an object with these policies. Called for each attempt,
    /// possibly by another thread than the call's own. `contexts` may have those of an earlier call, whose memory is
    /// reused: a call allocates nothing in the steady state.
    ///
    /// # Errors
    /// The exception with which the call ends, COMPLETED_NO.
    fn set_contexts(
        &self,
        caller: &CallerState,
        exposed: Option<&dyn ExposedPolicies>,
        contexts: &mut Vec<ServiceContext>,
    ) -> Result<(), SystemException>;

    /// Binds a reference explicitly (`_validate_connection`; CORBA 3.3 Part 1, 8.3.10). Returns whether this thread's
    /// calls are possible, and otherwise the policies that prevent them.
    ///
    /// # Errors
    /// The exception that ended the binding.
    fn validate(&self, object: &ObjectRef) -> Result<(bool, Vec<Policy>), SystemException>;
}

/// A record about the calling thread and its policies, with a meaning to its [`BindingPolicies`] alone.
#[derive(Clone, Debug, Default)]
pub struct CallerState {
    /// A number of the thread, such as its priority.
    pub number: Option<i16>,
    /// The context with the policies of the client that concern servers.
    pub policies: Option<Arc<ServiceContext>>,
}

/// The choices of [`BindingPolicies::begin_call`] for one call.
#[derive(Clone, Debug, Default)]
pub struct BoundCall {
    /// The reference by which the call is made, if it is another one: to the same object, by other connections.
    pub route: Option<ObjectRef>,
    /// The state of the calling thread when the call began, for [`BindingPolicies::set_contexts`].
    pub caller: CallerState,
    /// The urgency of its request: on a connection that callers share, the most urgent request that has not begun is
    /// written first.
    pub urgency: Urgency,
}

impl Orb {
    /// The part that obeys binding policies, if this ORB has one.
    pub(crate) fn binding_policies(&self) -> Option<&Arc<dyn BindingPolicies>> {
        self.binding_part().get()
    }
}

impl ObjectRef {
    /// The policy of a type that the reference carries for its object, at the destination that is tried
    /// first. `None` also for types that no part of the ORB obeys.
    ///
    /// # Errors
    /// As for a call by a reference without a usable profile; INV_OBJREF for policies that cannot be read.
    pub fn exposed_policy(&self, policy_type: PolicyType) -> Result<Option<Policy>, SystemException> {
        let forward = self.forwarded();
        let destinations = self.destinations(forward.as_deref())?;
        let mut exposed = destinations.iter().filter_map(|destination| destination.policies.as_deref());
        exposed.find_map(|exposed| exposed.policy(policy_type).transpose()).transpose()
    }

    /// Whether policies of the scope [`Binding`](crate::PolicyScope::Binding) are set for calls of this thread.
    #[must_use]
    pub fn has_binding_policies(&self) -> bool {
        self.has_policies() && self.policy_values().has_binding()
    }
}
