//! Addresses to which a connection attempt failed slowly: for some time others are tried before them.
//!
//! The backoff after a refusal (`-ORBReconnectBackoff`) is in `peer::connection_choice`.

use std::time::Duration;

use spandrel_sync::{
    Mutex,
    atomic::{AtomicBool, Ordering},
    time::Instant,
};

/// The time for which other addresses are tried first.
const UNREACHABLE_TTL: Duration = Duration::from_secs(10);
/// A faster failure is not recorded.
const MIN_CONNECT_TIME: Duration = Duration::from_millis(50);

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
    pub(crate) fn is_unreachable(&self) -> bool {
        self.is_unreachable.load(Ordering::Relaxed) && self.check_expiry()
    }

    #[cold]
    fn check_expiry(&self) -> bool {
        let is_unreachable = self.until.lock().is_some_and(|until| Instant::now() < until);
        self.is_unreachable.store(is_unreachable, Ordering::Relaxed);
        is_unreachable
    }

    /// Records an attempt that began at `begin`.
    pub(crate) fn note(&self, connected: bool, begin: Instant) {
        let now = Instant::now();
        if connected || now.saturating_duration_since(begin) < MIN_CONNECT_TIME {
            self.is_unreachable.store(false, Ordering::Relaxed);
            return;
        }
        *self.until.lock() = now.checked_add(UNREACHABLE_TTL);
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
        unreachable.note(false, now + UNREACHABLE_TTL);
        assert!(!unreachable.is_unreachable());
        let long_ago = now.checked_sub(MIN_CONNECT_TIME).expect("the clock runs");
        unreachable.note(false, long_ago);
        assert!(unreachable.is_unreachable());
        unreachable.note(true, long_ago);
        assert!(!unreachable.is_unreachable(), "a connection was opened");
        unreachable.note(false, long_ago);
        *unreachable.until.lock() = Some(now);
        assert!(!unreachable.is_unreachable(), "it was long ago");
    }
}
