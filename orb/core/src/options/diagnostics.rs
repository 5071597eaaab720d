//! What is measured, and what others are told of it.

use spandrel_sync::Arc;

use crate::{
    ObjectRef, OrbBuilder,
    diagnostics::{MAX_SERIES, TracePropagation, TraceSource, TraceSourceSetting},
};

impl OrbBuilder {
    /// Adds diagnostics of calls: spans for `tracing`, metrics and trace contexts as far as they are switched on.
    #[must_use]
    pub fn diagnostics(mut self) -> Self {
        self.settings.diagnostics.invoke_fn = Some(ObjectRef::invoke_observed);
        self
    }

    /// Whether calls and requests are measured: how many of each operation there were, how they ended, and how long they took
    /// (`-ORBMetrics`; default no). [`Orb::render_metrics`](crate::Orb::render_metrics) tells.
    #[must_use]
    pub fn metrics(self, is_wanted: bool) -> Self {
        self.max_series(if is_wanted { MAX_SERIES } else { 0 })
    }

    /// The same, with so many series (of an operation and an outcome) on each side at most (default 1,024); what there is no room for is
    /// counted as the operation `other`. Zero: nothing is measured.
    #[must_use]
    pub fn max_series(self, series: usize) -> Self {
        let mut this = self.diagnostics();
        this.settings.diagnostics.metrics = (series > 0).then_some(series);
        this
    }

    /// Tells metrics over HTTP at this address, port zero for one that the system chooses: `/metrics` for Prometheus, and `/healthz`
    /// (`-ORBMetricsEndpoint`; default: nowhere). Calls and requests are measured then. Everybody who reaches the address may
    /// ask: a loopback address is right for most.
    #[must_use]
    #[cfg(feature = "asynchronous")]
    pub fn metrics_endpoint(self, addr: std::net::SocketAddr) -> Self {
        let mut this = self.diagnostics();
        this.settings.diagnostics.endpoint = Some(addr);
        this.settings.diagnostics.metrics.get_or_insert(MAX_SERIES);
        this
    }

    /// Whether requests carry trace contexts (`-ORBTraceContext`; default: those that come are carried on).
    #[must_use]
    pub fn trace_context(self, propagation: TracePropagation) -> Self {
        let mut this = self.diagnostics();
        this.settings.diagnostics.trace = propagation;
        this
    }

    /// Joins the traces of another tracing system to those of requests.
    #[must_use]
    pub fn trace_source(self, source: impl TraceSource + 'static) -> Self {
        let mut this = self.diagnostics();
        this.settings.diagnostics.source = Some(TraceSourceSetting(Arc::new(source)));
        this
    }
}
