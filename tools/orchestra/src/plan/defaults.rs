//! The default values of plans: those of the paper (5.6), and its pools (5.7.1).

use super::{ArrivalPlan, LoadPlan};

pub(super) fn requests() -> u64 {
    20_000
}

pub(super) fn octets() -> u32 {
    4000
}

pub(super) fn workers() -> u32 {
    5
}

pub(super) fn samples() -> u32 {
    50
}

pub(super) fn slices() -> u32 {
    1
}

pub(super) fn pools() -> Vec<u32> {
    vec![5, 10]
}

pub(super) fn timeout() -> f64 {
    30.0
}

pub(super) fn grace() -> f64 {
    5.0
}

pub(super) fn agent_wait() -> f64 {
    30.0
}

pub(super) fn seed() -> u64 {
    1
}

pub(super) fn greetings() -> Vec<bool> {
    vec![true]
}

pub(super) fn loads() -> Vec<LoadPlan> {
    let closed = LoadPlan {
        name: "closed".to_owned(),
        arrival: ArrivalPlan::Closed,
        rate: 0.0,
        requests: None,
        seconds: 0.0,
        workers: None,
        size: None,
        think_time: None,
    };
    vec![closed]
}
