//! Locking strategies as type parameters (paper 002, 2.6.1).
//!
//! A component that serves one thread as well as many leaves the choice of its locks to its user. This module
//! has the traits that such a component names and the container for its data. The locks themselves, which can
//! also be used directly, are in modules of their own.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use crate::{
    AdaptiveMutex, Condition, Mutex, MutexGuard, NullCondition, NullMutex, NullMutexGuard, NullMutexReadGuard,
    PriorityInheritanceCondition, PriorityInheritanceMutex, PriorityInheritanceMutexGuard, RecursiveMutex,
    RecursiveMutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard, WaitResult, WouldDeadlock,
};

/// A locking strategy that gives access to a shared value.
///
/// The weakest of the three traits; all strategies implement it. Components that change the guarded value
/// need [`Lock`]; this trait admits [`RecursiveMutex`] too. It is implemented by the lock types with their
/// default parameter, so a strategy is written `Mutex` or `NullMutex`, without a value's type.
pub trait SharedLock: 'static {
    /// The lock around a value of type `T`.
    type Of<T>;
    /// Read access to a value; unlocks when dropped.
    type ReadGuard<'a, T: 'a>: Deref<Target = T>;

    /// A free lock around `value`.
    fn unlocked<T>(value: T) -> Self::Of<T>;
    /// The value; owning the lock shows that it is unlocked.
    fn into_inner<T>(lock: Self::Of<T>) -> T;
    /// The value, without locking.
    fn get_mut<T>(lock: &mut Self::Of<T>) -> &mut T;
    /// Waits until the value can be read. Strategies without shared access give exclusive access.
    fn read<'a, T: 'a>(lock: &'a Self::Of<T>) -> Self::ReadGuard<'a, T>;
    /// Gives read access if that needs no waiting.
    fn try_read<'a, T: 'a>(lock: &'a Self::Of<T>) -> Option<Self::ReadGuard<'a, T>>;
}

/// A locking strategy with mutable access: [`Mutex`], [`AdaptiveMutex`], [`PriorityInheritanceMutex`], [`RwLock`],
/// [`NullMutex`].
///
/// ```
/// use spandrel_sync::{Guarded, Lock, Mutex, NullMutex};
///
/// struct Counters<L: Lock = Mutex> {
///     seen: Guarded<Vec<u64>, L>,
/// }
///
/// impl<L: Lock> Counters<L> {
///     fn new(kinds: usize) -> Self {
///         Self { seen: Guarded::new(vec![0; kinds]) }
///     }
///     fn count(&self, kind: usize) {
///         self.seen.lock()[kind] += 1;
///     }
///     fn total(&self) -> u64 {
///         self.seen.read().iter().sum() // with `RwLock`, concurrently with other readers
///     }
/// }
///
/// let shared = Counters::<Mutex>::new(2);
/// std::thread::scope(|scope| {
///     scope.spawn(|| shared.count(0));
///     scope.spawn(|| shared.count(1));
/// });
/// assert_eq!(shared.total(), 2);
///
/// let own = Counters::<NullMutex>::new(2); // used by one thread: no cost for locks
/// own.count(1);
/// assert_eq!(own.total(), 1);
/// ```
pub trait Lock: SharedLock {
    /// Write access to a value; unlocks when dropped.
    type Guard<'a, T: 'a>: DerefMut<Target = T>;

    /// Waits until the lock is free and takes it.
    fn lock<'a, T: 'a>(lock: &'a Self::Of<T>) -> Self::Guard<'a, T>;
    /// Takes the lock if it is free now.
    fn try_lock<'a, T: 'a>(lock: &'a Self::Of<T>) -> Option<Self::Guard<'a, T>>;
}

/// A locking strategy with a condition variable: [`Mutex`], [`AdaptiveMutex`], [`PriorityInheritanceMutex`],
/// [`NullMutex`].
///
/// Under the null strategy no other thread can change the value. So a wait without a limit is an error there,
/// and a wait with a limit times out at once. A component that handles both works under every strategy.
///
/// ```
/// use std::collections::VecDeque;
/// use spandrel_sync::{WouldDeadlock, Guarded, Monitor, Mutex, NullMutex};
///
/// struct Queue<T, L: Monitor = Mutex> {
///     items: Guarded<VecDeque<T>, L>,
///     not_empty: L::Condition,
/// }
///
/// impl<T, L: Monitor> Queue<T, L> {
///     fn new() -> Self {
///         Self { items: Guarded::default(), not_empty: L::Condition::default() }
///     }
///     fn put(&self, item: T) {
///         self.items.lock().push_back(item);
///         L::notify_one(&self.not_empty);
///     }
///     fn take(&self) -> Result<T, WouldDeadlock> {
///         let mut items = self.items.lock();
///         L::wait_while(&self.not_empty, &mut items, |items| items.is_empty())?;
///         Ok(items.pop_front().expect("not empty"))
///     }
/// }
///
/// let shared = Queue::<_, Mutex>::new();
/// std::thread::scope(|scope| {
///     scope.spawn(|| shared.put(7));
///     assert_eq!(shared.take(), Ok(7));
/// });
///
/// let own = Queue::<_, NullMutex>::new();
/// own.put(7);
/// assert_eq!((own.take(), own.take()), (Ok(7), Err(WouldDeadlock)));
/// ```
pub trait Monitor: Lock {
    /// The condition variable that belongs to the lock.
    type Condition: Default;

    /// Releases the lock, waits for a notification and takes the lock again. It may end spuriously.
    ///
    /// # Errors
    /// [`WouldDeadlock`] if no notification can ever come, with the lock still held.
    fn wait<T>(condition: &Self::Condition, guard: &mut Self::Guard<'_, T>) -> Result<(), WouldDeadlock>;
    /// Like [`wait`](Self::wait), for at most `timeout`.
    fn wait_for<T>(condition: &Self::Condition, guard: &mut Self::Guard<'_, T>, timeout: Duration) -> WaitResult;
    /// Wakes one waiting thread, if any.
    fn notify_one(condition: &Self::Condition);
    /// Wakes all waiting threads.
    fn notify_all(condition: &Self::Condition);

    /// Waits while `blocked` returns true for the value.
    ///
    /// # Errors
    /// [`WouldDeadlock`] if the value is blocked and no notification can ever come.
    fn wait_while<T>(
        condition: &Self::Condition,
        guard: &mut Self::Guard<'_, T>,
        mut blocked: impl FnMut(&mut T) -> bool,
    ) -> Result<(), WouldDeadlock> {
        while blocked(guard) {
            Self::wait(condition, guard)?;
        }
        Ok(())
    }
}

/// A value behind a lock of the strategy `L`.
///
/// It costs as much as the lock itself and is [`Sync`] where the lock is.
pub struct Guarded<T, L: SharedLock = Mutex>(L::Of<T>);

impl<T, L: SharedLock> Guarded<T, L> {
    /// The value behind a free lock.
    pub fn new(value: T) -> Self {
        Self(L::unlocked(value))
    }

    /// The value; owning the lock shows that it is unlocked.
    pub fn into_inner(self) -> T {
        L::into_inner(self.0)
    }

    /// The value, without locking: `&mut self` shows that no other reference exists.
    #[inline]
    pub fn get_mut(&mut self) -> &mut T {
        L::get_mut(&mut self.0)
    }

    /// Waits until the value can be read.
    #[inline]
    #[track_caller]
    pub fn read(&self) -> L::ReadGuard<'_, T> {
        L::read(&self.0)
    }

    /// Gives read access if that needs no waiting.
    #[inline]
    pub fn try_read(&self) -> Option<L::ReadGuard<'_, T>> {
        L::try_read(&self.0)
    }
}

impl<T, L: Lock> Guarded<T, L> {
    /// Waits until the lock is free and takes it.
    #[inline]
    #[track_caller]
    pub fn lock(&self) -> L::Guard<'_, T> {
        L::lock(&self.0)
    }

    /// Takes the lock if it is free now.
    #[inline]
    pub fn try_lock(&self) -> Option<L::Guard<'_, T>> {
        L::try_lock(&self.0)
    }
}

impl<T: Default, L: SharedLock> Default for Guarded<T, L> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T: fmt::Debug, L: SharedLock> fmt::Debug for Guarded<T, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.try_read() {
            Some(guard) => f.debug_tuple("Guarded").field(&&*guard).finish(),
            None => f.write_str("Guarded(<locked>)"),
        }
    }
}

