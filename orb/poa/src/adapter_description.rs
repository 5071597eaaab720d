//! Descriptions of adapters for IOR interceptors (CORBA 3.3 Part 1, 16.5).

use spandrel_orb::{AdapterDescription, AdapterState, Policy, PolicyType};

use crate::{adapter_name::full_name, manager::Manager, policies::Policies};

/// An adapter that is about to be created.
pub(crate) struct NewAdapter<'a> {
    /// The path, from the root adapter's child on.
    pub(crate) path: &'a [String],
    pub(crate) manager: &'a Manager,
    pub(crate) policies: &'a Policies,
    pub(crate) explicit_policies: &'a [Policy],
}

impl AdapterDescription for NewAdapter<'_> {
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
        let explicit_policy = self.explicit_policies.iter().find(|policy| policy.policy_type() == policy_type).cloned();
        explicit_policy.or_else(|| self.policies.policy(policy_type))
    }
}
