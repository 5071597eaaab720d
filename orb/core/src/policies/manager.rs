//! The policies of an ORB.

use spandrel_sync::{Arc, RwLock};

use super::{
    OverrideError, Overrides, PolicyFactory, RelativeRoundtripTimeoutPolicy, SetOverrideType, resolve_policies,
};
use crate::{Orb, Policy, PolicyType};

/// The policies of an ORB, and its policy factories.
#[derive(Debug, Default)]
pub(crate) struct OrbPolicies {
    pub(super) overrides: RwLock<Overrides>,
    pub(super) factories: RwLock<Vec<(PolicyType, Arc<dyn PolicyFactory>)>>,
}

impl OrbPolicies {
    /// The policies that the ORB's settings define.
    pub(crate) fn new(request_timeout: Option<std::time::Duration>) -> Self {
        let timeout = request_timeout.map(|limit| RelativeRoundtripTimeoutPolicy(limit).into());
        let overrides = Overrides::of(timeout.as_slice()).expect("one policy that clients may have");
        Self { overrides: RwLock::new(overrides), factories: RwLock::default() }
    }

    /// The factory that is registered for policies of a type.
    pub(super) fn factory(&self, policy_type: PolicyType) -> Option<Arc<dyn PolicyFactory>> {
        let factories = self.factories.read();
        factories
            .iter()
            .find(|(registered_type, _)| *registered_type == policy_type)
            .map(|(_, factory)| Arc::clone(factory))
    }
}

/// The policies of an ORB. They apply to calls whose reference and thread have no policy of the type
/// (`CORBA::PolicyManager`, CORBA 3.3 Part 1, 8.9).
#[derive(Clone, Debug)]
pub struct PolicyManager {
    orb: Orb,
}

impl Orb {
    /// The ORB's policies.
    #[must_use]
    pub fn policy_manager(&self) -> PolicyManager {
        PolicyManager { orb: self.clone() }
    }
}

impl PolicyManager {
    /// The ORB's policies of these types; all of them if `types` is empty (`get_policy_overrides`).
    #[must_use]
    pub fn policy_overrides(&self, types: &[PolicyType]) -> Vec<Policy> {
        self.orb.policies().overrides.read().of_types(types)
    }

    /// Sets policies for all calls that begin from now on.
    ///
    /// # Errors
    /// [`OverrideError`]; then nothing was changed.
    pub fn set_policy_overrides(
        &self,
        policies: &[Policy],
        override_type: SetOverrideType,
    ) -> Result<(), OverrideError> {
        // Before the lock is taken: policies run code of the program.
        let new = Overrides::of(policies)?;
        resolve_policies();
        let mut overrides = self.orb.policies().overrides.write();
        let new = overrides.with(new, override_type);
        self.orb.policy_values().set(new.policy_values());
        let bidirectional = new.get(crate::BidirectionalPolicy::POLICY_TYPE).and_then(|policy| policy.value().copied());
        let old = std::mem::replace(&mut *overrides, new);
        drop(overrides);
        // Dropped after the lock is released.
        drop(old);
        if bidirectional == Some(crate::BidirectionalPolicy::Both) {
            self.orb.enable_bidirectional(true);
        }
        Ok(())
    }
}

/// The ORB's policy of a type.
pub(super) fn policy(orb: &Orb, policy_type: PolicyType) -> Option<Policy> {
    orb.policies().overrides.read().get(policy_type).cloned()
}
