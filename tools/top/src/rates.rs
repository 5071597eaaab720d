//! Rates between two samples.

use std::collections::BTreeMap;

use crate::sample::{Sample, label};

/// Two samples of one process, the second one later.
pub(crate) struct Interval<'s> {
    pub(crate) before: Option<&'s Sample>,
    pub(crate) now: &'s Sample,
}

impl Interval<'_> {
    /// The growth of a counter each second; `None` without an earlier sample. A counter that has become smaller began again
    /// with its process.
    pub(crate) fn rate(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let before = self.before?;
        let seconds = self.now.time.saturating_duration_since(before.time).as_secs_f64();
        let (now, then) = (self.now.number(name, labels), before.number(name, labels));
        let growth = if now < then { now } else { now - then };
        (seconds > 0.0).then(|| growth / seconds)
    }

    /// The bound in seconds below which this part of the observations of a histogram lies that came in the interval, or all
    /// of them without an earlier sample; `None` if there are none.
    pub(crate) fn quantile(&self, name: &str, labels: &[(&str, &str)], part: f64) -> Option<f64> {
        let buckets = format!("{name}_bucket");
        let counts = |sample: &Sample| {
            let mut counts: BTreeMap<u64, f64> = BTreeMap::new();
            for (of, value) in sample.series(&buckets) {
                let bound: f64 = label(of, "le").parse().unwrap_or(f64::INFINITY);
                if labels.iter().all(|(name, value)| label(of, name) == *value) {
                    // Positive numbers have the order of their bits.
                    *counts.entry(bound.max(0.0).to_bits()).or_default() += value;
                }
            }
            counts
        };
        let (now, then) = (counts(self.now), self.before.map(counts).unwrap_or_default());
        let new = |bound: &u64| now[bound] - then.get(bound).copied().unwrap_or_default();
        let total = now.keys().next_back().map(new).filter(|total| *total > 0.0)?;
        now.keys().find(|bound| new(bound) >= part * total).map(|bound| f64::from_bits(*bound))
    }
}
