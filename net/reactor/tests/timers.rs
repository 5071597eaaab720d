//! The timer queues: one suite that runs over every strategy, and each strategy against a simple model.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use proptest::sample::Index;
use spandrel_reactor::timer::{
    Clock, Expired, HashedWheel, MonotonicClock, TestClock, Time, TimerId, TimerOptions, TimerQueue, TimerStrategy,
    TimerWheel,
};
use spandrel_sync::Arc;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;
const YEAR: u64 = 31_557_600 * SECOND;

type Queue = Box<dyn TimerQueue<u64>>;

/// A strategy and its options under test.
#[derive(Clone, Debug)]
struct Subject {
    strategy: TimerStrategy,
    options: TimerOptions,
    /// Whether it is meant for few timers, or for equal delays.
    is_for_few: bool,
    /// Nanoseconds; a single one if the strategy has no ticks.
    tick: u64,
}

impl Subject {
    fn new(strategy: TimerStrategy) -> Self {
        Self::with(strategy, TimerOptions::new())
    }

    fn with(strategy: TimerStrategy, options: TimerOptions) -> Self {
        let tick = match strategy {
            TimerStrategy::Wheel => TimerWheel::<u64>::with(&options).resolution(),
            TimerStrategy::HashedWheel => HashedWheel::<u64>::with(&options).resolution(),
            _ => Duration::from_nanos(1),
        };
        let tick = tick.as_nanos() as u64;
        Self { strategy, options, is_for_few: strategy == TimerStrategy::List, tick }
    }

    fn for_few(self) -> Self {
        Self { is_for_few: true, ..self }
    }

    fn queue(&self) -> Queue {
        self.strategy.queue_with(&self.options)
    }

    fn limited(&self, limit: usize) -> Queue {
        self.strategy.queue_with(&self.options.clone().limit(limit))
    }

    /// Whether expiries are not rounded, so that order is by time alone.
    fn is_exact(&self) -> bool {
        matches!(self.strategy, TimerStrategy::Heap | TimerStrategy::List)
    }
}

/// Runs each test over each subject.
macro_rules! suite {
    ($($subject:ident = $make:expr;)*) => { $(mod $subject { suite!(@facts $make;
        agrees_with_the_model
        sleeping_until_the_earliest_is_neither_early_nor_late
        an_empty_queue_has_nothing
        a_late_interval_timer_fires_once_and_keeps_its_phase
        an_interval_timer_can_be_cancelled_when_it_fires
        an_interval_of_zero_is_none
        a_stale_id_does_nothing
        a_rescheduled_timer_keeps_its_id_and_payload
        a_full_queue_refuses_until_there_is_room
        zero_delays_and_passed_times_are_due_at_once
        distant_timers_fire
        all_timers_are_due_at_the_end_of_time
        time_that_goes_back_fires_nothing_early
        a_cleared_queue_is_empty
        the_same_steps_give_the_same_answers
        a_million_timers
    );})* };
    (@facts $make:expr; $($fact:ident)*) => { use super::*; $(#[test] fn $fact() { super::$fact(&$make); })* };
}

suite! {
    heap = Subject::new(TimerStrategy::Heap);
    list = Subject::new(TimerStrategy::List);
    wheel = Subject::new(TimerStrategy::Wheel);
    hashed_wheel = Subject::new(TimerStrategy::HashedWheel);
    wheel_with_short_ticks =
        Subject::with(TimerStrategy::Wheel, TimerOptions::new().resolution(Duration::ZERO));
    hashed_wheel_with_short_ticks =
        Subject::with(TimerStrategy::HashedWheel, TimerOptions::new().resolution(Duration::from_nanos(1)));
    hashed_wheel_with_few_buckets =
        Subject::with(TimerStrategy::HashedWheel, TimerOptions::new().resolution(Duration::from_micros(10)).buckets(3))
            .for_few();
}

fn at(nanos: u64) -> Time {
    Time::from_nanos(nanos)
}

fn every(nanos: u64) -> Option<Duration> {
    Some(Duration::from_nanos(nanos))
}

fn drain(queue: &mut Queue, now: Time) -> Vec<Expired<u64>> {
    std::iter::from_fn(|| queue.pop_expired(now)).collect()
}

fn payloads(queue: &mut Queue, now: Time) -> Vec<u64> {
    drain(queue, now).into_iter().map(|expired| expired.payload).collect()
}

/// The first instant at which a timer for `nanos` fires.
fn fires(subject: &Subject, nanos: u64) -> Time {
    let tick = subject.tick;
    at(nanos.div_ceil(tick).saturating_mul(tick))
}

/// Pseudorandom numbers, the same each time.
struct Numbers(u64);

impl Numbers {
    /// A pseudo-random number below `bound`.
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((u128::from(self.0 ^ (self.0 >> 29)) * u128::from(bound)) >> 64) as u64
    }
}

// ---------------------------------------------------------------- the model

/// The operations on a queue. An instant is a number of nanoseconds from now, or before now.
#[derive(Clone, Debug)]
enum Step {
    Schedule {
        span: u64,
        is_past: bool,
        interval: Option<u64>,
    },
    Cancel(Index),
    Reschedule {
        timer: Index,
        span: u64,
        interval: Option<u64>,
    },
    Advance(u64),
    /// Advances to the instant at which the queue's next expiry may be, or just before.
    AdvanceToEarliest {
        is_before: bool,
    },
    Pop(usize),
    PopAll,
    Clear,
}

/// From nothing to centuries.
fn span() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), 0..5_u64, 0..5_000_u64, 0..3 * MS, 0..200 * MS, 0..300 * SECOND, 0..2 * YEAR, 0..200 * YEAR,]
}

