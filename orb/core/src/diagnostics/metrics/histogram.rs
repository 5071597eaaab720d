//! Histograms of durations. The widths of the buckets grow with the time, so that each duration is
//! known to a fifth of its size.

use std::time::Duration;

use spandrel_sync::atomic::{AtomicU64, Ordering};

/// Durations up to 2 to the power of this many nanoseconds share the first bucket (about a microsecond).
const FIRST: u32 = 10;
/// Longer ones than 2 to the power of this many nanoseconds share the last (about 69 s).
const LAST: u32 = 36;
/// Buckets of one doubling: 4.
const STEP_BITS: u32 = 2;
const STEPS: usize = 1 << STEP_BITS;
const BUCKETS: usize = (LAST - FIRST) as usize * STEPS + 2;

/// Counts of durations. Adding one is three additions to atomic numbers.
#[derive(Debug)]
pub(crate) struct Histogram {
    buckets: [AtomicU64; BUCKETS],
    /// Of all durations, in nanoseconds.
    sum: AtomicU64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { buckets: std::array::from_fn(|_| AtomicU64::new(0)), sum: AtomicU64::new(0) }
    }
}

impl Histogram {
    pub(crate) fn add(&self, time: Duration) {
        let time = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.buckets[bucket(time)].fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(time, Ordering::Relaxed);
    }

    /// Returns a snapshot: for each doubling the number of durations up to it, then the count of all, and
    /// their sum in seconds.
    pub(super) fn snapshot(&self) -> HistogramSnapshot {
        let mut count = 0;
        let mut counts: Vec<u64> = Vec::with_capacity((LAST - FIRST) as usize + 1);
        for (at, bucket) in self.buckets.iter().enumerate() {
            count += bucket.load(Ordering::Relaxed);
            if at % STEPS == 0 && at < BUCKETS - 1 {
                counts.push(count);
            }
        }
        let nanoseconds = self.sum.load(Ordering::Relaxed);
        HistogramSnapshot { counts, count, seconds: Duration::from_nanos(nanoseconds).as_secs_f64() }
    }
}

/// A histogram at one moment.
pub(super) struct HistogramSnapshot {
    /// For each of [`bounds`].
    pub(super) counts: Vec<u64>,
    pub(super) count: u64,
    pub(super) seconds: f64,
}

/// The bounds that are exported, in seconds: one for each doubling.
pub(super) fn bounds() -> impl Iterator<Item = f64> {
    (FIRST..=LAST).map(|power| Duration::from_nanos(1 << power).as_secs_f64())
}

/// The bucket of a duration in nanoseconds. Its upper bound belongs to it, as Prometheus requires.
fn bucket(time: u64) -> usize {
    let below = time.saturating_sub(1);
    if below >> FIRST == 0 {
        return 0;
    }
    let doubling = u64::BITS - 1 - below.leading_zeros();
    if doubling >= LAST {
        return BUCKETS - 1;
    }
    let step = (below >> (doubling - STEP_BITS)) as usize & (STEPS - 1);
    1 + (doubling - FIRST) as usize * STEPS + step
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_contiguous() {
        assert_eq!((bucket(0), bucket(1), bucket(1024)), (0, 0, 0));
        assert_eq!((bucket(1025), bucket(1280), bucket(1281)), (1, 1, 2));
        assert_eq!((bucket(2048), bucket(2049)), (4, 5));
        assert_eq!(
            (bucket(1 << LAST), bucket((1 << LAST) + 1), bucket(u64::MAX)),
            (BUCKETS - 2, BUCKETS - 1, BUCKETS - 1)
        );
        let mut last = 0;
        for time in (0..200_000).map(|step| step * 7) {
            let at = bucket(time);
            assert!(at == last || at == last + 1, "{time}");
            last = at;
        }
    }

    #[test]
    fn exported_buckets_are_cumulative() {
        let histogram = Histogram::default();
        for micros in [1, 1, 3, 100, 70_000_000] {
            histogram.add(Duration::from_micros(micros));
        }
        let snapshot = histogram.snapshot();
        assert_eq!(snapshot.counts.len(), bounds().count());
        let at_most = |seconds: f64| snapshot.counts[bounds().position(|bound| bound >= seconds).unwrap()];
        assert_eq!((at_most(1.1e-6), at_most(4e-6), at_most(2e-4), at_most(60.0)), (2, 3, 4, 4));
        assert_eq!(snapshot.count, 5);
        assert!((snapshot.seconds - 70.000_105).abs() < 1e-9);
    }
}
