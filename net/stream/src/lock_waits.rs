//! Counts of waits for locks.

use std::ops::Add;
use std::time::Duration;

/// The waits of threads for a lock that another one held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LockWaits {
    /// The number of times that a thread had to wait.
    pub count: u64,
    /// The sum of the times of these waits.
    pub time: Duration,
}

impl LockWaits {
    pub(crate) fn record(&mut self, time: Duration) {
        self.count += 1;
        self.time += time;
    }
}

impl Add for LockWaits {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { count: self.count + other.count, time: self.time + other.time }
    }
}
