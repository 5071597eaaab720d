//! Statistics of an ORB: counters that only grow, levels, and their text for Prometheus.
//!
//! Each event has a method that counts it, such as [`Statistics::connection_opened`]: one addition to an
//! atomic number, unordered with all else. A successful call counts nothing here. Durations of calls and
//! counts by operation belong to `metrics`, which are off by default.
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

/// The statistics of one ORB. Cheap to clone: all clones are the same numbers.
///
/// Each number is right by itself; several numbers may be read at different moments.
#[derive(Clone, Default)]
pub struct Statistics {
    shared: Arc<Counters>,
}

struct Counters {
    events: [AtomicU64; Event::COUNT],
    levels: [AtomicI64; Level::COUNT],
}

impl Default for Counters {
    fn default() -> Self {
        Self { events: std::array::from_fn(|_| AtomicU64::new(0)), levels: std::array::from_fn(|_| AtomicI64::new(0)) }
    }
}

impl Statistics {
    /// Counts an event.
    #[inline]
    pub fn note(&self, event: Event) {
        self.shared.events[event as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Changes a level.
    #[inline]
    pub fn change(&self, level: Level, by: i64) {
        self.shared.levels[level as usize].fetch_add(by, Ordering::Relaxed);
    }

    /// Sets a level to a number that was measured.
    pub(crate) fn set(&self, level: Level, to: i64) {
        self.shared.levels[level as usize].store(to, Ordering::Relaxed);
    }

    /// The number of times that the event has happened.
    #[must_use]
    pub fn count(&self, event: Event) -> u64 {
        self.shared.events[event as usize].load(Ordering::Relaxed)
    }

    /// The present level.
    #[must_use]
    pub fn level(&self, level: Level) -> i64 {
        self.shared.levels[level as usize].load(Ordering::Relaxed)
    }
}

impl fmt::Debug for Statistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("Statistics");
        for (name, count) in Event::ALL.iter().map(|event| (format!("{event:?}"), self.count(*event))) {
            if count > 0 {
                fields.field(&name, &count);
            }
        }
        fields.finish_non_exhaustive()
    }
}
