//! The numbers of a process at one time.

use std::collections::BTreeMap;
use std::time::Instant;

use spandrel_error::escape;
use spandrel_metrics::{Series, series};

/// The labels that tell one number of a metric from others.
pub(crate) type Labels = BTreeMap<String, String>;

/// The numbers of a process at one time.
#[derive(Clone, Debug)]
pub struct Sample {
    pub(crate) time: Instant,
    numbers: BTreeMap<String, Vec<(Labels, f64)>>,
}

impl Sample {
    /// The numbers in a text of metrics that was read at `time`.
    #[must_use]
    pub fn new(text: &str, time: Instant) -> Self {
        let mut numbers: BTreeMap<String, Vec<_>> = BTreeMap::new();
        for series in series(text) {
            numbers.entry(series.name().to_owned()).or_default().push((labels(&series), series.value()));
        }
        Self { time, numbers }
    }

    /// The series of a metric, in the order of the text.
    pub(crate) fn series(&self, name: &str) -> &[(Labels, f64)] {
        self.numbers.get(name).map_or(&[], Vec::as_slice)
    }

    /// The sum of the series of a metric with these labels and perhaps others; `None` if there is none.
    pub(crate) fn sum(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let has = |of: &Labels| labels.iter().all(|(name, value)| label(of, name) == *value);
        let mut values = self.series(name).iter().filter(|(of, _)| has(of)).map(|(_, value)| *value);
        let first = values.next()?;
        Some(first + values.sum::<f64>())
    }

    /// As [`sum`](Self::sum), zero without a series.
    pub(crate) fn number(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        self.sum(name, labels).unwrap_or_default()
    }
}

/// The value of a label; empty without it, as Prometheus has it.
pub(crate) fn label<'l>(labels: &'l Labels, name: &str) -> &'l str {
    labels.get(name).map_or("", String::as_str)
}

fn labels(series: &Series<'_>) -> Labels {
    series.labels().map(|(name, value)| (name.to_owned(), escape(value).to_string())).collect()
}
