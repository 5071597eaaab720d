//! The two choices that a call looks at itself: how far a one-way goes before it returns, and whether a bound reference may be bound
//! elsewhere.

use crate::{PolicyType, PolicyValue};

/// `Messaging::REBIND_POLICY_TYPE`.
pub(super) const REBIND: PolicyType = 23;
/// `Messaging::SYNC_SCOPE_POLICY_TYPE`.
pub(super) const SYNC_SCOPE: PolicyType = 24;

/// Whether a reference that was bound may be bound anew without the program's knowing (CORBA 3.3 Part 1, 17.2.1).
///
/// A reference is bound once its object has answered. Until then it is bound as the protocol says, whatever this policy is, and
/// [`ObjectRef::validate_connection`](crate::ObjectRef::validate_connection) binds it again at any time.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[repr(u8)]
pub enum RebindPolicy {
    /// Forwardings are followed and connections opened as needed.
    #[default]
    Transparent = 0,
    /// Connections are opened as needed. An object that has moved raises REBIND: nothing shows before a request is sent
    /// there whether the new place keeps to the same policies, so that any forwarding is taken for a change of them.
    NoRebind = 1,
    /// Nor are connections opened: without one that is open, a call raises REBIND.
    NoReconnect = 2,
}

/// How far a one-way request has got when its call returns (17.2.2).
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[repr(u8)]
pub enum SyncScopePolicy {
    /// Nowhere: it may be written together with others, soon after ([`BufferingConstraintPolicy`](super::BufferingConstraintPolicy));
    /// that it was lost is then told to nobody. Without the feature `asynchronous`, as [`WithTransport`](Self::WithTransport).
    None = 0,
    /// The transport has taken it.
    #[default]
    WithTransport = 1,
    /// The server has answered before it calls the servant: it knows the object, or says where it is.
    WithServer = 2,
    /// The servant has returned; exceptions are raised as from a two-way operation.
    WithTarget = 3,
}

impl PolicyValue for RebindPolicy {
    fn policy_type(&self) -> PolicyType {
        REBIND
    }
}

impl PolicyValue for SyncScopePolicy {
    fn policy_type(&self) -> PolicyType {
        SYNC_SCOPE
    }
}

impl RebindPolicy {
    pub(super) const ALL: [Self; 3] = [Self::Transparent, Self::NoRebind, Self::NoReconnect];
}

impl SyncScopePolicy {
    pub(super) const ALL: [Self; 4] = [Self::None, Self::WithTransport, Self::WithServer, Self::WithTarget];
}
