//! The backend of ordinary builds: the standard library, without poisoning and with time limits.
//!
//! Each lock is one word on which the system's threads sleep (a futex); locks share nothing. `parking_lot`
//! keeps all waiting threads in one table of the process. After `fork` that table may be locked for ever in
//! the child, with queues that name threads which the child does not have.

use std::sync::{LazyLock, PoisonError, TryLockError, TryLockResult};
use std::time::Duration;

pub(crate) use std::hint::spin_loop as spin_once;
pub(crate) use std::sync::{MutexGuard, RwLockReadGuard, RwLockWriteGuard};
pub(crate) use std::{sync::atomic, thread};
pub use std::{thread_local, time::Instant};

use atomic::{AtomicU32, Ordering};

/// Maximum number of attempts on a locked mutex; the adaptive mutex of the C library has the same bound.
pub(crate) fn max_spins() -> u32 {
    static MOST: LazyLock<u32> = LazyLock::new(|| if processors() > 1 { 100 } else { 0 });
    *MOST
}

/// The processors that this process may run on. The standard library would also read the limits of control
/// groups, which a thread that spins for a moment need not know.
#[cfg(target_os = "linux")]
fn processors() -> usize {
    rustix::thread::sched_getaffinity(None).map_or(1, |set| set.count() as usize)
}

#[cfg(not(target_os = "linux"))]
fn processors() -> usize {
    thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// The guard of an attempt, poisoned or not.
#[inline]
fn guard_of<G>(attempt: TryLockResult<G>) -> Option<G> {
    match attempt {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Retries: at first at once, then after a yield, then after pauses that grow.
///
/// The system's locks have no time limits. The waiting thread polls, and unlocking does not wake it, so that
/// unlocking costs nothing more.
#[cold]
fn retry_until_timeout<G>(timeout: Duration, mut attempt: impl FnMut() -> Option<G>) -> Option<G> {
    const SHORTEST: Duration = Duration::from_micros(20);
    const LONGEST: Duration = Duration::from_millis(1);
    let end = Instant::now().checked_add(timeout);
    let mut pause = SHORTEST;
    for round in 0u32.. {
        if let Some(guard) = attempt() {
            return Some(guard);
        }
        let left = end.map_or(LONGEST, |end| end.saturating_duration_since(Instant::now()));
        if left.is_zero() {
            break;
        }
        match round {
            0..20 => (0..max_spins().min(round)).for_each(|_| spin_once()),
            20..30 => thread::yield_now(),
            _ => {
                thread::sleep(pause.min(left));
                pause = (pause * 2).min(LONGEST);
            }
        }
    }
    None
}

pub(crate) struct Mutex<T: ?Sized>(std::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(std::sync::Mutex::new(value))
    }
    pub(crate) fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: ?Sized> Mutex<T> {
    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    #[inline]
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        guard_of(self.0.try_lock())
    }
    #[inline]
    pub(crate) fn try_lock_for(&self, timeout: Duration) -> Option<MutexGuard<'_, T>> {
        self.try_lock().or_else(|| retry_until_timeout(timeout, || self.try_lock()))
    }
    #[inline]
    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) struct RwLock<T: ?Sized>(std::sync::RwLock<T>);

impl<T> RwLock<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(std::sync::RwLock::new(value))
    }
    pub(crate) fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: ?Sized> RwLock<T> {
    #[inline]
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
    #[inline]
    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
    #[inline]
    pub(crate) fn try_read(&self) -> Option<RwLockReadGuard<'_, T>> {
        guard_of(self.0.try_read())
    }
    #[inline]
    pub(crate) fn try_write(&self) -> Option<RwLockWriteGuard<'_, T>> {
        guard_of(self.0.try_write())
    }
    pub(crate) fn try_read_for(&self, timeout: Duration) -> Option<RwLockReadGuard<'_, T>> {
        self.try_read().or_else(|| retry_until_timeout(timeout, || self.try_read()))
    }
    pub(crate) fn try_write_for(&self, timeout: Duration) -> Option<RwLockWriteGuard<'_, T>> {
        self.try_write().or_else(|| retry_until_timeout(timeout, || self.try_write()))
    }
    #[inline]
    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The standard library's condition variable, which makes a system call for each notification; this one makes
/// it only when a thread waits.
pub(crate) struct Condvar {
    condition: std::sync::Condvar,
    /// Changed with the mutex held. A notifying thread has changed the value under the same mutex, so the
    /// lock's order shows it the number as of that change. A thread that begins to wait later sees the change
    /// instead.
    waiting: AtomicU32,
}

pub(crate) use std::sync::WaitTimeoutResult;

impl Condvar {
    pub(crate) const fn new() -> Self {
        Self { condition: std::sync::Condvar::new(), waiting: AtomicU32::new(0) }
    }
    pub(crate) fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        replace_with::replace_with_or_abort(guard, |held| {
            self.condition.wait(held).unwrap_or_else(PoisonError::into_inner)
        });
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }
    pub(crate) fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, timeout: Duration) -> WaitTimeoutResult {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let result = replace_with::replace_with_or_abort_and_return(guard, |held| {
            let (held, result) = self.condition.wait_timeout(held, timeout).unwrap_or_else(PoisonError::into_inner);
            (result, held)
        });
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        result
    }
    #[inline]
    pub(crate) fn notify_one(&self) {
        if self.waiting.load(Ordering::Relaxed) > 0 {
            self.condition.notify_one();
        }
    }
    #[inline]
    pub(crate) fn notify_all(&self) {
        if self.waiting.load(Ordering::Relaxed) > 0 {
            self.condition.notify_all();
        }
    }
}
