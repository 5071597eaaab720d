//! Medians, spreads and ratios of a handful of repetitions.
//!
//! A shared machine disturbs single runs, so figures are medians, and the spread is the whole range observed.
//! A ratio is formed within one round, whose runs followed each other closely, before the median is taken: a
//! temporary slowdown of the machine affects both sides of it.

mod student;

use serde::{Deserialize, Serialize};

/// The median of some repetitions and their range.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The middle value; for an even number of values, the mean of the two in the middle.
    pub median: f64,
    /// The lowest of the values.
    pub low: f64,
    /// The highest of the values.
    pub high: f64,
    /// The repetitions that were summarised.
    pub count: usize,
}

impl Summary {
    /// Summarises values; none if there are none, or if one is NaN.
    #[must_use]
    pub fn from_values(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        if sorted.is_empty() || sorted.iter().any(|value| value.is_nan()) {
            return None;
        }
        sorted.sort_by(f64::total_cmp);
        let (count, middle) = (sorted.len(), sorted.len() / 2);
        let median = if count % 2 == 1 { sorted[middle] } else { f64::midpoint(sorted[middle - 1], sorted[middle]) };
        Some(Self { median, low: sorted[0], high: sorted[count - 1], count })
    }

    /// Summarises the ratios of values to the base of the same round; rounds without either are left out.
    #[must_use]
    pub fn of_ratios(values: &[(u32, f64)], base: &[(u32, f64)]) -> Option<Self> {
        let base_of = |round: u32| base.iter().find(|(other, _)| *other == round).map(|(_, value)| *value);
        Self::from_values(values.iter().filter_map(|(round, value)| {
            let base = base_of(*round)?;
            (base > 0.0).then(|| value / base)
        }))
    }

    /// Half the range in percent of the median: the `±` that reports print.
    #[must_use]
    pub fn spread_percent(&self) -> f64 {
        if self.median == 0.0 { 0.0 } else { (self.high - self.low) / 2.0 / self.median * 100.0 }
    }
}

/// The value that a part of the others do not exceed: of `values` in ascending order, the one at `percent` % of the way
/// from the first to the last, rounded down. None without values, or above 100 %.
#[must_use]
pub fn percentile(values: &[f64], percent: usize) -> Option<f64> {
    let last = values.len().checked_sub(1)?;
    values.get(last * percent / 100).copied()
}

/// The mean of a sample, and its standard deviation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Moments {
    /// The size of the sample.
    pub count: usize,
    /// The arithmetic mean of the values.
    pub mean: f64,
    /// The standard deviation of the population as the sample shows it (divided by the number of values less one); 0
    /// for a single value.
    pub deviation: f64,
}

impl Moments {
    /// The moments of values; none if there are none.
    #[must_use]
    pub fn from_values(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let values: Vec<f64> = values.into_iter().collect();
        let count = values.len();
        if count == 0 {
            return None;
        }
        let mean = values.iter().sum::<f64>() / count as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let deviation = if count > 1 { (squares / (count - 1) as f64).sqrt() } else { 0.0 };
        Some(Self { count, mean, deviation })
    }

    /// The variance of the mean.
    fn variance_of_mean(&self) -> f64 {
        self.deviation.powi(2) / self.count as f64
    }
}

/// The test of the difference between two means (paper 004, 5.7).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The Z score (equation 5.6): from [`SIGNIFICANT_Z`] on, the means differ at the level of 5 %. Valid from
    /// [`LARGE_SAMPLE`] values on. Noise lowers it, so that the interval below says how much the means may differ.
    pub z: f64,
    /// The size of the lesser sample.
    pub values: usize,
    /// The difference of the first mean from the second, relative to the second.
    pub relative: f64,
    /// The ends of the confidence interval of the relative difference, of 95 % unless another one was asked
    /// for. By Student's t: few values show their variance less precisely than many.
    pub interval: (f64, f64),
    /// The number of rounds whose pairs of values gave the relative difference and its interval; 0 if the means did.
    pub rounds: usize,
}

/// The Z score from which two means differ at the level of 5 % (one-sided).
pub const SIGNIFICANT_Z: f64 = 1.65;
/// The share of the distribution outside of the usual interval.
const TAIL: f64 = 0.05;
/// The number of values from which a sample is large, so that its Z score is valid.
pub const LARGE_SAMPLE: usize = 30;

impl Comparison {
    /// Compares the first mean with the second; none if the second is 0, or if both samples have no variance.
    #[must_use]
    pub fn between(first: &Moments, second: &Moments) -> Option<Self> {
        Self::with_tail(first, second, TAIL)
    }

