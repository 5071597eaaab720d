//! The rebind policy and the sync scope, which each call reads.

use crate::{PolicyType, PolicyValue};

/// `Messaging::REBIND_POLICY_TYPE`.
pub(crate) const REBIND: PolicyType = 23;
/// `Messaging::SYNC_SCOPE_POLICY_TYPE`.
pub(crate) const SYNC_SCOPE: PolicyType = 24;

/// Whether a bound reference may be bound again transparently (CORBA 3.3 Part 1, 17.2.1).
///
/// A reference is bound once its object has answered. Until then this policy has no effect.
/// [`ObjectRef::validate_connection`](crate::ObjectRef::validate_connection) binds it again at any time.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[repr(u8)]
pub enum RebindPolicy {
    /// Forwardings are followed and connections opened as needed.
    #[default]
    Transparent = 0,
    /// Connections are opened as needed. A forwarding of a bound reference raises REBIND. The client cannot
    /// find out before the request whether the new server has the same policies, so every forwarding counts
    /// as a change of them.
    NoRebind = 1,
    /// Connections are not opened either: without an open one, a call raises REBIND.
    NoReconnect = 2,
}

/// How far a one-way request has come when its call returns (17.2.2).
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[repr(u8)]
pub enum SyncScopePolicy {
    /// The request may not be written yet. It may be buffered
    /// ([`BufferingConstraintPolicy`](super::BufferingConstraintPolicy)), and its loss is not reported.
    /// Without the feature `asynchronous`, as [`WithTransport`](Self::WithTransport).
    None = 0,
    /// The transport has accepted it.
    #[default]
    WithTransport = 1,
    /// The server has answered before the upcall: it knows the object, or forwards the request.
    WithServer = 2,
    /// The servant has returned; its exceptions are raised as by a two-way operation.
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
    pub(crate) const ALL: [Self; 3] = [Self::Transparent, Self::NoRebind, Self::NoReconnect];
}

impl SyncScopePolicy {
    pub(crate) const ALL: [Self; 4] = [Self::None, Self::WithTransport, Self::WithServer, Self::WithTarget];
}
