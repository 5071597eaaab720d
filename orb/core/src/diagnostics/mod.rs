//! What can be seen of calls and requests from outside: spans, metrics, and the traces that they belong to.
//!
//! Nobody is watched unless somebody watches: a call asks once, which is three loads and a branch, and so does a request. What is watched goes another
//! way, through `WatchedCall` on the client's side and `WatchedRequest` on the server's, which lead back into the same code. What has happened to the ORB as a whole is counted by [`statistics`](crate::statistics), always.
//!
//! Direct calls on objects of the same ORB are calls of a method, and not watched.

mod call;
#[cfg(feature = "asynchronous")]
mod endpoint;
pub(crate) mod metrics;
mod outcome;
#[cfg(feature = "server")]
mod request;
mod trace;

use std::fmt;
#[cfg(feature = "asynchronous")]
use std::{net::SocketAddr, sync::OnceLock};

#[cfg(feature = "asynchronous")]
use spandrel_giop::{CompletionStatus, SystemException};
use spandrel_sync::Arc;
#[cfg(feature = "server")]
use spandrel_sync::time::Instant;
use tracing::level_filters::{LevelFilter, STATIC_MAX_LEVEL};

pub(crate) use call::{CallObserver, InterfaceLabel, WatchedCall};
#[cfg(feature = "asynchronous")]
use endpoint::Endpoint;
#[cfg(feature = "asynchronous")]
pub(crate) use endpoint::RenderMetrics;
pub(crate) use metrics::ConnectionMetrics;
pub(crate) use metrics::MAX_SERIES;
use metrics::Metrics;
pub(crate) use outcome::CallOutcome;
#[cfg(feature = "server")]
pub(crate) use request::WatchedRequest;
pub(crate) use trace::TraceSourceSetting;
pub use trace::{MAX_STATE, TraceContext, TraceContextError, TracePropagation, TraceScope, TraceSource};

use crate::object::InvokeFn;

/// What is wanted.
#[derive(Clone, Debug, Default)]
pub(crate) struct DiagnosticsSettings {
    /// Makes calls that are observed. A program that never sets it does not contain the observers.
    pub(crate) invoke_fn: Option<InvokeFn>,
    /// The most histograms on each side; none: nothing is measured.
    pub(crate) metrics: Option<usize>,
    pub(crate) trace: TracePropagation,
    pub(crate) source: Option<TraceSourceSetting>,
    /// Where metrics are told.
    #[cfg(feature = "asynchronous")]
    pub(crate) endpoint: Option<SocketAddr>,
}

/// What an ORB has for those who watch it.
#[derive(Debug)]
pub(crate) struct Diagnostics {
    invoke_fn: Option<InvokeFn>,
    metrics: Option<Arc<Metrics>>,
    trace: TracePropagation,
    source: Option<TraceSourceSetting>,
    #[cfg(feature = "asynchronous")]
    endpoint: OnceLock<Endpoint>,
    /// Every call and every request is watched.
    is_wanted: bool,
}

impl Diagnostics {
    pub(crate) fn new(settings: &DiagnosticsSettings) -> Self {
        let DiagnosticsSettings { invoke_fn, metrics, trace, source, .. } = settings.clone();
        let traces = trace == TracePropagation::Yes || trace != TracePropagation::No && source.is_some();
        Self {
            invoke_fn,
            is_wanted: metrics.is_some() || traces,
            metrics: metrics.map(Metrics::new).map(Arc::new),
            trace,
            source,
            #[cfg(feature = "asynchronous")]
            endpoint: OnceLock::new(),
        }
    }

    /// Makes a call that is observed; `None` if calls of this thread are not.
    #[inline]
    pub(crate) fn invoke_fn(&self) -> Option<InvokeFn> {
        if self.is_watched() { self.invoke_fn } else { None }
    }

    /// Whether a call that this thread makes is watched.
    #[inline]
    pub(crate) fn is_watched(&self) -> bool {
        self.is_wanted | trace::is_traced() | is_logged()
    }

    /// Begins to tell metrics at this address.
    ///
    /// # Errors
    /// INITIALIZE if it cannot be listened on.
    #[cfg(feature = "asynchronous")]
    pub(crate) fn tell(&self, addr: SocketAddr, render: RenderMetrics) -> Result<(), SystemException> {
        let opened = Endpoint::open(addr, render).map_err(|error| {
            SystemException::initialize(0, CompletionStatus::No)
                .with_detail(|| format!("metrics cannot be told at {addr} (`-ORBMetricsEndpoint`)"))
                .with_source(error)
        })?;
        let is_first = self.endpoint.set(opened).is_ok();
        debug_assert!(is_first, "an ORB begins once");
        Ok(())
    }

    /// Where metrics are told, if they are.
    #[cfg(feature = "asynchronous")]
    pub(crate) fn told_at(&self) -> Option<SocketAddr> {
        self.endpoint.get().map(Endpoint::addr)
    }

    /// The ORB begins to shut down, and goes on telling.
    pub(crate) fn begin_close(&self) {
        #[cfg(feature = "asynchronous")]
        if let Some(endpoint) = self.endpoint.get() {
            endpoint.begin_close();
        }
    }

    /// The ORB has shut down.
    pub(crate) fn close(&self) {
        #[cfg(feature = "asynchronous")]
        if let Some(endpoint) = self.endpoint.get() {
            endpoint.close();
        }
    }

    pub(crate) fn metrics(&self) -> Option<&Arc<Metrics>> {
        self.metrics.as_ref()
    }

    /// What joins traces to ours, unless there are to be none.
    fn source(&self) -> Option<&TraceSourceSetting> {
        self.source.as_ref().filter(|_| self.trace != TracePropagation::No)
    }
}

/// Does something that belongs to no trace, in whatever thread.
#[cfg(feature = "server")]
#[inline]
pub(crate) fn untraced<R>(act: impl FnOnce() -> R) -> R {
    let _scope = trace::is_traced().then(|| TraceScope::of(None));
    act()
}

/// Whether somebody may want to see spans.
#[inline]
fn is_logged() -> bool {
    LevelFilter::DEBUG <= STATIC_MAX_LEVEL && LevelFilter::DEBUG <= LevelFilter::current()
}

/// When a request came that waits for a thread, if somebody measures that.
#[cfg(feature = "server")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArrivalTime(Option<Instant>);

#[cfg(feature = "server")]
impl ArrivalTime {
    pub(crate) fn now(diagnostics: &Diagnostics) -> Self {
        Self(diagnostics.metrics().map(|_| Instant::now()))
    }

    /// It waits no longer.
    pub(crate) fn ends(self, diagnostics: &Diagnostics) {
        if let (Some(since), Some(metrics)) = (self.0, diagnostics.metrics()) {
            metrics.waited(since.elapsed());
        }
    }
}

/// An object's key among other text: as it is where it is printable, and not all of it where it is long.
struct Key<'k>(&'k [u8]);

impl fmt::Display for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 48;
        let shown = &self.0[..self.0.len().min(SHOWN)];
        write!(f, "{}{}", shown.escape_ascii(), if shown.len() < self.0.len() { "…" } else { "" })
    }
}
