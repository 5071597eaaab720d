//! The observation of a call, from its beginning to its end.

use std::fmt;

use spandrel_giop::{ReplyStatus, ServiceContext, SystemException};
use spandrel_sync::{Arc, time::Instant};
use tracing::{Span, field};

use super::{
    CallOutcome, Diagnostics, Key, TraceContext, TracePropagation,
    metrics::{ConnectionMetrics, Metrics, Side},
};

/// Observes the request of one call, for its span, trace and metrics.
pub trait CallObserver {
    /// Called before the request is sent over a connection, or, without one, served by this ORB.
    fn sent(
        &self,
        connection: Option<(&ConnectionMetrics, &dyn fmt::Display)>,
        key: &[u8],
        request_id: u32,
        octets: usize,
    );
}

/// The state of an observed call.
pub(crate) struct ObservedCall {
    metrics: Option<Arc<Metrics>>,
    started: Instant,
    span: Span,
    context: Option<ServiceContext>,
}

impl ObservedCall {
    /// Begins the observation of a call of this operation.
    pub(crate) fn begin(diagnostics: &Diagnostics, interface: &str, operation: &str) -> Self {
        let span = tracing::debug_span!(
            target: "spandrel::call",
            "call",
            operation,
            interface,
            connection = field::Empty,
            request_id = field::Empty,
            object = field::Empty,
            trace_id = field::Empty,
            outcome = field::Empty,
        );
        let context = span.in_scope(|| outgoing_context(diagnostics, operation)).map(|context| {
            span.record("trace_id", field::display(&context));
            context.to_context()
        });
        let metrics = diagnostics.metrics();
        metrics.iter().for_each(|metrics| metrics.count_begin(Side::Client));
        Self { metrics, started: Instant::now(), span, context }
    }

    /// The contexts that are sent with the request.
    pub(crate) fn contexts(&self) -> &[ServiceContext] {
        self.context.as_slice()
    }

    /// Runs a function in the call's span.
    pub(crate) fn in_scope<R>(&self, act: impl FnOnce() -> R) -> R {
        self.span.in_scope(act)
    }

    /// Ends the observation, with the status of the reply, `None` without a reply, or the exception.
    pub(crate) fn end(&self, interface: &str, operation: &str, outcome: Result<Option<ReplyStatus>, &SystemException>) {
        let outcome = match outcome {
            Ok(Some(ReplyStatus::UserException)) => CallOutcome::UserException,
            Ok(_) => CallOutcome::Ok,
            Err(exception) => {
                self.span.in_scope(|| tracing::debug!(target: "spandrel::call", %exception, "failed"));
                CallOutcome::System(exception.kind())
            }
        };
        self.end_in(interface, operation, outcome);
    }

    /// Ends the observation with this outcome.
    pub(crate) fn end_in(&self, interface: &str, operation: &str, outcome: CallOutcome) {
        let time = self.started.elapsed();
        self.span.record("outcome", outcome.name());
        self.span.in_scope(|| tracing::debug!(target: "spandrel::call", ?time, "ended"));
        if let Some(metrics) = &self.metrics {
            metrics.count_end(Side::Client, (interface, operation), outcome, time);
        }
    }
}

impl CallObserver for ObservedCall {
    fn sent(
        &self,
        connection: Option<(&ConnectionMetrics, &dyn fmt::Display)>,
        key: &[u8],
        request_id: u32,
        octets: usize,
    ) {
        self.span.record("request_id", request_id).record("object", field::display(Key(key)));
        match connection {
            Some((metered, peer)) => {
                self.span.record("connection", field::display(peer));
                if let Some(metrics) = &self.metrics {
                    metrics.on_connection(metered, Side::Client, || peer.to_string(), octets);
                }
            }
            None => drop(self.span.record("connection", "this ORB")),
        }
    }
}

/// The trace context that a call from here carries.
fn outgoing_context(diagnostics: &Diagnostics, operation: &str) -> Option<TraceContext> {
    if diagnostics.trace == TracePropagation::No {
        return None;
    }
    let current = TraceContext::current();
    let outgoing = diagnostics.source().and_then(|source| source.0.outgoing(operation, current.as_ref()));
    outgoing.or_else(|| match current {
        Some(current) => Some(current.child()),
        None => (diagnostics.trace == TracePropagation::Yes).then(|| TraceContext::root(true)),
    })
}

impl fmt::Debug for ObservedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObservedCall").field("span", &self.span.id()).finish_non_exhaustive()
    }
}
