//! The null locking strategy: what one thread alone uses needs no lock.

use std::cell::{Ref, RefCell, RefMut};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use crate::WaitResult;

/// A value that only one thread uses, with the methods of a lock; `ACE_Null_Mutex`.
///
/// It is not [`Sync`], so the compiler sees to it that no other thread comes near. No atomic instruction is paid: what is
/// left is a count that finds re-entry, which would wait for ever under a real mutex and panics here.
#[derive(Default)]
pub struct NullMutex<T: ?Sized = ()>(RefCell<T>);

/// The right to change a [`NullMutex`]'s value; given back when dropped.
#[must_use = "the lock is released when the guard is dropped"]
pub struct NullMutexGuard<'a, T: ?Sized>(RefMut<'a, T>);

/// The right to see a [`NullMutex`]'s value; given back when dropped.
#[must_use = "the lock is released when the guard is dropped"]
pub struct NullMutexReadGuard<'a, T: ?Sized>(Ref<'a, T>);

impl<T> NullMutex<T> {
    /// A free value.
    pub const fn new(value: T) -> Self {
        Self(RefCell::new(value))
    }

    /// The value.
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

impl<T: ?Sized> NullMutex<T> {
    /// Takes the value.
    ///
    /// # Panics
    /// If the thread has it already.
    #[inline]
    #[track_caller]
    pub fn lock(&self) -> NullMutexGuard<'_, T> {
        match self.try_lock() {
            Some(guard) => guard,
            None => re_entered(),
        }
    }

    /// Takes the value if the thread does not have it already.
    #[inline]
    pub fn try_lock(&self) -> Option<NullMutexGuard<'_, T>> {
        self.0.try_borrow_mut().ok().map(NullMutexGuard)
    }

    /// Takes the value for seeing, any number of times.
    ///
    /// # Panics
    /// If the thread has it already for changing.
    #[inline]
    #[track_caller]
    pub fn read(&self) -> NullMutexReadGuard<'_, T> {
        match self.try_read() {
            Some(guard) => guard,
            None => re_entered(),
        }
    }

    /// Takes the value for seeing if the thread does not have it already for changing.
    #[inline]
    pub fn try_read(&self) -> Option<NullMutexReadGuard<'_, T>> {
        self.0.try_borrow().ok().map(NullMutexReadGuard)
    }

    /// The value: `&mut self` shows that it is not taken.
    #[inline]
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }
}

#[cold]
#[track_caller]
fn re_entered() -> ! {
    panic!("a NullMutex was locked again by the thread that has it");
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

/// The condition that belongs to a [`NullMutex`]: nobody else is there to notify.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullCondition;

impl NullCondition {
    /// A condition on which no one waits.
    #[must_use]
    pub const fn new() -> Self {
        Self
    }

    /// Refuses to wait.
    ///
    /// # Errors
    /// Always [`Alone`].
    pub fn wait<T: ?Sized>(&self, _: &mut NullMutexGuard<'_, T>) -> Result<(), Alone> {
        Err(Alone)
    }

    /// Says at once that the time has run out: the thread that waits is the only one that could change the value.
    pub fn wait_for<T: ?Sized>(&self, _: &mut NullMutexGuard<'_, T>, _: Duration) -> WaitResult {
        WaitResult { timed_out: true }
    }

    /// Wakes nobody.
    pub fn notify_one(&self) {}

    /// Wakes nobody.
    pub fn notify_all(&self) {}
}

/// No other thread can bring about the change that this one would wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("waiting under the null locking strategy would never end")]
pub struct Alone;
