//! What is in force for a call that begins now: what the reference, the thread and the ORB say, and until when whoever waits for it has time.

use spandrel_transport::Deadline;

#[cfg(feature = "policies")]
use super::{EarliestDelivery, current};
use super::{PolicyValues, RebindPolicy};
use crate::ObjectRef;
#[cfg(feature = "server")]
use crate::deadlines;
#[cfg(any(feature = "policies", feature = "server"))]
use crate::thread_policy;

/// What a call goes by that begins now.
#[derive(Debug)]
pub(crate) struct CallPolicies {
    pub(crate) deadline: Option<Deadline>,
    pub(crate) rebind: RebindPolicy,
    /// What must not be delivered yet.
    #[cfg(feature = "policies")]
    pub(crate) starts: Option<EarliestDelivery>,
}

impl ObjectRef {
    /// The policies in force for this thread's calls.
    pub(crate) fn policy_values(&self) -> PolicyValues {
        let own = self.own_quality();
        #[cfg(feature = "policies")]
        let own = if thread_policy::are_there() { own.or(current::policy_values(self.orb())) } else { own };
        own.or(self.orb().policy_values().get())
    }

    #[inline]
    pub(crate) fn call_policies(&self) -> CallPolicies {
        if self.has_policies() {
            return self.terms_set();
        }
        CallPolicies {
            deadline: None,
            rebind: RebindPolicy::default(),
            #[cfg(feature = "policies")]
            starts: None,
        }
    }

    /// True if there may be policies for this thread's calls.
    #[inline]
    pub(crate) fn has_policies(&self) -> bool {
        #[cfg(any(feature = "policies", feature = "server"))]
        if thread_policy::are_there() {
            return true;
        }
        self.orb().policy_values().is_said() || self.own_quality().is_said()
    }

    /// Where there are policies.
    #[inline(never)]
    fn terms_set(&self) -> CallPolicies {
        let policy_values = self.policy_values();
        #[cfg(feature = "policies")]
        let (own, starts) = match policy_values.is_limited() {
            true => (self.limits(policy_values.round_trip()), self.starts()),
            false => (policy_values.round_trip().map(Deadline::after), None),
        };
        #[cfg(not(feature = "policies"))]
        let own = policy_values.round_trip().map(Deadline::after);
        CallPolicies {
            deadline: self.within_inherited(own),
            rebind: policy_values.rebind(),
            #[cfg(feature = "policies")]
            starts,
        }
    }

    /// Not later than whoever waits for what this thread serves has time.
    #[cfg(feature = "server")]
    fn within_inherited(&self, own: Option<Deadline>) -> Option<Deadline> {
        let Some(inherited) = deadlines::inherited().filter(|_| self.orb().settings().serving.inherits_deadlines)
        else {
            return own;
        };
        match own {
            Some(own) if own.end() <= inherited => Some(own),
            own => Some(Deadline::until(inherited, own)),
        }
    }

    #[cfg(not(feature = "server"))]
    fn within_inherited(&self, own: Option<Deadline>) -> Option<Deadline> {
        own
    }
}
