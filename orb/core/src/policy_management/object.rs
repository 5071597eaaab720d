//! The policies of a reference, and the policy in force among all levels.

use std::time::{Duration, SystemTime};

use spandrel_giop::{CompletionStatus, SystemException, minor};
use spandrel_transport::Deadline;

use super::{call_policies::resolve_policies, current, manager};
use crate::{
    ObjectRef, Policy, PolicyType, PolicyValue,
    client::Buffering,
    policies::{
        BufferingConstraintPolicy, ConnectionTimeoutPolicy, OverrideError, Overrides, RebindPolicy,
        RelativeRequestTimeoutPolicy, ReplyEndTimePolicy, RequestEndTimePolicy, SetOverrideType, SyncScopePolicy,
        buffering::BUFFERING_CONSTRAINT, is_own_policy, messaging, time_limits,
    },
};

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
        resolve_policies();
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
        let own_policy = || self.overrides().get(policy_type).cloned();
        let inherited_policy =
            || current::policy(self.orb(), policy_type).or_else(|| manager::policy(self.orb(), policy_type));
        own_policy().or_else(inherited_policy).or_else(|| match policy_type {
            messaging::REBIND => Some(RebindPolicy::default().into()),
            messaging::SYNC_SCOPE => Some(SyncScopePolicy::default().into()),
            _ => None,
        })
    }

    /// The policy in force (`_get_policy`): as [`client_policy`](Self::client_policy), since servers put none
    /// of the policies that this ORB obeys into references.
    ///
    /// # Errors
    /// INV_POLICY for a type that neither the ORB nor a registered factory supports (8.3.8).
    pub fn policy(&self, policy_type: PolicyType) -> Result<Option<Policy>, SystemException> {
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
            && let Some(policy) = self.in_force(BUFFERING_CONSTRAINT)
        {
            let BufferingConstraintPolicy { timeout, messages, octets } = policy;
            return Some(Buffering { timeout, messages, octets, is_prompt: false });
        }
        Some(Buffering::default())
    }

    /// The deadline of a call that begins now, if more than its round trip is limited.
    #[cold]
    pub(super) fn limits(&self, round_trip: Option<Duration>) -> Option<Deadline> {
        let now = SystemTime::now();
        let until = |end: SystemTime| end.duration_since(now).unwrap_or(Duration::ZERO);
        let reply = self.in_force(time_limits::REPLY_END_TIME).map(|ReplyEndTimePolicy(end)| until(end));
        let request = self.in_force(time_limits::REQUEST_END_TIME).map(|RequestEndTimePolicy(end)| until(end));
        let sending =
            self.in_force(time_limits::RELATIVE_REQUEST_TIMEOUT).map(|RelativeRequestTimeoutPolicy(span)| span);
        let soonest = |one: Option<Duration>, other: Option<Duration>| one.into_iter().chain(other).min();
        let connecting = self.in_force(time_limits::CONNECTION_TIMEOUT).map(|ConnectionTimeoutPolicy(span)| span);
        let deadline = match (soonest(round_trip, reply), soonest(sending, request)) {
            (None, None) if connecting.is_none() => return None,
            (all, None) => Deadline::after(all.unwrap_or(Duration::MAX)),
            (all, Some(sending)) => Deadline::after(all.unwrap_or(Duration::MAX)).with_sending(sending),
        };
        Some(deadline.with_connecting(connecting))
    }

    pub(super) fn in_force<V: PolicyValue + Copy>(&self, policy_type: PolicyType) -> Option<V> {
        self.client_policy(policy_type)?.value().copied()
    }
}
