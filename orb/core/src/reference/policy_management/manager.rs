//! The policies of an ORB.

use crate::{
    BidirectionalPolicy, Orb, Policy, PolicyType,
    policy::{OverrideError, Overrides, SetOverrideType},
};

/// The policies of an ORB. They apply to calls whose reference and thread have no policy of the type
/// (`CORBA::PolicyManager`, CORBA 3.3 Part 1, 8.9).
///
/// ```
/// # mod spandrel { pub use spandrel_orb::*; pub mod policy { pub use spandrel_orb::policy::*; } }
/// use spandrel::Orb;
/// use spandrel::policy::{SetOverrideType, SyncScopePolicy};
///
/// let orb = Orb::builder().build()?;
/// let manager = orb.policy_manager();
/// manager.set_policy_overrides(&[SyncScopePolicy::WithServer.into()], SetOverrideType::AddOverride)?;
/// assert_eq!(manager.policy_overrides(&[])[0].value(), Some(&SyncScopePolicy::WithServer));
/// # orb.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct PolicyManager {
    orb: Orb,
}

impl PolicyManager {
    pub(crate) fn of(orb: &Orb) -> Self {
        Self { orb: orb.clone() }
    }

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
        let new = Overrides::of_orb(policies)?;
        let mut overrides = self.orb.policies().overrides.write();
        let new = overrides.with(new, override_type);
        self.orb.policy_values().set(new.policy_values());
        let bidirectional = new.get(BidirectionalPolicy::POLICY_TYPE).and_then(|policy| policy.value().copied());
        let old = std::mem::replace(&mut *overrides, new);
        drop(overrides);
        // Dropped after the lock is released.
        drop(old);
        if bidirectional == Some(BidirectionalPolicy::Both) {
            self.orb.enable_bidirectional(true);
        }
        Ok(())
    }
}

/// The ORB's policy of a type.
pub(super) fn policy(orb: &Orb, policy_type: PolicyType) -> Option<Policy> {
    orb.policies().overrides.read().get(policy_type).cloned()
}
