//! Distributions of times, in numbers.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;

/// A distribution of times, in the unit that its owner names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// The shortest time that was recorded.
    pub min: f64,
    /// Half of the times are shorter.
    pub median: f64,
    /// Nine in ten are shorter.
    pub p90: f64,
    /// 99 in 100 are shorter.
    pub p99: f64,
    /// 999 in 1,000 are shorter.
    pub p999: f64,
    /// The longest time, which one interruption by the system determines.
    pub max: f64,
    /// The sum of the times, divided by their number.
    pub mean: f64,
}

impl Times {
    /// The distribution of times in nanoseconds, expressed in `unit`; `None` without a time.
    #[must_use]
    pub fn of(nanos: &Histogram, unit: Duration) -> Option<Self> {
        let unit = unit.as_nanos() as f64;
        let quantile = |quantile| nanos.value_at(quantile) as f64 / unit;
        (nanos.count() > 0).then(|| Self {
            min: nanos.min() as f64 / unit,
            median: quantile(0.5),
            p90: quantile(0.9),
            p99: quantile(0.99),
            p999: quantile(0.999),
            max: nanos.max() as f64 / unit,
            mean: nanos.mean() / unit,
        })
    }

    /// The same times in a unit that is `factor` times smaller.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        Self {
            min: self.min * factor,
            median: self.median * factor,
            p90: self.p90 * factor,
            p99: self.p99 * factor,
            p999: self.p999 * factor,
            max: self.max * factor,
            mean: self.mean * factor,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quantiles_are_those_of_the_histogram_in_the_unit() {
        let mut nanos = Histogram::new(60_000_000_000);
        assert_eq!(Times::of(&nanos, Duration::from_micros(1)), None, "no time");
        (1..=1000).for_each(|micros| nanos.record(micros * 1000));
        let near = |value: f64, expected: f64| (value / expected - 1.0).abs() < 0.002; // three significant digits
        for (unit, factor) in [(Duration::from_micros(1), 1.0), (Duration::from_secs(1), 1e-6)] {
            let times = Times::of(&nanos, unit).unwrap();
            let all = [times.min, times.median, times.p90, times.p99, times.p999, times.max, times.mean];
            let expected = [1.0, 500.0, 900.0, 990.0, 999.0, 1000.0, 500.5];
            assert!(all.iter().zip(expected).all(|(value, expected)| near(*value, expected * factor)), "{times:?}");
            let scaled = times.scaled(1000.0);
            assert!(near(scaled.p99, 990.0 * factor * 1000.0) && near(scaled.mean, 500.5 * factor * 1000.0));
        }
    }
}
