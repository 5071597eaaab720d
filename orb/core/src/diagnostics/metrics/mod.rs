//! Metrics of calls and requests: counts by operation and outcome, and durations.
//!
//! They are off by default (`-ORBMetrics`), since they read the clock twice for each call. The number of
//! series is bounded: the server side takes names only from its own tables, and counts beyond the limit go to
//! `other`.

mod connections;
mod histogram;
mod render;
mod series;

use std::{any::Any, time::Duration};

use spandrel_sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

pub use connections::ConnectionMetrics;
use connections::Connections;
pub(crate) use connections::Side;
use histogram::Histogram;
use series::SeriesTable;

use super::outcome::CallOutcome;

/// The default limit on the histograms of one side.
pub(crate) const MAX_SERIES: usize = 1024;

/// The [`Metrics`] of an ORB.
pub(crate) type SharedMetrics = Arc<dyn Any + Send + Sync>;

/// The metrics of one ORB.
#[derive(Debug)]
pub(crate) struct Metrics {
    sides: [SideMetrics; 2],
    connections: Connections,
    /// The times that requests waited for a thread.
    waits: Histogram,
}

#[derive(Debug)]
struct SideMetrics {
    series: SeriesTable,
    running: AtomicI64,
}

impl Metrics {
    /// Makes metrics with at most `limit` series on each side.
    pub(crate) fn make(limit: usize) -> SharedMetrics {
        let side = || SideMetrics { series: SeriesTable::new(limit), running: AtomicI64::new(0) };
        Arc::new(Self { sides: [side(), side()], connections: Connections::default(), waits: Histogram::default() })
    }

    /// Counts the begin of a call or request.
    pub(super) fn count_begin(&self, side: Side) {
        self.side(side).running.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts the end of a call or request, and adds its time to the series of the operation.
    pub(super) fn count_end(
        &self,
        side: Side,
        (interface, operation): (&str, &str),
        outcome: CallOutcome,
        time: Duration,
    ) {
        self.side(side).running.fetch_sub(1, Ordering::Relaxed);
        self.side(side).series.add(interface, operation, outcome, time);
    }

    /// Adds the time that a request has waited for a thread.
    pub(super) fn add_wait(&self, time: Duration) {
        self.waits.add(time);
    }

    /// Counts a request of so many octets on a connection.
    pub(super) fn on_connection(
        &self,
        connection: &ConnectionMetrics,
        side: Side,
        peer: impl FnOnce() -> String,
        octets: usize,
    ) {
        self.connections.count(connection, side, peer, octets);
    }

    fn side(&self, side: Side) -> &SideMetrics {
        &self.sides[usize::from(side != Side::Client)]
    }
}
