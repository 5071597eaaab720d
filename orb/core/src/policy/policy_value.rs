//! Policies of an ORB, a thread, a reference or an adapter (CORBA 3.3 Part 1, 8.9).
//!
//! A policy is a value of its own Rust type behind a common type. The modules that obey policies define their
//! types.

use std::{any::Any, fmt};

use spandrel_sync::Arc;

/// The type of a policy (`CORBA::PolicyType`), a number assigned by the OMG or a vendor.
pub type PolicyType = u32;

/// A type whose values are policies.
pub trait PolicyValue: Any + Send + Sync + fmt::Debug {
    /// The type of the policy; the same for all values of a Rust type.
    fn policy_type(&self) -> PolicyType;

    /// The levels at which the policy may be set.
    fn scope(&self) -> PolicyScope {
        PolicyScope::Client
    }
}

/// The levels at which a policy may be set.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum PolicyScope {
    /// An ORB, a thread or a reference.
    Client,
    /// As [`Client`](Self::Client). The policy decides on the connections of calls, by an optional part of the ORB.
    Binding,
    /// An adapter, or an ORB for its adapters. Threads and references refuse it (NO_PERMISSION).
    Adapter,
}

/// A policy of any type. Cheap to clone, and immutable: `copy` and `destroy` need no operations of their own.
///
/// ```
/// # mod policy { pub use spandrel_orb::{Policy, policy::SyncScopePolicy}; }
/// use policy::{Policy, SyncScopePolicy}; // of spandrel
///
/// let policy = Policy::from(SyncScopePolicy::WithServer);
/// assert_eq!(policy.value(), Some(&SyncScopePolicy::WithServer));
/// ```
#[derive(Clone)]
pub struct Policy(Arc<dyn PolicyValue>);

impl Policy {
    /// Wraps the value of one type of policy, so that lists can hold policies of all types.
    pub fn new(value: impl PolicyValue) -> Self {
        Self(Arc::new(value))
    }

    /// The number by which references, managers and interceptors find the policy (`policy_type`).
    #[must_use]
    pub fn policy_type(&self) -> PolicyType {
        self.0.policy_type()
    }

    /// The levels at which the policy may be set.
    #[must_use]
    pub fn scope(&self) -> PolicyScope {
        self.0.scope()
    }

    /// The value, if it has the type `V`.
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

impl PolicyValue for spandrel_demux::ObjectDemux {
    fn policy_type(&self) -> PolicyType {
        spandrel_giop::ids::POLICY_OBJECT_DEMUX
    }
}

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
