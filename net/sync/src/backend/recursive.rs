//! No backend has a recursive mutex; this one is made of what they have.

use std::ops::Deref;
use std::time::Duration;

use parking_lot::{ReentrantMutex, ReentrantMutexGuard};

use super::kind::{Condvar, Instant, Mutex, thread};

/// Who has the value, and how often.
type Holder = Option<(thread::ThreadId, usize)>;

pub(crate) struct RecursiveMutex<T: ?Sized> {
    holder: Mutex<Holder>,
    freed: Condvar,
    /// Whoever comes here has been let in above, so nobody ever waits for this lock. It only makes the
    /// value `Sync`, without `unsafe`.
    value: ReentrantMutex<T>,
}

pub(crate) struct RecursiveMutexGuard<'a, T: ?Sized> {
    value: ReentrantMutexGuard<'a, T>,
    _turn: Turn<'a>,
}

struct Turn<'a> {
    holder: &'a Mutex<Holder>,
    freed: &'a Condvar,
}

impl Drop for Turn<'_> {
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
            // Who was woken in vain does not begin anew.
            let left = end.map_or(timeout, |end| end.saturating_duration_since(Instant::now()));
            if self.freed.wait_for(&mut holder, left).timed_out() {
                let entered = enter(&mut holder);
                drop(holder);
                return entered.then(|| self.guard());
            }
        }
    }
    fn guard(&self) -> RecursiveMutexGuard<'_, T> {
        RecursiveMutexGuard { value: self.value.lock(), _turn: Turn { holder: &self.holder, freed: &self.freed } }
    }
    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
}

/// Takes the value for the caller unless another has it.
fn enter(holder: &mut Holder) -> bool {
    let me = thread::current().id();
    match holder {
        None => *holder = Some((me, 1)),
        Some((thread, times)) if *thread == me => *times += 1,
        Some(_) => return false,
    }
    true
}
