//! The policies of a reference, and the policies in force for a call: those of the reference, the thread and the
//! ORB, and the inherited deadline.

use std::time::{Duration, SystemTime};

use spandrel_giop::{CompletionStatus, SystemException, minor};
use spandrel_transport::Deadline;

use super::{
    current,
    earliest_delivery::EarliestDelivery,
    in_force::{client_policy, in_force},
};
use crate::{
    ObjectRef, Orb, Policy, PolicyType,
    client::Buffering,
    orb::{parts::PolicyLookup, start_times::StartTimes},
    policy::{
        BufferingConstraintPolicy, ConnectionTimeoutPolicy, OverrideError, Overrides, PolicyValues, RebindPolicy,
        RelativeRequestTimeoutPolicy, ReplyEndTimePolicy, RequestEndTimePolicy, SetOverrideType, SyncScopePolicy,
        is_own_policy, quality_of_service, request_deadlines,
        thread_flags::{self, ThreadFlag},
        time_limits,
    },
    servant_side::held_replies,
};

/// The policies in force for a call that begins now.
#[derive(Debug)]
pub struct CallPolicies {
    /// The times by which the call must be sent and answered; `None` without limits.
    pub deadline: Option<Deadline>,
    pub(crate) rebind: RebindPolicy,
    /// The start times of the request and its reply, if set.
    pub start_times: Option<Box<dyn StartTimes>>,
}

/// Plugs the lookup of policies into an ORB, before one can be set there.
pub(crate) fn look_policies_up(orb: &Orb) {
    orb.parts().add_policy_lookup(PolicyLookup {
        thread: current::policy_values,
        limits,
        start_times: EarliestDelivery::of,
    });
}

/// The deadline of a call that begins now, if more than its round trip is limited.
#[cold]
fn limits(orb: &Orb, overrides: &Overrides, round_trip: Option<Duration>) -> Option<Deadline> {
    let now = SystemTime::now();
    let until = |end: SystemTime| end.duration_since(now).unwrap_or(Duration::ZERO);
    let reply = in_force(orb, overrides, time_limits::REPLY_END_TIME).map(|ReplyEndTimePolicy(end)| until(end));
    let request = in_force(orb, overrides, time_limits::REQUEST_END_TIME).map(|RequestEndTimePolicy(end)| until(end));
    let sending =
        in_force(orb, overrides, time_limits::RELATIVE_REQUEST_TIMEOUT).map(|RelativeRequestTimeoutPolicy(span)| span);
    let soonest = |one: Option<Duration>, other: Option<Duration>| one.into_iter().chain(other).min();
    let connecting =
        in_force(orb, overrides, time_limits::CONNECTION_TIMEOUT).map(|ConnectionTimeoutPolicy(span)| span);
    let deadline = match (soonest(round_trip, reply), soonest(sending, request)) {
        (None, None) if connecting.is_none() => return None,
        (all, None) => Deadline::after(all.unwrap_or(Duration::MAX)),
        (all, Some(sending)) => Deadline::after(all.unwrap_or(Duration::MAX)).with_sending(sending),
    };
    Some(deadline.with_connecting(connecting))
}

impl ObjectRef {
    /// A reference to the same object with other policies of its own (`Object::_set_policy_overrides`, CORBA
    /// 3.3 Part 1, 8.3.9).
    ///
    /// The new reference is not bound yet, and does not inherit temporary forwardings.
    ///
    /// # Errors
    /// [`OverrideError`].
    pub fn set_policy_overrides(
        &self,
        policies: &[Policy],
        override_type: SetOverrideType,
    ) -> Result<Self, OverrideError> {
        look_policies_up(self.orb());
        Ok(self.with_overrides(self.overrides().with(Overrides::of(policies)?, override_type)))
    }

    /// The reference's own policies of these types; all of them if `types` is empty
    /// (`_get_policy_overrides`).
    #[must_use]
    pub fn policy_overrides(&self, types: &[PolicyType]) -> Vec<Policy> {
        self.overrides().of_types(types)
    }

