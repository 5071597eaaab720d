//! Waking the thread that waits for the handles: at one system call at most while it sleeps, and none while it is awake.

use spandrel_sync::atomic::{AtomicU8, Ordering};

const AWAKE: u8 = 0;
const ASLEEP: u8 = 1;
/// Somebody has woken the sleeper, or does so now, or wants it not to fall asleep.
const RAISED: u8 = 2;

/// Between those who leave something to do and the one who sleeps until there is something.
///
/// The sleeper [falls asleep](Self::fall_asleep), looks then whether there is something to do and if not waits, and says that it
/// [woke](Self::woke). Whoever leaves something does so first and [nudges](Self::nudge) then. All of it is sequentially consistent:
/// either the sleeper sees what was left, or the other sees it asleep.
#[derive(Debug)]
pub(crate) struct Wakeup(AtomicU8);

impl Wakeup {
    pub(crate) fn new() -> Self {
        Self(AtomicU8::new(AWAKE))
    }

    /// True: the caller must wake the sleeper, for nobody else does.
    #[must_use]
    pub(crate) fn nudge(&self) -> bool {
        self.0.load(Ordering::SeqCst) == ASLEEP
            && self.0.compare_exchange(ASLEEP, RAISED, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// As [`nudge`](Self::nudge), for what the sleeper cannot see when it looks: if it is awake, it does not fall asleep next time.
    #[must_use]
    pub(crate) fn raise(&self) -> bool {
        self.0.swap(RAISED, Ordering::SeqCst) == ASLEEP
    }

    /// False: it was raised, and must not wait.
    #[must_use]
    pub(crate) fn fall_asleep(&self) -> bool {
        self.0.compare_exchange(AWAKE, ASLEEP, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    pub(crate) fn woke(&self) {
        self.0.swap(AWAKE, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleeper_is_woken_once_however_many_come() {
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
