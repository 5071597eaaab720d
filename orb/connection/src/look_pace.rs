//! The times at which the monitor of long upcalls looks at the connections of a server.
//!
//! A look wakes a thread. On a machine with few processors that delays the call that is under way. So looks
//! come after 1, 2, 4, … 32 ms while every look finds that connections make progress. An earlier look uses up
//! credit, and a third of a second earns the credit for one. So there are at most 35 looks a second in the
//! long run, and five more at a beginning. A connection whose peer pipelines is looked at every millisecond
//! for as long as it does so.
//!
//! These rules know no connections, no threads and no clock. `now` is the time since a fixed one, which their owner
//! chooses. In its loop the owner first waits until [`LookPace::due`], or until an event; then it looks, calls
//! [`ActivityRule::note`] and [`LookPace::plan`] with the finding, and sleeps once [`ActivityRule::is_over`].
//! [`LookPace::restart`] follows the sleep.

use std::time::Duration;

/// The units of time that earn one unit of credit.
const CREDIT_PER_SECOND: u32 = 10;
/// The greatest credit, in early looks: enough for those of a beginning, at intervals of 1, 2, 4, 8 and 16 ms.
const MAX_EARLY_LOOKS: u32 = 5;

/// The times of the search for long upcalls. Models have shorter ones than servers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct MonitorTimes {
    /// The shortest time between two looks, and the shortest duration of an upcall that is found.
    pub shortest: Duration,
    /// The longest time between two looks while there are upcalls.
    pub longest: Duration,
    /// The time without an upcall after which the monitor sleeps.
    pub idle: Duration,
    /// The longest time that a one-way may keep the reading of its connection.
    pub one_way: Duration,
}

impl MonitorTimes {
    /// Whether a one-way of this age may keep the reading.
    #[must_use]
    pub fn one_way_keeps_reading(&self, age: Duration) -> bool {
        age < self.one_way
    }
}

impl Default for MonitorTimes {
    fn default() -> Self {
        Self {
            shortest: Duration::from_millis(1),
            longest: Duration::from_millis(32),
            idle: Duration::from_millis(250),
            one_way: Duration::from_millis(100),
        }
    }
}

/// The time since the last upcall, after which the monitor sleeps.
#[derive(Clone, Copy, Debug)]
pub struct ActivityRule {
    idle: Duration,
    last: Duration,
}

impl ActivityRule {
    /// The rule of a monitor that has begun, or was woken, at `now`.
    #[must_use]
    pub fn new(times: &MonitorTimes, now: Duration) -> Self {
        Self { idle: times.idle, last: now }
    }

    /// Records a look, and whether it has found activity.
    pub fn note(&mut self, now: Duration, is_active: bool) {
        if is_active {
            self.last = now;
        }
    }

    /// Whether the monitor may sleep, because there was no activity for long enough.
    #[must_use]
    pub fn is_over(&self, now: Duration) -> bool {
        now.saturating_sub(self.last) >= self.idle
    }
}

/// The need for another look; of several findings of one look, the greatest counts.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub enum LookFinding {
    /// All connections make progress, or wait for input.
    #[default]
    Nothing,
    /// Another look has to show whether an upcall keeps a message waiting.
    Doubt,
    /// An upcall keeps a message waiting, or soon may because its peer pipelines.
    Waiting,
}

/// Plans the monitor's looks at the connections: rarer while nothing is found, sooner on request.
#[derive(Clone, Debug)]
pub struct LookPace {
    times: MonitorTimes,
    interval: Duration,
    credit: Duration,
    /// The time up to which credit has been earned.
    counted: Duration,
    due: Duration,
}

impl LookPace {
    /// The times of the looks of a monitor that begins at `now`.
    #[must_use]
    pub fn new(times: MonitorTimes, now: Duration) -> Self {
        let credit = times.longest * MAX_EARLY_LOOKS;
        let mut pace = Self { times, interval: times.shortest, credit, counted: now, due: now };
        pace.restart(now);
        pace
    }

    /// The time at which the next look is due, by the clock of `now`.
    #[must_use]
    pub fn due(&self) -> Duration {
        self.due
    }

    /// Whether [`look_early`](Self::look_early) would bring the next look forward.
    #[must_use]
    pub fn can_look_earlyer(&self) -> bool {
        self.interval > self.times.shortest && self.credit >= 2 * self.times.longest
    }

    /// Begins again with the shortest interval for which there is credit.
    pub fn restart(&mut self, now: Duration) {
        self.earn(now);
        self.interval = self.affordable(self.times.shortest);
        self.due = now + self.interval;
    }

