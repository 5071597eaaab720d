//! Mutual exclusion between threads.

use std::time::Duration;

use std::fmt;
use std::ops::{Deref, DerefMut};

use crate::{backend, held::HeldLock};

/// A value that one thread at a time may use.
///
/// Not recursive: a thread that locks it twice deadlocks. Not poisoned by panics. Waiting threads are served
/// in no promised order.
pub struct Mutex<T: ?Sized = ()>(backend::Mutex<T>);

/// Access to the value of a locked [`Mutex`]; unlocks it when dropped.
#[must_use = "the lock is released when the guard is dropped"]
pub struct MutexGuard<'a, T: ?Sized>(
    pub(crate) backend::MutexGuard<'a, T>,
    #[allow(dead_code, reason = "only its end matters")] HeldLock,
);

impl<'a, T: ?Sized> MutexGuard<'a, T> {
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub(crate) fn new(guard: backend::MutexGuard<'a, T>) -> Self {
        Self(guard, HeldLock::new())
    }
}

impl<T> Mutex<T> {
    /// An unlocked mutex; usable in a `static`.
    pub const fn new(value: T) -> Self {
        Self(backend::Mutex::new(value))
    }

    /// The value; owning the mutex shows that it is unlocked.
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Waits until the mutex is unlocked and locks it.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard::new(self.0.lock())
    }

    /// As [`lock`](Self::lock), for a caller that other means have made the only user. Foreign code may be
    /// called while it is held, so it does not count as a [held lock](crate::held).
    #[inline]
    pub fn lock_claimed(&self) -> MutexGuard<'_, T> {
        MutexGuard(self.0.lock(), HeldLock::uncounted())
    }

    /// Locks the mutex if it is unlocked now.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.0.try_lock().map(|guard| MutexGuard::new(guard))
    }

    /// Waits until the mutex is unlocked and locks it, for at most `timeout`.
    ///
    /// Under the model checker the wait may time out whenever the mutex is locked; a wait of a day or more
    /// never does.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn try_lock_for(&self, timeout: Duration) -> Option<MutexGuard<'_, T>> {
        self.0.try_lock_for(timeout).map(|guard| MutexGuard::new(guard))
    }

    /// The value, without locking: `&mut self` shows that no other reference exists.
    #[inline]
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> From<T> for Mutex<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.try_lock() {
            Some(guard) => f.debug_tuple("Mutex").field(&&*guard).finish(),
            None => f.write_str("Mutex(<locked>)"),
        }
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
