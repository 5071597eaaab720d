//! The buffering of one-ways with the sync scope NONE: a policy of TAO.

use std::time::Duration;

use crate::{PolicyType, PolicyValue};

/// `TAO::BUFFERING_CONSTRAINT_POLICY_TYPE`, by TAO's number.
pub(crate) const BUFFERING_CONSTRAINT: PolicyType = 0x5441_0001;

/// Limits at which buffered one-ways with [`SyncScopePolicy::None`](super::SyncScopePolicy) are written. They
/// are written when the first limit is reached, when the program flushes them, or when another message is
/// sent over their connection.
///
/// Without this policy a one-way is written at once if the connection was idle for 200 µs. One-ways that
/// follow it are written together after 200 µs or at 64 KiB. With the policy, a one-way is written at once
/// only if it has at least [`octets`](Self::octets).
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
