//! A locking strategy that measures the time for which threads wait.
//!
//! Linux reports no time for which a thread has waited for locks of its process, so the locks measure it themselves. A
//! free lock is taken without a look at the clock.

use std::marker::PhantomData;
use std::time::{Duration, Instant};

use spandrel_sync::atomic::{AtomicU64, Ordering};
use spandrel_sync::{Lock, Monitor, SharedLock, WaitResult, WouldDeadlock};

static LOCK_NANOS: AtomicU64 = AtomicU64::new(0);
static LOCK_WAITS: AtomicU64 = AtomicU64::new(0);
static CONDITION_NANOS: AtomicU64 = AtomicU64::new(0);
static CONDITION_WAITS: AtomicU64 = AtomicU64::new(0);

/// The waits of all threads of this process, for locks and conditions of [`Timed`] strategies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// The time spent waiting for locks that others held.
    pub locks: Duration,
    /// The number of these waits.
    pub lock_waits: u64,
    /// The time spent waiting for conditions: empty and full queues.
    pub conditions: Duration,
    /// The number of these waits.
    pub condition_waits: u64,
}

impl Waits {
    /// All waits since the start of the process.
    #[must_use]
    pub fn so_far() -> Self {
        let time = |nanos: &AtomicU64| Duration::from_nanos(nanos.load(Ordering::Relaxed));
        Self {
            locks: time(&LOCK_NANOS),
            lock_waits: LOCK_WAITS.load(Ordering::Relaxed),
            conditions: time(&CONDITION_NANOS),
            condition_waits: CONDITION_WAITS.load(Ordering::Relaxed),
        }
    }

    /// The waits between two times at which they were read.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            locks: self.locks - earlier.locks,
            lock_waits: self.lock_waits - earlier.lock_waits,
            conditions: self.conditions - earlier.conditions,
            condition_waits: self.condition_waits - earlier.condition_waits,
        }
    }
}

fn record(nanos: &AtomicU64, waits: &AtomicU64, begin: Instant) {
    nanos.fetch_add(begin.elapsed().as_nanos() as u64, Ordering::Relaxed);
    waits.fetch_add(1, Ordering::Relaxed);
}

/// The strategy `L`, whose waits are measured ([`Waits`]).
#[derive(Clone, Copy, Debug)]
pub struct Timed<L>(PhantomData<L>);

impl<L: Lock> SharedLock for Timed<L> {
    type Of<T> = L::Of<T>;
    type ReadGuard<'a, T: 'a> = L::ReadGuard<'a, T>;

    fn unlocked<T>(value: T) -> L::Of<T> {
        L::unlocked(value)
    }
    fn into_inner<T>(lock: L::Of<T>) -> T {
        L::into_inner(lock)
    }
    fn get_mut<T>(lock: &mut L::Of<T>) -> &mut T {
        L::get_mut(lock)
    }
    #[inline]
    fn read<'a, T: 'a>(lock: &'a L::Of<T>) -> L::ReadGuard<'a, T> {
        L::try_read(lock).unwrap_or_else(|| {
            let begin = Instant::now();
            let guard = L::read(lock);
            record(&LOCK_NANOS, &LOCK_WAITS, begin);
            guard
        })
    }
    fn try_read<'a, T: 'a>(lock: &'a L::Of<T>) -> Option<L::ReadGuard<'a, T>> {
        L::try_read(lock)
    }
}

impl<L: Lock> Lock for Timed<L> {
    type Guard<'a, T: 'a> = L::Guard<'a, T>;

    #[inline]
    fn lock<'a, T: 'a>(lock: &'a L::Of<T>) -> L::Guard<'a, T> {
        L::try_lock(lock).unwrap_or_else(|| {
            let begin = Instant::now();
            let guard = L::lock(lock);
            record(&LOCK_NANOS, &LOCK_WAITS, begin);
            guard
        })
    }
    fn try_lock<'a, T: 'a>(lock: &'a L::Of<T>) -> Option<L::Guard<'a, T>> {
        L::try_lock(lock)
    }
}

impl<L: Monitor> Monitor for Timed<L> {
    type Condition = L::Condition;

    fn wait<T>(condition: &L::Condition, guard: &mut L::Guard<'_, T>) -> Result<(), WouldDeadlock> {
        let begin = Instant::now();
        let outcome = L::wait(condition, guard);
        record(&CONDITION_NANOS, &CONDITION_WAITS, begin);
        outcome
    }
    fn wait_for<T>(condition: &L::Condition, guard: &mut L::Guard<'_, T>, timeout: Duration) -> WaitResult {
        let begin = Instant::now();
        let outcome = L::wait_for(condition, guard, timeout);
        record(&CONDITION_NANOS, &CONDITION_WAITS, begin);
        outcome
    }
    fn notify_one(condition: &L::Condition) {
        L::notify_one(condition);
    }
    fn notify_all(condition: &L::Condition) {
        L::notify_all(condition);
    }
}
