//! The policy of a type that is in force: that of the reference, or else the thread's, or else the ORB's.

use super::{current, manager};
use crate::{
    Orb, Policy, PolicyType, PolicyValue,
    policy::{Overrides, RebindPolicy, SyncScopePolicy, quality_of_service},
};

/// The policy in force for calls by a reference with these overrides.
pub(super) fn client_policy(orb: &Orb, overrides: &Overrides, policy_type: PolicyType) -> Option<Policy> {
    let own_policy = overrides.get(policy_type).cloned();
    let inherited_policy = || current::policy(orb, policy_type).or_else(|| manager::policy(orb, policy_type));
    own_policy.or_else(inherited_policy).or_else(|| match policy_type {
        quality_of_service::REBIND => Some(RebindPolicy::default().into()),
        quality_of_service::SYNC_SCOPE => Some(SyncScopePolicy::default().into()),
        _ => None,
    })
}

/// The value of the policy in force for calls by a reference with these overrides.
pub(super) fn in_force<V: PolicyValue + Copy>(orb: &Orb, overrides: &Overrides, policy_type: PolicyType) -> Option<V> {
    client_policy(orb, overrides, policy_type)?.value().copied()
}