fn interval() -> impl Strategy<Value = Option<u64>> {
    prop_oneof![3 => Just(None), 2 => span().prop_map(Some), 1 => (1..10_000_u64).prop_map(Some)]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        10 => (span(), prop::bool::weighted(0.1), interval())
            .prop_map(|(span, is_past, interval)| Step::Schedule { span, is_past, interval }),
        4 => any::<Index>().prop_map(Step::Cancel),
        3 => (any::<Index>(), span(), interval())
            .prop_map(|(timer, span, interval)| Step::Reschedule { timer, span, interval }),
        3 => span().prop_map(Step::Advance),
        3 => any::<bool>().prop_map(|is_before| Step::AdvanceToEarliest { is_before }),
        3 => (1..4_usize).prop_map(Step::Pop),
        3 => Just(Step::PopAll),
        1 => prop::bool::weighted(0.1).prop_map(|yes| if yes { Step::Clear } else { Step::PopAll }),
    ]
}

struct Pending {
    id: TimerId,
    at: u64,
    interval: u64,
    /// The queue's hand when the timer was inserted: no timer can be due at an earlier tick.
    hand: u64,
}

/// Timers by their payload, which are consecutive numbers.
struct Model {
    tick: u64,
    is_exact: bool,
    now: u64,
    hand: u64,
    timers: BTreeMap<u64, Pending>,
    /// All identifiers ever returned.
    ids: Vec<(TimerId, u64)>,
}

impl Model {
    fn new(subject: &Subject) -> Self {
        let (tick, is_exact) = (subject.tick, subject.is_exact());
        Self { tick, is_exact, now: 0, hand: 0, timers: BTreeMap::new(), ids: Vec::new() }
    }

    /// The tick at which a timer fires, or its time if there are no ticks.
    fn key(&self, timer: &Pending) -> u64 {
        if self.is_exact { timer.at } else { timer.at.div_ceil(self.tick).max(timer.hand) }
    }

    fn lowest_key(&self) -> Option<u64> {
        self.timers.values().map(|timer| self.key(timer)).min()
    }

    fn now_tick(&self) -> u64 {
        if self.now == u64::MAX { self.now.div_ceil(self.tick) } else { self.now / self.tick }
    }

    fn pick(&self, index: &Index) -> Option<(TimerId, u64)> {
        (!self.ids.is_empty()).then(|| self.ids[index.index(self.ids.len())])
    }

