//! Mutual exclusion without unbounded priority inversion.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use crate::time::Deadline;
use crate::{WaitResult, backend, held::HeldLock};

/// A mutex whose holder runs with the highest priority of the threads that wait for it (`PTHREAD_PRIO_INHERIT`).
///
/// With an ordinary [`Mutex`](crate::Mutex), a thread of medium priority can keep a thread of high priority waiting
/// without limit: it preempts the holder, which has a low priority. Here the holder is not preempted by it. The
/// inheritance is the kernel's, passes along chains of mutexes, and ends when the holder unlocks. It concerns
/// real-time priorities ([`Priority::Fifo`](crate::Priority::Fifo), [`RoundRobin`](crate::Priority::RoundRobin)).
///
/// Waiting threads are served by their priorities. A thread that locks it twice panics. Not poisoned by panics. Each
/// mutex has a block on the heap, so it cannot be created in a `static`. An unlocked mutex is locked without a system
/// call. On systems other than Linux, and under the model checker, it is an ordinary mutex
/// ([`INHERITS`](Self::INHERITS)).
///
/// ```
/// use spandrel_sync::{Arc, Guarded, PriorityInheritanceMutex, thread};
///
/// let total = Arc::new(Guarded::<u32, PriorityInheritanceMutex>::new(0));
/// let other = Arc::clone(&total);
/// thread::spawn(move || *other.lock() += 1).join().unwrap();
/// assert_eq!(*total.lock(), 1);
/// ```
pub struct PriorityInheritanceMutex<T: ?Sized = ()>(backend::InheritingMutex<T>);

/// Access to the value of a locked [`PriorityInheritanceMutex`]; unlocks it when dropped.
#[must_use = "the lock is released when the guard is dropped"]
pub struct PriorityInheritanceMutexGuard<'a, T: ?Sized>(
    backend::InheritingMutexGuard<'a, T>,
    #[allow(dead_code, reason = "only its end matters")] HeldLock,
);

impl PriorityInheritanceMutex {
    /// Whether these mutexes inherit priorities in this build.
    pub const INHERITS: bool = cfg!(all(target_os = "linux", not(any(shuttle, test, miri))));
}

impl<T> PriorityInheritanceMutex<T> {
    /// An unlocked mutex.
    ///
    /// # Panics
    /// If the C library has no memory for it.
    pub fn new(value: T) -> Self {
        Self(backend::InheritingMutex::new(value))
    }

    /// The value; owning the mutex shows that it is unlocked.
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

impl<T: ?Sized> PriorityInheritanceMutex<T> {
    /// Waits until the mutex is unlocked and locks it.
    ///
    /// # Panics
    /// If the calling thread has locked it already. Outside of Linux it waits for ever instead.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn lock(&self) -> PriorityInheritanceMutexGuard<'_, T> {
        PriorityInheritanceMutexGuard(self.0.lock(), HeldLock::inheriting())
    }

    /// Locks the mutex if it is unlocked now.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn try_lock(&self) -> Option<PriorityInheritanceMutexGuard<'_, T>> {
        self.0.try_lock().map(|guard| PriorityInheritanceMutexGuard(guard, HeldLock::inheriting()))
    }

    /// Waits until the mutex is unlocked and locks it, for at most `timeout`. The holder inherits the caller's
    /// priority meanwhile, and unlocking wakes the caller at once.
    ///
    /// The kernel measures this limit by the clock of the day: setting that back prolongs the wait.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn try_lock_for(&self, timeout: Duration) -> Option<PriorityInheritanceMutexGuard<'_, T>> {
        self.0.try_lock_for(timeout).map(|guard| PriorityInheritanceMutexGuard(guard, HeldLock::inheriting()))
    }

    /// The value, without locking: `&mut self` shows that no other reference exists.
    #[inline]
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }
}

impl<T: Default> Default for PriorityInheritanceMutex<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> From<T> for PriorityInheritanceMutex<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for PriorityInheritanceMutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.try_lock() {
            Some(guard) => f.debug_tuple("PriorityInheritanceMutex").field(&&*guard).finish(),
            None => f.write_str("PriorityInheritanceMutex(<locked>)"),
        }
    }
}

impl<T: ?Sized> Deref for PriorityInheritanceMutexGuard<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: ?Sized> DerefMut for PriorityInheritanceMutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for PriorityInheritanceMutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// A condition of threads that hold a [`PriorityInheritanceMutex`]; see [`Condition`](crate::Condition).
///
/// A woken thread has locked the mutex again, with inheritance, before it goes on. All waits on one condition use
/// the same mutex for as long as the condition exists.
pub struct PriorityInheritanceCondition(backend::InheritingCondvar);

impl PriorityInheritanceCondition {
    /// A condition without waiting threads.
    #[must_use]
    pub fn new() -> Self {
        Self(backend::InheritingCondvar::new())
    }

    /// Releases the lock, waits for a notification and takes the lock again.
    ///
    /// # Panics
    /// If the condition was used with another mutex before; outside of Linux, if a thread waits with another mutex.
    pub fn wait<T>(&self, guard: &mut PriorityInheritanceMutexGuard<'_, T>) {
        self.0.wait(&mut guard.0);
    }

    /// Waits while `blocked` returns true for the value.
    ///
    /// # Panics
    /// As [`wait`](Self::wait).
    pub fn wait_while<T>(
        &self,
        guard: &mut PriorityInheritanceMutexGuard<'_, T>,
        mut blocked: impl FnMut(&mut T) -> bool,
    ) {
        while blocked(guard) {
            self.wait(guard);
        }
    }

    /// Like [`wait`](Self::wait), for at most `timeout`. The lock is held again in either case.
    ///
    /// # Panics
    /// As [`wait`](Self::wait).
    pub fn wait_for<T>(&self, guard: &mut PriorityInheritanceMutexGuard<'_, T>, timeout: Duration) -> WaitResult {
        WaitResult { timed_out: self.0.wait_for(&mut guard.0, timeout).timed_out() }
    }

    /// Like [`wait`](Self::wait), until `deadline` at most. Once that has passed, it returns at once and keeps the lock.
    ///
    /// # Panics
    /// As [`wait`](Self::wait).
    pub fn wait_until<T>(&self, guard: &mut PriorityInheritanceMutexGuard<'_, T>, deadline: Deadline) -> WaitResult {
        match deadline.remaining() {
            Some(Duration::ZERO) => WaitResult { timed_out: true },
            Some(left) => self.wait_for(guard, left),
            None => {
                self.wait(guard);
                WaitResult { timed_out: false }
            }
        }
    }

    /// Wakes one waiting thread, if any: the one with the highest priority.
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Wakes all waiting threads.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}

impl Default for PriorityInheritanceCondition {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for PriorityInheritanceCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PriorityInheritanceCondition")
    }
}
