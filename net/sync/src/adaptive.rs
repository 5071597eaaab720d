//! Mutual exclusion for short critical sections on several processors.

use std::fmt;
use std::time::Duration;

use crate::atomic::{AtomicU32, Ordering};
use crate::{MutexGuard, backend};

/// Number of attempts on a locked mutex before the first measurement.
const INITIAL_SPINS: u32 = 10;

/// A mutex on which a waiting thread spins for a while before it sleeps (paper 002, 2.6.1).
///
/// Sleeping and waking cost microseconds, so spinning is cheaper where the lock is held for less. The number
/// of spins adapts: twice the recent average of successful spins, within a bound, and fewer after each spin
/// that failed. On a single processor no thread spins, since the holder cannot run meanwhile. The guard is
/// that of a [`Mutex`](crate::Mutex), so a [`Condition`](crate::Condition) serves both; waiting for a
/// condition always sleeps.
///
/// Not recursive, not poisoned by panics; waiting threads are served in no promised order.
pub struct AdaptiveMutex<T: ?Sized = ()> {
    /// Recent average of the spins that succeeded, times eight.
    average_spins: AtomicU32,
    lock: backend::Mutex<T>,
}

impl<T> AdaptiveMutex<T> {
    /// An unlocked mutex; usable in a `static`.
    pub const fn new(value: T) -> Self {
        Self { average_spins: AtomicU32::new(0), lock: backend::Mutex::new(value) }
    }

    /// The value; owning the mutex shows that it is unlocked.
    pub fn into_inner(self) -> T {
        self.lock.into_inner()
    }
}

impl<T: ?Sized> AdaptiveMutex<T> {
    /// Waits until the mutex is unlocked and locks it.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        match self.lock.try_lock() {
            Some(guard) => MutexGuard::new(guard),
            None => MutexGuard::new(self.spin().unwrap_or_else(|| self.lock.lock())),
        }
    }

    /// Locks the mutex if it is unlocked now.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.lock.try_lock().map(|guard| MutexGuard::new(guard))
    }

    /// Waits until the mutex is unlocked and locks it, for at most `timeout`.
    ///
    /// Under the model checker the wait may time out whenever the mutex is locked; a wait of a day or more
    /// never does.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn try_lock_for(&self, timeout: Duration) -> Option<MutexGuard<'_, T>> {
        let guard = self.lock.try_lock().or_else(|| self.spin()).or_else(|| self.lock.try_lock_for(timeout));
        guard.map(|guard| MutexGuard::new(guard))
    }

    /// The value, without locking: `&mut self` shows that no other reference exists.
    #[inline]
    pub fn get_mut(&mut self) -> &mut T {
        self.lock.get_mut()
    }

    /// Tries the locked mutex a bounded number of times.
    #[cold]
    fn spin(&self) -> Option<backend::MutexGuard<'_, T>> {
        // Relaxed, and read and written apart: the average is a hint, and a lost update does no harm.
        let average = self.average_spins.load(Ordering::Relaxed);
        let limit = (average / 4 + INITIAL_SPINS).min(backend::max_spins());
        for spins in 0..limit {
            backend::spin_once();
            if let Some(guard) = self.lock.try_lock() {
                self.average_spins.store(average - average / 8 + spins, Ordering::Relaxed);
                return Some(guard);
            }
        }
        self.average_spins.store(average - average / 8, Ordering::Relaxed);
        None
    }
}

impl<T: Default> Default for AdaptiveMutex<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> From<T> for AdaptiveMutex<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for AdaptiveMutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.try_lock() {
            Some(guard) => f.debug_tuple("AdaptiveMutex").field(&&*guard).finish(),
            None => f.write_str("AdaptiveMutex(<locked>)"),
        }
    }
}
