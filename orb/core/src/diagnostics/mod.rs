//! The observation of calls and requests: spans, metrics, and traces.
//!
//! Without an observer, a call or request pays three loads and a branch. With one, it goes through
//! `ObservedCall` on the client or `ObservedRequest` on the server, which lead back into the same code. Events
//! of the ORB as a whole are always counted, by [`statistics`].
//!
//! Direct calls on objects of the same ORB are method calls, and are not observed.

mod call;
pub(crate) mod metrics;
mod outcome;
pub(crate) mod request;
pub mod statistics;
mod trace;

use std::{fmt, net::SocketAddr, sync::OnceLock};

use spandrel_sync::Arc;
use spandrel_sync::time::Instant;
use tracing::level_filters::{LevelFilter, STATIC_MAX_LEVEL};

pub(crate) use call::{CallObserver, ObservedCall};
pub(crate) use metrics::ConnectionMetrics;
pub(crate) use metrics::{MAX_SERIES, Metrics, SharedMetrics};
pub(crate) use outcome::CallOutcome;
pub(crate) use trace::TraceSourceSetting;
pub use trace::{MAX_STATE, TraceContext, TraceContextError, TracePropagation, TraceScope, TraceSource};

/// The records of an ORB of its calls and requests: metrics, traces and log lines.
#[derive(Clone, Debug, Default)]
pub(crate) struct DiagnosticsSettings {
    /// Makes the metrics; `None` without them. A program that never sets it does not contain them.
    pub(crate) metrics: Option<(MakeMetrics, usize)>,
    pub(crate) trace: TracePropagation,
    pub(crate) source: Option<TraceSourceSetting>,
}

/// Makes the [`Metrics`] of an ORB, with at most so many histograms on each side.
pub(crate) type MakeMetrics = fn(usize) -> SharedMetrics;

/// An endpoint that serves the metrics of an ORB; closed when it is dropped.
pub(crate) trait MetricsEndpoint: Send + Sync + fmt::Debug {
    /// The address, with the port that the system chose.
    fn addr(&self) -> SocketAddr;

    /// Reports the begin of the shutdown; the endpoint goes on serving.
    fn begin_close(&self);

    /// Stops serving: later requests of metrics find no endpoint.
    fn close(&self);
}

/// The metrics, trace propagation and metrics endpoint of one ORB.
#[derive(Debug)]
pub struct Diagnostics {
    metrics: Option<SharedMetrics>,
    trace: TracePropagation,
    source: Option<TraceSourceSetting>,
    endpoint: OnceLock<Box<dyn MetricsEndpoint>>,
    /// Whether all calls and requests are observed.
    observes_all: bool,
}

impl Diagnostics {
    pub(crate) fn new(settings: &DiagnosticsSettings) -> Self {
        let DiagnosticsSettings { metrics, trace, source } = settings.clone();
        let traces = trace == TracePropagation::Yes || trace != TracePropagation::No && source.is_some();
        Self {
            observes_all: metrics.is_some() || traces,
            metrics: metrics.map(|(make, limit)| make(limit)),
            trace,
            source,
            endpoint: OnceLock::new(),
        }
    }

    /// Whether a call or request of this thread is observed.
    #[inline]
    pub(crate) fn is_observed(&self) -> bool {
        self.observes_all | trace::is_traced() | is_logged()
    }

    /// The metrics endpoint, which is opened at most once.
    pub(crate) fn endpoint(&self) -> &OnceLock<Box<dyn MetricsEndpoint>> {
        &self.endpoint
    }

    /// Reports the begin of the shutdown; the endpoint goes on serving.
    pub(crate) fn begin_close(&self) {
        if let Some(endpoint) = self.endpoint.get() {
            endpoint.begin_close();
        }
    }

    /// Closes the endpoint, after the shutdown of the ORB.
    pub(crate) fn close(&self) {
        if let Some(endpoint) = self.endpoint.get() {
            endpoint.close();
        }
    }

    pub(crate) fn metrics(&self) -> Option<Arc<Metrics>> {
        Arc::clone(self.metrics.as_ref()?).downcast().ok()
    }

    /// The application's trace source, unless traces are off.
    fn source(&self) -> Option<&TraceSourceSetting> {
        self.source.as_ref().filter(|_| self.trace != TracePropagation::No)
    }
}

/// Runs a function that belongs to no trace.
#[inline]
pub fn untraced<R>(act: impl FnOnce() -> R) -> R {
    let _scope = trace::is_traced().then(|| TraceScope::of(None));
    act()
}

/// Whether spans at level debug may be enabled.
#[inline]
fn is_logged() -> bool {
    LevelFilter::DEBUG <= STATIC_MAX_LEVEL && LevelFilter::DEBUG <= LevelFilter::current()
}

/// The arrival time of a request that waits for a thread, if the ORB is measured.
#[derive(Clone, Copy, Debug)]
pub struct ArrivalTime(Option<Instant>);

impl ArrivalTime {
    /// The present time, if requests are measured.
    pub fn now(diagnostics: &Diagnostics) -> Self {
        Self(diagnostics.metrics.as_ref().map(|_| Instant::now()))
    }

    /// Adds the time since the arrival to the metrics, when a thread takes the request.
    pub fn ends(self, diagnostics: &Diagnostics) {
        if let (Some(since), Some(metrics)) = (self.0, diagnostics.metrics()) {
            metrics.add_wait(since.elapsed());
        }
    }
}

/// An object key as text: escaped where it is not printable, and shortened.
struct Key<'k>(&'k [u8]);

impl fmt::Display for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 48;
        let shown = &self.0[..self.0.len().min(SHOWN)];
        write!(f, "{}{}", shown.escape_ascii(), if shown.len() < self.0.len() { "…" } else { "" })
    }
}
