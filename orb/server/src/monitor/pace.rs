//! When the monitor looks next.
//!
//! A look wakes a thread, and on a machine with few processors that delays the call that is under way. So looks come at 1, 2, 4 … 32 ms while every
//! look finds that connections move on. A look that is made earlier than that has to be paid for: credit for one is earned in a third of a second. So there
//! are at most 35 looks a second in the long run, and five more at a beginning. Only a connection whose peer pipelines is looked at every millisecond
//! for as long as that takes.

use std::time::Duration;

use spandrel_sync::time::Instant;

/// The shortest time between two looks, and the shortest time that an upcall has to last to be found.
pub(super) const SHORTEST: Duration = Duration::from_millis(1);
/// The longest time between two looks while there are upcalls.
pub(super) const LONGEST: Duration = Duration::from_millis(32);
/// The credit that an early look uses up.
const COST: Duration = LONGEST;
/// So much time earns one unit of it.
const EARNING: u32 = 10;
/// The credit for all early looks of a beginning: at 1, 2, 4, 8 and 16 ms.
const MOST: Duration = Duration::from_millis(5 * 32);

/// The finding of a look.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum LookFinding {
    /// All connections move on, or wait for input.
    #[default]
    Nothing,
    /// Another look will tell whether an upcall keeps something waiting.
    Doubt,
    /// An upcall keeps something waiting, or may soon: its peer pipelines.
    Waiting,
}

/// The time of the next look.
#[derive(Debug)]
pub(super) struct Pace {
    interval: Duration,
    credit: Duration,
    /// When the credit was counted last.
    counted: Instant,
    due: Instant,
}

impl Pace {
    pub(super) fn new(now: Instant) -> Self {
        let mut pace = Self { interval: SHORTEST, credit: MOST, counted: now, due: now };
        pace.restart(now);
        pace
    }

    /// When the next look is due.
    pub(super) fn due(&self) -> Instant {
        self.due
    }

    /// Whether [`look_soon`](Self::hurry) would bring the next look forward.
    pub(super) fn can_look_sooner(&self) -> bool {
        self.interval > SHORTEST && self.credit >= 2 * COST
    }

    /// Begins anew with short intervals.
    pub(super) fn restart(&mut self, now: Instant) {
        self.earn(now);
        self.interval = self.affordable(SHORTEST);
        self.due = now + self.interval;
    }

    /// After a look: plans the next one.
    pub(super) fn plan(&mut self, now: Instant, found: LookFinding) {
        self.earn(now);
        let wait = match found {
            LookFinding::Waiting => {
                self.interval = SHORTEST;
                SHORTEST
            }
            LookFinding::Doubt => self.affordable(SHORTEST),
            LookFinding::Nothing => {
                self.interval = self.affordable(LONGEST.min(self.interval * 2));
                self.interval
            }
        };
        self.due = now + wait;
    }

    /// Brings the next look forward.
    pub(super) fn look_soon(&mut self, now: Instant) {
        self.earn(now);
        self.due = now + self.affordable(Duration::ZERO).min(self.due.saturating_duration_since(now));
    }

    /// Waits until then, but no longer than ever.
    pub(super) fn wait_until(&mut self, now: Instant, at: Instant) {
        self.due = at.min(now + LONGEST);
    }

    /// Plans a look in the shortest time.
    pub(super) fn async_writes(&mut self, now: Instant) {
        self.due = self.due.min(now + SHORTEST);
    }

    fn earn(&mut self, now: Instant) {
        let earned = now.saturating_duration_since(self.counted) / EARNING;
        self.credit = MOST.min(self.credit + earned);
        self.counted = now;
    }

    /// This interval, if there is credit for it.
    fn affordable(&mut self, interval: Duration) -> Duration {
        if interval >= LONGEST {
            return LONGEST;
        }
        match self.credit.checked_sub(COST) {
            Some(left) => {
                self.credit = left;
                interval
            }
            None => LONGEST,
        }
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    /// Looks for so long, of which each finds this; says how many looks there were.
    fn looks(pace: &mut Pace, from: Instant, span: Duration, mut found: impl FnMut(u32) -> LookFinding) -> u32 {
        let mut count = 0;
        while pace.due() < from + span {
            count += 1;
            let now = pace.due();
            pace.plan(now, found(count));
        }
        count
    }

    #[test]
    fn a_second_of_calls_takes_at_most_35_looks() {
        let start = Instant::now();
        let count = looks(&mut Pace::new(start), start, Duration::from_secs(1), |_| LookFinding::Nothing);
        assert!((30..=35).contains(&count), "{count} looks");
    }

    #[test]
    fn early_looks_stay_below_35_a_second_on_average() {
        for every in [1, 2, 3, 5] {
            let start = Instant::now();
            let found =
                |count: u32| if count.is_multiple_of(every) { LookFinding::Doubt } else { LookFinding::Nothing };
            let count = looks(&mut Pace::new(start), start, Duration::from_secs(100), found);
            assert!(count <= 3_500 + 5, "{count} looks in 100 s, every {every}th a doubt");
        }
    }

    #[test]
    fn a_possible_long_upcall_is_looked_at_within_a_millisecond() {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        looks(&mut pace, start, Duration::from_secs(2), |_| LookFinding::Nothing);
        let now = pace.due();
        pace.plan(now, LookFinding::Doubt);
        assert_eq!(pace.due() - now, SHORTEST);
        let now = pace.due();
        pace.plan(now, LookFinding::Nothing);
        assert_eq!(pace.due() - now, LONGEST, "what was found out does not begin anew");
    }

    #[test]
    fn a_peer_that_pipelines_is_looked_at_every_millisecond() {
        let start = Instant::now();
        let count = looks(&mut Pace::new(start), start, Duration::from_secs(1), |_| LookFinding::Waiting);
        assert_eq!(count, 999);
    }

    #[test]
    fn a_servant_that_asks_for_its_token_is_looked_at_at_once() {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        looks(&mut pace, start, Duration::from_secs(2), |_| LookFinding::Nothing);
        assert!(pace.can_look_sooner());
        let now = pace.due() - LONGEST / 2;
        pace.look_soon(now);
        assert_eq!(pace.due(), now);
        let mut hurried = 0;
        while pace.can_look_sooner() {
            hurried += 1;
            pace.plan(now, LookFinding::Doubt);
        }
        assert!(hurried <= 5, "there is no credit for more");
        let before = pace.due();
        pace.plan(before, LookFinding::Doubt);
        pace.plan(before, LookFinding::Doubt);
        assert_eq!(pace.due() - before, LONGEST);
    }

    #[test]
    fn after_a_pause_looks_are_early_again() {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        looks(&mut pace, start, Duration::from_millis(40), |_| LookFinding::Nothing);
        let later = start + Duration::from_secs(10);
        pace.restart(later);
        assert_eq!(pace.due() - later, SHORTEST);
        let early = looks(&mut pace, later, LONGEST, |_| LookFinding::Nothing);
        assert_eq!(early, 5, "at 1, 3, 7, 15 and 31 ms");
    }
}
