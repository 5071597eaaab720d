//! Addresses to which a connection attempt failed slowly: for some time others are tried before them.

use std::time::Duration;

use spandrel_sync::{
    Mutex,
    atomic::{AtomicBool, Ordering},
    time::Instant,
};

/// The time for which other addresses are tried first.
const WHILE: Duration = Duration::from_secs(10);
/// A faster failure is not recorded.
const MOMENT: Duration = Duration::from_millis(50);

/// Whether an address is unreachable at present.
#[derive(Debug, Default)]
pub(crate) struct UnreachableCache {
    /// Read without the lock.
    is_unreachable: AtomicBool,
    until: Mutex<Option<Instant>>,
}

impl UnreachableCache {
    /// Whether the address is unreachable now.
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

    /// Records an attempt that began at `begin`.
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
        // A time in the future: the attempt took no time, on the slowest machine, too.
        unreachable.note(false, now + WHILE);
        assert!(!unreachable.is_now());
        let long_ago = now.checked_sub(MOMENT).expect("the clock runs");
        unreachable.note(false, long_ago);
        assert!(unreachable.is_now());
        unreachable.note(true, long_ago);
        assert!(!unreachable.is_now(), "a connection was opened");
        unreachable.note(false, long_ago);
        *unreachable.until.lock() = Some(now);
        assert!(!unreachable.is_now(), "it was long ago");
    }
}
