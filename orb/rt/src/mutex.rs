//! `RTCORBA::Mutex`, and mutexes with names.

use std::collections::BTreeMap;
use std::time::Duration;

use spandrel_giop::{CompletionStatus, SystemException};
use spandrel_sync::{Arc, Mutex, PriorityInheritanceMutex, PriorityInheritanceMutexGuard, Weak};

/// The greatest number of names, whether their mutexes exist or not.
const MAX_NAMES: usize = 1_024;

/// A mutex of an application that inherits priorities, like the ORB's own (`RTCORBA::Mutex`). Clones are the same mutex.
///
/// `lock` and `try_lock` return a guard, and dropping that is `unlock`.
///
/// ```
/// use std::time::Duration;
/// use spandrel_rt::RtMutex;
///
/// let mutex = RtMutex::new();
/// let guard = mutex.lock();
/// assert!(mutex.try_lock(Duration::ZERO).is_none());
/// drop(guard);
/// assert!(mutex.try_lock(Duration::from_secs(1)).is_some());
/// ```
#[derive(Clone, Debug, Default)]
pub struct RtMutex(Arc<PriorityInheritanceMutex>);

impl RtMutex {
    /// Creates a mutex that no thread holds. Its holder inherits the priority of the most urgent waiting
    /// thread.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Waits until the mutex is unlocked and locks it.
    ///
    /// # Panics
    /// If the calling thread has locked it already.
    #[track_caller]
    pub fn lock(&self) -> PriorityInheritanceMutexGuard<'_, ()> {
        self.0.lock()
    }

    /// Locks the mutex, waiting for at most `max_wait`; zero does not wait. `None` if it is still locked then.
    #[track_caller]
    #[must_use]
    pub fn try_lock(&self, max_wait: Duration) -> Option<PriorityInheritanceMutexGuard<'_, ()>> {
        if max_wait.is_zero() { self.0.try_lock() } else { self.0.try_lock_for(max_wait) }
    }

    /// Whether both are the same mutex.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// No mutex of this name exists (`RTORB::MutexNotFound`, an extension of TAO's).
#[derive(Clone, Copy, Eq, PartialEq, thiserror::Error)]
#[error("no mutex of this name exists")]
pub struct MutexNotFound;
spandrel_error::debug_as_report!(MutexNotFound);

/// The named mutexes of an ORB. A mutex exists for as long as a program has it.
#[derive(Debug, Default)]
pub(crate) struct NamedMutexes(Mutex<BTreeMap<String, Weak<PriorityInheritanceMutex>>>);

impl NamedMutexes {
    /// The mutex of this name, and whether it was created.
    pub(crate) fn create(&self, name: &str) -> Result<(RtMutex, bool), SystemException> {
        let mut names = self.0.lock();
        if let Some(mutex) = names.get(name).and_then(Weak::upgrade) {
            return Ok((RtMutex(mutex), false));
        }
        if names.len() >= MAX_NAMES {
            names.retain(|_, mutex| mutex.strong_count() > 0);
        }
        if names.len() >= MAX_NAMES {
            return Err(SystemException::imp_limit(0, CompletionStatus::No)
                .with_detail(|| format!("there are {MAX_NAMES} named mutexes already")));
        }
        let mutex = RtMutex::new();
        names.insert(name.to_owned(), Arc::downgrade(&mutex.0));
        Ok((mutex, true))
    }

    pub(crate) fn open(&self, name: &str) -> Result<RtMutex, MutexNotFound> {
        self.0.lock().get(name).and_then(Weak::upgrade).map(RtMutex).ok_or(MutexNotFound)
    }
}
