//! Histograms by interface, operation and outcome, up to a limit, and one set for all others.

use std::{collections::HashMap, time::Duration};

use spandrel_sync::{
    Arc, Mutex, RwLock,
    atomic::{AtomicUsize, Ordering},
};

use super::histogram::Histogram;
use crate::diagnostics::outcome::CallOutcome;

/// The label of operations beyond the limit, and of requests for unknown operations.
pub(super) const OTHER: &str = "other";
/// The longest name of an interface or operation that has a series.
const MAX_NAME_OCTETS: usize = 256;

/// The series by interface, then by operation.
type Interfaces = HashMap<Box<str>, HashMap<Box<str>, Arc<Series>>>;

/// The series of one side.
#[derive(Debug)]
pub(super) struct SeriesTable {
    interfaces: RwLock<Interfaces>,
    other: Arc<Series>,
    /// The number of histograms: one for each outcome of an operation.
    histograms: AtomicUsize,
    limit: usize,
}

/// The histograms of one operation. Most calls have the same outcome, so that the list is short.
#[derive(Debug, Default)]
struct Series {
    ok: Histogram,
    others: Mutex<Vec<(CallOutcome, Arc<Histogram>)>>,
}

impl SeriesTable {
    /// A table of at most `limit` histograms, besides those of all others.
    pub(super) fn new(limit: usize) -> Self {
        Self { interfaces: RwLock::default(), other: Arc::default(), histograms: AtomicUsize::new(0), limit }
    }

    pub(super) fn add(&self, interface: &str, operation: &str, outcome: CallOutcome, time: Duration) {
        match self.series(interface, operation) {
            Some(series) => self.count(&series, outcome, time),
            None => self.count(&Arc::clone(&self.other), outcome, time),
        }
    }

    fn count(&self, series: &Series, outcome: CallOutcome, time: Duration) {
        if outcome == CallOutcome::Ok {
            return series.ok.add(time);
        }
        let mut others = series.others.lock();
        if let Some((_, histogram)) = others.iter().find(|(label, _)| *label == outcome) {
            return histogram.add(time);
        }
        // The number of outcomes is bounded by the kinds of exceptions; `other` has a histogram for each.
        if std::ptr::eq(series, &*self.other) || self.reserve_histogram() {
            let histogram = Arc::<Histogram>::default();
            histogram.add(time);
            others.push((outcome, histogram));
            return;
        }
        drop(others);
        self.count(&self.other, outcome, time);
    }

    fn series(&self, interface: &str, operation: &str) -> Option<Arc<Series>> {
        if operation.is_empty() || interface.len() > MAX_NAME_OCTETS || operation.len() > MAX_NAME_OCTETS {
            return None;
        }
        let lookup = |interfaces: &Interfaces| interfaces.get(interface)?.get(operation).cloned();
        if let Some(series) = lookup(&self.interfaces.read()) {
            return Some(series);
        }
        let mut interfaces = self.interfaces.write();
        if let Some(series) = lookup(&interfaces) {
            return Some(series);
        }
        if !self.reserve_histogram() {
            return None;
        }
        let series = Arc::<Series>::default();
        interfaces.entry(interface.into()).or_default().insert(operation.into(), Arc::clone(&series));
        Some(series)
    }

    fn reserve_histogram(&self) -> bool {
        let more = |count| (count < self.limit).then(|| count + 1);
        self.histograms.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// Visits each histogram with its interface, operation and outcome, in the order of these names.
    pub(super) fn visit(&self, mut visit: impl FnMut(&str, &str, CallOutcome, &Histogram)) {
        let mut all: Vec<(String, String, Arc<Series>)> = Vec::new();
        for (interface, operations) in &*self.interfaces.read() {
            let series =
                operations.iter().map(|(name, series)| (interface.to_string(), name.to_string(), Arc::clone(series)));
            all.extend(series);
        }
        all.sort_unstable_by(|(a, b, _), (c, d, _)| (a, b).cmp(&(c, d)));
        all.push((OTHER.to_owned(), OTHER.to_owned(), Arc::clone(&self.other)));
        for (interface, operation, series) in &all {
            visit(interface, operation, CallOutcome::Ok, &series.ok);
            let others = series.others.lock().clone();
            for (outcome, histogram) in others {
                visit(interface, operation, outcome, &histogram);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(table: &SeriesTable) -> Vec<(String, CallOutcome, u64)> {
        let mut names = Vec::new();
        table.visit(|_, operation, outcome, histogram| {
            names.push((operation.to_owned(), outcome, histogram.snapshot().count));
        });
        names
    }

    #[test]
    fn series_beyond_the_limit_share_one() {
        let table = SeriesTable::new(3);
        let time = Duration::from_millis(1);
        for operation in ["a", "b", "a", "c", "d", "e", ""] {
            table.add("I", operation, CallOutcome::Ok, time);
        }
        table.add("I", "a", CallOutcome::UserException, time);
        table.add("I", &"x".repeat(MAX_NAME_OCTETS + 1), CallOutcome::UserException, time);
        let named = |name: &str, outcome, count| (name.to_owned(), outcome, count);
        assert_eq!(
            names(&table),
            [
                named("a", CallOutcome::Ok, 2),
                named("b", CallOutcome::Ok, 1),
                named("c", CallOutcome::Ok, 1),
                named(OTHER, CallOutcome::Ok, 3),
                named(OTHER, CallOutcome::UserException, 2),
            ]
        );
    }
}
