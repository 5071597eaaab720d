//! Time for the timer queues, and clocks.

use std::fmt;
use std::ops::Add;
use std::time::Duration;

use spandrel_sync::Arc;
use spandrel_sync::atomic::{AtomicU64, Ordering};
use spandrel_sync::time::Instant;

#[cfg(all(target_os = "linux", not(shuttle)))]
use crate::sys::clock::monotonic_nanos;

/// An instant: nanoseconds since the epoch of a clock. Instants of different clocks are unrelated.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// The epoch of the clock: zero nanoseconds.
    pub const ZERO: Self = Self(0);
    /// The largest value, 584 years after the epoch.
    pub const MAX: Self = Self(u64::MAX);

    /// The instant that many nanoseconds after the epoch.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// The number of nanoseconds after the epoch.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The time since `earlier`; zero if it is later.
    #[must_use]
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// The instant `span` later, unless that is beyond [`MAX`](Self::MAX).
    #[must_use]
    pub fn checked_add(self, span: Duration) -> Option<Self> {
        let nanos = u64::try_from(span.as_nanos()).ok()?;
        Some(Self(self.0.checked_add(nanos)?))
    }
}

/// A later instant, at most [`Time::MAX`].
impl Add<Duration> for Time {
    type Output = Self;
    fn add(self, span: Duration) -> Self {
        self.checked_add(span).unwrap_or(Self::MAX)
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Time").field(&Duration::from_nanos(self.0)).finish()
    }
}

/// A monotonic source of time.
pub trait Clock: fmt::Debug + Send + Sync {
    /// The time since the clock's epoch; it never decreases.
    fn now(&self) -> Time;
}

impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn now(&self) -> Time {
        (**self).now()
    }
}

/// The system's monotonic clock, which setting the date does not affect. Its epoch is its creation; copies
/// share it.
#[derive(Clone, Copy, Debug)]
pub struct MonotonicClock {
    epoch: Instant,
    /// The epoch by [`monotonic_nanos`].
    #[cfg(all(target_os = "linux", not(shuttle)))]
    epoch_nanos: u64,
}

impl MonotonicClock {
    /// A clock that starts at zero.
    #[must_use]
    pub fn new() -> Self {
        Self {
            epoch: Instant::now(),
            #[cfg(all(target_os = "linux", not(shuttle)))]
            epoch_nanos: monotonic_nanos(),
        }
    }

    /// The time of this clock at `instant`; [`Time::ZERO`] if that is before the epoch.
    #[must_use]
    pub fn time_of(&self, instant: Instant) -> Time {
        Time::ZERO + instant.saturating_duration_since(self.epoch)
    }
}

impl Default for MonotonicClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for MonotonicClock {
    fn now(&self) -> Time {
        #[cfg(all(target_os = "linux", not(shuttle)))]
        let now = Time(monotonic_nanos().saturating_sub(self.epoch_nanos));
        #[cfg(not(all(target_os = "linux", not(shuttle))))]
        let now = self.time_of(Instant::now());
        now
    }
}

/// A clock that advances only on request, for deterministic tests. Clones share their time.
#[derive(Clone, Debug)]
pub struct TestClock {
    nanos: Arc<AtomicU64>,
}

impl TestClock {
    /// A clock that shows zero.
    #[must_use]
    pub fn new() -> Self {
        Self { nanos: Arc::new(AtomicU64::new(0)) }
    }

    /// Advances the clock, to [`Time::MAX`] at most, and returns its time.
    pub fn advance(&self, span: Duration) -> Time {
        let later = |nanos| (Time(nanos) + span).0;
        let (Ok(before) | Err(before)) =
            self.nanos.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |nanos| Some(later(nanos)));
        Time(later(before))
    }

    /// Advances the clock to `time`, if that is later, and returns its time.
    pub fn advance_to(&self, time: Time) -> Time {
        Time(self.nanos.fetch_max(time.0, Ordering::SeqCst)).max(time)
    }
}

impl Default for TestClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for TestClock {
    fn now(&self) -> Time {
        Time(self.nanos.load(Ordering::SeqCst))
    }
}
