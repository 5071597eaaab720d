//! Options of diagnostics: metrics, the metrics endpoint, trace contexts.

use spandrel_sync::Arc;

use crate::{
    OrbBuilder,
    call::invocation::observe_call,
    diagnostics::{MAX_SERIES, Metrics, TracePropagation, TraceSource, TraceSourceSetting},
};

impl OrbBuilder {
    /// Adds diagnostics of calls: spans for `tracing`, and the enabled metrics and trace contexts.
    #[must_use]
    pub fn diagnostics(mut self) -> Self {
        self.settings.parts.set_observe_call(observe_call);
        self
    }

    /// Whether calls and requests are measured: their number by operation, outcome, and duration
    /// (`-ORBMetrics`; default no). [`Orb::render_metrics`](crate::Orb::render_metrics) returns the figures.
    #[must_use]
    pub fn metrics(self, is_wanted: bool) -> Self {
        self.max_series(if is_wanted { MAX_SERIES } else { 0 })
    }

    /// Enables [metrics](Self::metrics) with at most this number of series (of an operation and an outcome)
    /// on each side (default 1,024). Calls beyond it are counted as the operation `other`. Zero disables
    /// metrics.
    #[must_use]
    pub fn max_series(self, series: usize) -> Self {
        let mut this = self.diagnostics();
        this.settings.diagnostics.metrics = (series > 0).then_some((Metrics::make, series));
        this
    }

    /// Whether requests carry trace contexts (`-ORBTraceContext`; default: received ones are propagated).
    #[must_use]
    pub fn trace_context(self, propagation: TracePropagation) -> Self {
        let mut this = self.diagnostics();
        this.settings.diagnostics.trace = propagation;
        this
    }

    /// Connects the traces of requests with those of another tracing system.
    #[must_use]
    pub fn trace_source(self, source: impl TraceSource + 'static) -> Self {
        let mut this = self.diagnostics();
        this.settings.diagnostics.source = Some(TraceSourceSetting(Arc::new(source)));
        this
    }
}
