//! The recursive mutex, made of the primitives of the backend, since no backend has one.

use std::ops::Deref;
use std::time::Duration;

use parking_lot::{ReentrantMutex, ReentrantMutexGuard};

use super::kind::{Condvar, Instant, Mutex, thread};

/// The thread that holds the lock, and the number of its guards.
type Holder = Option<(thread::ThreadId, usize)>;

pub(crate) struct RecursiveMutex<T: ?Sized> {
    holder: Mutex<Holder>,
    freed: Condvar,
    /// Always free for the thread that gets here: `holder` has admitted it. It only makes the value `Sync`,
    /// without `unsafe`.
    value: ReentrantMutex<T>,
}

pub(crate) struct RecursiveMutexGuard<'a, T: ?Sized> {
    value: ReentrantMutexGuard<'a, T>,
    _holder: HolderGuard<'a>,
}

struct HolderGuard<'a> {
    holder: &'a Mutex<Holder>,
    freed: &'a Condvar,
}

impl Drop for HolderGuard<'_> {
    fn drop(&mut self) {
        let mut holder = self.holder.lock();
        *holder = holder.take().filter(|(_, times)| *times > 1).map(|(thread, times)| (thread, times - 1));
        if holder.is_none() {
            self.freed.notify_one();
        }
    }
}

impl<T: ?Sized> Deref for RecursiveMutexGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> RecursiveMutex<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self { holder: Mutex::new(None), freed: Condvar::new(), value: ReentrantMutex::new(value) }
    }
    pub(crate) fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> RecursiveMutex<T> {
    pub(crate) fn lock(&self) -> RecursiveMutexGuard<'_, T> {
        let mut holder = self.holder.lock();
        while !enter(&mut holder) {
            self.freed.wait(&mut holder);
        }
        drop(holder);
        self.guard()
    }
    pub(crate) fn try_lock(&self) -> Option<RecursiveMutexGuard<'_, T>> {
        enter(&mut self.holder.lock()).then(|| self.guard())
    }
    pub(crate) fn try_lock_for(&self, timeout: Duration) -> Option<RecursiveMutexGuard<'_, T>> {
        let end = Instant::now().checked_add(timeout);
        let mut holder = self.holder.lock();
        loop {
            if enter(&mut holder) {
                drop(holder);
                return Some(self.guard());
            }
            // A wake-up without success does not restart the time limit.
            let left = end.map_or(timeout, |end| end.saturating_duration_since(Instant::now()));
            if self.freed.wait_for(&mut holder, left).timed_out() {
                let entered = enter(&mut holder);
                drop(holder);
                return entered.then(|| self.guard());
            }
        }
    }
    fn guard(&self) -> RecursiveMutexGuard<'_, T> {
        RecursiveMutexGuard {
            value: self.value.lock(),
            _holder: HolderGuard { holder: &self.holder, freed: &self.freed },
        }
    }
    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
}

/// Makes the caller the holder unless another thread is.
fn enter(holder: &mut Holder) -> bool {
    let me = thread::current().id();
    match holder {
        None => *holder = Some((me, 1)),
        Some((thread, times)) if *thread == me => *times += 1,
        Some(_) => return false,
    }
    true
}
