//! Running models; only under `--cfg shuttle`.

use shuttle::{
    Config, Runner,
    rand::{Rng, thread_rng},
    scheduler::{PctScheduler, RandomScheduler},
};

/// Multiplies the numbers of executions, for a longer look.
const TIMES: &str = "SPANDREL_MODELS_TIMES";

/// What a thread of a model has for a stack.
const STACK_OCTETS: usize = 256 * 1024;

/// How often a thread is held back in favour of all others, at moments chosen by chance.
const HELD_BACK: usize = 3;

/// Runs a model so many times (or as many times more as `SPANDREL_MODELS_TIMES` says): half of them in random order, half
/// with one thread before all others except for a few changes.
///
/// # Panics
/// If an execution panics or its threads wait for each other for ever. The schedule is printed, for `shuttle::replay`.
pub fn check(executions: usize, model: fn()) {
    let times = std::env::var(TIMES).map_or(1, |times| times.parse().expect("a number"));
    let half = executions * times / 2;
    let mut config = Config::new();
    config.stack_size = STACK_OCTETS;
    Runner::new(RandomScheduler::new(half), config.clone()).run(model);
    Runner::new(PctScheduler::new(HELD_BACK + 1, half), config).run(model);
}

/// A number below this one, which is not zero. Chosen with the schedule, and the same again when that is replayed.
#[must_use]
pub fn below(limit: usize) -> usize {
    thread_rng().gen_range(0..limit)
}

/// True once in so many times; chosen like [`below`].
#[must_use]
pub fn one_in(times: usize) -> bool {
    below(times) == 0
}
