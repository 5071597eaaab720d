//! Calls and requests in numbers: how many there were of each operation, how they ended, and how long they took.
//!
//! Off unless somebody wants it (`-ORBMetrics`), since it reads the clock twice for each call. The number of series is bounded: the
//! server side takes names only from its own tables, and what there is no room for is counted as `other`.

mod connections;
mod histogram;
mod render;
mod series;

use std::time::Duration;

use spandrel_sync::atomic::{AtomicI64, Ordering};

use connections::Connections;
pub(crate) use connections::{ConnectionMetrics, Side};
#[cfg(feature = "server")]
use histogram::Histogram;
use series::SeriesTable;

use super::CallOutcome;

/// Histograms of one side at most, unless somebody says otherwise.
pub(crate) const MAX_SERIES: usize = 1024;

/// The numbers of one ORB.
#[derive(Debug)]
pub(crate) struct Metrics {
    sides: [SideMetrics; 2],
    connections: Connections,
    /// How long requests waited for a thread.
    #[cfg(feature = "server")]
    waits: Histogram,
}

#[derive(Debug)]
struct SideMetrics {
    series: SeriesTable,
    running: AtomicI64,
}

impl Metrics {
    /// At most so many series on each side.
    pub(super) fn new(limit: usize) -> Self {
        let side = || SideMetrics { series: SeriesTable::new(limit), running: AtomicI64::new(0) };
        Self {
            sides: [side(), side()],
            connections: Connections::default(),
            #[cfg(feature = "server")]
            waits: Histogram::default(),
        }
    }

    /// A call or a request begins.
    pub(super) fn begun(&self, side: Side) {
        self.side(side).running.fetch_add(1, Ordering::Relaxed);
    }

    /// It has ended.
    pub(super) fn ended(&self, side: Side, (interface, operation): (&str, &str), outcome: CallOutcome, time: Duration) {
        self.side(side).running.fetch_sub(1, Ordering::Relaxed);
        self.side(side).series.add(interface, operation, outcome, time);
    }

    /// A request has waited so long for a thread.
    #[cfg(feature = "server")]
    pub(super) fn waited(&self, time: Duration) {
        self.waits.add(time);
    }

    /// A request of so many octets goes over a connection.
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