    /// The policy in force for calls of this thread (`_get_client_policy`): the reference's, or else the
    /// thread's, or else the ORB's, or else the default. `None` if the default is no limit, and for types
    /// that are not set.
    #[must_use]
    pub fn client_policy(&self, policy_type: PolicyType) -> Option<Policy> {
        client_policy(self.orb(), self.overrides(), policy_type)
    }

    /// The policy in force (`_get_policy`): as [`client_policy`](Self::client_policy), reconciled with the object's
    /// policy in the reference for the types that [an optional part](crate::BindingPolicies) of the ORB obeys. Servers
    /// put none of the others into references.
    ///
    /// # Errors
    /// INV_POLICY for a type that neither the ORB nor a registered factory supports, and for policies that cannot be
    /// reconciled (8.3.8).
    pub fn policy(&self, policy_type: PolicyType) -> Result<Option<Policy>, SystemException> {
        if let Some(binding) = self.orb().binding_policies().filter(|binding| binding.obeys(policy_type)) {
            return binding.effective_policy(self, policy_type);
        }
        let policy = self.client_policy(policy_type);
        let is_known = || is_own_policy(policy_type) || self.orb().policies().factory(policy_type).is_some();
        if policy.is_none() && !is_known() {
            return Err(SystemException::inv_policy(minor::UNKNOWN_POLICY_TYPE, CompletionStatus::No)
                .with_detail(|| format!("policies of type {policy_type} are unknown")));
        }
        Ok(policy)
    }

    /// The buffering of a one-way that is sent now; `None` if its caller waits until it is written.
    pub(crate) fn buffering(&self) -> Option<Buffering> {
        if !self.has_policies() {
            return None;
        }
        let policy_values = self.policy_values();
        if policy_values.sync_scope() != SyncScopePolicy::None {
            return None;
        }
        if policy_values.has_buffering()
            && let Some(policy) = in_force(self.orb(), self.overrides(), quality_of_service::BUFFERING_CONSTRAINT)
        {
            let BufferingConstraintPolicy { timeout, messages, octets } = policy;
            return Some(Buffering { timeout, messages, octets, is_prompt: false });
        }
        Some(Buffering::default())
    }

    /// The policies in force for this thread's calls.
    pub(crate) fn policy_values(&self) -> PolicyValues {
        let own = self.own_policy_values();
        let lookup = self.orb().parts().policy_lookup().filter(|_| thread_flags::any_set());
        let own = lookup.map_or(own, |lookup| own.or((lookup.thread)(self.orb())));
        own.or(self.orb().policy_values().get())
    }

    /// The policies in force for a call that begins now.
    #[inline]
    pub fn call_policies(&self) -> CallPolicies {
        if self.has_policies() {
            return self.resolve_call_policies();
        }
        CallPolicies { deadline: None, rebind: RebindPolicy::default(), start_times: None }
    }

    /// Whether this thread's calls may have policies.
    #[inline]
    pub(crate) fn has_policies(&self) -> bool {
        thread_flags::are_in_use()
            && (thread_flags::any_set() || self.orb().policy_values().is_set() || self.own_policy_values().is_set())
    }

    /// Resolves the policies of a call that has any.
    #[inline(never)]
    fn resolve_call_policies(&self) -> CallPolicies {
        if thread_flags::is_set(ThreadFlag::HeldReplies) {
            held_replies::send();
        }
        let policy_values = self.policy_values();
        let round_trip = policy_values.round_trip();
        let (orb, overrides) = (self.orb(), self.overrides());
        let (own, start_times) = match orb.parts().policy_lookup() {
            Some(lookup) if policy_values.is_limited() => {
                ((lookup.limits)(orb, overrides, round_trip), (lookup.start_times)(orb, overrides))
            }
            _ => (round_trip.map(Deadline::after), None),
        };
        CallPolicies { deadline: self.within_inherited(own), rebind: policy_values.rebind(), start_times }
    }

    /// Bounds the deadline by that of the request that this thread serves.
    fn within_inherited(&self, own: Option<Deadline>) -> Option<Deadline> {
        let Some(inherited) = request_deadlines::inherited().filter(|_| self.orb().settings().inherits_deadlines)
        else {
            return own;
        };
        match own {
            Some(own) if own.end().is_some_and(|end| end <= inherited) => Some(own),
            own => Some(Deadline::until(inherited, own)),
        }
    }
}
