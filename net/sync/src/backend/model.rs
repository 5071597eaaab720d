//! The model checker's backend: `shuttle`'s types.
//!
//! These types work only inside `shuttle::check_*`. Poisoning is ignored: a panic ends the checked execution
//! anyway.

use std::cell::Cell;
use std::ops::{Add, Deref, DerefMut, Sub};
use std::sync::{PoisonError, TryLockError};
use std::time::Duration;

use shuttle::rand::{Rng, thread_rng};
pub use shuttle::thread_local;
pub(crate) use shuttle::{
    sync::{RwLockReadGuard, RwLockWriteGuard, atomic},
    thread,
};

/// Waits of this length and longer never time out.
const FOREVER: Duration = Duration::from_secs(24 * 60 * 60);

std::thread_local! {
    /// All threads of one check are coroutines of one thread, and only differences of instants count. So each
    /// check has its own clock, and each of its executions is repeatable when it is replayed.
    static CLOCK: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// A point on the simulated clock, which advances only when a wait times out.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Instant(Duration);

impl Instant {
    /// The present time of the model's clock.
    #[must_use]
    pub fn now() -> Self {
        Self(CLOCK.get())
    }

    /// The time since an earlier instant; zero if that is later.
    #[must_use]
    pub fn saturating_duration_since(&self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// The time since this instant.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        Self::now().saturating_duration_since(*self)
    }

    /// The instant that much later; none if the clock cannot represent it.
    #[must_use]
    pub fn checked_add(&self, span: Duration) -> Option<Self> {
        self.0.checked_add(span).map(Self)
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    fn add(self, span: Duration) -> Self {
        Self(self.0 + span)
    }
}

impl Sub for Instant {
    type Output = Duration;
    fn sub(self, earlier: Self) -> Duration {
        self.saturating_duration_since(earlier)
    }
}

/// Whether a wait times out now.
fn runs_out(timeout: Duration) -> bool {
    let is_over = thread_rng().gen_range(0..4) == 0;
    if is_over {
        CLOCK.set(CLOCK.get() + timeout);
    }
    is_over
}

/// Retries the attempt; gives up after any number of steps of other threads.
fn retry_until_timeout<G>(
    timeout: Duration,
    mut attempt: impl FnMut() -> Option<G>,
    wait: impl FnOnce() -> G,
) -> Option<G> {
    if timeout >= FOREVER {
        return Some(wait());
    }
    loop {
        if let Some(guard) = attempt() {
            return Some(guard);
        }
        thread::yield_now();
        if runs_out(timeout) {
            return None;
        }
    }
}

/// The `Option` is empty only while the guard is lent to a waiting condition variable.
pub(crate) struct MutexGuard<'a, T: ?Sized> {
    held: Option<shuttle::sync::MutexGuard<'a, T>>,
    mutex: &'a Mutex<T>,
}

const GUARD_HOLDS_LOCK: &str = "a guard outside of `wait` holds its lock";

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        self.held.as_ref().expect(GUARD_HOLDS_LOCK)
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.held.as_mut().expect(GUARD_HOLDS_LOCK)
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
        self.guard(self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
    pub(crate) fn try_lock_for(&self, timeout: Duration) -> Option<MutexGuard<'_, T>> {
        retry_until_timeout(timeout, || self.try_lock(), || self.lock())
    }
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Some(self.guard(guard)),
            Err(TryLockError::Poisoned(poisoned)) => Some(self.guard(poisoned.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }
    fn guard<'a>(&'a self, held: shuttle::sync::MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        MutexGuard { held: Some(held), mutex: self }
    }
    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Maximum number of attempts on a locked mutex: enough to find it unlocked, and few enough to check all
/// schedules.
pub(crate) fn max_spins() -> u32 {
    2
}

/// Lets another thread run.
pub(crate) fn spin_once() {
    thread::yield_now();
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
    pub(crate) fn try_read_for(&self, timeout: Duration) -> Option<RwLockReadGuard<'_, T>> {
        retry_until_timeout(timeout, || self.try_read(), || self.read())
    }
    pub(crate) fn try_write_for(&self, timeout: Duration) -> Option<RwLockWriteGuard<'_, T>> {
        retry_until_timeout(timeout, || self.try_write(), || self.write())
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
        let held = guard.held.take().expect(GUARD_HOLDS_LOCK);
        guard.held = Some(self.0.wait(held).unwrap_or_else(PoisonError::into_inner));
    }
    /// Ends after any number of steps of other threads, with a timeout or, as condition variables may,
    /// spuriously. So a notification makes no difference to this wait, and this wait consumes no notification
    /// meant for another.
    pub(crate) fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, timeout: Duration) -> WaitTimeoutResult {
        if timeout >= FOREVER {
            self.wait(guard);
            return WaitTimeoutResult(false);
        }
        guard.held = None;
        thread::yield_now();
        guard.held = guard.mutex.lock().held;
        WaitTimeoutResult(runs_out(timeout))
    }
    pub(crate) fn notify_one(&self) {
        self.0.notify_one();
    }
    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }
}

pub(crate) struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    pub(crate) fn timed_out(&self) -> bool {
        self.0
    }
}
