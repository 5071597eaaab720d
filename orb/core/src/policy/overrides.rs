//! Sets of policies: those of one level.

use spandrel_giop::{CompletionStatus, SystemException, minor};

use super::{
    BufferingConstraintPolicy, ConnectionTimeoutPolicy, PolicyValues, RebindPolicy, RelativeRequestTimeoutPolicy,
    RelativeRoundtripTimeoutPolicy, ReplyEndTimePolicy, ReplyStartTimePolicy, RequestEndTimePolicy,
    RequestStartTimePolicy, SyncScopePolicy, quality_of_service, time_limits,
};
use crate::{Policy, PolicyScope, PolicyType};

/// The effect on policies that were set before (CORBA 3.3 Part 1, 8.9.1).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum SetOverrideType {
    /// All policies that were set before are removed, those of other types as well.
    SetOverride,
    /// Those of other types are kept.
    AddOverride,
}

/// The reason why no policy was set.
///
/// ```
/// # mod spandrel { pub use spandrel_orb::*; pub mod policy { pub use spandrel_orb::policy::*; } }
/// use std::time::Duration;
///
/// use spandrel::policy::{OverrideError, RelativeRoundtripTimeoutPolicy, SetOverrideType};
/// # let orb = spandrel::Orb::builder().build()?;
/// # let account = orb.string_to_object("corbaloc::bank.example:2809/Account")?;
///
/// let limits = [1, 2].map(|seconds| RelativeRoundtripTimeoutPolicy(Duration::from_secs(seconds)).into());
/// match account.set_policy_overrides(&limits, SetOverrideType::SetOverride) {
///     Err(OverrideError::System(exception)) => println!("two policies of one type: {exception}"),
///     other => panic!("{other:?}"),
/// }
/// # orb.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum OverrideError {
    /// `CORBA::InvalidPolicies`: the policies at these indexes of the list are not supported. Their type is the
    /// standard's, but not their value.
    #[error("cannot set the policies: {} not supported", describe_invalid(indices, types))]
    InvalidPolicies {
        /// Their indexes in the list.
        indices: Vec<u16>,
        /// Their types, in the same order.
        types: Vec<PolicyType>,
    },
    /// NO_PERMISSION for a policy that clients cannot override, BAD_PARAM for two of the same type.
    #[error(transparent)]
    System(#[from] SystemException),
}
spandrel_error::debug_as_report!(OverrideError);

impl From<OverrideError> for SystemException {
    fn from(error: OverrideError) -> Self {
        match error {
            OverrideError::System(exception) => exception,
            invalid @ OverrideError::InvalidPolicies { .. } => {
                Self::inv_policy(minor::POLICY_CONFLICT, CompletionStatus::No).with_detail(|| invalid.to_string())
            }
        }
    }
}

/// The policies, with their verb.
fn describe_invalid(indices: &[u16], types: &[PolicyType]) -> String {
    let policies =
        indices.iter().zip(types).map(|(index, policy_type)| format!("policy {index} (of type {policy_type})"));
    let verb = if indices.len() == 1 { "is" } else { "are" };
    format!("{} {verb}", policies.collect::<Vec<_>>().join(", "))
}

/// The policies of adapters, which clients cannot override (15.3.8, 15.2).
const OF_ADAPTERS: std::ops::RangeInclusive<PolicyType> = 16..=22;

/// Policies, at most one of each type, ordered by type. Their types are stored, since `policy_type` is code
/// of the program.
#[derive(Clone, Debug, Default)]
pub(crate) struct Overrides(Vec<(PolicyType, Policy)>);

impl Overrides {
    /// Overrides of no type: the policies of the next wider scope apply.
    pub(crate) const NONE: Self = Self(Vec::new());

    pub(crate) fn get(&self, policy_type: PolicyType) -> Option<&Policy> {
        let index = self.0.binary_search_by_key(&policy_type, |(entry_type, _)| *entry_type).ok()?;
        Some(&self.0[index].1)
    }

    /// The policies of these types; all of them if `types` is empty.
    pub(crate) fn of_types(&self, types: &[PolicyType]) -> Vec<Policy> {
        let selected = self.0.iter().filter(|(entry_type, _)| types.is_empty() || types.contains(entry_type));
        selected.map(|(_, policy)| policy.clone()).collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A set of these policies, if threads and references may override them.
    pub(crate) fn of(policies: &[Policy]) -> Result<Self, OverrideError> {
        Self::of_level(policies, |policy| policy.scope() != PolicyScope::Adapter)
    }

    /// A set of these policies, if an ORB may have them.
    pub(crate) fn of_orb(policies: &[Policy]) -> Result<Self, OverrideError> {
        Self::of_level(policies, |_| true)
    }

    fn of_level(policies: &[Policy], is_permitted: fn(&Policy) -> bool) -> Result<Self, OverrideError> {
        let typed: Vec<_> = policies.iter().map(|policy| (policy.policy_type(), policy.clone())).collect();
        let is_refused =
            |(entry_type, policy): &&(PolicyType, Policy)| OF_ADAPTERS.contains(entry_type) || !is_permitted(policy);
        if let Some((_, policy)) = typed.iter().find(is_refused) {
            return Err(SystemException::no_permission(0, CompletionStatus::No)
                .with_detail(|| format!("{policy:?} is a policy of adapters, which clients cannot override"))
                .into());
        }
        let invalid = typed.iter().zip(0u16..).filter(|((entry_type, policy), _)| !is_supported(*entry_type, policy));
        let (indices, types): (Vec<u16>, Vec<_>) = invalid.map(|((entry_type, _), index)| (index, *entry_type)).unzip();
        let mut set = Self(typed);
        set.0.sort_by_key(|(entry_type, _)| *entry_type);
        if let Some(pair) = set.0.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(SystemException::bad_param(minor::DUPLICATE_POLICY, CompletionStatus::No)
                .with_detail(|| format!("two policies of type {}", pair[0].0))
                .into());
        }
        if indices.is_empty() { Ok(set) } else { Err(OverrideError::InvalidPolicies { indices, types }) }
    }

