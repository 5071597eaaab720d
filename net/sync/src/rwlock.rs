//! Shared reading, exclusive writing.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use crate::{backend, held::Held};

/// A value that many threads may read at once, or one may write.
///
/// A waiting writer goes before new readers, so a thread that already reads must not ask to read again. Not poisoned
/// by panics.
pub struct RwLock<T: ?Sized = ()>(backend::RwLock<T>);

/// The right to read a [`RwLock`]'s value; given back when dropped.
#[must_use = "the lock is released when the guard is dropped"]
pub struct RwLockReadGuard<'a, T: ?Sized>(
    backend::RwLockReadGuard<'a, T>,
    #[allow(dead_code, reason = "only its end matters")] Held,
);

/// The right to write a [`RwLock`]'s value; given back when dropped.
#[must_use = "the lock is released when the guard is dropped"]
pub struct RwLockWriteGuard<'a, T: ?Sized>(
    backend::RwLockWriteGuard<'a, T>,
    #[allow(dead_code, reason = "only its end matters")] Held,
);

impl<T> RwLock<T> {
    /// An unlocked lock; usable in a `static`.
    pub const fn new(value: T) -> Self {
        Self(backend::RwLock::new(value))
    }

    /// The value, when no one else can be using it.
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Waits until no one writes, then reads.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        RwLockReadGuard(self.0.read(), Held::new())
    }

    /// Waits until no one reads or writes, then writes.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        RwLockWriteGuard(self.0.write(), Held::new())
    }

    /// Reads if no one writes now.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn try_read(&self) -> Option<RwLockReadGuard<'_, T>> {
        self.0.try_read().map(|guard| RwLockReadGuard(guard, Held::new()))
    }

    /// Writes if no one reads or writes now.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn try_write(&self) -> Option<RwLockWriteGuard<'_, T>> {
        self.0.try_write().map(|guard| RwLockWriteGuard(guard, Held::new()))
    }

    /// Waits until no one writes, then reads, unless that takes longer than `timeout`.
    ///
    /// Under the model checker the time may run out at any moment at which the value is taken; a day and more never does.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn try_read_for(&self, timeout: Duration) -> Option<RwLockReadGuard<'_, T>> {
        self.0.try_read_for(timeout).map(|guard| RwLockReadGuard(guard, Held::new()))
    }

    /// Waits until no one reads or writes, then writes, unless that takes longer than `timeout`.
    ///
    /// Under the model checker the time may run out at any moment at which the value is taken; a day and more never does.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn try_write_for(&self, timeout: Duration) -> Option<RwLockWriteGuard<'_, T>> {
        self.0.try_write_for(timeout).map(|guard| RwLockWriteGuard(guard, Held::new()))
    }

    /// The value, without locking: `&mut self` shows that no one else has it.
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