/// Implements [`SharedLock`] with the methods that all locks of this crate have; the two names are the
/// methods for reading.
macro_rules! shared_lock {
    ($lock:ident, $guard:ident, $read:ident, $try_read:ident) => {
        impl SharedLock for $lock {
            type Of<T> = $lock<T>;
            type ReadGuard<'a, T: 'a> = $guard<'a, T>;

            fn unlocked<T>(value: T) -> $lock<T> {
                $lock::new(value)
            }
            fn into_inner<T>(lock: $lock<T>) -> T {
                lock.into_inner()
            }
            #[inline]
            fn get_mut<T>(lock: &mut $lock<T>) -> &mut T {
                lock.get_mut()
            }
            #[inline]
            #[track_caller]
            fn read<'a, T: 'a>(lock: &'a $lock<T>) -> $guard<'a, T> {
                lock.$read()
            }
            #[inline]
            fn try_read<'a, T: 'a>(lock: &'a $lock<T>) -> Option<$guard<'a, T>> {
                lock.$try_read()
            }
        }
    };
}

/// Implements [`Lock`] in the same way.
macro_rules! lock {
    ($lock:ident, $guard:ident, $lock_it:ident, $try_lock:ident) => {
        impl Lock for $lock {
            type Guard<'a, T: 'a> = $guard<'a, T>;

            #[inline]
            #[track_caller]
            fn lock<'a, T: 'a>(lock: &'a $lock<T>) -> $guard<'a, T> {
                lock.$lock_it()
            }
            #[inline]
            fn try_lock<'a, T: 'a>(lock: &'a $lock<T>) -> Option<$guard<'a, T>> {
                lock.$try_lock()
            }
        }
    };
}

/// Implements [`Monitor`] by a condition.
macro_rules! monitor {
    ($lock:ident, $guard:ident, $condition:ident) => {
        impl Monitor for $lock {
            type Condition = $condition;

            fn wait<T>(condition: &$condition, guard: &mut $guard<'_, T>) -> Result<(), WouldDeadlock> {
                condition.wait(guard);
                Ok(())
            }
            fn wait_for<T>(condition: &$condition, guard: &mut $guard<'_, T>, timeout: Duration) -> WaitResult {
                condition.wait_for(guard, timeout)
            }
            fn notify_one(condition: &$condition) {
                condition.notify_one();
            }
            fn notify_all(condition: &$condition) {
                condition.notify_all();
            }
        }
    };
}

shared_lock!(Mutex, MutexGuard, lock, try_lock);
shared_lock!(AdaptiveMutex, MutexGuard, lock, try_lock);
shared_lock!(RwLock, RwLockReadGuard, read, try_read);
shared_lock!(PriorityInheritanceMutex, PriorityInheritanceMutexGuard, lock, try_lock);
shared_lock!(NullMutex, NullMutexReadGuard, read, try_read);
shared_lock!(RecursiveMutex, RecursiveMutexGuard, lock, try_lock);
lock!(Mutex, MutexGuard, lock, try_lock);
lock!(AdaptiveMutex, MutexGuard, lock, try_lock);
lock!(RwLock, RwLockWriteGuard, write, try_write);
lock!(NullMutex, NullMutexGuard, lock, try_lock);
lock!(PriorityInheritanceMutex, PriorityInheritanceMutexGuard, lock, try_lock);
monitor!(Mutex, MutexGuard, Condition);
monitor!(AdaptiveMutex, MutexGuard, Condition);
monitor!(PriorityInheritanceMutex, PriorityInheritanceMutexGuard, PriorityInheritanceCondition);

impl Monitor for NullMutex {
    type Condition = NullCondition;

    fn wait<T>(condition: &NullCondition, guard: &mut NullMutexGuard<'_, T>) -> Result<(), WouldDeadlock> {
        condition.wait(guard)
    }
    fn wait_for<T>(condition: &NullCondition, guard: &mut NullMutexGuard<'_, T>, timeout: Duration) -> WaitResult {
        condition.wait_for(guard, timeout)
    }
    fn notify_one(_: &NullCondition) {}
    fn notify_all(_: &NullCondition) {}
}