    /// Takes one timer from the queue, and checks that it is a possible one, and nothing else.
    fn pop(&mut self, queue: &mut Queue) -> bool {
        let expected = self.lowest_key().filter(|&key| key <= self.now_tick());
        let expired = queue.pop_expired(at(self.now));
        assert_eq!(expired.is_some(), expected.is_some(), "{expired:?}");
        let Some(expired) = expired else {
            self.hand = self.hand.max(self.now_tick());
            assert!(queue.earliest().is_none_or(|earliest| earliest > at(self.now)), "would be called again at once");
            return false;
        };
        let timer = self.timers.remove(&expired.payload).expect("the payload of a timer that is there");
        assert_eq!(Some(self.key(&timer)), expected);
        self.hand = self.hand.max(expected.unwrap());
        assert!(timer.at <= self.now, "early");
        assert_eq!((expired.id, expired.due), (timer.id, at(timer.at)));
        let next = expired.next.map(Time::as_nanos);
        if let Some(next) = next {
            // In phase, the first one after now, and the others counted.
            assert!(next > self.now && next - timer.interval <= self.now);
            assert_eq!(next - timer.at, timer.interval * (expired.missed + 1));
            self.timers.insert(expired.payload, Pending { at: next, hand: self.hand, ..timer });
        } else {
            // Once, or the end of time.
            assert!(timer.interval == 0 || u64::MAX - self.now < timer.interval);
            assert_eq!(expired.missed, (self.now - timer.at).checked_div(timer.interval).unwrap_or(0));
        }
        true
    }

    fn run(&mut self, queue: &mut Queue, step: &Step) {
        match step {
            &Step::Schedule { span, is_past, interval } => {
                let time = if is_past { self.now.saturating_sub(span) } else { self.now.saturating_add(span) };
                let payload = self.ids.len() as u64;
                let id = queue.schedule(at(time), interval.map(Duration::from_nanos), payload).unwrap();
                let timer = Pending { id, at: time, interval: interval.unwrap_or(0), hand: self.hand };
                self.timers.insert(payload, timer);
                assert!(self.ids.iter().all(|other| other.0 != id), "an id given twice");
                self.ids.push((id, payload));
            }
            Step::Cancel(index) => {
                let Some((id, payload)) = self.pick(index) else { return };
                let timer = self.timers.remove(&payload);
                assert_eq!(queue.cancel(id), timer.map(|_| payload));
            }
            &Step::Reschedule { timer, span, interval } => {
                let Some((id, payload)) = self.pick(&timer) else { return };
                let time = self.now.saturating_add(span);
                let is_there = queue.reschedule(id, at(time), interval.map(Duration::from_nanos));
                assert_eq!(is_there, self.timers.contains_key(&payload));
                if let Some(timer) = self.timers.get_mut(&payload) {
                    *timer = Pending { id, at: time, interval: interval.unwrap_or(0), hand: self.hand };
                }
            }
            &Step::Advance(span) => self.now = self.now.saturating_add(span),
            &Step::AdvanceToEarliest { is_before } => {
                let Some(earliest) = queue.earliest() else { return };
                self.now = self.now.max(earliest.as_nanos().saturating_sub(u64::from(is_before)));
            }
            &Step::Pop(count) => {
                let _ = (0..count).all(|_| self.pop(queue));
            }
            Step::PopAll => while self.pop(queue) {},
            Step::Clear => {
                queue.clear();
                self.timers.clear();
            }
        }
    }

    fn check(&self, queue: &Queue) {
        assert_eq!((queue.len(), queue.is_empty()), (self.timers.len(), self.timers.is_empty()));
        for &(id, payload) in &self.ids {
            assert_eq!(queue.due(id), self.timers.get(&payload).map(|timer| at(timer.at)));
        }
        let earliest = queue.earliest().map(Time::as_nanos);
        let possible = self.lowest_key().map(|key| key.saturating_mul(self.tick));
        assert_eq!(earliest.is_some(), possible.is_some());
        assert!(earliest <= possible, "{earliest:?} is later than {possible:?}");
        assert!(!self.is_exact || earliest == possible);
    }
}

fn agrees_with_the_model(subject: &Subject) {
    let config = ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(steps in prop::collection::vec(step(), 1..120))| {
        let (mut queue, mut model) = (subject.queue(), Model::new(subject));
        for step in &steps {
            model.run(&mut queue, step);
            model.check(&queue);
        }
    });
}

// ---------------------------------------------------------------- facts

