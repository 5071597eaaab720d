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
    /// The recording of its hold.
    #[cfg(all(debug_assertions, not(shuttle)))]
    hold: Option<counting::Hold>,
}

#[cfg(all(debug_assertions, not(shuttle)))]
mod counting {
    use std::{
        cell::RefCell,
        collections::BTreeMap,
        panic::Location,
        sync::{
            Mutex, PoisonError,
            atomic::{AtomicBool, Ordering},
        },
        time::Duration,
    };

    use super::HeldLock;

    static IS_CHECKED: AtomicBool = AtomicBool::new(false);
    static IS_RECORDING: AtomicBool = AtomicBool::new(false);
    /// The prefix of the names of threads whose locks are recorded, and the locks of all threads by source file.
    static RECORDED: Mutex<(&str, BTreeMap<&'static str, RecordedLocks>)> = Mutex::new(("", BTreeMap::new()));

    /// The locks that a source file takes.
    #[derive(Clone, Copy, Debug, Default)]
    pub struct RecordedLocks {
        /// Whether every one of these locks inherits priorities.
        pub inherit_priorities: bool,
        /// The most processor time in which a thread, of any name, has held one of them. Waits and preemption are not
        /// part of it.
        pub longest_hold: Duration,
        /// Whether a thread with the recorded prefix has taken one.
        is_of_threads: bool,
    }

    /// The beginning of a lock's hold.
    #[derive(Debug)]
    pub(super) struct Hold {
        file: &'static str,
        inherits: bool,
        start: Duration,
    }

    /// The processor time of this thread.
    fn processor_time() -> Duration {
        #[cfg(unix)]
        {
            Duration::try_from(rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime)).unwrap_or_default()
        }
        #[cfg(not(unix))]
        Duration::ZERO
    }

    std::thread_local! {
        /// The source locations at which this thread took the locks that it holds.
        static LOCK_SITES: RefCell<Vec<&'static Location<'static>>> = const { RefCell::new(Vec::new()) };
    }

    impl HeldLock {
        #[track_caller]
        pub(crate) fn new() -> Self {
            Self::taken_at(Location::caller(), false)
        }

        /// For a lock whose holder has the priority of the threads that wait for it.
        #[track_caller]
        pub(crate) fn inheriting() -> Self {
            Self::taken_at(Location::caller(), true)
        }

        fn taken_at(place: &'static Location<'static>, inherits: bool) -> Self {
            // A thread that is about to end has no such list any more.
            let _ = LOCK_SITES.try_with(|sites| sites.borrow_mut().push(place));
            let is_recording = IS_RECORDING.load(Ordering::Relaxed);
            let hold = is_recording.then(|| Hold { file: place.file(), inherits, start: processor_time() });
            Self { counts: true, hold }
        }

        /// For a lock that no other thread waits for.
        pub(crate) fn uncounted() -> Self {
            Self { counts: false, hold: None }
        }
    }

    impl Drop for HeldLock {
        fn drop(&mut self) {
            if let Some(hold) = self.hold.take() {
                record(&hold);
            }
            if self.counts {
                // Any entry keeps the count right; the last is the likeliest.
                let _ = LOCK_SITES.try_with(|sites| sites.borrow_mut().pop());
            }
        }
    }

    #[cold]
    fn record(hold: &Hold) {
        let held = processor_time().saturating_sub(hold.start);
        let thread = std::thread::current();
        let mut recorded = RECORDED.lock().unwrap_or_else(PoisonError::into_inner);
        let is_of_threads = thread.name().is_some_and(|name| name.starts_with(recorded.0));
        let first = || RecordedLocks { inherit_priorities: true, ..RecordedLocks::default() };
        let locks = recorded.1.entry(hold.file).or_insert_with(first);
        locks.inherit_priorities &= hold.inherits;
        locks.longest_hold = locks.longest_hold.max(held);
        locks.is_of_threads |= is_of_threads;
    }

    /// From now on records the source files in which threads with this prefix of their name take locks, and how long
    /// all threads hold these, for tests that list the locks of a path. Debug builds only.
    pub fn record_locks(threads: &'static str) {
        *RECORDED.lock().unwrap_or_else(PoisonError::into_inner) = (threads, BTreeMap::new());
        IS_RECORDING.store(true, Ordering::Relaxed);
    }

    /// Ends the recording, and returns the locks by their source files.
    #[must_use]
    pub fn recorded_locks() -> BTreeMap<&'static str, RecordedLocks> {
        IS_RECORDING.store(false, Ordering::Relaxed);
        let mut locks = std::mem::take(&mut RECORDED.lock().unwrap_or_else(PoisonError::into_inner).1);
        locks.retain(|_, locks| locks.is_of_threads);
        locks
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
pub use counting::{RecordedLocks, assert_none, count, enable_checks, record_locks, recorded_locks};

#[cfg(not(all(debug_assertions, not(shuttle))))]
mod counting {
    use super::HeldLock;

    impl HeldLock {
        #[inline(always)]
        pub(crate) fn new() -> Self {
            Self {}
        }

        #[inline(always)]
        pub(crate) fn inheriting() -> Self {
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
