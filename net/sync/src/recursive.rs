//! Mutual exclusion with re-entry by the same thread.

use std::fmt;
use std::ops::Deref;
use std::time::Duration;

use crate::{backend, held::HeldLock};

/// A value that one thread at a time may see, and that this thread may lock again while it holds the lock.
///
/// For code that calls back into itself, as upcalls do. One thread can hold several guards, so they give
/// shared access only: mutable parts go into a `Cell` or `RefCell` inside. The mutex is [`Sync`] though such
/// a value is not. Not poisoned by panics; threads are served in no promised order.
///
/// ```
/// use std::cell::Cell;
/// use spandrel_sync::RecursiveMutex;
///
/// let depth = RecursiveMutex::new(Cell::new(0));
/// let outer = depth.lock();
/// let inner = depth.lock(); // no wait: the thread holds it
/// inner.set(inner.get() + 1);
/// assert_eq!(outer.get(), 1);
/// ```
pub struct RecursiveMutex<T: ?Sized = ()>(backend::RecursiveMutex<T>);

/// Access to the value of a locked [`RecursiveMutex`], which unlocks when the thread's last guard is dropped.
/// It stays in its thread.
#[must_use = "the lock is released when the guard is dropped"]
pub struct RecursiveMutexGuard<'a, T: ?Sized>(
    backend::RecursiveMutexGuard<'a, T>,
    #[allow(dead_code, reason = "only its end matters")] HeldLock,
);

impl<T> RecursiveMutex<T> {
    /// An unlocked mutex; usable in a `static`.
    pub const fn new(value: T) -> Self {
        Self(backend::RecursiveMutex::new(value))
    }

    /// The value; owning the mutex shows that it is unlocked.
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

impl<T: ?Sized> RecursiveMutex<T> {
    /// Waits until no other thread holds the mutex and locks it, once more if the caller holds it already.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn lock(&self) -> RecursiveMutexGuard<'_, T> {
        RecursiveMutexGuard(self.0.lock(), HeldLock::new())
    }

    /// Locks the mutex if no other thread holds it now.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn try_lock(&self) -> Option<RecursiveMutexGuard<'_, T>> {
        self.0.try_lock().map(|guard| RecursiveMutexGuard(guard, HeldLock::new()))
    }

    /// Waits until no other thread holds the mutex and locks it, for at most `timeout`.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn try_lock_for(&self, timeout: Duration) -> Option<RecursiveMutexGuard<'_, T>> {
        self.0.try_lock_for(timeout).map(|guard| RecursiveMutexGuard(guard, HeldLock::new()))
    }

    /// The value, without locking: `&mut self` shows that no other reference exists.
    #[inline]
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }
}

impl<T: Default> Default for RecursiveMutex<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> From<T> for RecursiveMutex<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RecursiveMutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.try_lock() {
            Some(guard) => f.debug_tuple("RecursiveMutex").field(&&*guard).finish(),
            None => f.write_str("RecursiveMutex(<locked>)"),
        }
    }
}

impl<T: ?Sized> Deref for RecursiveMutexGuard<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RecursiveMutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
