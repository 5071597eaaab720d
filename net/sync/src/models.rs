//! Running models; only under `--cfg shuttle`.

use shuttle::{
    Config, Runner,
    rand::{Rng, thread_rng},
    scheduler::{PctScheduler, RandomScheduler},
};

/// Environment variable: a factor for the numbers of executions, for a longer search.
const TIMES: &str = "SPANDREL_MODELS_TIMES";

/// Stack size of a thread of a model.
const STACK_OCTETS: usize = 256 * 1024;

/// The number of times that one thread is delayed in favour of all others, at random moments.
const HELD_BACK: usize = 3;

/// Runs a model the given number of times (multiplied by `SPANDREL_MODELS_TIMES`): half of them in random
/// order, half with a priority schedule that changes a few times.
///
/// # Panics
/// If an execution panics or deadlocks. The schedule is printed, for `shuttle::replay`.
pub fn check(executions: usize, model: fn()) {
    let times = std::env::var(TIMES).map_or(1, |times| times.parse().expect("a number"));
    let half = executions * times / 2;
    let mut config = Config::new();
    config.stack_size = STACK_OCTETS;
    Runner::new(RandomScheduler::new(half), config.clone()).run(model);
    Runner::new(PctScheduler::new(HELD_BACK + 1, half), config).run(model);
}

/// A random number below `limit`, which is not zero. Chosen with the schedule, and repeated when that is
/// replayed.
#[must_use]
pub fn below(limit: usize) -> usize {
    thread_rng().gen_range(0..limit)
}

/// True with a probability of one in `times`; chosen like [`below`].
#[must_use]
pub fn one_in(times: usize) -> bool {
    below(times) == 0
}
