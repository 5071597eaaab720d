//! The policy for the use of connections by both sides (CORBA 3.3 Part 2, 9.9).

use crate::{PolicyType, PolicyValue};

/// Whether an adapter's objects are called over connections that their own ORB has opened
/// (`BiDirPolicy::BidirectionalPolicy`).
///
/// Adapters without the policy use their ORB's [setting](crate::OrbBuilder::bidirectional), or this policy
/// among the ORB's.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum BidirectionalPolicy {
    /// They are not: clients have to connect.
    #[default]
    Normal,
    /// They are.
    Both,
}

impl BidirectionalPolicy {
    /// The type of this policy (`BIDIRECTIONAL_POLICY_TYPE`).
    pub const POLICY_TYPE: PolicyType = 37;
}

impl PolicyValue for BidirectionalPolicy {
    fn policy_type(&self) -> PolicyType {
        Self::POLICY_TYPE
    }
}
