//! Whether a thread holds locks where it should hold none.
//!
//! Who calls code of others while it holds a lock makes them wait for each other sooner or later. So our own code says where it
//! calls others, by [`assert_none`]. In builds with debug assertions each thread knows the locks that it holds, and where it took
//! them; once a test has called [`watch`], a lock that is held at such a place ends the process. A program's own locks count as
//! well, and it may hold them as it likes: hence only tests watch. In other builds nothing is counted, and nothing costs anything.

/// A lock that the present thread holds, as long as this lives.
#[derive(Debug)]
pub(crate) struct Held {
    #[cfg(all(debug_assertions, not(shuttle)))]
    counts: bool,
}

#[cfg(all(debug_assertions, not(shuttle)))]
mod counting {
    use std::{
        cell::RefCell,
        panic::Location,
        sync::atomic::{AtomicBool, Ordering},
    };

    use super::Held;

    static WATCHES: AtomicBool = AtomicBool::new(false);

    std::thread_local! {
        /// Where this thread took the locks that it holds.
        static PLACES: RefCell<Vec<&'static Location<'static>>> = const { RefCell::new(Vec::new()) };
    }

    impl Held {
        #[track_caller]
        pub(crate) fn new() -> Self {
            let place = Location::caller();
            // A thread that is about to end has no such list any more.
            let _ = PLACES.try_with(|places| places.borrow_mut().push(place));
            Self { counts: true }
        }

        /// For one that is no lock that others wait for.
        pub(crate) fn uncounted() -> Self {
            Self { counts: false }
        }
    }

    impl Drop for Held {
        fn drop(&mut self) {
            if self.counts {
                // Which it is does not matter for the count, and the last is the likeliest.
                let _ = PLACES.try_with(|places| places.borrow_mut().pop());
            }
        }
    }

    /// From now on [`assert_none`] ends the process if it finds a lock.
    pub fn watch() {
        WATCHES.store(true, Ordering::Relaxed);
    }

    /// Ends the process, and says why, if tests [`watch`] and this thread holds a lock. `what`: who is about to be called.
    pub fn assert_none(what: &str) {
        if !WATCHES.load(Ordering::Relaxed) {
            return;
        }
        let _ = PLACES.try_with(|places| {
            let places = places.borrow();
            if !places.is_empty() {
                let places: Vec<String> = places.iter().map(ToString::to_string).collect();
                eprintln!("{what} is called while locks are held, which were taken at {}", places.join(", "));
                // A panic would be caught by who guards itself against the panics of those who are called.
                std::process::abort();
            }
        });
    }

    /// How many locks this thread holds.
    #[must_use]
    pub fn count() -> usize {
        PLACES.try_with(|places| places.borrow().len()).unwrap_or(0)
    }
}

#[cfg(all(debug_assertions, not(shuttle)))]
pub use counting::{assert_none, count, watch};

#[cfg(not(all(debug_assertions, not(shuttle))))]
mod counting {
    use super::Held;

    impl Held {
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
    pub fn watch() {}

    /// Does nothing in this build.
    #[inline(always)]
    pub fn assert_none(_what: &str) {}

    /// Nothing is counted in this build.
    #[must_use]
    pub fn count() -> usize {
        0
    }
}

#[cfg(not(all(debug_assertions, not(shuttle))))]
pub use counting::{assert_none, count, watch};
