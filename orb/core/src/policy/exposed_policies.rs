//! The policies of an object in its reference (TAG_POLICIES, CORBA 3.3 Part 2, 7.6.6.3).

use spandrel_cdr::TaggedComponent;
use spandrel_giop::SystemException;

use crate::{Policy, PolicyType};

/// The policies of an object that its reference names, as far as an optional part of the ORB obeys them.
pub trait ExposedPolicies: Send + Sync + std::fmt::Debug {
    /// The object's policy of a type.
    ///
    /// # Errors
    /// INV_OBJREF for policies that cannot be read.
    fn policy(&self, policy_type: PolicyType) -> Result<Option<Policy>, SystemException>;
}

impl ExposedPolicies for Vec<Policy> {
    fn policy(&self, policy_type: PolicyType) -> Result<Option<Policy>, SystemException> {
        Ok(self.iter().find(|policy| policy.policy_type() == policy_type).cloned())
    }
}

/// The error of a reference whose policies cannot be read.
impl ExposedPolicies for SystemException {
    fn policy(&self, _: PolicyType) -> Result<Option<Policy>, SystemException> {
        Err(self.clone())
    }
}

/// Reads the policies among the components of a profile. An ORB has the function if it obeys such policies; other
/// programs do not contain it.
pub(crate) type ReadPolicies = fn(&[TaggedComponent]) -> Option<Box<dyn ExposedPolicies>>;