    /// As [`between`](Self::between), with an interval that misses the true difference in the share `tail` of
    /// cases, in place of 5 %. For a number of comparisons that are judged together, `tail` is 5 % divided by
    /// this number (Bonferroni): then the chance that any interval misses its difference is 5 % at most.
    #[must_use]
    pub fn with_tail(first: &Moments, second: &Moments, tail: f64) -> Option<Self> {
        let (of_first, of_second) = (first.variance_of_mean(), second.variance_of_mean());
        let error = (of_first + of_second).sqrt();
        if second.mean == 0.0 || error == 0.0 {
            return None;
        }
        let ratio = first.mean / second.mean;
        // The variance of a ratio of independent means, to the first order (delta method).
        let of_base = ratio.powi(2) * of_second;
        // Welch and Satterthwaite: the degrees of freedom of a sum of variances.
        let part = |variance: f64, count: usize| if count > 1 { variance.powi(2) / (count - 1) as f64 } else { 0.0 };
        let degrees = (of_first + of_base).powi(2) / (part(of_first, first.count) + part(of_base, second.count));
        let half = student::quantile(degrees as usize, tail) * (of_first + of_base).sqrt() / second.mean.abs();
        let relative = ratio - 1.0;
        Some(Self {
            z: (first.mean - second.mean).abs() / error,
            values: first.count.min(second.count),
            relative,
            interval: (relative - half, relative + half),
            rounds: 0,
        })
    }

    /// Whether the means differ: by the Z score of large samples, and of small ones if the interval excludes zero.
    #[must_use]
    pub fn differs(&self) -> bool {
        if self.values >= LARGE_SAMPLE {
            return self.z >= SIGNIFICANT_Z;
        }
        self.interval.0 > 0.0 || self.interval.1 < 0.0
    }

    /// Replaces the relative difference and the interval by those of pairs of values, each measured in the
    /// same round under the same conditions: the mean of the relative differences of all rounds, and
    /// Student's t interval around it. A change of the machine between two rounds cancels out. Unchanged with
    /// fewer than two pairs whose second value is above 0.
    #[must_use]
    pub fn with_pairs(self, pairs: &[(f64, f64)]) -> Self {
        let differences = pairs.iter().filter(|(_, second)| *second > 0.0).map(|(first, second)| first / second - 1.0);
        match Moments::from_values(differences) {
            Some(found) if found.count > 1 => {
                let half = student::quantile(found.count - 1, TAIL) * found.variance_of_mean().sqrt();
                let interval = (found.mean - half, found.mean + half);
                Self { relative: found.mean, interval, rounds: found.count, ..self }
            }
            _ => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_median_is_the_middle_one_or_the_mean_of_the_middle_two() {
        let median = |values: &[f64]| Summary::from_values(values.iter().copied()).unwrap().median;
        assert_eq!(median(&[7.0]), 7.0);
        assert_eq!(median(&[9.0, 1.0, 5.0]), 5.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 100.0]), 3.0);
    }

    #[test]
    fn the_z_score_is_the_difference_in_standard_errors() {
        // The paper's rows `iterative` and `cygsimple` of table 5.3: 89.85 ± 0.55 and 91.37 ± 0.72, 50 samples each.
        let first = Moments { count: 50, mean: 91.37, deviation: 0.72 };
        let second = Moments { count: 50, mean: 89.85, deviation: 0.55 };
        let found = Comparison::between(&first, &second).unwrap();
        assert!((found.z - 1.52 / (0.72f64.powi(2) / 50.0 + 0.55f64.powi(2) / 50.0).sqrt()).abs() < 1e-9);
        assert!((found.relative - 0.016_917).abs() < 1e-6, "{found:?}");
        let (low, high) = found.interval;
        assert!(low > 0.0 && low < found.relative && found.relative < high && high < 0.02, "{found:?}");
    }

