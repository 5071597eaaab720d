//! The cores of experiments, and the values and bounds of their rounds.

use std::time::Duration;

use spandrel_lab::LabError;
use spandrel_lab::placement::{Placement, Role, cores};

/// Sender and receiver each on a core of its own, where there are two cores.
pub(super) fn placement() -> Placement {
    match cores().len() {
        0 => Placement::Free,
        1 => Placement::One,
        _ => Placement::Two,
    }
}

/// The core of an experiment in one thread.
pub(super) fn core() -> Result<Option<usize>, LabError> {
    let cores = cores();
    let placement = if cores.is_empty() { Placement::Free } else { Placement::One };
    placement.core(Role::Transmitter, &cores)
}

/// The remark on a series whose bound of time ended it before its last round.
pub(super) fn cut_rounds(measured: usize, planned: u32, budget: Duration) -> Option<String> {
    (measured < planned as usize).then(|| format!("{measured} of {planned} rounds within {} s", budget.as_secs()))
}

/// The values by round of those measurements that a condition selects, in the order of rounds.
pub(super) fn by_round<T>(measured: &[T], is_own: impl Fn(&T) -> bool, value: impl Fn(&T) -> f64) -> Vec<f64> {
    measured.iter().filter(|one| is_own(one)).map(value).collect()
}