fn sleeping_until_the_earliest_is_neither_early_nor_late(subject: &Subject) {
    const TIMERS: u64 = 2_000;
    let mut numbers = Numbers(7);
    let mut queue = subject.queue();
    for payload in 0..TIMERS {
        let horizon = [MS, 100 * MS, 300 * SECOND, 10 * YEAR][payload as usize % 4];
        queue.schedule(at(numbers.below(horizon)), None, payload).unwrap();
    }
    queue.schedule(Time::MAX, None, TIMERS).unwrap();
    let (mut fired, mut in_vain, mut last) = (0, 0, Time::ZERO);
    while let Some(earliest) = queue.earliest() {
        assert!(fired + in_vain == 0 || earliest > last, "woken twice at {last:?}");
        let expired = drain(&mut queue, earliest);
        for one in &expired {
            assert!(one.due <= earliest, "early: {one:?} at {earliest:?}");
            assert!(earliest.saturating_since(one.due).as_nanos() < u128::from(subject.tick), "late: {one:?}");
        }
        fired += expired.len() as u64;
        in_vain += u64::from(expired.is_empty());
        last = earliest;
    }
    assert_eq!(fired, TIMERS + 1);
    // One for each level that a timer comes down.
    let bound = match subject.strategy {
        TimerStrategy::Wheel => u64::from((u64::MAX / subject.tick).ilog2() / 6) * TIMERS,
        _ => 0,
    };
    assert!(in_vain <= bound, "{in_vain} wake-ups at which nothing fired");
}

fn an_empty_queue_has_nothing(subject: &Subject) {
    let mut queue = subject.queue();
    assert!(queue.is_empty());
    assert_eq!((queue.len(), queue.earliest(), queue.limit()), (0, None, 2_097_152));
    assert_eq!(queue.pop_expired(Time::ZERO), None);
    assert_eq!(queue.pop_expired(Time::MAX), None);
    assert_eq!(queue.earliest(), None);
}

fn a_late_interval_timer_fires_once_and_keeps_its_phase(subject: &Subject) {
    let mut queue = subject.queue();
    let id = queue.schedule(at(100 * MS), every(50 * MS), 1).unwrap();
    let summary = |expired: Vec<Expired<u64>>| {
        let one = |e: Expired<u64>| (e.id == id, e.due.as_nanos() / MS, e.missed, e.next.unwrap().as_nanos() / MS);
        expired.into_iter().map(one).collect::<Vec<_>>()
    };
    assert_eq!(summary(drain(&mut queue, at(99 * MS))), []);
    assert_eq!(summary(drain(&mut queue, at(102 * MS))), [(true, 100, 0, 150)]);
    assert_eq!(summary(drain(&mut queue, at(149 * MS))), []);
    // 17 ms late, and 217 ms: each fires once, and the phase is that of the first.
    assert_eq!(summary(drain(&mut queue, at(167 * MS))), [(true, 150, 0, 200)]);
    assert_eq!(summary(drain(&mut queue, at(417 * MS))), [(true, 200, 4, 450)]);
    assert_eq!(summary(drain(&mut queue, at(452 * MS))), [(true, 450, 0, 500)]);
    assert_eq!(queue.len(), 1);
    // A year later, too.
    let later = YEAR + 13 * MS;
    let expired = &drain(&mut queue, at(later))[0];
    assert_eq!(expired.next.unwrap().as_nanos() % (50 * MS), 0);
    assert_eq!(expired.missed, (later - 500 * MS) / (50 * MS));
}

fn an_interval_timer_can_be_cancelled_when_it_fires(subject: &Subject) {
    let mut queue = subject.queue();
    let id = queue.schedule(at(0), every(MS), 1).unwrap();
    assert_eq!(queue.pop_expired(at(10 * MS)).unwrap().id, id);
    assert_eq!(queue.cancel(id), Some(1));
    assert_eq!((drain(&mut queue, at(SECOND)), queue.len()), (vec![], 0));
}

fn an_interval_of_zero_is_none(subject: &Subject) {
    let mut queue = subject.queue();
    queue.schedule(at(0), every(0), 1).unwrap();
    let id = queue.schedule(at(0), every(MS), 2).unwrap();
    assert!(queue.reschedule(id, at(0), every(0)));
    let mut fired = payloads(&mut queue, at(0));
    fired.sort_unstable();
    assert_eq!(fired, [1, 2]);
    assert!(queue.is_empty());
}