    /// With 1.96 for any number of values, the intervals of four contain the true difference in 86 to 90 % of all cases.
    #[test]
    fn the_interval_of_few_values_is_students() {
        // Variances of 1 / 4 each, and equal means: Welch's degrees of freedom are 6, and their quantile 2.4469.
        let few = Moments { count: 4, mean: 100.0, deviation: 1.0 };
        let found = Comparison::between(&few, &few).unwrap();
        assert!((found.interval.1 - 2.446_9 * 0.5f64.sqrt() / 100.0).abs() < 1e-5, "{found:?}");
        // Two normal samples, many times: the share of intervals that contain the true difference, which is none.
        let mut random = fastrand::Rng::with_seed(20);
        let mut normal = || (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
        let mut sample = || Moments::from_values([(); 4].map(|()| 100.0 + normal())).unwrap();
        let contained = (0..4000).filter(|_| !Comparison::between(&sample(), &sample()).unwrap().differs()).count();
        assert!((0.94..0.97).contains(&(contained as f64 / 4000.0)), "{contained} of 4000");
    }

    #[test]
    fn large_samples_differ_by_their_z_score() {
        let of = |mean: f64, count: usize| Moments { count, mean, deviation: 1.0 };
        let z = |count| {
            Comparison::between(&of(100.0 + 1.8 * (2.0 / count as f64).sqrt(), count), &of(100.0, count)).unwrap()
        };
        assert!((z(50).z - 1.8).abs() < 1e-9 && z(50).differs(), "{:?}", z(50));
        assert!((z(10).z - 1.8).abs() < 1e-9 && !z(10).differs(), "{:?}", z(10));
    }

    #[test]
    fn the_interval_of_pairs_is_that_of_their_relative_differences() {
        // The machine became three times slower meanwhile. The differences are +2 %, +1 %, +3 %, +2 %: their mean is 2 %,
        // their deviation √(2/3) %, and t of three degrees of freedom 3.182446: ±3.182446 · √(2/3) / √4 = ±1.299228 %.
        let pairs = [(102.0, 100.0), (202.0, 200.0), (309.0, 300.0), (306.0, 300.0)];
        let moments = |of: fn(&(f64, f64)) -> f64| Moments::from_values(pairs.iter().map(of)).unwrap();
        let by_means = Comparison::between(&moments(|pair| pair.0), &moments(|pair| pair.1)).unwrap();
        let found = by_means.with_pairs(&pairs);
        assert!((found.relative - 0.02).abs() < 1e-12, "{found:?}");
        assert!((found.interval.0 - 0.007_007_72).abs() < 1e-7, "{found:?}");
        assert!((found.interval.1 - 0.032_992_28).abs() < 1e-7, "{found:?}");
        assert_eq!((found.z, found.rounds), (by_means.z, 4), "the paper's Z is that of the means");
        assert!(by_means.interval.0 < -0.5 && by_means.interval.1 > 0.5, "{by_means:?}");
        assert_eq!(by_means.with_pairs(&pairs[..1]), by_means, "a single round shows no variance");
        assert_eq!(by_means.with_pairs(&[(1.0, 0.0), (2.0, 1.0)]), by_means);
    }

    #[test]
    fn moments_of_few_values() {
        let moments = Moments::from_values([2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        assert_eq!((moments.count, moments.mean), (8, 5.0));
        assert!((moments.deviation - (32.0f64 / 7.0).sqrt()).abs() < 1e-12);
        assert_eq!(Moments::from_values([3.0]).unwrap().deviation, 0.0);
        assert_eq!(Moments::from_values([]), None);
        assert_eq!(
            Comparison::between(&Moments::from_values([3.0]).unwrap(), &Moments::from_values([4.0]).unwrap()),
            None
        );
    }

    #[test]
    fn a_percentile_is_one_of_the_values() {
        let values = [1.0, 2.0, 3.0, 4.0];
        assert_eq!(
            [0, 33, 34, 50, 99, 100].map(|percent| percentile(&values, percent).unwrap()),
            [1.0, 1.0, 2.0, 2.0, 3.0, 4.0]
        );
        assert_eq!((percentile(&[], 50), percentile(&values, 150)), (None, None));
    }

    #[test]
    fn an_empty_set_and_nan_have_no_summary() {
        assert_eq!(Summary::from_values([]), None);
        assert_eq!(Summary::from_values([1.0, f64::NAN]), None);
    }

    #[test]
    fn the_spread_is_half_the_range_of_the_median() {
        let summary = Summary::from_values([90.0, 100.0, 120.0]).unwrap();
        assert_eq!((summary.low, summary.high, summary.count), (90.0, 120.0, 3));
        assert_eq!(summary.spread_percent(), 15.0);
    }

    #[test]
    fn a_ratio_is_formed_within_its_round() {
        // The machine was half as fast in round 1: the ratio of medians is 1.0, that of the rounds 0.5.
        let base = [(0, 100.0), (1, 50.0), (2, 100.0)];
        let values = [(0, 50.0), (1, 25.0), (2, 50.0)];
        assert_eq!(Summary::of_ratios(&values, &base).unwrap().median, 0.5);
    }

    #[test]
    fn a_round_without_its_base_is_skipped() {
        assert_eq!(Summary::of_ratios(&[(0, 1.0), (7, 1.0)], &[(0, 2.0), (3, 0.0)]).unwrap().count, 1);
        assert_eq!(Summary::of_ratios(&[(3, 1.0)], &[(3, 0.0)]), None);
    }

    proptest! {
        #[test]
        fn half_of_the_values_lie_on_each_side(values in prop::collection::vec(0.0f64..1e9, 1..40)) {
            let summary = Summary::from_values(values.iter().copied()).unwrap();
            let below = values.iter().filter(|value| **value <= summary.median).count();
            let above = values.iter().filter(|value| **value >= summary.median).count();
            prop_assert!(below * 2 >= values.len() && above * 2 >= values.len());
            prop_assert!(summary.low <= summary.median && summary.median <= summary.high);
        }
    }
}
