//! Distributions of sizes, times and distances.

use std::time::Duration;

use fastrand::Rng;
use spandrel_measure::load::exponential;

use super::MAX_OCTETS;
use crate::idl::orchestra::{Distribution, DistributionKind};

/// The longest think time, in seconds: an hour.
pub(super) const MAX_THINK_TIME: f64 = 3600.0;

/// Whether the mean is in this range.
pub(super) fn has_mean_in(distribution: &Distribution, lowest: f64, highest: f64) -> bool {
    (lowest..=highest).contains(&distribution.mean)
}

/// Whether the spread is neither negative nor greater than this.
pub(super) fn has_spread_below(distribution: &Distribution, highest: f64) -> bool {
    (0.0..=highest).contains(&distribution.spread)
}

/// Whether no value exceeds this, if the values have an upper bound. Others beyond it count as it.
pub(super) fn has_bounded_values(distribution: &Distribution, highest: f64) -> bool {
    !matches!(distribution.kind, DistributionKind::Uniform) || distribution.mean + distribution.spread <= highest
}

/// A size from 1 to [`MAX_OCTETS`].
pub(super) fn octets(distribution: &Distribution, random: &mut Rng) -> u32 {
    value(distribution, random).round().clamp(1.0, f64::from(MAX_OCTETS)) as u32
}

/// A time of at most [`MAX_THINK_TIME`].
pub(super) fn seconds(distribution: &Distribution, random: &mut Rng) -> Duration {
    Duration::from_secs_f64(value(distribution, random).clamp(0.0, MAX_THINK_TIME))
}

fn value(distribution: &Distribution, random: &mut Rng) -> f64 {
    let Distribution { kind, mean, spread } = *distribution;
    match kind {
        DistributionKind::Constant => mean,
        DistributionKind::Uniform => mean + spread * (2.0 * random.f64() - 1.0),
        DistributionKind::Exponential => exponential(mean, random),
        DistributionKind::Normal => mean + spread * standard_normal(random),
    }
}

/// A value of the standard normal distribution (Box and Muller).
fn standard_normal(random: &mut Rng) -> f64 {
    let radius = (2.0 * exponential(1.0, random)).sqrt();
    radius * (std::f64::consts::TAU * random.f64()).cos()
}
