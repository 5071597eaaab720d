//! The policy that says whether connections are used by both sides (CORBA 3.3 Part 2, 9.9).

use crate::{PolicyType, PolicyValue};

/// Whether requests come to an adapter's objects over connections that their own ORB has opened (`BiDirPolicy::BidirectionalPolicy`).
///
/// Adapters without it go by their ORB's [setting](crate::OrbBuilder::bidirectional), or by this policy among the ORB's.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum BidirectionalPolicy {
    /// They do not: who calls has to connect.
    #[default]
    Normal,
    /// They do.
    Both,
}

impl BidirectionalPolicy {
    /// What this policy is about (`BIDIRECTIONAL_POLICY_TYPE`).
    pub const POLICY_TYPE: PolicyType = 37;
}

impl PolicyValue for BidirectionalPolicy {
    fn policy_type(&self) -> PolicyType {
        Self::POLICY_TYPE
    }
}
