//! What IOR interceptors are told of adapters that are made and destroyed (CORBA 3.3 Part 1, 16.5).

use spandrel_orb::{AdapterDescription, AdapterState, Policy, PolicyType};

use crate::{adapter::full_name, manager::Manager, policies::Policies};

/// An adapter that is about to be made.
pub(crate) struct Described<'a> {
    /// From the root adapter's child on.
    pub(crate) path: &'a [String],
    pub(crate) manager: &'a Manager,
    pub(crate) policies: &'a Policies,
    pub(crate) given: &'a [Policy],
}

impl AdapterDescription for Described<'_> {
    fn adapter_name(&self) -> Vec<String> {
        full_name(self.path)
    }

    fn manager_id(&self) -> &str {
        self.manager.id()
    }

    fn state(&self) -> AdapterState {
        self.manager.state().into()
    }

    fn policy(&self, policy_type: PolicyType) -> Option<Policy> {
        let given = self.given.iter().find(|policy| policy.policy_type() == policy_type).cloned();
        given.or_else(|| self.policies.policy(policy_type))
    }
}