    /// Plans the next look from what the present one has found.
    pub fn plan(&mut self, now: Duration, finding: LookFinding) {
        self.earn(now);
        let wait = match finding {
            LookFinding::Waiting => {
                self.interval = self.times.shortest;
                self.times.shortest
            }
            LookFinding::Doubt => self.affordable(self.times.shortest),
            LookFinding::Nothing => {
                self.interval = self.affordable(self.times.longest.min(self.interval * 2));
                self.interval
            }
        };
        self.due = now + wait;
    }

    /// Brings the next look forward: to now if there is credit for it.
    pub fn look_early(&mut self, now: Duration) {
        self.earn(now);
        self.due = now + self.affordable(Duration::ZERO).min(self.due.saturating_sub(now));
    }

    /// Plans the next look at `at`, or after the longest interval if that is sooner.
    pub fn wait_until(&mut self, now: Duration, at: Duration) {
        self.due = at.min(now + self.times.longest);
    }

    /// Plans the next look after the shortest interval at the latest.
    pub fn look_within_shortest(&mut self, now: Duration) {
        self.due = self.due.min(now + self.times.shortest);
    }

    fn earn(&mut self, now: Duration) {
        let earned = now.saturating_sub(self.counted) / CREDIT_PER_SECOND;
        self.credit = (self.times.longest * MAX_EARLY_LOOKS).min(self.credit + earned);
        self.counted = now;
    }

    /// Uses up credit for this interval and returns it, or returns the longest interval without credit.
    fn affordable(&mut self, interval: Duration) -> Duration {
        if interval >= self.times.longest {
            return self.times.longest;
        }
        match self.credit.checked_sub(self.times.longest) {
            Some(left) => {
                self.credit = left;
                interval
            }
            None => self.times.longest,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIN_LOOK_INTERVAL: Duration = Duration::from_millis(1);
    const MAX_LOOK_INTERVAL: Duration = Duration::from_millis(32);

    fn pace_from(start: Duration) -> LookPace {
        LookPace::new(MonitorTimes::default(), start)
    }

    #[test]
    fn a_monitor_sleeps_a_quarter_of_a_second_after_the_last_activity() {
        let begin = Duration::from_secs(7);
        let mut rule = ActivityRule::new(&MonitorTimes::default(), begin);
        rule.note(begin + Duration::from_millis(100), true);
        rule.note(begin + Duration::from_millis(200), false);
        assert!(!rule.is_over(begin + Duration::from_millis(349)));
        assert!(rule.is_over(begin + Duration::from_millis(350)));
    }

    #[test]
    fn a_one_way_keeps_reading_for_a_tenth_of_a_second() {
        let keeps = |age| MonitorTimes::default().one_way_keeps_reading(Duration::from_millis(age));
        assert!(keeps(0) && keeps(99) && !keeps(100));
    }

    /// Makes looks with the given findings for `span`. Returns their number.
    fn looks(pace: &mut LookPace, from: Duration, span: Duration, mut found: impl FnMut(u32) -> LookFinding) -> u32 {
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
        let start = Duration::from_secs(7);
        let count = looks(&mut pace_from(start), start, Duration::from_secs(1), |_| LookFinding::Nothing);
        assert!((30..=35).contains(&count), "{count} looks");
    }

    #[test]
    fn early_looks_stay_below_35_a_second_on_average() {
        for every in [1, 2, 3, 5] {
            let start = Duration::from_secs(7);
            let found =
                |count: u32| if count.is_multiple_of(every) { LookFinding::Doubt } else { LookFinding::Nothing };
            let count = looks(&mut pace_from(start), start, Duration::from_secs(100), found);
            assert!(count <= 3_500 + 5, "{count} looks in 100 s, every {every}th a doubt");
        }
    }

    #[test]
    fn a_possible_long_upcall_is_looked_at_within_a_millisecond() {
        let start = Duration::from_secs(7);
        let mut pace = pace_from(start);
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
        let start = Duration::from_secs(7);
        let count = looks(&mut pace_from(start), start, Duration::from_secs(1), |_| LookFinding::Waiting);
        assert_eq!(count, 999);
    }

    #[test]
    fn a_servant_that_asks_for_its_token_is_looked_at_at_once() {
        let start = Duration::from_secs(7);
        let mut pace = pace_from(start);
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
        let start = Duration::from_secs(7);
        let mut pace = pace_from(start);
        looks(&mut pace, start, Duration::from_millis(40), |_| LookFinding::Nothing);
        let later = start + Duration::from_secs(10);
        pace.restart(later);
        assert_eq!(pace.due() - later, MIN_LOOK_INTERVAL);
        let early = looks(&mut pace, later, MAX_LOOK_INTERVAL, |_| LookFinding::Nothing);
        assert_eq!(early, 5, "at 1, 3, 7, 15 and 31 ms");
    }
}
