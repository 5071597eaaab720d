//! Counts of waits for locks.

use std::time::Duration;

/// The waits of threads for a lock that another one held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LockWaits {
    /// Their number.
    pub count: u64,
    /// The sum of their times.
    pub time: Duration,
}