fn a_stale_id_does_nothing(subject: &Subject) {
    let mut queue = subject.queue();
    let cancelled = queue.schedule(at(MS), None, 1).unwrap();
    assert_eq!(queue.cancel(cancelled), Some(1));
    let fired = queue.schedule(at(0), None, 2).unwrap();
    assert_eq!(payloads(&mut queue, at(0)), [2]);
    // This one reuses the entry of the others.
    let alive = queue.schedule(at(SECOND), None, 3).unwrap();
    for stale in [cancelled, fired] {
        assert_ne!(stale, alive);
        assert_eq!(queue.cancel(stale), None);
        assert!(!queue.reschedule(stale, at(0), None));
        assert_eq!(queue.due(stale), None);
    }
    assert_eq!(queue.due(alive), Some(at(SECOND)));
    assert_eq!(queue.cancel(alive), Some(3));
    assert_eq!(queue.cancel(alive), None);
}

fn a_rescheduled_timer_keeps_its_id_and_payload(subject: &Subject) {
    let mut queue = subject.queue();
    let [a, b, c] = [1, 2, 3].map(|n| queue.schedule(at(n * 10 * MS), None, n).unwrap());
    assert!(queue.reschedule(a, at(40 * MS), None));
    assert!(queue.reschedule(c, at(5 * MS), None));
    assert!(queue.reschedule(b, at(20 * MS), every(30 * MS)));
    assert_eq!(queue.len(), 3);
    assert_eq!([a, b, c].map(|id| queue.due(id).unwrap()), [40, 20, 5].map(|ms| at(ms * MS)));
    assert_eq!(payloads(&mut queue, at(6 * MS + MS)), [3]);
    assert_eq!(payloads(&mut queue, at(22 * MS)), [2]);
    assert_eq!(payloads(&mut queue, at(52 * MS)), [1, 2]);
    assert!(queue.reschedule(b, at(60 * MS), None));
    assert_eq!(payloads(&mut queue, at(SECOND)), [2]);
    assert!(queue.is_empty());
    assert_eq!(queue.cancel(b), None);
}

fn a_full_queue_refuses_until_there_is_room(subject: &Subject) {
    let mut queue = subject.limited(3);
    assert_eq!(queue.limit(), 3);
    let ids = [1, 2, 3].map(|n| queue.schedule(at(n * 10 * MS), None, n).unwrap());
    let full = queue.schedule(at(0), None, 4).unwrap_err();
    assert_eq!(full.limit, 3);
    assert_eq!(full.to_string(), "the timer queue is full: it holds 3 timers, its limit");
    assert_eq!(queue.cancel(ids[1]), Some(2));
    queue.schedule(at(40 * MS), every(MS), 5).unwrap();
    queue.schedule(at(40 * MS), None, 6).unwrap_err();
    assert_eq!(payloads(&mut queue, at(12 * MS)), [1]);
    queue.schedule(at(50 * MS), None, 7).unwrap();
    // An interval timer stays, and keeps its entry.
    assert_eq!(payloads(&mut queue, at(42 * MS)), [3, 5]);
    queue.schedule(at(50 * MS), None, 8).unwrap();
    queue.schedule(at(50 * MS), None, 9).unwrap_err();
    assert_eq!(queue.len(), 3);
    assert!(subject.limited(0).schedule(at(0), None, 1).is_err());
}

fn zero_delays_and_passed_times_are_due_at_once(subject: &Subject) {
    let mut queue = subject.queue();
    queue.schedule(Time::ZERO, None, 1).unwrap();
    assert_eq!(queue.earliest(), Some(Time::ZERO));
    assert_eq!(payloads(&mut queue, Time::ZERO), [1]);

    let now = fires(subject, 77 * SECOND);
    assert!(payloads(&mut queue, now).is_empty());
    queue.schedule(now, None, 2).unwrap();
    assert_eq!(payloads(&mut queue, now), [2]);
    queue.schedule(at(3 * SECOND), None, 3).unwrap();
    queue.schedule(now + Duration::from_millis(20), None, 4).unwrap();
    assert!(queue.earliest().unwrap() <= now);
    assert_eq!(payloads(&mut queue, now), [3]);
    assert_eq!(payloads(&mut queue, now + Duration::from_millis(22)), [4]);
}

