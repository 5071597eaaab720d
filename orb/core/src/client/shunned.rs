//! Places that are dead, and have kept somebody waiting: for a while others are tried before them.

use std::time::Duration;

use spandrel_sync::{
    Mutex,
    atomic::{AtomicBool, Ordering},
    time::Instant,
};

/// How long others are tried first.
const WHILE: Duration = Duration::from_secs(10);
/// A failure that comes sooner costs nothing worth remembering.
const MOMENT: Duration = Duration::from_millis(50);

/// Whether others are to be tried first, of late.
#[derive(Debug, Default)]
pub(crate) struct Shunned {
    /// To be looked at without the lock.
    is_shunned: AtomicBool,
    until: Mutex<Option<Instant>>,
}

impl Shunned {
    /// Whether it is so now.
    #[inline]
    pub(crate) fn is_now(&self) -> bool {
        self.is_shunned.load(Ordering::Relaxed) && self.is_still()
    }

    #[cold]
    fn is_still(&self) -> bool {
        let is_still = self.until.lock().is_some_and(|until| Instant::now() < until);
        self.is_shunned.store(is_still, Ordering::Relaxed);
        is_still
    }

    /// Somebody has tried since `begin`.
    pub(crate) fn note(&self, connected: bool, begin: Instant) {
        let now = Instant::now();
        if connected || now.saturating_duration_since(begin) < MOMENT {
            self.is_shunned.store(false, Ordering::Relaxed);
            return;
        }
        *self.until.lock() = now.checked_add(WHILE);
        self.is_shunned.store(true, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn what_keeps_nobody_waiting_is_not_shunned() {
        let (shunned, now) = (Shunned::default(), Instant::now());
        // No time has gone by since then, however slow this machine is.
        shunned.note(false, now + WHILE);
        assert!(!shunned.is_now());
        let long_ago = now.checked_sub(MOMENT).expect("the clock runs");
        shunned.note(false, long_ago);
        assert!(shunned.is_now());
        shunned.note(true, long_ago);
        assert!(!shunned.is_now(), "somebody got there");
        shunned.note(false, long_ago);
        *shunned.until.lock() = Some(now);
        assert!(!shunned.is_now(), "it was long ago");
    }
}
