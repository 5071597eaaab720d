//! The times of the monitor's looks.
//!
//! A look wakes a thread. On a machine with few processors that delays the call that is under way. So looks
//! come after 1, 2, 4, … 32 ms while every look finds that connections make progress. An earlier look uses up
//! credit, and a third of a second earns the credit for one. So there are at most 35 looks a second in the
//! long run, and five more at a beginning. A connection whose peer pipelines is looked at every millisecond
//! for as long as it does so.
//!
//! This module knows no connections and no threads, only times and findings.
//!
//! The time limits of idle and slow clients are checked in `client_timeouts`.

use std::time::Duration;

use spandrel_sync::time::Instant;

/// The shortest time between two looks, and the shortest duration of an upcall that is found.
pub(super) const MIN_LOOK_INTERVAL: Duration = Duration::from_millis(1);
/// The longest time between two looks while there are upcalls.
pub(super) const MAX_LOOK_INTERVAL: Duration = Duration::from_millis(32);
/// The credit that an early look uses up.
const LOOK_COST: Duration = MAX_LOOK_INTERVAL;
/// The units of time that earn one unit of credit.
const CREDIT_PER_SECOND: u32 = 10;
/// The greatest credit: enough for the early looks of a beginning, at intervals of 1, 2, 4, 8 and 16 ms.
const MAX_CREDIT: Duration = Duration::from_millis(5 * 32);

/// The finding of a look.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum LookFinding {
    /// All connections make progress, or wait for input.
    #[default]
    Nothing,
    /// Another look has to show whether an upcall keeps a message waiting.
    Doubt,
    /// An upcall keeps a message waiting, or soon may because its peer pipelines.
    Waiting,
}

/// The time of the next look.
#[derive(Debug)]
pub(super) struct Pace {
    interval: Duration,
    credit: Duration,
    /// The time up to which credit has been earned.
    counted: Instant,
    due: Instant,
}

impl Pace {
    pub(super) fn new(now: Instant) -> Self {
        let mut pace = Self { interval: MIN_LOOK_INTERVAL, credit: MAX_CREDIT, counted: now, due: now };
        pace.restart(now);
        pace
    }

    /// The time of the next look.
    pub(super) fn due(&self) -> Instant {
        self.due
    }

    /// Whether [`look_early`](Self::look_early) would advance the next look.
    pub(super) fn can_look_earlyer(&self) -> bool {
        self.interval > MIN_LOOK_INTERVAL && self.credit >= 2 * LOOK_COST
    }

    /// Begins again with short intervals, as far as there is credit.
    pub(super) fn restart(&mut self, now: Instant) {
        self.earn(now);
        self.interval = self.affordable(MIN_LOOK_INTERVAL);
        self.due = now + self.interval;
    }

    /// Plans the next look from the finding of this one.
    pub(super) fn plan(&mut self, now: Instant, found: LookFinding) {
        self.earn(now);
        let wait = match found {
            LookFinding::Waiting => {
                self.interval = MIN_LOOK_INTERVAL;
                MIN_LOOK_INTERVAL
            }
            LookFinding::Doubt => self.affordable(MIN_LOOK_INTERVAL),
            LookFinding::Nothing => {
                self.interval = self.affordable(MAX_LOOK_INTERVAL.min(self.interval * 2));
                self.interval
            }
        };
        self.due = now + wait;
    }

    /// Advances the next look, to now if there is credit.
    pub(super) fn look_early(&mut self, now: Instant) {
        self.earn(now);
        self.due = now + self.affordable(Duration::ZERO).min(self.due.saturating_duration_since(now));
    }

    /// Plans the next look at `at`, or after the longest interval if that is sooner.
    pub(super) fn wait_until(&mut self, now: Instant, at: Instant) {
        self.due = at.min(now + MAX_LOOK_INTERVAL);
    }

    /// Plans the next look after the shortest interval at the latest.
    pub(super) fn look_within_shortest(&mut self, now: Instant) {
        self.due = self.due.min(now + MIN_LOOK_INTERVAL);
    }

    fn earn(&mut self, now: Instant) {
        let earned = now.saturating_duration_since(self.counted) / CREDIT_PER_SECOND;
        self.credit = MAX_CREDIT.min(self.credit + earned);
        self.counted = now;
    }

    /// Uses up credit for this interval and returns it, or returns the longest interval without credit.
    fn affordable(&mut self, interval: Duration) -> Duration {
        if interval >= MAX_LOOK_INTERVAL {
            return MAX_LOOK_INTERVAL;
        }
        match self.credit.checked_sub(LOOK_COST) {
            Some(left) => {
                self.credit = left;
                interval
            }
            None => MAX_LOOK_INTERVAL,
        }
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    /// Makes looks with the given findings for `span`. Returns their number.
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
        assert_eq!(pace.due() - now, MIN_LOOK_INTERVAL);
        let now = pace.due();
        pace.plan(now, LookFinding::Nothing);
        assert_eq!(pace.due() - now, MAX_LOOK_INTERVAL, "a settled doubt does not restart the short intervals");
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
        assert!(pace.can_look_earlyer());
        let now = pace.due() - MAX_LOOK_INTERVAL / 2;
        pace.look_early(now);
        assert_eq!(pace.due(), now);
        let mut hurried = 0;
        while pace.can_look_earlyer() {
            hurried += 1;
            pace.plan(now, LookFinding::Doubt);
        }
        assert!(hurried <= 5, "there is no credit for more");
        let before = pace.due();
        pace.plan(before, LookFinding::Doubt);
        pace.plan(before, LookFinding::Doubt);
        assert_eq!(pace.due() - before, MAX_LOOK_INTERVAL);
    }

    #[test]
    fn after_a_pause_looks_are_early_again() {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        looks(&mut pace, start, Duration::from_millis(40), |_| LookFinding::Nothing);
        let later = start + Duration::from_secs(10);
        pace.restart(later);
        assert_eq!(pace.due() - later, MIN_LOOK_INTERVAL);
        let early = looks(&mut pace, later, MAX_LOOK_INTERVAL, |_| LookFinding::Nothing);
        assert_eq!(early, 5, "at 1, 3, 7, 15 and 31 ms");
    }
}
