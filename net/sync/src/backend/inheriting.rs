//! Mutexes of POSIX with priority inheritance (`PTHREAD_PRIO_INHERIT`), and their condition variables: one
//! of the two modules of this crate with `unsafe`.
//!
//! The C library keeps the addresses of these objects, so each has a heap block of its own. The mutexes check for
//! errors: a thread that locks one twice panics instead of waiting for itself.

#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::io;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Panics with the error that a function of the C library returned.
#[track_caller]
fn check(function: &str, result: libc::c_int) {
    assert!(result == 0, "{function}: {}", io::Error::from_raw_os_error(result));
}

/// The time `timeout` after `now`, or the latest that the C library can represent.
fn end_of(now: Duration, timeout: Duration) -> libc::timespec {
    let end = now.saturating_add(timeout);
    match libc::time_t::try_from(end.as_secs()) {
        Ok(tv_sec) => libc::timespec { tv_sec, tv_nsec: end.subsec_nanos().into() },
        Err(_) => libc::timespec { tv_sec: libc::time_t::MAX, tv_nsec: 0 },
    }
}

struct RawMutex(Box<UnsafeCell<libc::pthread_mutex_t>>);

// SAFETY: any thread may call the functions of a POSIX mutex, also at the same time.
unsafe impl Send for RawMutex {}
// SAFETY: as above.
unsafe impl Sync for RawMutex {}

impl RawMutex {
    fn new() -> Self {
        let mutex = Self(Box::new(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER)));
        let mut attributes = MaybeUninit::<libc::pthread_mutexattr_t>::uninit();
        let attributes = attributes.as_mut_ptr();
        // SAFETY: the attributes are initialized before their first use and destroyed after the last. The mutex has
        // its final address, and no other thread knows it yet.
        unsafe {
            check("pthread_mutexattr_init", libc::pthread_mutexattr_init(attributes));
            let kind = libc::PTHREAD_MUTEX_ERRORCHECK;
            check("pthread_mutexattr_settype", libc::pthread_mutexattr_settype(attributes, kind));
            #[cfg(not(miri))] // the interpreter has no priorities
            {
                let protocol = libc::PTHREAD_PRIO_INHERIT;
                check("pthread_mutexattr_setprotocol", libc::pthread_mutexattr_setprotocol(attributes, protocol));
            }
            check("pthread_mutex_init", libc::pthread_mutex_init(mutex.0.get(), attributes));
            check("pthread_mutexattr_destroy", libc::pthread_mutexattr_destroy(attributes));
        }
        mutex
    }

    fn lock(&self) {
        // SAFETY: the mutex is initialized.
        let result = unsafe { libc::pthread_mutex_lock(self.0.get()) };
        assert!(result != libc::EDEADLK, "this thread has locked the mutex already");
        check("pthread_mutex_lock", result);
    }

    fn try_lock(&self) -> bool {
        // SAFETY: the mutex is initialized.
        match unsafe { libc::pthread_mutex_trylock(self.0.get()) } {
            libc::EBUSY | libc::EDEADLK => false,
            result => {
                check("pthread_mutex_trylock", result);
                true
            }
        }
    }

    /// The C library measures this time limit by the clock of the day. A clock that is set forward while the thread
    /// waits does not end the wait before its time.
    fn try_lock_for(&self, timeout: Duration) -> bool {
        let start = Instant::now();
        loop {
            let left = timeout.saturating_sub(start.elapsed());
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            // SAFETY: the mutex is initialized.
            match unsafe { libc::pthread_mutex_timedlock(self.0.get(), &end_of(now, left)) } {
                libc::ETIMEDOUT if left.is_zero() => return false,
                libc::ETIMEDOUT => {}
                // A thread that waits for itself waits until the time is up.
                libc::EDEADLK if left.is_zero() => return false,
                libc::EDEADLK => std::thread::sleep(left),
                result => {
                    check("pthread_mutex_timedlock", result);
                    return true;
                }
            }
        }
    }

    /// # Safety
    /// The calling thread has locked the mutex.
    unsafe fn unlock(&self) {
        // SAFETY: the mutex is initialized; the caller has locked it.
        check("pthread_mutex_unlock", unsafe { libc::pthread_mutex_unlock(self.0.get()) });
    }
}

impl Drop for RawMutex {
    fn drop(&mut self) {
        if self.try_lock() {
            // SAFETY: this thread has locked it above; no other thread can use it any more.
            unsafe {
                self.unlock();
                libc::pthread_mutex_destroy(self.0.get());
            }
        } else {
            // Its guard was forgotten. The kernel may know the address, so the block stays allocated.
            let block = std::mem::replace(&mut self.0, Box::new(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER)));
            Box::leak(block);
        }
    }
}

pub(crate) struct InheritingMutex<T: ?Sized> {
    raw: RawMutex,
    value: UnsafeCell<T>,
}

// SAFETY: one thread at a time has a guard, and only guards and `&mut self` reach the value.
unsafe impl<T: ?Sized + Send> Sync for InheritingMutex<T> {}

pub(crate) struct InheritingMutexGuard<'a, T: ?Sized> {
    mutex: &'a InheritingMutex<T>,
    /// The thread that locked is the one that unlocks.
    not_send: PhantomData<*const ()>,
}

// SAFETY: a shared guard gives access to `&T` alone.
unsafe impl<T: ?Sized + Sync> Sync for InheritingMutexGuard<'_, T> {}

