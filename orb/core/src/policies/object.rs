//! The policies of a reference, and which of all levels is in force for it.

use std::time::{Duration, SystemTime};

use spandrel_giop::{CompletionStatus, SystemException, minor};

use super::{
    OverrideError, Overrides, RebindPolicy, RelativeRequestTimeoutPolicy, ReplyEndTimePolicy, RequestEndTimePolicy,
    SetOverrideType, SyncScopePolicy, current, manager, messaging, values,
};
use crate::{
    Located, ObjectRef, Policy, PolicyType, PolicyValue,
    invocation::{MAX_FORWARDS, forwarded_too_often},
    reader::Deadline,
};

impl ObjectRef {
    /// The same object, with other policies of the reference's own (`Object::_set_policy_overrides`, CORBA 3.3 Part 1, 8.3.9).
    ///
    /// The new reference is not bound yet: what this one was forwarded to it does not know.
    ///
    /// # Errors
    /// [`OverrideError`].
    pub fn set_policy_overrides(&self, policies: &[Policy], how: SetOverrideType) -> Result<Self, OverrideError> {
        Ok(self.with_overrides(self.overrides().with(Overrides::of(policies)?, how)))
    }

    /// The reference's own policies of these types; all of them if no type is named (`_get_policy_overrides`).
    #[must_use]
    pub fn policy_overrides(&self, types: &[PolicyType]) -> Vec<Policy> {
        self.overrides().of_types(types)
    }

    /// The policy in force for calls of this thread (`_get_client_policy`): the reference's, or else the thread's, or else the
    /// ORB's, or else the default. None where the default is that nothing is limited, and for types that nobody has set.
    #[must_use]
    pub fn client_policy(&self, policy_type: PolicyType) -> Option<Policy> {
        let own = || self.overrides().get(policy_type).cloned();
        let others = || current::policy(self.orb(), policy_type).or_else(|| manager::policy(self.orb(), policy_type));
        own().or_else(others).or_else(|| match policy_type {
            messaging::REBIND => Some(RebindPolicy::default().into()),
            messaging::SYNC_SCOPE => Some(SyncScopePolicy::default().into()),
            _ => None,
        })
    }

    /// The policy in force (`_get_policy`): as [`client_policy`](Self::client_policy), since no policy that this ORB obeys is one
    /// that servers put into their references.
    ///
    /// # Errors
    /// INV_POLICY for a type that neither the ORB nor a registered factory knows (8.3.8).
    pub fn policy(&self, policy_type: PolicyType) -> Result<Option<Policy>, SystemException> {
        let policy = self.client_policy(policy_type);
        let is_known = || {
            self.orb().is_own_policy(policy_type) || self.orb().policies().factories.read().contains_key(&policy_type)
        };
        if policy.is_none() && !is_known() {
            return Err(SystemException::inv_policy(minor::UNKNOWN_POLICY_TYPE, CompletionStatus::No)
                .with_detail(|| format!("nobody knows policies of type {policy_type}")));
        }
        Ok(policy)
    }

    /// Binds the reference, or binds it again, whatever its rebind policy says (`_validate_connection`, 8.3.10): asks where the object
    /// is, and follows it there. The answer is whether calls can go by the policies in force, and which of them contradict
    /// those of the server. No policy that this ORB obeys can.
    ///
    /// # Errors
    /// OBJECT_NOT_EXIST if there is no such object; the system exception that ended the question.
    pub fn validate_connection(&self) -> Result<(bool, Vec<Policy>), SystemException> {
        self.note_bound(false);
        for _ in 0..=MAX_FORWARDS {
            match self.locate()? {
                Located::Here => return Ok((true, Vec::new())),
                Located::Forward(ior) => self.forward(&ior)?,
                // Where it was forwarded to it is no more; its home knows whether it has moved again.
                Located::Unknown if self.forget_forward() => {}
                Located::Unknown => {
                    return Err(SystemException::object_not_exist(0, CompletionStatus::No)
                        .with_detail("the server knows no such object"));
                }
            }
        }
        Err(forwarded_too_often())
    }

    /// The deadline of a call that begins now, where more than its round trip is limited.
    #[cold]
    pub(super) fn limits(&self, round_trip: Option<Duration>) -> Option<Deadline> {
        let now = SystemTime::now();
        let until = |end: SystemTime| end.duration_since(now).unwrap_or(Duration::ZERO);
        let reply = self.in_force(values::REPLY_END_TIME).map(|ReplyEndTimePolicy(end)| until(end));
        let request = self.in_force(values::REQUEST_END_TIME).map(|RequestEndTimePolicy(end)| until(end));
        let sending = self.in_force(values::RELATIVE_REQUEST_TIMEOUT).map(|RelativeRequestTimeoutPolicy(span)| span);
        let soonest = |one: Option<Duration>, other: Option<Duration>| one.into_iter().chain(other).min();
        match (soonest(round_trip, reply), soonest(sending, request)) {
            (None, None) => None,
            (Some(all), None) => Some(Deadline::after(all)),
            (all, Some(sending)) => Some(Deadline::after(all.unwrap_or(Duration::MAX)).with_sending(sending)),
        }
    }

    fn in_force<V: PolicyValue + Copy>(&self, policy_type: PolicyType) -> Option<V> {
        self.client_policy(policy_type)?.value().copied()
    }
}
