//! Adaptive waiting: spinning or yielding before a sleep.
//!
//! If the peer runs on another processor, it may be at work right now, and a sleep with its wake-up costs
//! more than spinning for some microseconds. Spinning pays if recent waits were short.
//!
//! If the peer runs on the same processor, spinning only keeps it from running. Yielding to it is cheaper
//! than a sleep and a wake-up, as long as no third thread wants to run there: the scheduler then treats the
//! yielding thread as idle, and a busy third process gets its whole time slice first. So a yield that took
//! long is not repeated soon, with growing intervals.
//!
//! Each side publishes its processor in shared memory. If a hostile peer lies about it, no more than this
//! time is lost.

use std::hint::spin_loop;
use std::time::Duration;

use rustix::time::{ClockId, Timespec, clock_gettime};
use spandrel_sync::thread::yield_now;
use spandrel_sync::time::Instant;

/// The default spinning time of a stream.
pub(crate) const DEFAULT_SPIN: Duration = Duration::from_micros(50);

/// The number of checks of the word between two readings of the clock.
const SPINS_PER_CLOCK_READ: u32 = 32;
/// The number of yields to a peer on the same processor: more than one, because the scheduler may run other
/// threads first.
const YIELDS: u32 = 3;
/// The number of waits after which a failed method is tried again, at first and at most.
const RETRY: u32 = 16;
const LAST_RETRY: u32 = 1 << 16;
/// A failure after fewer successes than this counts as systematic.
const TOLERATED_AFTER: u32 = 64;
/// After more successes than this, the retry interval is reset.
const RESET_AFTER: u32 = 1024;
/// The number of short waits that outweighs as many long ones.
const BALANCE: i8 = 4;
/// The number of failed attempts without waiting between two checks whether the peer has ended.
const TRIES_PER_CHECK: u8 = 16;

/// The adaptive state of one waiting side.
#[derive(Debug)]
pub(crate) struct AdaptiveWait {
    limit: Duration,
    /// Not negative if recent waits were short.
    balance: i8,
    spinning: RetrySchedule,
    yielding: RetrySchedule,
    failed_attempts: u8,
}

/// The schedule for retrying a method of waiting that failed.
#[derive(Debug)]
struct RetrySchedule {
    left: u32,
    next: u32,
    /// The number of consecutive successes.
    successes: u32,
}

impl RetrySchedule {
    const NEW: Self = Self { left: 0, next: RETRY, successes: 0 };

    #[inline]
    fn is_due(&mut self) -> bool {
        let is_due = self.left == 0;
        self.left = self.left.saturating_sub(1);
        is_due
    }

    /// A single failure is tolerated; a second one soon after suspends the method for some time.
    #[inline]
    fn record(&mut self, successes: bool) {
        if successes {
            self.successes = self.successes.saturating_add(1);
            return;
        }
        if self.successes > RESET_AFTER {
            self.next = RETRY;
        }
        if self.successes < TOLERATED_AFTER {
            self.left = self.next;
            self.next = (self.next * 2).min(LAST_RETRY);
        }
        self.successes = 0;
    }
}

impl AdaptiveWait {
    /// Spins for at most `limit`; never if it is zero.
    pub(crate) fn new(limit: Duration) -> Self {
        Self { limit, balance: BALANCE, spinning: RetrySchedule::NEW, yielding: RetrySchedule::NEW, failed_attempts: 0 }
    }

    /// Waits briefly for `is_changed`, and returns whether it became true. `is_same_cpu` is whether the peer
    /// runs on the same processor.
    #[inline]
    pub(crate) fn spin_or_yield(
        &mut self,
        is_same_cpu: impl FnOnce() -> bool,
        is_changed: impl FnMut() -> bool,
    ) -> bool {
        if self.limit.is_zero() {
            return false;
        }
        if is_same_cpu() {
            return self.yielding.is_due() && self.yield_to_peer(is_changed);
        }
        (self.balance >= 0 || self.spinning.is_due()) && self.spin(is_changed)
    }

    /// Succeeds if the change comes in time, and no third process has run in between. The coarse clock of the
    /// system's ticks tells that, and costs a tenth of the precise one: another process would have run for
    /// some milliseconds.
    fn yield_to_peer(&mut self, mut is_changed: impl FnMut() -> bool) -> bool {
        let before = ticks();
        let is_in_time = (0..YIELDS).any(|_| {
            yield_now();
            is_changed()
        });
        self.yielding.record(is_in_time && ticks() == before);
        is_in_time
    }

    fn spin(&mut self, mut is_changed: impl FnMut() -> bool) -> bool {
        let mut start = None; // most changes come before the clock is read first
        loop {
            for _ in 0..SPINS_PER_CLOCK_READ {
                if is_changed() {
                    self.record_wait(true);
                    return true;
                }
                spin_loop();
            }
            let now = Instant::now();
            if now.saturating_duration_since(*start.get_or_insert(now)) >= self.limit {
                return false;
            }
        }
    }

    /// Sleeps with `sleep`, and records whether the wait was long.
    pub(crate) fn sleep(&mut self, sleep: impl FnOnce()) {
        let start = Instant::now();
        sleep();
        self.record_wait(Instant::now().saturating_duration_since(start) < self.limit);
    }

    fn record_wait(&mut self, short: bool) {
        self.balance = if short { self.balance + 1 } else { self.balance - 1 }.clamp(-BALANCE, BALANCE);
        self.spinning.record(short);
    }

    /// Whether an attempt that found nothing should check if the peer still exists, which costs a system
    /// call.
    pub(crate) fn is_time_to_check(&mut self) -> bool {
        self.failed_attempts = (self.failed_attempts + 1) % TRIES_PER_CHECK;
        self.failed_attempts == 0
    }
}

fn ticks() -> Timespec {
    clock_gettime(ClockId::MonotonicCoarse)
}
