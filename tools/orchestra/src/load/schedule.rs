//! The requests of a load, of which workers take one after the other.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use fastrand::Rng;

use super::distribution::exponential;
use crate::idl::orchestra::{ArrivalKind, Load};

/// A request to be made.
pub(super) struct Request {
    /// Its number, from 0.
    pub(super) number: u64,
    /// The time at which it is due, in an open loop.
    pub(super) due: Option<Instant>,
}

/// The requests of a load.
pub(super) struct Schedule {
    start: Instant,
    /// The number of requests that are made at most.
    requests: u64,
    /// The time in which requests are due.
    window: Option<Duration>,
    seed: u64,
    order: Order,
}

enum Order {
    Closed { next: AtomicU64 },
    Open { rate: f64, is_paced: bool, next: Mutex<Arrival> },
}

/// The next arrival of an open loop.
struct Arrival {
    number: u64,
    /// Seconds from the start.
    after: f64,
    random: Rng,
}

impl Schedule {
    pub(super) fn new(load: &Load, start: Instant) -> Self {
        let order = match load.arrival {
            ArrivalKind::Closed => Order::Closed { next: AtomicU64::new(0) },
            ArrivalKind::OpenPaced | ArrivalKind::OpenPoisson => Order::Open {
                rate: load.rate,
                is_paced: matches!(load.arrival, ArrivalKind::OpenPaced),
                next: Mutex::new(Arrival { number: 0, after: 0.0, random: Rng::with_seed(load.seed) }),
            },
        };
        Self {
            start,
            requests: if load.requests == 0 { u64::MAX } else { load.requests },
            window: (load.seconds > 0.0).then(|| Duration::from_secs_f64(load.seconds)),
            seed: load.seed,
            order,
        }
    }

    pub(super) fn start(&self) -> Instant {
        self.start
    }

    /// The time from which on no request is due.
    pub(super) fn end(&self) -> Option<Instant> {
        self.window.map(|window| self.start + window)
    }

    /// The next request that no worker has taken.
    pub(super) fn next(&self) -> Option<Request> {
        match &self.order {
            Order::Closed { next } => {
                if self.window.is_some_and(|window| self.start.elapsed() >= window) {
                    return None;
                }
                let number = next.fetch_add(1, Ordering::Relaxed);
                (number < self.requests).then_some(Request { number, due: None })
            }
            Order::Open { rate, is_paced, next } => {
                let mut arrival = next.lock().unwrap_or_else(PoisonError::into_inner);
                let (number, after) = (arrival.number, arrival.after);
                if number >= self.requests || self.window.is_some_and(|window| after >= window.as_secs_f64()) {
                    return None;
                }
                arrival.number += 1;
                arrival.after = match is_paced {
                    true => arrival.number as f64 / rate,
                    false => after + exponential(1.0 / rate, &mut arrival.random),
                };
                Some(Request { number, due: Some(self.start + Duration::from_secs_f64(after)) })
            }
        }
    }

    /// The random numbers of a request: equal seeds give each request its size and think time again, by whichever
    /// worker it is made.
    pub(super) fn random(&self, number: u64) -> Rng {
        const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15; // spreads neighbouring numbers over all seeds
        Rng::with_seed(self.seed ^ number.wrapping_add(1).wrapping_mul(GOLDEN))
    }
}
