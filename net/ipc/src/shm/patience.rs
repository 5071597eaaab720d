//! What a waiter does before it goes to sleep.
//!
//! If the peer runs on another processor, it may be at work right now, and to sleep and be woken costs more than to watch for some
//! microseconds. Watching has paid if waits were short of late.
//!
//! If the peer runs on the same processor, watching only keeps it from working, but to let it run is cheaper than to be woken by it, as
//! long as nobody else wants to run there: the system takes whoever lets others run for one who has time, and a busy third process would
//! get its whole share first. So who finds that it took long does not try again soon, and each time less soon.
//!
//! Where the peer runs it says itself, in shared memory. If that is a lie, no more than this time is lost.

use std::hint::spin_loop;
use std::time::Duration;

use rustix::time::{ClockId, Timespec, clock_gettime};
use spandrel_sync::thread::yield_now;
use spandrel_sync::time::Instant;

/// Watching is over after so long.
pub(crate) const LIMIT: Duration = Duration::from_micros(50);

/// How often the change is looked for between two looks at the clock.
const LOOKS: u32 = 32;
/// How often a peer on the same processor is let run: more than once, because it may have to do with others first.
const YIELDS: u32 = 3;
/// After so many waits, what did not pay is tried again, at first and at last.
const RETRY: u32 = 16;
const LAST_RETRY: u32 = 1 << 16;
/// A failure after fewer attempts that paid than this is no accident.
const FEW: u32 = 64;
/// After more than this, times have changed.
const MANY: u32 = 1024;
/// How many short waits make up for as many long ones.
const BALANCE: i8 = 4;
/// How many attempts that found nothing without waiting go by between two looks at whether the peer is gone.
const TRIES_PER_CHECK: u8 = 16;

/// One waiter's experience.
#[derive(Debug)]
pub(crate) struct Patience {
    limit: Duration,
    /// Not negative if waits were short of late.
    balance: i8,
    spinning: Retry,
    yielding: Retry,
    fruitless: u8,
}

/// When to try again what did not pay.
#[derive(Debug)]
struct Retry {
    left: u32,
    next: u32,
    /// How many attempts in a row have paid.
    paid: u32,
}

impl Retry {
    const NEW: Self = Self { left: 0, next: RETRY, paid: 0 };

    #[inline]
    fn is_time(&mut self) -> bool {
        let is_time = self.left == 0;
        self.left = self.left.saturating_sub(1);
        is_time
    }

    /// Once in a while anything may fail to pay; twice in a short time it is given up for some time.
    #[inline]
    fn has_paid(&mut self, paid: bool) {
        if paid {
            self.paid = self.paid.saturating_add(1);
            return;
        }
        if self.paid > MANY {
            self.next = RETRY;
        }
        if self.paid < FEW {
            self.left = self.next;
            self.next = (self.next * 2).min(LAST_RETRY);
        }
        self.paid = 0;
    }
}

impl Patience {
    /// Watches for at most `limit`; zero never does.
    pub(crate) fn new(limit: Duration) -> Self {
        Self { limit, balance: BALANCE, spinning: Retry::NEW, yielding: Retry::NEW, fruitless: 0 }
    }

    /// Waits a little for `is_changed`, and says whether it came. `is_near` is whether the peer runs on the same processor.
    #[inline]
    pub(crate) fn watch(&mut self, is_near: impl FnOnce() -> bool, is_changed: impl FnMut() -> bool) -> bool {
        if self.limit.is_zero() {
            return false;
        }
        if is_near() {
            return self.yielding.is_time() && self.let_run(is_changed);
        }
        (self.balance >= 0 || self.spinning.is_time()) && self.spin(is_changed)
    }

    /// The change must come in time, and no third process may have had its turn in between. Whether one had is told by the clock that
    /// counts the system's ticks, as it takes a tenth of the time to look at: whoever had a turn had it for some milliseconds.
    fn let_run(&mut self, mut is_changed: impl FnMut() -> bool) -> bool {
        let before = ticks();
        let is_in_time = (0..YIELDS).any(|_| {
            yield_now();
            is_changed()
        });
        self.yielding.has_paid(is_in_time && ticks() == before);
        is_in_time
    }

    fn spin(&mut self, mut is_changed: impl FnMut() -> bool) -> bool {
        let mut start = None; // most changes come before the first look at the clock
        loop {
            for _ in 0..LOOKS {
                if is_changed() {
                    self.was(true);
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

    /// Sleeps by `sleep`, and learns from it.
    pub(crate) fn sleep(&mut self, sleep: impl FnOnce()) {
        let start = Instant::now();
        sleep();
        self.was(Instant::now().saturating_duration_since(start) < self.limit);
    }

    fn was(&mut self, short: bool) {
        self.balance = if short { self.balance + 1 } else { self.balance - 1 }.clamp(-BALANCE, BALANCE);
        self.spinning.has_paid(short);
    }

    /// Whether an attempt that found nothing should find out if the peer is still there, which costs a system call.
    pub(crate) fn is_time_to_check(&mut self) -> bool {
        self.fruitless = (self.fruitless + 1) % TRIES_PER_CHECK;
        self.fruitless == 0
    }
}

fn ticks() -> Timespec {
    clock_gettime(ClockId::MonotonicCoarse)
}
