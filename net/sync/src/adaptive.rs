//! Mutual exclusion for short critical sections on several processors.

use std::fmt;
use std::time::Duration;

use crate::atomic::{AtomicU32, Ordering};
use crate::{MutexGuard, backend};

/// How often a thread looks at a taken lock before it has learnt anything.
const FEWEST: u32 = 10;

/// A mutex that a waiting thread watches for a while before it goes to sleep (paper 002, 2.6.1).
///
/// Going to sleep and being woken costs microseconds, so where the lock is held for less, watching is cheaper. How long
/// a thread watches follows what was of use lately: twice the turns that successful watching took on average, within
/// a bound, and less after each watch that was in vain. On a single processor, where the holder cannot go on while
/// another watches, nobody does. The value's guard is that of a [`Mutex`](crate::Mutex), so a
/// [`Condition`](crate::Condition) serves both; waiting for a condition always sleeps.
///
/// Not recursive, not poisoned by panics; threads are served in no promised order.
pub struct AdaptiveMutex<T: ?Sized = ()> {
    /// The turns that successful watching took lately, times eight.
    turns: AtomicU32,
    lock: backend::Mutex<T>,
}

impl<T> AdaptiveMutex<T> {
    /// An unlocked mutex; usable in a `static`.
    pub const fn new(value: T) -> Self {
        Self { turns: AtomicU32::new(0), lock: backend::Mutex::new(value) }
    }

    /// The value, when no one else can be using it.
    pub fn into_inner(self) -> T {
        self.lock.into_inner()
    }
}

impl<T: ?Sized> AdaptiveMutex<T> {
    /// Waits until the value is free and takes it.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        match self.lock.try_lock() {
            Some(guard) => MutexGuard::new(guard),
            None => MutexGuard::new(self.watch().unwrap_or_else(|| self.lock.lock())),
        }
    }

    /// Takes the value if it is free now.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.lock.try_lock().map(|guard| MutexGuard::new(guard))
    }

    /// Waits until the value is free and takes it, unless that takes longer than `timeout`.
    ///
    /// Under the model checker the time may run out at any moment at which the value is taken; a day and more never does.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn try_lock_for(&self, timeout: Duration) -> Option<MutexGuard<'_, T>> {
        let guard = self.lock.try_lock().or_else(|| self.watch()).or_else(|| self.lock.try_lock_for(timeout));
        guard.map(|guard| MutexGuard::new(guard))
    }

    /// The value, without locking: `&mut self` shows that no one else has it.
    #[inline]
    pub fn get_mut(&mut self) -> &mut T {
        self.lock.get_mut()
    }

    /// Tries the taken lock for a bounded number of turns.
    #[cold]
    fn watch(&self) -> Option<backend::MutexGuard<'_, T>> {
        // Relaxed, and read and written apart: the average is advice, and a lost update does no harm.
        let average = self.turns.load(Ordering::Relaxed);
        let most = (average / 4 + FEWEST).min(backend::most_turns());
        for turn in 0..most {
            backend::turn();
            if let Some(guard) = self.lock.try_lock() {
                self.turns.store(average - average / 8 + turn, Ordering::Relaxed);
                return Some(guard);
            }
        }
        self.turns.store(average - average / 8, Ordering::Relaxed);
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
