//! The times at which requests are due.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use fastrand::Rng;

/// The order in which requests arrive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrival {
    /// A closed loop: each worker makes its next request after the answer to the one before.
    Closed,
    /// An open loop: requests are due at equal distances.
    Paced {
        /// The rate in requests per second.
        rate: f64,
    },
    /// An open loop: the distances between requests have an exponential distribution (a Poisson process).
    Poisson {
        /// Requests per second, on average.
        rate: f64,
        /// Equal seeds give equal distances.
        seed: u64,
    },
}

/// A request that is to be made.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Its number, from 0.
    pub number: u64,
    /// The time from which its duration counts: in an open loop that at which it is due, in a closed loop that at which a
    /// worker takes it.
    pub begin: Instant,
}

/// The requests of a load, of which workers take one after the other.
#[derive(Debug)]
pub struct Schedule {
    start: Instant,
    requests: u64,
    window: Option<Duration>,
    order: Order,
}

#[derive(Debug)]
enum Order {
    Closed { next: AtomicU64 },
    Paced { next: AtomicU64, rate: f64 },
    Poisson { next: Mutex<RandomArrival>, rate: f64 },
}

/// The next request of a Poisson process.
#[derive(Debug)]
struct RandomArrival {
    number: u64,
    /// Seconds from the start.
    after: f64,
    random: Rng,
}

impl Schedule {
    /// A schedule of at most so many requests, all of which are due within the time window. The rate of an open loop must
    /// be above zero.
    #[must_use]
    pub fn new(arrival: Arrival, requests: u64, window: Option<Duration>, start: Instant) -> Self {
        let next = AtomicU64::new(0);
        let order = match arrival {
            Arrival::Closed => Order::Closed { next },
            Arrival::Paced { rate } => Order::Paced { next, rate },
            Arrival::Poisson { rate, seed } => {
                let next = RandomArrival { number: 0, after: 0.0, random: Rng::with_seed(seed) };
                Order::Poisson { next: Mutex::new(next), rate }
            }
        };
        Self { start, requests, window, order }
    }

    /// The time from which the schedule counts.
    #[must_use]
    pub fn start(&self) -> Instant {
        self.start
    }

    /// The time from which on no request is due.
    #[must_use]
    pub fn end(&self) -> Option<Instant> {
        self.start.checked_add(self.window?)
    }

    /// Takes the next request that no worker has taken. None if all have been taken, or if the time is over.
    #[must_use]
    pub fn next(&self) -> Option<Request> {
        match &self.order {
            Order::Closed { next } => {
                let begin = Instant::now();
                if self.window.is_some_and(|window| begin - self.start >= window) {
                    return None;
                }
                let number = next.fetch_add(1, Ordering::Relaxed);
                (number < self.requests).then_some(Request { number, begin })
            }
            Order::Paced { next, rate } => {
                let number = next.fetch_add(1, Ordering::Relaxed);
                self.request(number, number as f64 / rate)
            }
            Order::Poisson { next, rate } => {
                let mut next = next.lock().unwrap_or_else(PoisonError::into_inner);
                let request = self.request(next.number, next.after)?;
                next.number += 1;
                next.after += exponential(1.0 / rate, &mut next.random);
                Some(request)
            }
        }
    }

    /// A request of an open loop that is due so many seconds after the start.
    fn request(&self, number: u64, after: f64) -> Option<Request> {
        let after = Duration::try_from_secs_f64(after).ok()?;
        if number >= self.requests || self.window.is_some_and(|window| after >= window) {
            return None;
        }
        Some(Request { number, begin: self.start.checked_add(after)? })
    }
}

/// A random value with an exponential distribution around this mean.
pub fn exponential(mean: f64, random: &mut Rng) -> f64 {
    -mean * (1.0 - random.f64()).ln() // the argument is in (0, 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due(arrival: Arrival, requests: u64, window: Option<Duration>) -> Vec<Duration> {
        let schedule = Schedule::new(arrival, requests, window, Instant::now());
        std::iter::from_fn(|| schedule.next()).map(|request| request.begin - schedule.start()).collect()
    }

    #[test]
    fn paced_requests_are_due_at_equal_distances() {
        let times = [0, 250, 500, 750].map(Duration::from_millis);
        assert_eq!(due(Arrival::Paced { rate: 4.0 }, 4, None), times);
        assert_eq!(due(Arrival::Paced { rate: 4.0 }, u64::MAX, Some(Duration::from_secs(1))), times);
    }

    #[test]
    fn a_seed_repeats_the_times_of_a_poisson_process() {
        let times = |seed: u64| due(Arrival::Poisson { rate: 1000.0, seed }, 1000, None);
        assert!(times(1) == times(1) && times(1) != times(2));
        // The sum of 999 distances of 1 ms has a standard deviation of 32 ms.
        let end = times(1)[999].as_secs_f64();
        assert!((0.85..1.15).contains(&end), "{end}");
        assert!(due(Arrival::Poisson { rate: 1000.0, seed: 1 }, 1000, Some(Duration::from_millis(100))).len() < 200);
    }

    #[test]
    fn a_closed_loop_has_its_number_of_requests_and_its_time() {
        assert_eq!(due(Arrival::Closed, 3, None).len(), 3);
        assert_eq!(due(Arrival::Closed, 3, Some(Duration::ZERO)).len(), 0);
    }
}
