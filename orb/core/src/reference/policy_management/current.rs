//! The policies of threads.

use std::cell::RefCell;

use spandrel_sync::thread_local;

use crate::{
    Orb, Policy, PolicyType,
    orb::OrbIdentity,
    policy::{
        OverrideError, Overrides, PolicyValues, SetOverrideType,
        thread_flags::{self, ThreadFlag},
    },
};

thread_local! {
    static CURRENT: RefCell<Vec<ThreadOverrides>> = const { RefCell::new(Vec::new()) };
}

/// The policies of a thread for one ORB.
struct ThreadOverrides {
    orb: OrbIdentity,
    overrides: Overrides,
    policy_values: PolicyValues,
}

/// The policies of the calling thread. They take precedence over those of the ORB; those of a reference take
/// precedence over them (`CORBA::PolicyCurrent`, CORBA 3.3 Part 1, 8.9).
///
/// ```
/// # mod spandrel { pub use spandrel_orb::*; pub mod policy { pub use spandrel_orb::policy::*; } }
/// use std::time::Duration;
///
/// use spandrel::Orb;
/// use spandrel::policy::{RelativeRoundtripTimeoutPolicy, SetOverrideType};
///
/// let orb = Orb::builder().build()?;
/// let limit = RelativeRoundtripTimeoutPolicy(Duration::from_millis(100));
/// let current = orb.policy_current();
/// current.set_policy_overrides(&[limit.into()], SetOverrideType::SetOverride)?;
/// // The calls of this thread end within 100 ms; then it has no policies of its own again:
/// current.set_policy_overrides(&[], SetOverrideType::SetOverride)?;
/// # orb.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct PolicyCurrent {
    orb: Orb,
}

impl PolicyCurrent {
    pub(crate) fn of(orb: &Orb) -> Self {
        Self { orb: orb.clone() }
    }

    /// This thread's policies of these types; all of them if `types` is empty (`get_policy_overrides`).
    #[must_use]
    pub fn policy_overrides(&self, types: &[PolicyType]) -> Vec<Policy> {
        with(&self.orb, |entry| entry.overrides.of_types(types)).unwrap_or_default()
    }

    /// Sets policies for the calls of this thread, in place of those of the ORB.
    ///
    /// # Errors
    /// [`OverrideError`]; then nothing was changed.
    pub fn set_policy_overrides(
        &self,
        policies: &[Policy],
        override_type: SetOverrideType,
    ) -> Result<(), OverrideError> {
        let new = Overrides::of(policies)?;
        let old = with(&self.orb, |entry| entry.overrides.clone()).unwrap_or_default();
        let overrides = old.with(new, override_type);
        let removed_entries = CURRENT.with(|current| {
            let mut entries = current.borrow_mut();
            // Entries of ORBs that no longer exist are removed as well.
            let removed_entries: Vec<ThreadOverrides> =
                entries.extract_if(.., |entry| entry.orb.is_of(&self.orb) || entry.orb.is_dropped()).collect();
            if !overrides.is_empty() {
                let policy_values = overrides.policy_values();
                entries.push(ThreadOverrides { orb: self.orb.identity(), overrides, policy_values });
            }
            thread_flags::set(ThreadFlag::Policies, !entries.is_empty());
            removed_entries
        });
        // Outside of the borrow: destructors of policies run code of the program.
        drop(removed_entries);
        Ok(())
    }
}

/// The values of this thread's policies.
#[cold]
pub(super) fn policy_values(orb: &Orb) -> PolicyValues {
    with(orb, |entry| entry.policy_values).unwrap_or(PolicyValues::NONE)
}

/// This thread's policy of a type.
pub(super) fn policy(orb: &Orb, policy_type: PolicyType) -> Option<Policy> {
    with(orb, |entry| entry.overrides.get(policy_type).cloned()).flatten()
}

fn with<R>(orb: &Orb, read: impl FnOnce(&ThreadOverrides) -> R) -> Option<R> {
    // A thread that ends may make calls after its thread-local values were destroyed.
    let value = CURRENT.try_with(|current| current.borrow().iter().find(|entry| entry.orb.is_of(orb)).map(read));
    value.ok().flatten()
}
