//! The observation of a request, from its reading to its end, in all threads that serve it.

use std::{fmt, sync::OnceLock, time::Duration};

use spandrel_giop::{ReplyStatus, RequestHeader, SystemException, SystemExceptionKind, ids::CONTEXT_TRACE};
use spandrel_sync::{Arc, Mutex, time::Instant};
use tracing::{Span, field};

use super::{
    CallOutcome, Diagnostics, Key, TraceContext, TracePropagation, TraceScope,
    metrics::{ConnectionMetrics, Metrics, Side},
};

/// The operations that all objects have, also without an entry in their table.
const IMPLICIT: &[&str] = &[
    "_is_a",
    "_non_existent",
    "_not_existent",
    "_repository_id",
    "_interface",
    "_domain_managers",
    "_component",
    "_get_component",
];

impl Diagnostics {
    /// Whether a request is observed: because all are, because it carries a trace context, or because the
    /// serving thread works for a trace, to which the request need not belong.
    #[inline]
    pub fn is_request_observed(&self, header: &RequestHeader<'_>) -> bool {
        self.is_observed() || !header.service_contexts.is_empty() && self.is_of_trace(header)
    }

    #[cold]
    fn is_of_trace(&self, header: &RequestHeader<'_>) -> bool {
        self.trace != TracePropagation::No && header.service_contexts.find(CONTEXT_TRACE).is_some()
    }
}

/// The state of an observed request. Shared by all that serve it; the observation ends with the last
/// reference.
pub struct ObservedRequest {
    metrics: Option<Arc<Metrics>>,
    started: Instant,
    span: Span,
    /// The trace context of its servant.
    trace: Option<TraceContext>,
    /// The interface of its servant, and the operation if the servant has it.
    servant_operation: OnceLock<(String, String)>,
    ending: Mutex<RequestEnd>,
}

#[derive(Debug, Default)]
struct RequestEnd {
    /// The kind of the exception in the reply.
    exception: Option<SystemExceptionKind>,
    ended: Option<(CallOutcome, Duration)>,
}

impl ObservedRequest {
    /// Opens the span of a received request, joins its trace, and counts it.
    pub fn begin(
        diagnostics: &Diagnostics,
        peer: &str,
        connection: Option<&ConnectionMetrics>,
        header: &RequestHeader<'_>,
        octets: usize,
    ) -> Arc<Self> {
        let span = tracing::debug_span!(
            target: "spandrel::request",
            "request",
            operation = &*header.operation,
            interface = field::Empty,
            connection = peer,
            request_id = header.request_id,
            object = field::Empty,
            trace_id = field::Empty,
            parent_id = field::Empty,
            outcome = field::Empty,
        );
        if let (Some(key), false) = (header.target.object_key(), span.is_disabled()) {
            span.record("object", field::display(Key(&key)));
        }
        let trace = span.in_scope(|| incoming_context(diagnostics, header, &span));
        let metrics = diagnostics.metrics();
        if let Some(metrics) = &metrics {
            metrics.count_begin(Side::Server);
            if let Some(connection) = connection {
                metrics.on_connection(connection, Side::Server, || peer.to_owned(), octets);
            }
        }
        let (servant_operation, ending) = (OnceLock::new(), Mutex::default());
        Arc::new(Self { metrics, started: Instant::now(), span, trace, servant_operation, ending })
    }

    /// Runs a function in the request's span and trace.
    pub fn in_scope<R>(&self, act: impl FnOnce() -> R) -> R {
        let _trace = TraceScope::of(self.trace.clone());
        self.span.in_scope(act)
    }

    /// Records the servant's interface and operation. `has_operation`: its table has the operation.
    pub fn record_servant(&self, interface: &str, operation: &str, has_operation: bool) {
        self.span.record("interface", interface);
        let is_known = has_operation || IMPLICIT.contains(&operation);
        if self.metrics.is_some() {
            let operation = if is_known { operation } else { "" };
            // The servant of a request that waited is found twice.
            let _ = self.servant_operation.set((interface.to_owned(), operation.to_owned()));
        }
    }

    /// Records that the reply will have this exception.
    pub fn record_exception(&self, exception: &SystemException) {
        self.span.in_scope(|| tracing::debug!(target: "spandrel::request", %exception, "failed"));
        self.ending.lock().exception = Some(exception.kind());
    }

    /// Records the reply, or, for one-ways, the end of the upcall.
    pub fn record_reply(&self, status: ReplyStatus) {
        let mut ending = self.ending.lock();
        let outcome = match (CallOutcome::of_reply(status), ending.exception) {
            (CallOutcome::System(_), Some(kind)) => CallOutcome::System(kind),
            (outcome, _) => outcome,
        };
        ending.ended.get_or_insert_with(|| (outcome, self.started.elapsed()));
    }
}

impl Drop for ObservedRequest {
    fn drop(&mut self) {
        let ended = self.ending.lock().ended.take();
        let (outcome, time) = ended.unwrap_or_else(|| (CallOutcome::Abandoned, self.started.elapsed()));
        self.span.record("outcome", outcome.name());
        self.span.in_scope(|| tracing::debug!(target: "spandrel::request", ?time, "ended"));
        if let Some(metrics) = &self.metrics {
            let (interface, operation) =
                self.servant_operation.get().map_or(("", ""), |(interface, name)| (interface, name));
            // A dynamic servant has no table: this exception means that the operation is unknown.
            let is_unknown = outcome == CallOutcome::System(SystemExceptionKind::BadOperation);
            metrics.count_end(Side::Server, (interface, if is_unknown { "" } else { operation }), outcome, time);
        }
    }
}

/// The trace context of a request's servant: a child of the received one.
fn incoming_context(diagnostics: &Diagnostics, header: &RequestHeader<'_>, span: &Span) -> Option<TraceContext> {
    if diagnostics.trace == TracePropagation::No || header.service_contexts.is_empty() {
        return None;
    }
    let Some(sent) = TraceContext::of_context(header.service_contexts.find(CONTEXT_TRACE)?) else {
        tracing::debug!(target: "spandrel::request", "a malformed trace context is ignored");
        return None;
    };
    let own = sent.child();
    if !span.is_disabled() {
        span.record("trace_id", field::display(&own)).record("parent_id", field::display(&sent));
    }
    if let Some(source) = diagnostics.source() {
        source.0.incoming(&header.operation, &sent);
    }
    Some(own)
}

impl fmt::Debug for ObservedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObservedRequest").field("span", &self.span.id()).finish_non_exhaustive()
    }
}
