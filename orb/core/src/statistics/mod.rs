//! What an ORB has done so far, in numbers: counters that only grow, levels that come and go, and their text for Prometheus.
//!
//! Whoever does something says so by the method of that name, such as [`Statistics::connection_opened`]: one addition to an atomic
//! number, in no order with anything else. Nothing is counted here on the way of a call that simply succeeds; what calls take, and
//! how many there were of each operation, is `metrics`' business, and is off unless somebody wants it.
//!
//! The events and levels are one table (`events`).

mod events;
pub(crate) mod render;

use std::fmt;

use spandrel_sync::{
    Arc,
    atomic::{AtomicI64, AtomicU64, Ordering},
};

pub use events::{Event, Level};
pub use render::CONTENT_TYPE;

/// The numbers of one ORB. Cheap to clone; all clones are the same numbers.
///
/// Each number is right by itself; several that are read one after the other need not belong to the same moment.
#[derive(Clone, Default)]
pub struct Statistics {
    shared: Arc<Numbers>,
}

struct Numbers {
    events: [AtomicU64; Event::COUNT],
    levels: [AtomicI64; Level::COUNT],
}

impl Default for Numbers {
    fn default() -> Self {
        Self { events: std::array::from_fn(|_| AtomicU64::new(0)), levels: std::array::from_fn(|_| AtomicI64::new(0)) }
    }
}

impl Statistics {
    /// This has happened once more.
    #[inline]
    pub fn note(&self, event: Event) {
        self.shared.events[event as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// There is so much more of it, or less.
    #[inline]
    pub fn change(&self, level: Level, by: i64) {
        self.shared.levels[level as usize].fetch_add(by, Ordering::Relaxed);
    }

    /// There is so much of it, as somebody has seen who has looked.
    #[cfg(feature = "asynchronous")]
    pub(crate) fn set(&self, level: Level, to: i64) {
        self.shared.levels[level as usize].store(to, Ordering::Relaxed);
    }

    /// How often it has happened.
    #[must_use]
    pub fn count(&self, event: Event) -> u64 {
        self.shared.events[event as usize].load(Ordering::Relaxed)
    }

    /// How much of it there is now.
    #[must_use]
    pub fn level(&self, level: Level) -> i64 {
        self.shared.levels[level as usize].load(Ordering::Relaxed)
    }
}

impl fmt::Debug for Statistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut seen = f.debug_struct("Statistics");
        for (name, count) in Event::ALL.iter().map(|event| (format!("{event:?}"), self.count(*event))) {
            if count > 0 {
                seen.field(&name, &count);
            }
        }
        seen.finish_non_exhaustive()
    }
}
