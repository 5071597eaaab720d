//! A histogram of times with bounded memory and a bounded relative error.

/// Values below this one have a counter each.
const EXACT: u64 = 1 << EXACT_BITS;
/// The number of bits of a value that its counter distinguishes, so that the relative error is below 1/1,024.
const EXACT_BITS: u32 = 11;

/// The numbers of recorded values, by value.
///
/// Values from 0 to 2,047 are counted exactly. Larger ones share a counter with values that differ from them
/// by less than a thousandth. Recording needs no memory after [`new`](Self::new).
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: Vec<u64>,
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
}

impl Histogram {
    /// An empty histogram for values up to `highest`; higher values are counted as `highest`.
    #[must_use]
    pub fn new(highest: u64) -> Self {
        Self { counts: vec![0; bucket(highest) + 1], count: 0, sum: 0, min: u64::MAX, max: 0 }
    }

    /// Records a value.
    #[inline]
    pub fn record(&mut self, value: u64) {
        let last = self.counts.len() - 1;
        self.counts[bucket(value).min(last)] += 1;
        self.count += 1;
        self.sum += u128::from(value);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// The number of recorded values.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The lowest recorded value; 0 if there is none.
    #[must_use]
    pub fn min(&self) -> u64 {
        if self.count == 0 { 0 } else { self.min }
    }

    /// The highest recorded value; 0 if there is none.
    #[must_use]
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The mean of the recorded values; 0 if there is none.
    #[must_use]
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 }
    }

    /// The value at a quantile between 0 and 1: at least that part of the values is not higher. 0 if there is
    /// no value.
    #[must_use]
    pub fn value_at(&self, quantile: f64) -> u64 {
        let wanted = ((quantile.clamp(0.0, 1.0) * self.count as f64).ceil() as u64).max(1);
        let mut below = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            below += count;
            if below >= wanted {
                return highest_in(bucket).clamp(self.min(), self.max);
            }
        }
        self.max
    }

    /// Adds the values of another histogram, whose highest value must not be above this one's.
    pub fn add(&mut self, other: &Self) {
        let last = self.counts.len() - 1;
        for (bucket, count) in other.counts.iter().enumerate() {
            self.counts[bucket.min(last)] += count;
        }
        self.count += other.count;
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }
}

/// The counter of a value: its leading [`EXACT_BITS`] bits, behind those of all shorter values.
#[inline]
fn bucket(value: u64) -> usize {
    if value < EXACT {
        return value as usize;
    }
    let shift = u64::BITS - value.leading_zeros() - EXACT_BITS;
    (u64::from(shift) * (EXACT / 2) + (value >> shift)) as usize
}

/// The highest value of a counter.
fn highest_in(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < EXACT {
        return bucket;
    }
    let shift = bucket / (EXACT / 2) - 1;
    let leading = bucket - shift * (EXACT / 2);
    (leading << shift) | ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_empty_histogram_has_zeros() {
        let histogram = Histogram::new(1_000_000);
        assert_eq!((histogram.count(), histogram.min(), histogram.max(), histogram.value_at(0.5)), (0, 0, 0, 0));
        assert_eq!(histogram.mean(), 0.0);
    }

    #[test]
    fn small_values_are_exact() {
        let mut histogram = Histogram::new(1_000_000);
        (1..=1000).for_each(|value| histogram.record(value));
        assert_eq!((histogram.value_at(0.5), histogram.value_at(0.99), histogram.value_at(1.0)), (500, 990, 1000));
        assert_eq!((histogram.value_at(0.0), histogram.mean()), (1, 500.5));
    }

    #[test]
    fn a_value_above_the_highest_is_counted() {
        let mut histogram = Histogram::new(10_000);
        histogram.record(5);
        histogram.record(u64::MAX);
        assert_eq!((histogram.count(), histogram.max()), (2, u64::MAX));
        assert!(histogram.value_at(1.0) >= 10_000);
    }

    #[test]
    fn two_histograms_become_one() {
        let (mut one, mut two) = (Histogram::new(1000), Histogram::new(1000));
        one.record(10);
        two.record(30);
        one.add(&two);
        assert_eq!((one.count(), one.min(), one.max(), one.mean()), (2, 10, 30, 20.0));
        assert_eq!(one.value_at(1.0), 30);
    }

    proptest! {
        #[test]
        fn a_counter_contains_its_value_within_a_thousandth(value in 0u64..60_000_000_000) {
            let highest = highest_in(bucket(value));
            prop_assert!(highest >= value && highest - value <= value / 1000, "{value} {highest}");
            prop_assert!(bucket(highest) == bucket(value) && bucket(highest + 1) == bucket(value) + 1);
        }

        #[test]
        fn quantiles_are_those_of_the_sorted_values(mut values in prop::collection::vec(0u64..1_000_000_000, 1..200), quantile in 0.0f64..=1.0) {
            let mut histogram = Histogram::new(1_000_000_000);
            values.iter().for_each(|value| histogram.record(*value));
            values.sort_unstable();
            let rank = ((quantile * values.len() as f64).ceil() as usize).max(1) - 1;
            let (exact, found) = (values[rank], histogram.value_at(quantile));
            prop_assert!(found.abs_diff(exact) <= exact / 1000 + 1, "{exact} {found}");
        }
    }
}