    /// This set with the new policies added, or the new set in its place. Runs no code of the program.
    pub(crate) fn with(&self, new: Self, override_type: SetOverrideType) -> Self {
        let mut set = new;
        if override_type == SetOverrideType::AddOverride {
            let old = self.0.iter().filter(|(entry_type, _)| set.get(*entry_type).is_none());
            let old: Vec<_> = old.cloned().collect();
            set.0.extend(old);
            set.0.sort_by_key(|(entry_type, _)| *entry_type);
        }
        set
    }

    /// The compact form that calls read.
    pub(crate) fn policy_values(&self) -> PolicyValues {
        let mut policy_values = PolicyValues::NONE;
        for (policy_type, policy) in &self.0 {
            if let Some(RelativeRoundtripTimeoutPolicy(limit)) = policy.value() {
                policy_values.set_round_trip(Some(*limit));
            } else if let Some(scope) = policy.value() {
                policy_values.set_sync_scope(*scope);
            } else if let Some(rebind) = policy.value() {
                policy_values.set_rebind(*rebind);
            } else if time_limits::LIMITS.contains(policy_type) {
                policy_values.set_limited();
            } else if *policy_type == quality_of_service::BUFFERING_CONSTRAINT {
                policy_values.set_buffering();
            } else if policy.scope() == PolicyScope::Binding {
                policy_values.set_binding();
            }
        }
        policy_values
    }
}

/// Whether a policy of a standard type has the standard's value, not a type of the program.
fn is_supported(policy_type: PolicyType, policy: &Policy) -> bool {
    match policy_type {
        quality_of_service::REBIND => policy.value::<RebindPolicy>().is_some(),
        quality_of_service::SYNC_SCOPE => policy.value::<SyncScopePolicy>().is_some(),
        time_limits::REQUEST_START_TIME => policy.value::<RequestStartTimePolicy>().is_some(),
        time_limits::REPLY_START_TIME => policy.value::<ReplyStartTimePolicy>().is_some(),
        time_limits::REQUEST_END_TIME => policy.value::<RequestEndTimePolicy>().is_some(),
        time_limits::REPLY_END_TIME => policy.value::<ReplyEndTimePolicy>().is_some(),
        time_limits::RELATIVE_REQUEST_TIMEOUT => policy.value::<RelativeRequestTimeoutPolicy>().is_some(),
        time_limits::CONNECTION_TIMEOUT => policy.value::<ConnectionTimeoutPolicy>().is_some(),
        time_limits::RELATIVE_ROUNDTRIP_TIMEOUT => policy.value::<RelativeRoundtripTimeoutPolicy>().is_some(),
        quality_of_service::BUFFERING_CONSTRAINT => policy.value::<BufferingConstraintPolicy>().is_some(),
        crate::BidirectionalPolicy::POLICY_TYPE => policy.value::<crate::BidirectionalPolicy>().is_some(),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::PolicyValue;

    #[derive(Debug)]
    struct Numbered(PolicyType);

    impl PolicyValue for Numbered {
        fn policy_type(&self) -> PolicyType {
            self.0
        }
    }

    fn types(overrides: &Overrides) -> Vec<PolicyType> {
        overrides.of_types(&[]).iter().map(Policy::policy_type).collect()
    }

    fn set(policies: &[Policy]) -> Overrides {
        Overrides::of(policies).unwrap()
    }

    #[test]
    fn adding_keeps_policies_of_other_types_and_setting_drops_them() {
        let add = SetOverrideType::AddOverride;
        let first = set(&[Numbered(900).into(), RebindPolicy::NoRebind.into()]);
        assert_eq!(types(&first), [23, 900]);
        let second = first.with(set(&[SyncScopePolicy::None.into(), RebindPolicy::NoReconnect.into()]), add);
        assert_eq!(types(&second), [23, 24, 900]);
        assert_eq!(second.get(23).unwrap().value(), Some(&RebindPolicy::NoReconnect));
        assert_eq!(second.policy_values().rebind(), RebindPolicy::NoReconnect);
        let third = second.with(set(&[SyncScopePolicy::None.into()]), SetOverrideType::SetOverride);
        assert_eq!(types(&third), [24]);
        assert!(third.with(set(&[]), SetOverrideType::SetOverride).is_empty());
    }

    #[test]
    fn unsupported_policies_are_refused_with_their_indexes() {
        let refused = |policies: &[Policy]| Overrides::of(policies).unwrap_err();
        let invalid = refused(&[SyncScopePolicy::None.into(), Numbered(32).into(), Numbered(23).into()]);
        assert_eq!(invalid, OverrideError::InvalidPolicies { indices: vec![1, 2], types: vec![32, 23] });
        let text = "cannot set the policies: policy 1 (of type 32), policy 2 (of type 23) are not supported";
        assert_eq!(invalid.to_string(), text);
        let twice = refused(&[
            RelativeRoundtripTimeoutPolicy(Duration::ZERO).into(),
            RelativeRoundtripTimeoutPolicy(Duration::MAX).into(),
        ]);
        let bad = SystemException::bad_param(minor::DUPLICATE_POLICY, CompletionStatus::No);
        assert_eq!(twice, OverrideError::System(bad));
        let denied = SystemException::no_permission(0, CompletionStatus::No);
        assert_eq!(refused(&[Numbered(16).into()]), OverrideError::System(denied));
    }
}