fn distant_timers_fire(subject: &Subject) {
    let mut queue = subject.queue();
    let years = [500, 1, 0, 30, 100, 2, 30, 250];
    for (payload, year) in years.into_iter().enumerate() {
        queue.schedule(at(year * YEAR + 1), None, payload as u64).unwrap();
    }
    let mut last = 0;
    for year in [0, 1, 2, 30, 30, 100, 250, 500] {
        let moment = fires(subject, year * YEAR + 1);
        if year != last {
            assert_eq!(queue.pop_expired(at(moment.as_nanos() - 1)), None);
        }
        let expired = queue.pop_expired(moment).unwrap();
        assert_eq!(years[expired.payload as usize], year);
        last = year;
    }
    assert!(queue.is_empty());
}

fn all_timers_are_due_at_the_end_of_time(subject: &Subject) {
    let mut queue = subject.queue();
    queue.schedule(Time::MAX, None, 1).unwrap();
    queue.schedule(Time::MAX, every(1), 2).unwrap();
    queue.schedule(at(u64::MAX - 1), Some(Duration::MAX), 3).unwrap();
    queue.schedule(Time::ZERO + Duration::MAX, None, 4).unwrap();
    assert!(queue.earliest().is_some());
    assert_eq!(queue.pop_expired(at(u64::MAX - 2)), None);
    let expired = drain(&mut queue, Time::MAX);
    assert_eq!(expired.len(), 4);
    assert!(expired.iter().all(|one| one.next.is_none()));
    assert_eq!((queue.len(), queue.earliest()), (0, None));
    // And it works on.
    queue.schedule(Time::ZERO, None, 5).unwrap();
    assert_eq!(payloads(&mut queue, Time::MAX), [5]);
}

fn time_that_goes_back_fires_nothing_early(subject: &Subject) {
    let mut queue = subject.queue();
    assert_eq!(queue.pop_expired(at(10 * SECOND)), None);
    queue.schedule(at(4 * SECOND), None, 1).unwrap();
    queue.schedule(at(9 * SECOND), None, 2).unwrap();
    queue.schedule(at(11 * SECOND), None, 3).unwrap();
    assert_eq!(queue.pop_expired(at(2 * SECOND)), None);
    assert!(payloads(&mut queue, at(5 * SECOND)).iter().all(|&payload| payload == 1));
    let mut rest = payloads(&mut queue, at(20 * SECOND));
    rest.retain(|&payload| payload != 1);
    assert_eq!(rest, [2, 3]);
}

fn a_cleared_queue_is_empty(subject: &Subject) {
    let mut queue = subject.limited(100);
    assert_eq!(queue.pop_expired(at(SECOND)), None);
    let old: Vec<_> =
        (0..100).map(|n| queue.schedule(at(n * n * n * MS), every(MS).filter(|_| n % 3 == 0), n).unwrap()).collect();
    queue.clear();
    assert_eq!((queue.len(), queue.earliest()), (0, None));
    assert_eq!(queue.pop_expired(at(2000 * SECOND)), None);
    for n in 0..100 {
        queue.schedule(at(3000 * SECOND + n * 10 * MS), None, n).unwrap();
    }
    assert!(old.iter().all(|&id| queue.cancel(id).is_none()));
    assert_eq!(payloads(&mut queue, at(4000 * SECOND)), (0..100).collect::<Vec<_>>());
}

fn the_same_steps_give_the_same_answers(subject: &Subject) {
    let run = || {
        let clock = TestClock::new();
        let (mut numbers, mut queue, mut answers) = (Numbers(3), subject.queue(), Vec::new());
        let mut ids = Vec::new();
        for payload in 0..3_000 {
            let time = clock.now() + Duration::from_nanos(numbers.below(5) * numbers.below(SECOND));
            ids.push(queue.schedule(time, every(SECOND).filter(|_| payload % 10 == 0), payload).unwrap());
            if numbers.below(3) == 0 {
                answers.push(format!("{:?}", queue.cancel(ids[numbers.below(payload + 1) as usize])));
            }
            clock.advance(Duration::from_nanos(numbers.below(2 * MS)));
            answers.push(format!("{:?} {:?}", queue.earliest(), drain(&mut queue, clock.now())));
        }
        answers
    };
    assert_eq!(run(), run());
}

