//! Models of how the ORB's threads work together, run by a model checker under many interleavings.
//!
//! Built and run by `cargo xtask models`: with `--cfg shuttle` all locks, conditions, atomics and threads are the
//! checker's. A model that blocks for ever is reported as a deadlock; whatever fails comes with the schedule that
//! `shuttle::replay` runs again. The models stand beside what they check (`client/models.rs`, `server/models.rs`); here is
//! what they share: a connection without a network, and messages to send over it.
//!
//! The checker takes all atomic operations as sequentially consistent, so that too weak an ordering is not found here.

pub(crate) mod pipe;
pub(crate) mod pretend;
pub(crate) mod talk;

use shuttle::{
    Config, Runner,
    rand::{Rng, thread_rng},
    scheduler::{PctScheduler, RandomScheduler},
};

/// Multiplies the numbers of executions, for a longer look.
const TIMES: &str = "SPANDREL_MODELS_TIMES";

/// Runs a model so many times, half of them in random order, half with a few changes of priority at the worst moments.
pub(crate) fn check(executions: usize, model: fn()) {
    let times = std::env::var(TIMES).map_or(1, |times| times.parse().expect("a number"));
    let each = executions * times / 2;
    let mut config = Config::new();
    config.stack_size = 256 * 1024;
    Runner::new(RandomScheduler::new(each), config.clone()).run(model);
    Runner::new(PctScheduler::new(4, each), config).run(model);
}

/// True once in so many times; replayed like the schedule.
pub(crate) fn one_in(times: u32) -> bool {
    below(times) == 0
}

/// A number below this one; replayed like the schedule.
pub(crate) fn below(limit: u32) -> u32 {
    thread_rng().gen_range(0..limit)
}
