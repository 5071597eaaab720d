//! What is measured, and what others are told of it.

use spandrel_sync::Arc;

use crate::{
    OrbBuilder,
    diagnostics::{MAX_SERIES, TracePropagation, TraceSource, TraceSourceSetting},
};

impl OrbBuilder {
    /// Whether calls and requests are measured: how many of each operation there were, how they ended, and how long they took
    /// (`-ORBMetrics`; default no). [`Orb::render_metrics`](crate::Orb::render_metrics) tells.
    #[must_use]
    pub fn metrics(self, is_wanted: bool) -> Self {
        self.max_series(if is_wanted { MAX_SERIES } else { 0 })
    }

    /// The same, with so many series (of an operation and an outcome) on each side at most (default 1,024); what there is no room for is
    /// counted as the operation `other`. Zero: nothing is measured.
    #[must_use]
    pub fn max_series(mut self, series: usize) -> Self {
        self.settings.diagnostics.metrics = (series > 0).then_some(series);
        self
    }

    /// Tells metrics over HTTP at this address, port zero for one that the system chooses: `/metrics` for Prometheus, and `/healthz`
    /// (`-ORBMetricsEndpoint`; default: nowhere). Calls and requests are measured then. Everybody who reaches the address may
    /// ask: a loopback address is right for most.
    #[must_use]
    #[cfg(feature = "asynchronous")]
    pub fn metrics_endpoint(mut self, addr: std::net::SocketAddr) -> Self {
        self.settings.diagnostics.endpoint = Some(addr);
        self.settings.diagnostics.metrics.get_or_insert(MAX_SERIES);
        self
    }

    /// Whether requests carry trace contexts (`-ORBTraceContext`; default: those that come are carried on).
    #[must_use]
    pub fn trace_context(mut self, propagation: TracePropagation) -> Self {
        self.settings.diagnostics.trace = propagation;
        self
    }

    /// Joins the traces of another tracing system to those of requests.
    #[must_use]
    pub fn trace_source(mut self, source: impl TraceSource + 'static) -> Self {
        self.settings.diagnostics.source = Some(TraceSourceSetting(Arc::new(source)));
        self
    }
}
