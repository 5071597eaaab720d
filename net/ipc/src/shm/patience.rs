//! How long to look for a change before going to sleep.
//!
//! With a second processor the peer may be at work right now, and to sleep and be woken costs more than to watch for some
//! microseconds. With one processor it cannot be: watching only keeps it from working. Which pays is learnt from how long waits took.

use std::hint::spin_loop;
use std::time::Duration;

use spandrel_sync::time::Instant;

/// Watching is over after so long.
pub(crate) const LIMIT: Duration = Duration::from_micros(50);

/// How often the change is looked for between two looks at the clock.
const LOOKS: u32 = 32;
/// After so many waits that were too long to watch, watching is tried again.
const RETRY: u8 = 16;
/// How many waits of one kind tip the balance from one end to the other.
const BALANCE: i8 = 4;
/// How often the number of processors is asked for: every so many sleeps.
const RECOUNT: u8 = 64;
/// How many attempts that found nothing without waiting go by between two looks at whether the peer is gone.
const TRIES_PER_CHECK: u8 = 16;

/// One waiter's experience.
#[derive(Debug)]
pub(crate) struct Patience {
    limit: Duration,
    can_watch: bool,
    /// Above zero if waits were short of late.
    balance: i8,
    since_try: u8,
    since_count: u8,
    fruitless: u8,
}

impl Patience {
    /// Watches for at most `limit`; zero never does.
    pub(crate) fn new(limit: Duration) -> Self {
        Self { limit, can_watch: processors() > 1, balance: BALANCE, since_try: 0, since_count: 0, fruitless: 0 }
    }

    /// Watches for `is_changed`, and says whether it came.
    #[inline]
    pub(crate) fn spin(&mut self, mut is_changed: impl FnMut() -> bool) -> bool {
        if !self.can_watch || self.limit.is_zero() {
            return false;
        }
        for _ in 0..LOOKS {
            if is_changed() {
                return true;
            }
            spin_loop();
        }
        if self.balance < 0 && self.since_try < RETRY {
            self.since_try += 1;
            return false;
        }
        self.since_try = 0;
        self.watch(is_changed)
    }

    fn watch(&mut self, mut is_changed: impl FnMut() -> bool) -> bool {
        let start = Instant::now();
        loop {
            for _ in 0..LOOKS {
                if is_changed() {
                    self.was(true);
                    return true;
                }
                spin_loop();
            }
            if Instant::now().saturating_duration_since(start) >= self.limit {
                return false;
            }
        }
    }

    /// Sleeps by `sleep`, and learns from it.
    pub(crate) fn sleep(&mut self, sleep: impl FnOnce()) {
        if self.since_count == 0 {
            self.can_watch = processors() > 1; // may be moved while it runs
        }
        self.since_count = (self.since_count + 1) % RECOUNT;
        if !self.can_watch {
            return sleep();
        }
        let start = Instant::now();
        sleep();
        self.was(Instant::now().saturating_duration_since(start) < self.limit);
    }

    fn was(&mut self, short: bool) {
        self.balance = if short { self.balance + 1 } else { self.balance - 1 }.clamp(-BALANCE, BALANCE);
    }

    /// Whether an attempt that found nothing should find out if the peer is still there, which costs a system call.
    pub(crate) fn is_time_to_check(&mut self) -> bool {
        self.fruitless = (self.fruitless + 1) % TRIES_PER_CHECK;
        self.fruitless == 0
    }
}

/// On how many processors this thread may run.
fn processors() -> u32 {
    if cfg!(any(miri, shuttle)) {
        return 1;
    }
    rustix::thread::sched_getaffinity(None).map_or(1, |set| set.count())
}
