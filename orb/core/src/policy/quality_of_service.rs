//! The rebind policy and the sync scope, which each call reads, and TAO's policy of buffering.

use std::time::Duration;

use crate::{PolicyType, PolicyValue};

/// The number of `Messaging::REBIND_POLICY_TYPE`.
pub(crate) const REBIND: PolicyType = 23;
/// The number of `Messaging::SYNC_SCOPE_POLICY_TYPE`.
pub(crate) const SYNC_SCOPE: PolicyType = 24;
/// `TAO::BUFFERING_CONSTRAINT_POLICY_TYPE`, by TAO's number.
pub(crate) const BUFFERING_CONSTRAINT: PolicyType = 0x5441_0001;

/// Whether a bound reference may be bound again transparently (CORBA 3.3 Part 1, 17.2.1).
///
/// A reference is bound once its object has answered. Until then this policy has no effect.
/// [`ObjectRef::validate_connection`](crate::ObjectRef::validate_connection) binds it again at any time.
///
/// ```
/// # mod spandrel { pub use spandrel_orb::*; pub mod policy { pub use spandrel_orb::policy::*; } }
/// use spandrel::policy::{RebindPolicy, SetOverrideType};
/// # let orb = spandrel::Orb::builder().build()?;
/// # let account = orb.string_to_object("corbaloc::bank.example:2809/Account")?;
///
/// // The account has a session in its server: a call to another one would find no session, and raises REBIND.
/// let session = account.set_policy_overrides(&[RebindPolicy::NoRebind.into()], SetOverrideType::AddOverride)?;
/// # orb.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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
///
/// ```
/// # mod spandrel { pub use spandrel_orb::*; pub mod policy { pub use spandrel_orb::policy::*; } }
/// use spandrel::policy::{SetOverrideType, SyncScopePolicy};
/// # let orb = spandrel::Orb::builder().build()?;
/// # let account = orb.string_to_object("corbaloc::bank.example:2809/Account")?;
///
/// // One-way calls return when the servant has returned, with its exceptions.
/// let reliable = account.set_policy_overrides(&[SyncScopePolicy::WithTarget.into()], SetOverrideType::AddOverride)?;
/// # orb.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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

/// Limits at which buffered one-ways with [`SyncScopePolicy::None`](super::SyncScopePolicy) are written. They
/// are written when the first limit is reached, when the program flushes them, or when another message is
/// sent over their connection.
///
/// Without this policy a one-way is written at once if the connection was idle for 200 µs. One-ways that
/// follow it are written together after 200 µs or at 64 KiB. With the policy, a one-way is written at once
/// only if it has at least [`octets`](Self::octets).
///
/// ```
/// # mod spandrel { pub use spandrel_orb::*; pub mod policy { pub use spandrel_orb::{BidirectionalPolicy, policy::*}; } pub mod cdr { pub use spandrel_cdr::GiopVersion; } pub mod types { pub use spandrel_cdr::Any; } }
/// use std::time::Duration;
///
/// use spandrel::policy::{BufferingConstraintPolicy, SetOverrideType, SyncScopePolicy};
/// # let orb = spandrel::Orb::builder().build()?;
/// # let account = orb.string_to_object("corbaloc::bank.example:2809/Account")?;
///
/// // Log records by one-way calls: written together, after 10 ms or at 16 KiB.
/// let limits = BufferingConstraintPolicy {
///     timeout: Duration::from_millis(10),
///     octets: 16 << 10,
///     ..BufferingConstraintPolicy::default()
/// };
/// let batched = account
///     .set_policy_overrides(&[SyncScopePolicy::None.into(), limits.into()], SetOverrideType::AddOverride)?;
/// # orb.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct BufferingConstraintPolicy {
    /// The time after the first buffered one-way (`BUFFER_TIMEOUT`); [`Duration::MAX`] is no limit.
    pub timeout: Duration,
    /// The number of buffered one-ways (`BUFFER_MESSAGE_COUNT`); [`u32::MAX`] is no limit.
    pub messages: u32,
    /// The octets of buffered one-ways (`BUFFER_MESSAGE_BYTES`).
    pub octets: usize,
}

impl Default for BufferingConstraintPolicy {
    /// The limits in force without this policy, which never writes at once on an idle connection.
    fn default() -> Self {
        Self { timeout: Duration::from_micros(200), messages: u32::MAX, octets: 64 * 1024 }
    }
}

impl PolicyValue for BufferingConstraintPolicy {
    fn policy_type(&self) -> PolicyType {
        BUFFERING_CONSTRAINT
    }
}
