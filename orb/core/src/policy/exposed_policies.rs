//! The policies of an object in its reference (TAG_POLICIES, CORBA 3.3 Part 2, 7.6.6.3).

use spandrel_cdr::TaggedComponent;
use spandrel_giop::SystemException;

use crate::{Policy, PolicyType};

/// The policies of an object that its reference names, as far as an optional part of the ORB obeys them.
pub trait ExposedPolicies: Send + Sync + std::fmt::Debug {
    /// The object's policy of a type.
    fn policy(&self, policy_type: PolicyType) -> Option<Policy>;
}

impl ExposedPolicies for Vec<Policy> {
    fn policy(&self, policy_type: PolicyType) -> Option<Policy> {
        self.iter().find(|policy| policy.policy_type() == policy_type).cloned()
    }
}

/// Reads the policies among the components of a profile. An ORB has the function if it obeys such policies; other
/// programs do not contain it.
pub(crate) type ReadPolicies = fn(&[TaggedComponent]) -> Result<Option<Box<dyn ExposedPolicies>>, SystemException>;
