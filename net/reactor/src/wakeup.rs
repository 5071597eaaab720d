//! Waking the thread that waits for the handles: with at most one system call while it sleeps, and none while
//! it is awake.

use spandrel_sync::atomic::{AtomicU8, Ordering};

const AWAKE: u8 = 0;
const ASLEEP: u8 = 1;
/// The sleeper was woken, is being woken, or must not fall asleep.
const RAISED: u8 = 2;

/// Coordinates threads that add work with the one that sleeps until there is work.
///
/// The sleeper [falls asleep](Self::fall_asleep), then checks for work, waits if there is none, and records
/// that it [woke](Self::woke). A thread that adds work does so first and [nudges](Self::nudge) then. These
/// operations, but for the record, are sequentially consistent: either the sleeper finds the work, or the other
/// thread finds it asleep.
#[derive(Debug)]
pub(crate) struct Wakeup(AtomicU8);

impl Wakeup {
    pub(crate) fn new() -> Self {
        Self(AtomicU8::new(AWAKE))
    }

    /// True: the caller must wake the sleeper, since no other thread does.
    #[must_use]
    pub(crate) fn nudge(&self) -> bool {
        self.0.load(Ordering::SeqCst) == ASLEEP
            && self.0.compare_exchange(ASLEEP, RAISED, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// As [`nudge`](Self::nudge), for work that the sleeper cannot find when it checks: if it is awake, it
    /// does not fall asleep next time.
    #[must_use]
    pub(crate) fn raise(&self) -> bool {
        self.0.swap(RAISED, Ordering::SeqCst) == ASLEEP
    }

    /// False: it was raised, and must not wait.
    #[must_use]
    pub(crate) fn fall_asleep(&self) -> bool {
        self.0.compare_exchange(AWAKE, ASLEEP, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Without a read-modify-write operation: work that is added meanwhile is found before the next wait at the latest.
    pub(crate) fn woke(&self) {
        self.0.store(AWAKE, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleeper_is_woken_once_by_many_nudges() {
        let wakeup = Wakeup::new();
        assert!(!wakeup.nudge(), "it is awake, and looks before it sleeps");
        assert!(wakeup.fall_asleep());
        assert!(wakeup.nudge());
        assert!(!wakeup.nudge() && !wakeup.raise(), "it was woken already");
        wakeup.woke();
        assert!(!wakeup.raise());
        assert!(!wakeup.fall_asleep(), "it was raised while it was awake");
        wakeup.woke();
        assert!(wakeup.fall_asleep());
        assert!(wakeup.raise());
    }
}
