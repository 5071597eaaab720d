//! Cost of timers by strategy and number: nanoseconds to schedule, cancel, reschedule and expire one.
//!
//! Delays are random up to five minutes and timers are touched in random order, so that a million of them is
//! a matter of cache misses. The queue was full and empty once before, so that its memory is allocated, and
//! its free entries are scattered as in a server that has run for long. Strategies run in turn, so that a
//! noisy machine affects them alike; medians are printed, and the fastest and slowest round. Run with `cargo
//! bench -p spandrel-reactor --bench timers`; for quotable figures, pin it (`taskset -c 0`). `-- wheel
//! 1000000` runs one strategy and one number.

use std::hint::black_box;
use std::time::{Duration, Instant};

use spandrel_measure::stats::Summary;
use spandrel_reactor::timer::{Time, TimerId, TimerOptions, TimerQueue, TimerStrategy};

const HORIZON: u64 = 300_000_000_000;
const OPERATIONS: [&str; 4] = ["schedule", "cancel", "reschedule", "expire"];

/// The list takes a step for every other timer.
const MOST_IN_A_LIST: usize = 10_000;

/// Nanoseconds per operation, in the order of `OPERATIONS`.
type Figures = [f64; OPERATIONS.len()];

fn nanoseconds(count: usize, run: impl FnOnce()) -> f64 {
    let start = Instant::now();
    run();
    start.elapsed().as_nanos() as f64 / count as f64
}

/// `count` moments within the horizon after `now`.
fn times(random: &mut fastrand::Rng, now: Time, count: usize) -> Vec<Time> {
    (0..count).map(|_| now + Duration::from_nanos(random.u64(..HORIZON))).collect()
}

fn schedule_all(queue: &mut dyn TimerQueue<u64>, times: &[Time], ids: &mut Vec<TimerId>) {
    for (payload, &at) in times.iter().enumerate() {
        ids.push(queue.schedule(at, None, payload as u64).expect("the limit is the number of timers"));
    }
}

fn cancel_all(queue: &mut dyn TimerQueue<u64>, ids: &mut Vec<TimerId>) {
    for id in ids.drain(..) {
        assert!(black_box(queue.cancel(id)).is_some());
    }
}

/// As a reactor does: sleeps until the earliest timer, and takes the timers that are due.
fn expire_all(queue: &mut dyn TimerQueue<u64>) -> usize {
    let mut count = 0;
    while let Some(now) = queue.earliest() {
        count += std::iter::from_fn(|| queue.pop_expired(now)).map(black_box).count();
    }
    count
}

fn turn(strategy: TimerStrategy, count: usize, random: &mut fastrand::Rng) -> Figures {
    let mut queue = strategy.queue_with(&TimerOptions::new().limit(count).capacity(count));
    let queue = &mut *queue;
    let mut ids = Vec::with_capacity(count);
    // An ordinary date, not the epoch.
    let now = Time::ZERO + Duration::from_secs(100_000) + Duration::from_nanos(random.u64(..HORIZON));
    assert!(queue.pop_expired(now).is_none());

    schedule_all(queue, &times(random, now, count), &mut ids);
    random.shuffle(&mut ids);
    cancel_all(queue, &mut ids);

    let moments = times(random, now, count);
    let schedule = nanoseconds(count, || schedule_all(queue, &moments, &mut ids));
    random.shuffle(&mut ids);
    let cancel = nanoseconds(count, || cancel_all(queue, &mut ids));
    schedule_all(queue, &moments, &mut ids);
    random.shuffle(&mut ids);
    let moments = times(random, now, count);
    let reschedule = nanoseconds(count, || {
        for (&id, &at) in ids.iter().zip(&moments) {
            assert!(queue.reschedule(id, at, None));
        }
    });
    let mut expired = 0;
    let expire = nanoseconds(count, || expired = expire_all(queue));
    assert_eq!((expired, queue.len()), (count, 0));
    [schedule, cancel, reschedule, expire]
}

fn table(count: usize, turns: usize, strategies: &[TimerStrategy]) {
    let mut random = fastrand::Rng::with_seed(1);
    let mut figures = vec![Vec::new(); strategies.len()];
    for _ in 0..turns {
        for (figures, &strategy) in figures.iter_mut().zip(strategies) {
            figures.push(turn(strategy, count, &mut random));
        }
    }
    println!("{count} timers: median (least, greatest) of {turns} turns, ns per timer");
    print!("  {:<13}", "");
    println!("{}", OPERATIONS.map(|operation| format!("{operation:>24}")).concat());
    for (figures, strategy) in figures.iter().zip(strategies) {
        print!("  {strategy:<13}");
        for operation in 0..OPERATIONS.len() {
            let summary = Summary::from_values(figures.iter().map(|turn| turn[operation]));
            let Summary { median, low, high, .. } = summary.expect("there is a turn");
            print!("{:>24}", format!("{median:.1} ({low:.1}, {high:.1})"));
        }
        println!();
    }
}

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    // `cargo test --benches` runs this too, as a smoke test.
    let is_bench = arguments.iter().any(|argument| argument == "--bench");
    let wanted: Option<TimerStrategy> = arguments.iter().find_map(|argument| argument.parse().ok());
    let number: Option<usize> = arguments.iter().find_map(|argument| argument.parse().ok());
    let turns: &[(usize, usize)] =
        if is_bench { &[(1_000, 201), (100_000, 11), (1_000_000, 5)] } else { &[(1_000, 1)] };
    for &(count, turns) in turns.iter().filter(|turns| number.is_none_or(|number| number == turns.0)) {
        let is_meant = |strategy: &TimerStrategy| {
            wanted.is_none_or(|wanted| wanted == *strategy)
                && (*strategy != TimerStrategy::List || count <= MOST_IN_A_LIST)
        };
        let strategies: Vec<_> = TimerStrategy::ALL.into_iter().filter(is_meant).collect();
        if !strategies.is_empty() {
            table(count, turns, &strategies);
        }
    }
}
