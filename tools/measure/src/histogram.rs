//! A histogram of times with bounded memory and a bounded relative error.

mod encoding;

pub use encoding::DecodeError;

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
    /// The highest value with a counter.
    highest: u64,
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
}

impl Histogram {
    /// An empty histogram for values up to `highest`; higher values are counted as `highest`.
    #[must_use]
    pub fn new(highest: u64) -> Self {
        Self { counts: vec![0; bucket(highest) + 1], highest, count: 0, sum: 0, min: u64::MAX, max: 0 }
    }

    /// Records a value; those beyond the range count in the last bucket.
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

    /// The standard deviation of the recorded values, each taken as the middle of its counter; 0 if there is none.
    #[must_use]
    pub fn deviation(&self) -> f64 {
        let mean = self.mean();
        let squares = |(bucket, count): (usize, &u64)| *count as f64 * (middle_of(bucket) as f64 - mean).powi(2);
        let recorded = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        if self.count == 0 { 0.0 } else { (recorded.map(squares).sum::<f64>() / self.count as f64).sqrt() }
    }

    /// The number of recorded values that are not below this one, as far as counters distinguish them from it.
    #[must_use]
    pub fn count_from(&self, value: u64) -> u64 {
        self.counts.iter().skip(bucket(value)).sum()
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
            let sum = &mut self.counts[bucket.min(last)];
            *sum = sum.saturating_add(*count);
        }
        self.count = self.count.saturating_add(other.count);
        self.sum = self.sum.saturating_add(other.sum);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// The counters in the V2 format of HdrHistogram: some kilobytes. Lowest value, highest value and sum are not part
    /// of it; [`decode`](Self::decode) has them again with the precision of counters.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        encoding::encode(&self.counts, self.highest)
    }

    /// Decodes a histogram that was [encoded](Self::encode), or that another implementation of HdrHistogram has encoded
    /// with three significant digits for values from 1 to `highest`. Memory is that of [`new`](Self::new), whatever
    /// the octets are.
    ///
    /// # Errors
    /// Octets that are not such a histogram, or one with other bounds.
    pub fn decode(octets: &[u8], highest: u64) -> Result<Self, DecodeError> {
        let mut histogram = Self::new(highest);
        histogram.counts = encoding::decode(octets, histogram.counts.len(), highest)?;
        for (bucket, count) in histogram.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            histogram.count = histogram.count.checked_add(*count).ok_or(DecodeError::Counters)?;
            histogram.sum += u128::from(*count) * u128::from(middle_of(bucket));
            histogram.min = histogram.min.min(lowest_in(bucket));
            histogram.max = highest_in(bucket);
        }
        Ok(histogram)
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

/// The lowest value of a counter, and the number of its values.
fn range_of(bucket: usize) -> (u64, u64) {
    let bucket = bucket as u64;
    let shift = (bucket / (EXACT / 2)).saturating_sub(1);
    let leading = bucket - shift * (EXACT / 2);
    (leading << shift, 1 << shift)
}

/// The lowest value of a counter.
fn lowest_in(bucket: usize) -> u64 {
    range_of(bucket).0
}

/// The value in the middle of a counter.
fn middle_of(bucket: usize) -> u64 {
    let (lowest, values) = range_of(bucket);
    lowest + values / 2
}

