//! Detects threads that hold locks where they should hold none.
//!
//! A call of foreign code while a lock is held deadlocks sooner or later. So this project's code marks where
//! it calls foreign code, with [`assert_none`]. In builds with debug assertions each thread counts its locks
//! and remembers where it took them. Once a test has called [`enable_checks`], a lock that is held at such a
//! call aborts the process. A program's own locks count as well, and it may hold them as it likes; hence only
//! tests enable the check. In other builds nothing is counted and nothing is paid.

/// A lock that the present thread holds, for the lifetime of this value.
#[derive(Debug)]
pub(crate) struct HeldLock {
    #[cfg(all(debug_assertions, not(shuttle)))]
    counts: bool,
}

#[cfg(all(debug_assertions, not(shuttle)))]
mod counting {
    use std::{
        cell::RefCell,
        collections::BTreeSet,
        panic::Location,
        sync::{
            Mutex, PoisonError,
            atomic::{AtomicBool, Ordering},
        },
    };

    use super::HeldLock;

    static IS_CHECKED: AtomicBool = AtomicBool::new(false);
    static IS_RECORDING: AtomicBool = AtomicBool::new(false);
    /// The prefix of the names of threads whose locks are recorded, and the files that have locked.
    static RECORDED: Mutex<(&str, BTreeSet<&'static str>)> = Mutex::new(("", BTreeSet::new()));

    std::thread_local! {
        /// The source locations at which this thread took the locks that it holds.
        static LOCK_SITES: RefCell<Vec<&'static Location<'static>>> = const { RefCell::new(Vec::new()) };
    }

    impl HeldLock {
        #[track_caller]
        pub(crate) fn new() -> Self {
            let place = Location::caller();
            if IS_RECORDING.load(Ordering::Relaxed) {
                record(place.file());
            }
            // A thread that is about to end has no such list any more.
            let _ = LOCK_SITES.try_with(|sites| sites.borrow_mut().push(place));
            Self { counts: true }
        }

        /// For a lock that no other thread waits for.
        pub(crate) fn uncounted() -> Self {
            Self { counts: false }
        }
    }

    impl Drop for HeldLock {
        fn drop(&mut self) {
            if self.counts {
                // Any entry keeps the count right; the last is the likeliest.
                let _ = LOCK_SITES.try_with(|sites| sites.borrow_mut().pop());
            }
        }
    }

    #[cold]
    fn record(file: &'static str) {
        let thread = std::thread::current();
        let mut recorded = RECORDED.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.name().is_some_and(|name| name.starts_with(recorded.0)) {
            recorded.1.insert(file);
        }
    }

    /// From now on records the source files in which threads with this prefix of their name take locks, for tests that
    /// list the locks of a path. Debug builds only.
    pub fn record_files(threads: &'static str) {
        *RECORDED.lock().unwrap_or_else(PoisonError::into_inner) = (threads, BTreeSet::new());
        IS_RECORDING.store(true, Ordering::Relaxed);
    }

    /// Ends the recording, and returns the files.
    #[must_use]
    pub fn recorded_files() -> BTreeSet<&'static str> {
        IS_RECORDING.store(false, Ordering::Relaxed);
        std::mem::take(&mut RECORDED.lock().unwrap_or_else(PoisonError::into_inner).1)
    }

    /// From now on [`assert_none`] aborts the process if it finds a lock.
    pub fn enable_checks() {
        IS_CHECKED.store(true, Ordering::Relaxed);
    }

    /// Aborts the process, with a message, if [`enable_checks`] was called and this thread holds a lock.
    /// `callee` names the code that is about to be called.
    pub fn assert_none(callee: &str) {
        if !IS_CHECKED.load(Ordering::Relaxed) {
            return;
        }
        let _ = LOCK_SITES.try_with(|sites| {
            let sites = sites.borrow();
            if !sites.is_empty() {
                let sites: Vec<String> = sites.iter().map(ToString::to_string).collect();
                eprintln!("{callee} is called while locks are held, taken at {}", sites.join(", "));
                // A panic could be caught by a caller that guards against panics of the code it calls.
                std::process::abort();
            }
        });
    }

    /// The number of locks that this thread holds.
    #[must_use]
    pub fn count() -> usize {
        LOCK_SITES.try_with(|sites| sites.borrow().len()).unwrap_or(0)
    }
}

#[cfg(all(debug_assertions, not(shuttle)))]
pub use counting::{assert_none, count, enable_checks, record_files, recorded_files};

#[cfg(not(all(debug_assertions, not(shuttle))))]
mod counting {
    use super::HeldLock;

    impl HeldLock {
        #[inline(always)]
        pub(crate) fn new() -> Self {
            Self {}
        }

        #[inline(always)]
        pub(crate) fn uncounted() -> Self {
            Self {}
        }
    }

    /// Does nothing in this build.
    pub fn enable_checks() {}

    /// Does nothing in this build.
    #[inline(always)]
    pub fn assert_none(_callee: &str) {}

    /// Nothing is counted in this build.
    #[must_use]
    pub fn count() -> usize {
        0
    }
}

#[cfg(not(all(debug_assertions, not(shuttle))))]
pub use counting::{assert_none, count, enable_checks};