fn a_million_timers(subject: &Subject) {
    let mut numbers = Numbers(11);
    // Once for each strategy: the variants behave alike. That many timers need more buckets in the hashed
    // wheel, and no more rounds than one.
    let (mut queue, timers) = match &subject.options {
        options if *options == TimerOptions::new() => {
            (subject.strategy.queue_with(&options.clone().buckets(1 << 15)), 1_000_000)
        }
        _ => (subject.queue(), 50_000),
    };
    let mut timers: Vec<_> = (0..timers)
        .map(|n| {
            let time = if subject.is_for_few { 30 * SECOND + n / 100 } else { numbers.below(30 * SECOND) };
            (queue.schedule(at(time), None, n).unwrap(), n)
        })
        .collect();
    assert_eq!(queue.len(), timers.len());
    for last in (1..timers.len()).rev() {
        timers.swap(last, numbers.below(last as u64 + 1) as usize);
    }
    let (cancelled, kept) = timers.split_at(timers.len() / 2);
    for &(id, payload) in cancelled {
        assert_eq!(queue.cancel(id), Some(payload));
    }
    assert!(cancelled.iter().all(|&(id, _)| queue.cancel(id).is_none()));
    assert_eq!(queue.len(), kept.len());

    let mut expected: Vec<_> = kept.iter().map(|&(_, payload)| payload).collect();
    let mut fired = Vec::with_capacity(expected.len());
    for second in [1, 2, 3, 20, 21, 29, 31] {
        let mut last = Time::ZERO;
        while let Some(expired) = queue.pop_expired(at(second * SECOND)) {
            let moment = fires(subject, expired.due.as_nanos());
            assert!(last <= moment && moment <= at(second * SECOND));
            last = moment;
            fired.push(expired.payload);
        }
    }
    assert!(queue.is_empty());
    expected.sort_unstable();
    fired.sort_unstable();
    assert_eq!(fired, expected);
}

// ---------------------------------------------------------------- behaviour that differs between strategies

#[test]
fn the_list_fires_equal_times_in_scheduling_order() {
    let mut queue = TimerStrategy::List.queue();
    for payload in 0..100 {
        queue.schedule(at(payload % 3), None, payload).unwrap();
    }
    let mut expected: Vec<u64> = (0..100).collect();
    expected.sort_by_key(|payload| payload % 3);
    assert_eq!(payloads(&mut queue, at(2)), expected);
}

#[test]
fn a_cancelled_timer_wakes_the_hashed_wheel_at_most_once() {
    let mut queue = TimerStrategy::HashedWheel.queue();
    let round = 4096 << 20; // ticks of 2^20 ns
    // All in one bucket.
    let ids: Vec<_> = (1..=100).map(|n| queue.schedule(at(n * round), None, n).unwrap()).collect();
    for id in &ids[..99] {
        queue.cancel(*id).unwrap();
    }
    let mut moments = Vec::new();
    while let Some(earliest) = queue.earliest() {
        moments.push(earliest);
        drain(&mut queue, earliest);
    }
    assert_eq!(moments, [at(round), at(100 * round)]);
}

#[test]
fn emptied_buckets_do_not_wake_the_hashed_wheel() {
    let mut queue = TimerStrategy::HashedWheel.queue();
    let [first, second, third] = [3, 5, 9].map(|tick| at(tick << 20));
    let id = queue.schedule(first, None, 1).unwrap();
    queue.schedule(second, None, 2).unwrap();
    assert_eq!(queue.earliest(), Some(first));
    queue.cancel(id).unwrap();
    assert_eq!(queue.earliest(), Some(second));
    queue.clear();
    queue.schedule(third, None, 3).unwrap();
    assert_eq!(queue.earliest(), Some(third));
}

#[test]
fn resolutions_are_rounded_down_to_powers_of_two() {
    for (requested, expected) in [(0, 1), (1, 1), (3, 2), (1_000_000, 1 << 19), (1 << 20, 1 << 20), (u64::MAX, 1 << 63)]
    {
        let options = TimerOptions::new().resolution(Duration::from_nanos(requested));
        let expected = Duration::from_nanos(expected);
        assert_eq!(TimerWheel::<u64>::with(&options).resolution(), expected);
        assert_eq!(HashedWheel::<u64>::with(&options).resolution(), expected);
    }
    for (requested, expected) in [(0, 1), (1, 1), (5, 8), (4096, 4096), (usize::MAX, 32_768)] {
        assert_eq!(HashedWheel::<u64>::with(&TimerOptions::new().buckets(requested)).buckets(), expected);
    }
}

