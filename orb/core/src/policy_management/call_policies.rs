//! The policies in force for a call: those of the reference, the thread and the ORB, and the inherited
//! deadline.

use std::{sync::OnceLock, time::Duration};

use spandrel_transport::Deadline;

use super::{StartTimes, current};
use crate::{
    ObjectRef, Orb, deadlines,
    policies::{PolicyValues, RebindPolicy},
    thread_policy,
};

/// The policies in force for a call that begins now.
#[derive(Debug)]
pub struct CallPolicies {
    /// The deadline of the call.
    pub deadline: Option<Deadline>,
    pub(crate) rebind: RebindPolicy,
    /// The start times of the request and its reply, if set.
    pub start_times: Option<Box<dyn StartTimes>>,
}

/// Looks up the policies for which `PolicyValues` has only a flag.
#[derive(Debug)]
struct PolicyResolver {
    /// The values of the calling thread's policies.
    thread: fn(&Orb) -> PolicyValues,
    /// The deadline of a call that begins now, if more than its round trip is limited.
    limits: fn(&ObjectRef, Option<Duration>) -> Option<Deadline>,
    start_times: fn(&ObjectRef) -> Option<Box<dyn StartTimes>>,
}

/// The resolver, once a policy was set in this process. A program that sets none does not contain it.
static RESOLVER: OnceLock<PolicyResolver> = OnceLock::new();

/// Installs the resolver, before a policy is set.
pub(super) fn resolve_policies() {
    RESOLVER.get_or_init(|| PolicyResolver {
        thread: current::policy_values,
        limits: ObjectRef::limits,
        start_times: ObjectRef::start_times,
    });
}

impl ObjectRef {
    /// The policies in force for this thread's calls.
    pub(crate) fn policy_values(&self) -> PolicyValues {
        let own = self.own_policy_values();
        let resolver = RESOLVER.get().filter(|_| thread_policy::any_set());
        let own = resolver.map_or(own, |resolver| own.or((resolver.thread)(self.orb())));
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
        thread_policy::are_in_use()
            && (thread_policy::any_set() || self.orb().policy_values().is_set() || self.own_policy_values().is_set())
    }

    /// Resolves the policies of a call that has any.
    #[inline(never)]
    fn resolve_call_policies(&self) -> CallPolicies {
        let policy_values = self.policy_values();
        let round_trip = policy_values.round_trip();
        let (own, start_times) = match RESOLVER.get() {
            Some(resolver) if policy_values.is_limited() => {
                ((resolver.limits)(self, round_trip), (resolver.start_times)(self))
            }
            _ => (round_trip.map(Deadline::after), None),
        };
        CallPolicies { deadline: self.within_inherited(own), rebind: policy_values.rebind(), start_times }
    }

    /// Bounds the deadline by that of the request that this thread serves.
    fn within_inherited(&self, own: Option<Deadline>) -> Option<Deadline> {
        let Some(inherited) = deadlines::inherited().filter(|_| self.orb().settings().inherits_deadlines) else {
            return own;
        };
        match own {
            Some(own) if own.end() <= inherited => Some(own),
            own => Some(Deadline::until(inherited, own)),
        }
    }
}
