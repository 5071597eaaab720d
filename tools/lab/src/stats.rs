//! Medians, spreads and ratios of a handful of repetitions.
//!
//! A shared machine disturbs single runs, so figures are medians, and the spread is the whole range observed.
//! A ratio is formed within one round, whose runs followed each other closely, before the median is taken: a
//! temporary slowdown of the machine affects both sides of it.

use serde::{Deserialize, Serialize};

/// The median of some repetitions and their range.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The middle value; for an even number of values, the mean of the two in the middle.
    pub median: f64,
    /// The lowest value.
    pub low: f64,
    /// The highest value.
    pub high: f64,
    /// The number of values.
    pub count: usize,
}

impl Summary {
    /// Summarises values; none if there are none, or if one is NaN.
    #[must_use]
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
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
        Self::of(values.iter().filter_map(|(round, value)| {
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_median_is_the_middle_one_or_the_mean_of_the_middle_two() {
        let median = |values: &[f64]| Summary::of(values.iter().copied()).unwrap().median;
        assert_eq!(median(&[7.0]), 7.0);
        assert_eq!(median(&[9.0, 1.0, 5.0]), 5.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 100.0]), 3.0);
    }

    #[test]
    fn an_empty_set_and_nan_have_no_summary() {
        assert_eq!(Summary::of([]), None);
        assert_eq!(Summary::of([1.0, f64::NAN]), None);
    }

    #[test]
    fn the_spread_is_half_the_range_of_the_median() {
        let summary = Summary::of([90.0, 100.0, 120.0]).unwrap();
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
            let summary = Summary::of(values.iter().copied()).unwrap();
            let below = values.iter().filter(|value| **value <= summary.median).count();
            let above = values.iter().filter(|value| **value >= summary.median).count();
            prop_assert!(below * 2 >= values.len() && above * 2 >= values.len());
            prop_assert!(summary.low <= summary.median && summary.median <= summary.high);
        }
    }
}
