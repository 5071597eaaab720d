//! The model checker's backend: `shuttle`'s types behind the method names of `parking_lot`.
//!
//! These types work only inside `shuttle::check_*`. Poisoning is passed over, as `parking_lot` has none: a panic
//! ends the checked execution anyway.

use std::ops::{Deref, DerefMut};
use std::sync::{PoisonError, TryLockError};
use std::time::Duration;

pub(crate) use shuttle::{
    sync::{RwLockReadGuard, RwLockWriteGuard, atomic},
    thread,
};

/// The `Option` is empty only while the guard is lent to a waiting condition variable.
pub(crate) struct MutexGuard<'a, T: ?Sized>(Option<shuttle::sync::MutexGuard<'a, T>>);

const HELD: &str = "a guard outside of `wait` holds its lock";

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        self.0.as_ref().expect(HELD)
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_mut().expect(HELD)
    }
}

pub(crate) struct Mutex<T: ?Sized>(shuttle::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(shuttle::sync::Mutex::new(value))
    }
    pub(crate) fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: ?Sized> Mutex<T> {
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard(Some(self.0.lock().unwrap_or_else(PoisonError::into_inner)))
    }
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Some(MutexGuard(Some(guard))),
            Err(TryLockError::Poisoned(poisoned)) => Some(MutexGuard(Some(poisoned.into_inner()))),
            Err(TryLockError::WouldBlock) => None,
        }
    }
    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) struct RwLock<T: ?Sized>(shuttle::sync::RwLock<T>);

impl<T> RwLock<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(shuttle::sync::RwLock::new(value))
    }
    pub(crate) fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: ?Sized> RwLock<T> {
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
    pub(crate) fn try_read(&self) -> Option<RwLockReadGuard<'_, T>> {
        match self.0.try_read() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
    pub(crate) fn try_write(&self) -> Option<RwLockWriteGuard<'_, T>> {
        match self.0.try_write() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) struct Condvar(shuttle::sync::Condvar);

impl Condvar {
    pub(crate) const fn new() -> Self {
        Self(shuttle::sync::Condvar::new())
    }
    pub(crate) fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        let held = guard.0.take().expect(HELD);
        guard.0 = Some(self.0.wait(held).unwrap_or_else(PoisonError::into_inner));
    }
    pub(crate) fn wait_for<T>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        timeout: Duration,
    ) -> shuttle::sync::WaitTimeoutResult {
        let held = guard.0.take().expect(HELD);
        let (held, result) = self.0.wait_timeout(held, timeout).unwrap_or_else(PoisonError::into_inner);
        guard.0 = Some(held);
        result
    }
    pub(crate) fn notify_one(&self) {
        self.0.notify_one();
    }
    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }
}
