//! The loops whose times are measured.

use std::hint::black_box;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use spandrel_reactor::timer::{Time, TimerId, TimerOptions, TimerQueue};

use super::settings::Strategy;

/// A step of a timer's life whose cost is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// Adds a timer with a random time.
    Schedule,
    /// Removes a timer before it is due.
    Cancel,
    /// Sets another time of a timer.
    Reschedule,
    /// Takes the next due timer, with its share of querying the earliest time: of all timers, or of the first
    /// 100,000, since a hashed wheel with far more timers than buckets passes each of them many times.
    Expire,
}

/// All operations, in the order in which they are measured.
pub const OPERATIONS: [Operation; 4] =
    [Operation::Schedule, Operation::Cancel, Operation::Reschedule, Operation::Expire];

impl Operation {
    /// The name that tables use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Schedule => "schedule",
            Self::Cancel => "cancel",
            Self::Reschedule => "reschedule",
            Self::Expire => "expire",
        }
    }
}

/// With few timers the passes are repeated until this many are touched, so that the clock does not matter.
const MIN_TOUCHED: u32 = 100_000;

/// The maximum number of timers that expire; the rest is dropped.
const MAX_EXPIRED: usize = 100_000;

/// Nanoseconds per timer, for each of [`OPERATIONS`].
pub(super) fn measure(strategy: Strategy, timers: u32, horizon: Duration, random: &mut fastrand::Rng) -> [f64; 4] {
    let turns = MIN_TOUCHED.div_ceil(timers);
    let mut bench = Bench::new(strategy, timers as usize, horizon, random);
    let mut nanos = [0.0; 4];
    for _ in 0..turns {
        for (sum, taken) in nanos.iter_mut().zip(bench.turn()) {
            *sum += taken;
        }
    }
    nanos.map(|nanos| nanos / f64::from(turns))
}

/// One queue and its timers.
struct Bench<'a> {
    queue: Box<dyn TimerQueue<u64>>,
    now: Time,
    horizon: Duration,
    random: &'a mut fastrand::Rng,
    times: Vec<Time>,
    ids: Vec<TimerId>,
}

impl<'a> Bench<'a> {
    fn new(strategy: Strategy, timers: usize, horizon: Duration, random: &'a mut fastrand::Rng) -> Self {
        let queue = strategy.0.queue_with(&TimerOptions::new().limit(timers).capacity(timers));
        let times = vec![Time::ZERO; timers];
        let mut bench = Self { queue, now: Time::ZERO, horizon, random, times, ids: Vec::with_capacity(timers) };
        // Filled and emptied once, in another order.
        bench.draw_times();
        bench.schedule();
        bench.random.shuffle(&mut bench.ids);
        bench.cancel();
        bench
    }

    /// Each operation once for every timer; returns nanoseconds per timer.
    fn turn(&mut self) -> [f64; 4] {
        self.draw_times();
        let schedule = taken(|| self.schedule());
        self.random.shuffle(&mut self.ids);
        let cancel = taken(|| self.cancel());
        self.schedule();
        self.random.shuffle(&mut self.ids);
        self.draw_times();
        let reschedule = taken(|| self.reschedule());
        let (count, mut expired) = (self.ids.len(), 0);
        let expire = taken(|| expired = self.expire());
        assert!(expired == count || expired >= MAX_EXPIRED, "every timer expires once");
        self.ids.clear();
        self.queue.clear();
        [(schedule, count), (cancel, count), (reschedule, count), (expire, expired)]
            .map(|(taken, count)| taken.as_nanos() as f64 / count as f64)
    }

    fn draw_times(&mut self) {
        let horizon = self.horizon.as_nanos() as u64;
        for time in &mut self.times {
            *time = self.now + Duration::from_nanos(self.random.u64(1..=horizon));
        }
    }

    fn schedule(&mut self) {
        for (payload, at) in self.times.iter().enumerate() {
            self.ids.push(self.queue.schedule(*at, None, payload as u64).expect("the limit is the number of timers"));
        }
    }

    fn cancel(&mut self) {
        for id in self.ids.drain(..) {
            assert!(black_box(self.queue.cancel(id)).is_some());
        }
    }

    fn reschedule(&mut self) {
        for (id, at) in self.ids.iter().zip(&self.times) {
            assert!(self.queue.reschedule(*id, *at, None));
        }
    }

    /// As a reactor does: sleeps until the earliest timer, and takes the due ones.
    fn expire(&mut self) -> usize {
        let mut count = 0;
        while let Some(earliest) = self.queue.earliest().filter(|_| count < MAX_EXPIRED) {
            self.now = self.now.max(earliest);
            while let Some(expired) = self.queue.pop_expired(self.now) {
                black_box(expired);
                count += 1;
            }
        }
        count
    }
}

fn taken(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_of_every_strategy_costs_something() {
        for strategy in Strategy::all() {
            let mut random = fastrand::Rng::with_seed(7);
            let mut bench = Bench::new(strategy, 50, Duration::from_secs(300), &mut random);
            for _ in 0..3 {
                assert!(bench.turn().iter().all(|nanos| *nanos > 0.0), "{strategy}");
                assert!(bench.queue.is_empty());
            }
            assert!(bench.now > Time::ZERO, "time goes on as timers expire");
        }
    }
}
