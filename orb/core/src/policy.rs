//! Policies: choices that go with an ORB, a thread, a reference or an adapter (CORBA 3.3 Part 1, 8.9).
//!
//! A policy is a value of its own Rust type behind one common form. Which policies there are belongs to those who obey them.

use std::{any::Any, fmt};

use spandrel_sync::Arc;

/// Which choice a policy is about (`CORBA::PolicyType`); the OMG and vendors give out the numbers.
pub type PolicyType = u32;

/// A type whose values are policies.
pub trait PolicyValue: Any + Send + Sync + fmt::Debug {
    /// What the policy is about; the same for all values of the type.
    fn policy_type(&self) -> PolicyType;
}

/// A policy of any type. Cheap to clone, and immutable, so that copying and destroying it need no operations of their own.
#[derive(Clone)]
pub struct Policy(Arc<dyn PolicyValue>);

impl Policy {
    /// A policy with this value.
    pub fn new(value: impl PolicyValue) -> Self {
        Self(Arc::new(value))
    }

    /// What it is about.
    #[must_use]
    pub fn policy_type(&self) -> PolicyType {
        self.0.policy_type()
    }

    /// Its value, if that is of this type.
    #[must_use]
    pub fn value<V: PolicyValue>(&self) -> Option<&V> {
        let value: &dyn Any = &*self.0;
        value.downcast_ref()
    }
}

impl<V: PolicyValue> From<V> for Policy {
    fn from(value: V) -> Self {
        Self::new(value)
    }
}

#[cfg(feature = "server")]
impl PolicyValue for spandrel_demux::OperationDemux {
    fn policy_type(&self) -> PolicyType {
        spandrel_giop::ids::POLICY_OPERATION_DEMUX
    }
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq)]
    struct Colour(u8);

    impl PolicyValue for Colour {
        fn policy_type(&self) -> PolicyType {
            7
        }
    }

    #[derive(Debug)]
    struct Other;

    impl PolicyValue for Other {
        fn policy_type(&self) -> PolicyType {
            8
        }
    }

    #[test]
    fn a_policy_value_has_exactly_its_type() {
        let policy = Policy::from(Colour(3));
        assert_eq!((policy.policy_type(), policy.value()), (7, Some(&Colour(3))));
        assert!(policy.value::<Other>().is_none());
        assert_eq!(Policy::new(Other).policy_type(), 8);
    }
}
