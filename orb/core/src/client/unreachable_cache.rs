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
pub(crate) struct UnreachableCache {
    /// To be looked at without the lock.
    is_unreachable: AtomicBool,
    until: Mutex<Option<Instant>>,
}

impl UnreachableCache {
    /// Whether it is so now.
    #[inline]
    pub(crate) fn is_now(&self) -> bool {
        self.is_unreachable.load(Ordering::Relaxed) && self.is_still()
    }

    #[cold]
    fn is_still(&self) -> bool {
        let is_still = self.until.lock().is_some_and(|until| Instant::now() < until);
        self.is_unreachable.store(is_still, Ordering::Relaxed);
        is_still
    }

    /// Somebody has tried since `begin`.
    pub(crate) fn note(&self, connected: bool, begin: Instant) {
        let now = Instant::now();
        if connected || now.saturating_duration_since(begin) < MOMENT {
            self.is_unreachable.store(false, Ordering::Relaxed);
            return;
        }
        *self.until.lock() = now.checked_add(WHILE);
        self.is_unreachable.store(true, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_peer_that_refuses_at_once_is_not_marked_unreachable() {
        let (unreachable, now) = (UnreachableCache::default(), Instant::now());
        // No time has gone by since then, however slow this machine is.
        unreachable.note(false, now + WHILE);
        assert!(!unreachable.is_now());
        let long_ago = now.checked_sub(MOMENT).expect("the clock runs");
        unreachable.note(false, long_ago);
        assert!(unreachable.is_now());
        unreachable.note(true, long_ago);
        assert!(!unreachable.is_now(), "somebody got there");
        unreachable.note(false, long_ago);
        *unreachable.until.lock() = Some(now);
        assert!(!unreachable.is_now(), "it was long ago");
    }
}
