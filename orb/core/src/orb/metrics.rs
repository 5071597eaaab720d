//! The metrics of an ORB: counters, and levels that are read only when the metrics are rendered.

use std::net::SocketAddr;

use super::Orb;
use crate::statistics::Level;

impl Orb {
    /// All counters and measurements in Prometheus' text format, served as
    /// [`statistics::CONTENT_TYPE`](crate::statistics::CONTENT_TYPE). It has durations of calls if
    /// [metrics](crate::OrbBuilder::metrics) are enabled.
    #[must_use]
    pub fn render_metrics(&self) -> String {
        self.update_levels();
        let mut text = self.statistics().render();
        if let Some(metrics) = self.diagnostics().metrics() {
            metrics.render(&mut text);
        }
        text
    }

    /// The address of the metrics endpoint, if there is one
    /// ([`OrbBuilder::metrics_endpoint`](crate::OrbBuilder::metrics_endpoint)), with the port that the system
    /// chose if it was zero.
    #[must_use]
    pub fn metrics_endpoint(&self) -> Option<SocketAddr> {
        self.diagnostics().endpoint().get().map(|endpoint| endpoint.addr())
    }

    /// Updates the levels that are not counted continuously.
    fn update_levels(&self) {
        let statistics = self.statistics();
        let set = |level, count: usize| statistics.set(level, i64::try_from(count).unwrap_or(i64::MAX));
        set(Level::CallsParked, self.peers().parked());
        set(Level::JobsOfMain, self.main().jobs());
        let counts = self.server_side().map(|server_side| server_side.levels()).unwrap_or_default();
        set(Level::RequestsHeld, counts.held);
        set(Level::ThreadsOfConnections, counts.threaded);
        set(Level::ThreadsOfPool, counts.pooled);
        set(Level::RequestsQueued, counts.queued);
        set(Level::RequestsDeferred, counts.deferred);
        set(Level::OctetsReceived, counts.octets);
    }
}