impl<T> InheritingMutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { raw: RawMutex::new(), value: UnsafeCell::new(value) }
    }
    pub(crate) fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> InheritingMutex<T> {
    #[inline]
    pub(crate) fn lock(&self) -> InheritingMutexGuard<'_, T> {
        self.raw.lock();
        self.guard()
    }
    #[inline]
    pub(crate) fn try_lock(&self) -> Option<InheritingMutexGuard<'_, T>> {
        self.raw.try_lock().then(|| self.guard())
    }
    pub(crate) fn try_lock_for(&self, timeout: Duration) -> Option<InheritingMutexGuard<'_, T>> {
        self.raw.try_lock_for(timeout).then(|| self.guard())
    }
    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
    /// The guard of the thread that has locked the mutex.
    fn guard(&self) -> InheritingMutexGuard<'_, T> {
        InheritingMutexGuard { mutex: self, not_send: PhantomData }
    }
}

impl<T: ?Sized> Drop for InheritingMutexGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: a guard exists only in the thread that has locked the mutex.
        unsafe { self.mutex.raw.unlock() };
    }
}

impl<T: ?Sized> Deref for InheritingMutexGuard<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the mutex is locked for this guard.
        unsafe { &*self.mutex.value.get() }
    }
}

impl<T: ?Sized> DerefMut for InheritingMutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the mutex is locked for this guard, which is borrowed exclusively.
        unsafe { &mut *self.mutex.value.get() }
    }
}

pub(crate) struct InheritingCondvar {
    raw: Box<UnsafeCell<libc::pthread_cond_t>>,
    /// The mutex of the first wait; null before it. POSIX leaves concurrent waits with two mutexes undefined.
    mutex: AtomicPtr<libc::pthread_mutex_t>,
    /// Waiting threads, as in the condition of the native backend.
    waiting: AtomicU32,
}

// SAFETY: any thread may call the functions of a condition variable, also at the same time.
unsafe impl Send for InheritingCondvar {}
// SAFETY: as above.
unsafe impl Sync for InheritingCondvar {}

pub(crate) struct InheritingWaitResult(bool);

impl InheritingWaitResult {
    pub(crate) fn timed_out(&self) -> bool {
        self.0
    }
}

impl InheritingCondvar {
    pub(crate) fn new() -> Self {
        let raw = Box::new(UnsafeCell::new(libc::PTHREAD_COND_INITIALIZER));
        let mut attributes = MaybeUninit::<libc::pthread_condattr_t>::uninit();
        let attributes = attributes.as_mut_ptr();
        // SAFETY: the attributes are initialized before their first use and destroyed after the last. The condition
        // has its final address, and no other thread knows it yet.
        unsafe {
            check("pthread_condattr_init", libc::pthread_condattr_init(attributes));
            let clock = libc::CLOCK_MONOTONIC;
            check("pthread_condattr_setclock", libc::pthread_condattr_setclock(attributes, clock));
            check("pthread_cond_init", libc::pthread_cond_init(raw.get(), attributes));
            check("pthread_condattr_destroy", libc::pthread_condattr_destroy(attributes));
        }
        Self { raw, mutex: AtomicPtr::new(ptr::null_mut()), waiting: AtomicU32::new(0) }
    }

    /// The guard's mutex, after a check that all waits use this one.
    fn mutex_of<T>(&self, guard: &InheritingMutexGuard<'_, T>) -> *mut libc::pthread_mutex_t {
        let mutex = guard.mutex.raw.0.get();
        match self.mutex.compare_exchange(ptr::null_mut(), mutex, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => {}
            Err(first) => assert!(first == mutex, "a condition is used with two mutexes"),
        }
        mutex
    }

    pub(crate) fn wait<T>(&self, guard: &mut InheritingMutexGuard<'_, T>) {
        let mutex = self.mutex_of(guard);
        self.waiting.fetch_add(1, Ordering::Relaxed);
        // SAFETY: both are initialized; this thread has locked the mutex, and has it again afterwards.
        let result = unsafe { libc::pthread_cond_wait(self.raw.get(), mutex) };
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        check("pthread_cond_wait", result);
    }

    pub(crate) fn wait_for<T>(
        &self,
        guard: &mut InheritingMutexGuard<'_, T>,
        timeout: Duration,
    ) -> InheritingWaitResult {
        let mutex = self.mutex_of(guard);
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `now` is a valid place for the result.
        let result = unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
        assert!(result == 0, "clock_gettime: {}", io::Error::last_os_error());
        let now = Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32);
        let end = end_of(now, timeout);
        self.waiting.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as in `wait`.
        let result = unsafe { libc::pthread_cond_timedwait(self.raw.get(), mutex, &end) };
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        if result != libc::ETIMEDOUT {
            check("pthread_cond_timedwait", result);
        }
        InheritingWaitResult(result == libc::ETIMEDOUT)
    }

    #[inline]
    pub(crate) fn notify_one(&self) {
        if self.waiting.load(Ordering::Relaxed) > 0 {
            // SAFETY: the condition is initialized.
            check("pthread_cond_signal", unsafe { libc::pthread_cond_signal(self.raw.get()) });
        }
    }

    #[inline]
    pub(crate) fn notify_all(&self) {
        if self.waiting.load(Ordering::Relaxed) > 0 {
            // SAFETY: the condition is initialized.
            check("pthread_cond_broadcast", unsafe { libc::pthread_cond_broadcast(self.raw.get()) });
        }
    }
}

impl Drop for InheritingCondvar {
    fn drop(&mut self) {
        // SAFETY: a waiting thread borrows the condition, so none waits.
        unsafe { libc::pthread_cond_destroy(self.raw.get()) };
    }
}
