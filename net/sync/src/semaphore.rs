//! Semaphores that count permits.

use std::fmt;
use std::time::Duration;

use crate::time::Deadline;
use crate::{Arc, Condition, Mutex};

/// A counting semaphore (POSIX `sem_wait`, `sem_trywait`, `sem_timedwait`, `sem_post`): a number of permits,
/// each of which has one holder at a time.
///
/// A [`Permit`] is returned when it is dropped. For signalling between threads, [`forget`](Permit::forget)
/// the permit and [`post`](Self::post) a new one in the other thread. Threads are served in no promised
/// order; [`Token`](crate::Token) promises one.
///
/// ```
/// use spandrel_sync::Semaphore;
///
/// let connections = Semaphore::new(2);
/// let first = connections.acquire();
/// let second = connections.acquire();
/// assert!(connections.try_acquire().is_none());
/// drop(first);
/// assert!(connections.try_acquire().is_some());
/// ```
pub struct Semaphore {
    state: Mutex<State>,
    posted: Condition,
}

struct State {
    free: usize,
    waiting: usize,
}

/// A permit of a [`Semaphore`]; returned when dropped.
#[derive(Debug)]
#[must_use = "the permit is given back when dropped"]
pub struct Permit<'a> {
    semaphore: &'a Semaphore,
}

/// A [`Permit`] that keeps its semaphore alive, so that it can move to another thread.
#[derive(Debug)]
#[must_use = "the permit is given back when dropped"]
pub struct OwnedPermit {
    semaphore: Option<Arc<Semaphore>>, // none once forgotten
}

/// The count would not fit into a `usize` (POSIX: `EOVERFLOW`). Nothing was added.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("cannot add {permits} permits to a semaphore with {free} free ones: it counts at most {}", usize::MAX)]
pub struct TooManyPermits {
    /// The permits that were to be added.
    pub permits: usize,
    /// The permits that were free at that time.
    pub free: usize,
}
spandrel_error::debug_as_report!(TooManyPermits);

impl Semaphore {
    /// A semaphore with that many free permits; usable in a `static`.
    #[must_use]
    pub const fn new(permits: usize) -> Self {
        Self { state: Mutex::new(State { free: permits, waiting: 0 }), posted: Condition::new() }
    }

    /// Waits for a permit and takes it.
    pub fn acquire(&self) -> Permit<'_> {
        self.take();
        Permit { semaphore: self }
    }

    /// Takes a permit if one is free now.
    pub fn try_acquire(&self) -> Option<Permit<'_>> {
        self.try_take().then(|| Permit { semaphore: self })
    }

    /// Waits for a permit and takes it, for at most `timeout`.
    pub fn acquire_for(&self, timeout: Duration) -> Option<Permit<'_>> {
        self.take_for(timeout).then(|| Permit { semaphore: self })
    }

    /// Like [`acquire`](Self::acquire), for a permit that is not tied to this borrow.
    pub fn acquire_owned(self: &Arc<Self>) -> OwnedPermit {
        self.take();
        OwnedPermit { semaphore: Some(Arc::clone(self)) }
    }

    /// Like [`try_acquire`](Self::try_acquire), for a permit that is not tied to this borrow.
    pub fn try_acquire_owned(self: &Arc<Self>) -> Option<OwnedPermit> {
        self.try_take().then(|| OwnedPermit { semaphore: Some(Arc::clone(self)) })
    }

    /// Like [`acquire_for`](Self::acquire_for), for a permit that is not tied to this borrow.
    pub fn acquire_owned_for(self: &Arc<Self>, timeout: Duration) -> Option<OwnedPermit> {
        self.take_for(timeout).then(|| OwnedPermit { semaphore: Some(Arc::clone(self)) })
    }

    /// Adds that many permits; any thread may call it.
    ///
    /// # Errors
    /// [`TooManyPermits`] if the count would overflow.
    pub fn post(&self, permits: usize) -> Result<(), TooManyPermits> {
        let mut state = self.state.lock();
        let free = state.free;
        state.free = free.checked_add(permits).ok_or(TooManyPermits { permits, free })?;
        for _ in 0..permits.min(state.waiting) {
            self.posted.notify_one();
        }
        Ok(())
    }

    /// The number of permits that are free at the moment.
    #[must_use]
    pub fn available(&self) -> usize {
        self.state.lock().free
    }

    /// The number of threads that wait at the moment.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.state.lock().waiting
    }

    fn take(&self) {
        let mut state = self.state.lock();
        state.waiting += 1;
        self.posted.wait_while(&mut state, |state| state.free == 0);
        state.waiting -= 1;
        state.free -= 1;
    }

    fn try_take(&self) -> bool {
        let mut state = self.state.lock();
        let is_free = state.free > 0;
        state.free -= usize::from(is_free);
        is_free
    }

    fn take_for(&self, timeout: Duration) -> bool {
        if self.try_take() {
            return true;
        }
        let deadline = Deadline::after(timeout);
        let mut state = self.state.lock();
        state.waiting += 1;
        while state.free == 0 {
            if self.posted.wait_until(&mut state, deadline).timed_out() {
                break;
            }
        }
        state.waiting -= 1;
        let is_free = state.free > 0; // also if it was posted just before the timeout
        state.free -= usize::from(is_free);
        is_free
    }

    fn give_back(&self) {
        // The permit was counted before, so it fits, unless posts have reached the limit meanwhile: then it
        // is dropped.
        let _ = self.post(1);
    }
}

impl Permit<'_> {
    /// Removes the permit from the semaphore for good.
    pub fn forget(self) {
        std::mem::forget(self);
    }
}

impl OwnedPermit {
    /// Removes the permit from the semaphore for good.
    pub fn forget(mut self) {
        self.semaphore = None;
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.semaphore.give_back();
    }
}

impl Drop for OwnedPermit {
    fn drop(&mut self) {
        if let Some(semaphore) = &self.semaphore {
            semaphore.give_back();
        }
    }
}

impl fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Semaphore").field("available", &self.available()).finish()
    }
}
