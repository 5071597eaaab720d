//! Requests of a manager to its threads.

use crate::atomic::{AtomicU8, Ordering};

/// Requests to a thread or group, as a set of bits. Changed under the registry's lock only; read without it.
#[derive(Debug)]
pub(super) struct Requests(AtomicU8);

impl Requests {
    /// Not to begin before the group is released.
    pub(super) const HOLD: u8 = 1;
    /// To stop at the next checkpoint.
    pub(super) const SUSPEND: u8 = 2;
    /// The bit of the request to end.
    pub(super) const CANCEL: u8 = 4;

    pub(super) fn new(requests: u8) -> Self {
        Self(AtomicU8::new(requests))
    }
    pub(super) fn get(&self) -> u8 {
        self.0.load(Ordering::Acquire)
    }
    pub(super) fn is_cancelled(&self) -> bool {
        self.get() & Self::CANCEL != 0
    }
    pub(super) fn is_stopped(&self) -> bool {
        self.get() & (Self::HOLD | Self::SUSPEND) != 0
    }
    pub(super) fn change(&self, add: u8, remove: u8) {
        self.0.store(self.get() & !remove | add, Ordering::Release);
    }
}