#[test]
fn ticks_of_centuries_work_too() {
    for strategy in [TimerStrategy::Wheel, TimerStrategy::HashedWheel] {
        let mut queue: Queue = strategy.queue_with(&TimerOptions::new().resolution(Duration::MAX).buckets(1));
        queue.schedule(at(0), None, 0).unwrap();
        queue.schedule(at(1), None, 1).unwrap();
        queue.schedule(at((1 << 63) + 1), None, 2).unwrap();
        assert_eq!(payloads(&mut queue, at(5)), [0]);
        assert_eq!(payloads(&mut queue, at(1 << 63)), [1]);
        assert!(payloads(&mut queue, at(u64::MAX - 1)).is_empty());
        assert_eq!(payloads(&mut queue, Time::MAX), [2]);
    }
}

#[test]
fn strategies_have_names() {
    for strategy in TimerStrategy::ALL {
        assert_eq!(strategy.to_string().parse(), Ok(strategy));
    }
    assert_eq!(TimerStrategy::default(), TimerStrategy::Wheel);
    let unknown = "calendar".parse::<TimerStrategy>().unwrap_err();
    assert!(unknown.to_string().contains("`calendar`: there are `heap`, `wheel`, `hashed-wheel` and `list`"));
}

#[test]
fn queues_are_shown_without_their_timers() {
    for (strategy, shown) in [
        (TimerStrategy::Heap, "TimerHeap { len: 1, .. }"),
        (TimerStrategy::Wheel, "TimerWheel { len: 1, resolution: 1.048576ms, .. }"),
        (TimerStrategy::HashedWheel, "HashedWheel { len: 1, resolution: 1.048576ms, buckets: 4096, .. }"),
        (TimerStrategy::List, "TimerList { len: 1, .. }"),
    ] {
        let mut queue = strategy.queue();
        queue.schedule(at(1), None, 1_u64).unwrap();
        assert_eq!(format!("{queue:?}"), shown);
    }
}

#[test]
fn test_clocks_advance_on_request_and_clones_share_their_time() {
    let clock = TestClock::new();
    let other = clock.clone();
    assert_eq!(clock.now(), Time::ZERO);
    assert_eq!(clock.advance(Duration::from_millis(5)), at(5 * MS));
    assert_eq!(other.now(), at(5 * MS));
    assert_eq!(other.advance_to(at(9 * MS)), at(9 * MS));
    assert_eq!(clock.advance_to(at(2)), at(9 * MS));
    assert_eq!(clock.now(), at(9 * MS));
    let shared: Arc<dyn Clock> = Arc::new(clock);
    assert_eq!(other.advance(Duration::MAX), Time::MAX);
    assert_eq!(shared.now(), Time::MAX);
}

#[test]
fn monotonic_clocks_start_at_zero_and_do_not_go_back() {
    let before = spandrel_sync::time::Instant::now();
    let clock = MonotonicClock::new();
    let copy = clock;
    assert_eq!(clock.time_of(before), Time::ZERO);
    let first = clock.now();
    assert!(first < at(60 * SECOND));
    assert!((0..1_000).map(|_| copy.now()).is_sorted());
    let later = spandrel_sync::time::Instant::now() + Duration::from_secs(60);
    assert!(clock.time_of(later).saturating_since(first) >= Duration::from_secs(60));
}

#[test]
fn times_are_added_up_to_the_end() {
    let time = at(5);
    assert_eq!(time + Duration::from_nanos(7), at(12));
    assert_eq!(time + Duration::MAX, Time::MAX);
    assert_eq!(time.checked_add(Duration::from_nanos(u64::MAX - 5)), Some(Time::MAX));
    assert_eq!(time.checked_add(Duration::from_nanos(u64::MAX - 4)), None);
    assert_eq!(at(12).saturating_since(time), Duration::from_nanos(7));
    assert_eq!(time.saturating_since(at(12)), Duration::ZERO);
    assert_eq!(format!("{:?}", at(1_500_000)), "Time(1.5ms)");
}
