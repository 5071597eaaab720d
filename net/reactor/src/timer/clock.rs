//! Time as the timer queues know it, and the clocks that tell it.

use std::fmt;
use std::ops::Add;
use std::time::Duration;

use spandrel_sync::Arc;
use spandrel_sync::atomic::{AtomicU64, Ordering};
use spandrel_sync::time::Instant;

/// A moment: nanoseconds since the epoch of a clock. Moments of different clocks have nothing to do with each other.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// The clock's epoch.
    pub const ZERO: Self = Self(0);
    /// The end of time, 584 years after the epoch.
    pub const MAX: Self = Self(u64::MAX);

    /// The moment so many nanoseconds after the epoch.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// How many nanoseconds after the epoch.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// How long after `earlier`; zero if it is before.
    #[must_use]
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// The moment `span` later, unless that is beyond [`MAX`](Self::MAX).
    #[must_use]
    pub fn checked_add(self, span: Duration) -> Option<Self> {
        let nanos = u64::try_from(span.as_nanos()).ok()?;
        Some(Self(self.0.checked_add(nanos)?))
    }
}

/// A later moment, at most [`Time::MAX`].
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

/// Tells the time, which never goes back.
pub trait Clock: fmt::Debug + Send + Sync {
    /// Now.
    fn now(&self) -> Time;
}

impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn now(&self) -> Time {
        (**self).now()
    }
}

/// The system's monotonic clock, which setting the date does not touch. Its epoch is when it was made; copies share it.
#[derive(Clone, Copy, Debug)]
pub struct MonotonicClock {
    epoch: Instant,
}

impl MonotonicClock {
    /// A clock that starts at zero.
    #[must_use]
    pub fn new() -> Self {
        Self { epoch: Instant::now() }
    }

    /// What this clock shows at `instant`; [`Time::ZERO`] if that is before the epoch.
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
        self.time_of(Instant::now())
    }
}

/// A clock that goes on only when told, for tests that must always go the same way. Clones show the same time.
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

    /// Lets time pass, to [`Time::MAX`] at most, and returns what the clock shows then.
    pub fn advance(&self, span: Duration) -> Time {
        let later = |nanos| (Time(nanos) + span).0;
        let (Ok(before) | Err(before)) =
            self.nanos.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |nanos| Some(later(nanos)));
        Time(later(before))
    }

    /// Lets time pass until `time`, or not at all if that has passed, and returns what the clock shows then.
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
