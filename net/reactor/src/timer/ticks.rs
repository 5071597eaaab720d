//! The resolution of the wheels: time in whole ticks.

use std::time::Duration;

use super::clock::Time;

/// Ticks of 2^`shift` nanoseconds each; tick 0 is the epoch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ticks {
    shift: u32,
}

impl Ticks {
    /// The longest ticks of a power of two that are not longer than `resolution`, and at least a nanosecond.
    pub(super) fn new(resolution: Duration) -> Self {
        let nanos = u64::try_from(resolution.as_nanos()).unwrap_or(u64::MAX);
        Self { shift: nanos.max(1).ilog2() }
    }

    pub(super) fn resolution(self) -> Duration {
        Duration::from_nanos(1 << self.shift)
    }

    /// The tick at which a timer for `at` fires: the first one that is not before it.
    #[inline]
    pub(super) fn of_expiry(self, at: Time) -> u64 {
        let nanos = at.as_nanos();
        let whole = nanos >> self.shift;
        if whole << self.shift == nanos { whole } else { whole + 1 }
    }

    /// The last tick that has passed at `now`; the last of all at the end of time.
    #[inline]
    pub(super) fn of_now(self, now: Time) -> u64 {
        if now == Time::MAX { self.of_expiry(now) } else { now.as_nanos() >> self.shift }
    }

    /// The time of a tick.
    #[inline]
    pub(super) fn time(self, tick: u64) -> Time {
        if tick > u64::MAX >> self.shift { Time::MAX } else { Time::from_nanos(tick << self.shift) }
    }

    /// The number of bits of a tick.
    pub(super) fn bits(self) -> u32 {
        u64::BITS - self.of_expiry(Time::MAX).leading_zeros()
    }
}