/// The highest value of a counter.
fn highest_in(bucket: usize) -> u64 {
    let (lowest, values) = range_of(bucket);
    lowest + (values - 1)
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

    #[test]
    fn the_deviation_is_that_of_the_values() {
        let mut histogram = Histogram::new(1_000_000);
        assert_eq!(histogram.deviation(), 0.0);
        [2, 4, 4, 4, 5, 5, 7, 9].into_iter().for_each(|value| histogram.record(value));
        assert_eq!((histogram.deviation(), histogram.count_from(5)), (2.0, 4));
    }

    const HIGHEST: u64 = 3_600_000_000_000;

    /// A histogram of the crate whose format it is.
    fn reference(values: &[u64]) -> hdrhistogram::Histogram<u64> {
        let mut histogram = hdrhistogram::Histogram::new_with_bounds(1, HIGHEST, 3).unwrap();
        values.iter().for_each(|value| histogram.record(*value).unwrap());
        histogram
    }

    #[test]
    fn octets_that_are_no_histogram_are_refused() {
        let mut histogram = Histogram::new(HIGHEST);
        [0, 7, 7, 90_000, HIGHEST].into_iter().for_each(|value| histogram.record(value));
        let octets = histogram.encode();
        for length in 0..octets.len() {
            assert_eq!(Histogram::decode(&octets[..length], HIGHEST).unwrap_err(), DecodeError::Truncated, "{length}");
        }
        let changed = |at: usize, octet: u8| {
            let mut octets = octets.clone();
            octets[at] = octet;
            Histogram::decode(&octets, HIGHEST).err()
        };
        assert_eq!((changed(0, 0), changed(3, 0x14)), (Some(DecodeError::Format), Some(DecodeError::Format)));
        // A length of 4 GiB, an offset, five digits, another lowest value, and another factor.
        assert_eq!((changed(4, 0xff), changed(11, 1)), (Some(DecodeError::Truncated), Some(DecodeError::Bounds)));
        for (at, octet) in [(15, 5), (23, 2), (31, 9), (32, 0)] {
            assert_eq!(changed(at, octet), Some(DecodeError::Bounds), "{at}");
        }
        assert_eq!(Histogram::decode(&octets, HIGHEST - 1).unwrap_err(), DecodeError::Bounds);
        // Payloads: zeros beyond the last counter, the longest run of zeros, an incomplete number, and a sum of 65 bits.
        let payload = |payload: &[u8]| {
            let mut octets = Histogram::new(HIGHEST).encode()[..40].to_vec();
            octets[4..8].copy_from_slice(&(payload.len() as u32).to_be_bytes());
            octets.extend(payload);
            Histogram::decode(&octets, HIGHEST)
        };
        let most = [0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]; // 2^63 - 1
        assert_eq!(payload(&[0xff, 0xff, 0x7f, 2]).unwrap_err(), DecodeError::Counters);
        assert_eq!(payload(&[0xff; 9]).unwrap_err(), DecodeError::Counters);
        assert_eq!(payload(&[2, 0x80]).unwrap_err(), DecodeError::Truncated);
        assert_eq!(payload(&most.repeat(3)).unwrap_err(), DecodeError::Counters);
        let mut full = payload(&most.repeat(2)).unwrap();
        full.add(&full.clone());
        assert_eq!(full.count(), u64::MAX, "sums are bounded");
    }

    proptest! {
        #[test]
        fn octets_are_those_of_hdrhistogram(values in prop::collection::vec(0u64..HIGHEST, 0..100)) {
            use hdrhistogram::serialization::{Deserializer, Serializer as _, V2Serializer};

            let (mut histogram, reference) = (Histogram::new(HIGHEST), reference(&values));
            values.iter().for_each(|value| histogram.record(*value));
            let mut octets = Vec::new();
            V2Serializer::new().serialize(&reference, &mut octets).unwrap();
            prop_assert_eq!(histogram.encode(), &*octets);
            let theirs: hdrhistogram::Histogram<u64> = Deserializer::new().deserialize(&mut &*histogram.encode()).unwrap();
            prop_assert_eq!(&theirs, &reference);

            let ours = Histogram::decode(&octets, HIGHEST).unwrap();
            prop_assert_eq!((ours.count(), ours.min(), ours.max()), (reference.len(), reference.min(), reference.max()));
            prop_assert_eq!(&ours.counts, &histogram.counts);
            let near = |value: f64, expected: f64| (value - expected).abs() <= expected * 1e-9 + 1e-9;
            prop_assert!(near(ours.mean(), reference.mean()) && near(ours.deviation(), reference.stdev()));
            for quantile in [0.5, 0.9, 0.99, 0.999] {
                prop_assert_eq!(ours.value_at(quantile), reference.value_at_quantile(quantile));
            }
        }

        #[test]
        fn arbitrary_octets_are_decoded_or_refused(octets in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut histogram = Histogram::new(HIGHEST).encode()[..40].to_vec();
            histogram[4..8].copy_from_slice(&(octets.len() as u32).to_be_bytes());
            histogram.extend(octets);
            if let Ok(histogram) = Histogram::decode(&histogram, HIGHEST) {
                let again = Histogram::decode(&histogram.encode(), HIGHEST).unwrap();
                prop_assert_eq!(again.counts, histogram.counts);
            }
        }

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
