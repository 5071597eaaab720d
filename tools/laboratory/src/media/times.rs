//! Percentiles of measured times, and their text in tables.

use std::time::Duration;

/// The value below which so many percent of the sorted times are; zero without times.
pub(super) fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let index = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
    sorted.get(index).copied().unwrap_or_default()
}

/// A time in milliseconds, as tables have it.
pub(super) fn millis(time: Duration) -> String {
    format!("{:.2}", time.as_secs_f64() * 1e3)
}
