//! Shared reading, exclusive writing.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use crate::{backend, held::HeldLock};

/// A value that many threads may read at once, or one may write.
///
/// A waiting writer goes before new readers, so a thread that holds a read guard must not lock again for
/// reading. Not poisoned by panics.
pub struct RwLock<T: ?Sized = ()>(backend::RwLock<T>);

/// Read access to the value of a [`RwLock`]; unlocks it when dropped.
#[must_use = "the lock is released when the guard is dropped"]
pub struct RwLockReadGuard<'a, T: ?Sized>(
    backend::RwLockReadGuard<'a, T>,
    #[allow(dead_code, reason = "only its end matters")] HeldLock,
);

/// Write access to the value of a [`RwLock`]; unlocks it when dropped.
#[must_use = "the lock is released when the guard is dropped"]
pub struct RwLockWriteGuard<'a, T: ?Sized>(
    backend::RwLockWriteGuard<'a, T>,
    #[allow(dead_code, reason = "only its end matters")] HeldLock,
);

impl<T> RwLock<T> {
    /// An unlocked lock; usable in a `static`.
    pub const fn new(value: T) -> Self {
        Self(backend::RwLock::new(value))
    }

    /// The value; owning the lock shows that it is unlocked.
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Waits until no thread writes and locks for reading.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        RwLockReadGuard(self.0.read(), HeldLock::new())
    }

    /// Waits until no thread reads or writes and locks for writing.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        RwLockWriteGuard(self.0.write(), HeldLock::new())
    }

    /// Locks for reading if no thread writes now.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn try_read(&self) -> Option<RwLockReadGuard<'_, T>> {
        self.0.try_read().map(|guard| RwLockReadGuard(guard, HeldLock::new()))
    }

    /// Locks for writing if no thread reads or writes now.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn try_write(&self) -> Option<RwLockWriteGuard<'_, T>> {
        self.0.try_write().map(|guard| RwLockWriteGuard(guard, HeldLock::new()))
    }

    /// Waits until no thread writes and locks for reading, for at most `timeout`.
    ///
    /// Under the model checker the wait may time out whenever the lock is taken; a wait of a day or more
    /// never does.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn try_read_for(&self, timeout: Duration) -> Option<RwLockReadGuard<'_, T>> {
        self.0.try_read_for(timeout).map(|guard| RwLockReadGuard(guard, HeldLock::new()))
    }

    /// Waits until no thread reads or writes and locks for writing, for at most `timeout`.
    ///
    /// Under the model checker the wait may time out whenever the lock is taken; a wait of a day or more
    /// never does.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn try_write_for(&self, timeout: Duration) -> Option<RwLockWriteGuard<'_, T>> {
        self.0.try_write_for(timeout).map(|guard| RwLockWriteGuard(guard, HeldLock::new()))
    }

    /// The value, without locking: `&mut self` shows that no other reference exists.
    #[inline]
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }
}

impl<T: Default> Default for RwLock<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> From<T> for RwLock<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.try_read() {
            Some(guard) => f.debug_tuple("RwLock").field(&&*guard).finish(),
            None => f.write_str("RwLock(<locked>)"),
        }
    }
}

impl<T: ?Sized> Deref for RwLockReadGuard<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: ?Sized> Deref for RwLockWriteGuard<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: ?Sized> DerefMut for RwLockWriteGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLockReadGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLockWriteGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
