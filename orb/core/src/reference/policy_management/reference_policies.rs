//! The policies of typed references.

use std::time::Duration;

use crate::{
    Interface, Policy,
    policy::{ConnectionTimeoutPolicy, OverrideError, RebindPolicy, SetOverrideType, SyncScopePolicy},
};

/// Typed references with other policies of their own (CORBA 3.3 Part 1, 8.3.9 and 17.2). Each method returns a
/// reference to the same object and leaves the original as it is; other policies of the reference stay.
///
/// A call by the original reference has the policies that it had before. For untyped references there are
/// [`ObjectRef::with_timeout`](crate::ObjectRef::with_timeout) and
/// [`ObjectRef::set_policy_overrides`](crate::ObjectRef::set_policy_overrides).
///
/// ```
/// # mod spandrel { pub mod policy { pub use spandrel_orb::{ReferencePolicies, policy::*}; } pub mod types { pub use spandrel_orb::Interface; } }
/// use std::time::Duration;
///
/// use spandrel::policy::{ReferencePolicies, SyncScopePolicy};
/// use spandrel::types::Interface;
///
/// /// For example with the reference type of an interface: `device.with_timeout(Duration::from_millis(200))`.
/// fn hurried<Device: Interface>(device: &Device) -> Device {
///     device.with_timeout(Duration::from_millis(200)).with_sync_scope(SyncScopePolicy::WithTarget)
/// }
/// ```
pub trait ReferencePolicies: Interface {
    /// The time limit of two-way calls, from the beginning of a call to its reply. Beyond it a call ends in TIMEOUT:
    /// COMPLETED_NO if the request could not be written, COMPLETED_MAYBE otherwise. [`Duration::MAX`] is no limit.
    #[must_use]
    fn with_timeout(&self, timeout: Duration) -> Self {
        self.as_object().with_timeout(Some(timeout)).unchecked_narrow()
    }

    /// The time limit to get a connection, at each address of the reference, if none is open. [`Duration::MAX`] is no
    /// limit.
    #[must_use]
    fn with_connection_timeout(&self, timeout: Duration) -> Self {
        self.with_policy(ConnectionTimeoutPolicy(timeout)).expect("a policy that clients may have")
    }

    /// How far a one-way request has come when its call returns.
    #[must_use]
    fn with_sync_scope(&self, scope: SyncScopePolicy) -> Self {
        self.with_policy(scope).expect("a policy that clients may have")
    }

    /// Whether forwardings are followed and connections opened once the object has answered.
    #[must_use]
    fn with_rebind(&self, rebind: RebindPolicy) -> Self {
        self.with_policy(rebind).expect("a policy that clients may have")
    }

    /// Any policy of clients, in place of an earlier one of its type.
    ///
    /// # Errors
    /// [`OverrideError`] for a policy that clients may not have.
    fn with_policy(&self, policy: impl Into<Policy>) -> Result<Self, OverrideError> {
        let object = self.as_object().set_policy_overrides(&[policy.into()], SetOverrideType::AddOverride)?;
        Ok(object.unchecked_narrow())
    }
}

impl<I: Interface> ReferencePolicies for I {}
