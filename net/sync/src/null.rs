//! The null locking strategy, for values that one thread alone uses.

use std::cell::{Ref, RefCell, RefMut};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use crate::WaitResult;

/// A value that only one thread uses, with the methods of a lock; `ACE_Null_Mutex`.
///
/// It is not [`Sync`], so the compiler excludes other threads. No atomic instruction is paid. The remaining
/// cost is a count that detects re-entry, which would deadlock a real mutex and panics here.
#[derive(Default)]
pub struct NullMutex<T: ?Sized = ()>(RefCell<T>);

/// Write access to the value of a [`NullMutex`]; unlocks it when dropped.
#[must_use = "the lock is released when the guard is dropped"]
pub struct NullMutexGuard<'a, T: ?Sized>(RefMut<'a, T>);

/// Read access to the value of a [`NullMutex`]; unlocks it when dropped.
#[must_use = "the lock is released when the guard is dropped"]
pub struct NullMutexReadGuard<'a, T: ?Sized>(Ref<'a, T>);

impl<T> NullMutex<T> {
    /// Creates a mutex that no caller has locked.
    pub const fn new(value: T) -> Self {
        Self(RefCell::new(value))
    }

    /// Returns the value without its mutex.
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

impl<T: ?Sized> NullMutex<T> {
    /// Locks the mutex. It never waits: the only possible holder is this thread.
    ///
    /// # Panics
    /// If the thread has locked it already.
    #[inline]
    #[track_caller]
    pub fn lock(&self) -> NullMutexGuard<'_, T> {
        match self.try_lock() {
            Some(guard) => guard,
            None => re_entered(),
        }
    }

    /// Locks the mutex if the thread has not locked it already.
    #[inline]
    pub fn try_lock(&self) -> Option<NullMutexGuard<'_, T>> {
        self.0.try_borrow_mut().ok().map(NullMutexGuard)
    }

    /// Locks the mutex for reading, any number of times.
    ///
    /// # Panics
    /// If the thread has locked it already for writing.
    #[inline]
    #[track_caller]
    pub fn read(&self) -> NullMutexReadGuard<'_, T> {
        match self.try_read() {
            Some(guard) => guard,
            None => re_entered(),
        }
    }

    /// Locks the mutex for reading unless the thread has locked it already for writing.
    #[inline]
    pub fn try_read(&self) -> Option<NullMutexReadGuard<'_, T>> {
        self.0.try_borrow().ok().map(NullMutexReadGuard)
    }

    /// The value: `&mut self` shows that the mutex is unlocked.
    #[inline]
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }
}

#[cold]
#[track_caller]
fn re_entered() -> ! {
    panic!("a NullMutex was locked again by the thread that holds it");
}

impl<T> From<T> for NullMutex<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for NullMutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.try_read() {
            Some(guard) => f.debug_tuple("NullMutex").field(&&*guard).finish(),
            None => f.write_str("NullMutex(<locked>)"),
        }
    }
}

impl<T: ?Sized> Deref for NullMutexGuard<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: ?Sized> DerefMut for NullMutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T: ?Sized> Deref for NullMutexReadGuard<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for NullMutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for NullMutexReadGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// The condition that belongs to a [`NullMutex`]: no other thread exists that could notify.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullCondition;

impl NullCondition {
    /// A condition without waiting threads.
    #[must_use]
    pub const fn new() -> Self {
        Self
    }

    /// Refuses to wait: nobody else could notify the only thread.
    ///
    /// # Errors
    /// Always [`WouldDeadlock`].
    pub fn wait<T: ?Sized>(&self, _: &mut NullMutexGuard<'_, T>) -> Result<(), WouldDeadlock> {
        Err(WouldDeadlock)
    }

    /// Times out at once: the waiting thread is the only one that could change the value.
    pub fn wait_for<T: ?Sized>(&self, _: &mut NullMutexGuard<'_, T>, _: Duration) -> WaitResult {
        WaitResult { timed_out: true }
    }

    /// Does nothing: no other thread waits.
    pub fn notify_one(&self) {}

    /// Does nothing: no other thread waits.
    pub fn notify_all(&self) {}
}

/// A wait under the null locking strategy: no other thread exists that could end it.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("waiting under the null locking strategy would never end")]
pub struct WouldDeadlock;
spandrel_error::debug_as_report!(WouldDeadlock);
