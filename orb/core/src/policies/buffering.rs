//! When one-ways with the sync scope NONE are written: a policy as TAO has it.

use std::time::Duration;

use crate::{PolicyType, PolicyValue};

/// `TAO::BUFFERING_CONSTRAINT_POLICY_TYPE`: the number that programs of TAO know.
pub(super) const BUFFERING_CONSTRAINT: PolicyType = 0x5441_0001;

/// When one-ways that are sent with [`SyncScopePolicy::None`](super::SyncScopePolicy) are written, besides when somebody flushes, or sends
/// anything else over their connection: as soon as one of these is reached.
///
/// Without this policy a one-way is written at once if the connection was quiet for 200 µs, and those that follow it together: after
/// 200 µs or at 64 KiB. With it none is written at once, unless it is as long as [`octets`](Self::octets).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct BufferingConstraintPolicy {
    /// So long after the first of them (`BUFFER_TIMEOUT`); [`Duration::MAX`] is for ever.
    pub timeout: Duration,
    /// There are so many (`BUFFER_MESSAGE_COUNT`); [`u32::MAX`] is any number.
    pub messages: u32,
    /// They have so many octets (`BUFFER_MESSAGE_BYTES`).
    pub octets: usize,
}

impl Default for BufferingConstraintPolicy {
    /// As without such a policy, but for those that could be written at once.
    fn default() -> Self {
        Self { timeout: Duration::from_micros(200), messages: u32::MAX, octets: 64 * 1024 }
    }
}

impl PolicyValue for BufferingConstraintPolicy {
    fn policy_type(&self) -> PolicyType {
        BUFFERING_CONSTRAINT
    }
}
